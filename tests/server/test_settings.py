import pytest

from outrider.errors import InvalidSetting
from outrider.server.api.settings import RequestLimits
from outrider.server.running import ListenSettings
from outrider.server.service.building import EngineSettings
from outrider.server.settings import ServerSettings


def settings(**fields: object) -> ServerSettings:
    base: dict[str, object] = {
        "model": "m", "engine": EngineSettings(), "listen": ListenSettings(),
        "limits": RequestLimits(),
    }  # fmt: skip
    return ServerSettings(**base | fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org", ""])  # noqa: S104
def test_other_addresses_than_this_machines_need_a_key(host: str) -> None:
    listen = ListenSettings(host=host)
    with pytest.raises(InvalidSetting, match="--api-key"):
        settings(listen=listen)
    assert settings(listen=listen, api_keys=("k",))
    assert settings(listen=listen, insecure=True)


def test_metrics_of_speculation_need_some() -> None:
    with pytest.raises(InvalidSetting, match="requires speculative decoding"):
        settings(spec_decode_metrics="summary")


def test_times_need_statistics() -> None:
    with pytest.raises(InvalidSetting, match="requires engine statistics"):
        settings(timing_metrics=True, log_stats=False)


def test_a_model_is_called_as_it_was_named_unless_told_otherwise() -> None:
    assert settings().model_names == ("m",)
    assert settings(served_model_names=("a", "b")).model_names == ("a", "b")
    with pytest.raises(InvalidSetting, match="empty --served-model-name"):
        settings(served_model_names=("a", ""))
