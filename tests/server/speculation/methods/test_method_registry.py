import pytest

from outrider.engine.drafting.registry import DRAFTERS
from outrider.errors import InvalidSetting
from outrider.server.speculation.config import KEYS
from outrider.server.speculation.detection import Detection
from outrider.server.speculation.method_names import ACCEPTED
from outrider.server.speculation.methods.registry import METHODS, method_for


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_registered_under_its_own_name_which_is_one_of_vllm(name: str) -> None:
    assert METHODS[name].name == name
    assert name in ACCEPTED
    assert METHODS[name].keys <= set(KEYS)


def test_every_drafter_of_the_engine_can_be_asked_for() -> None:
    assert set(METHODS) >= set(DRAFTERS) - {"none"}


def test_a_method_that_is_not_there_is_told_which_are_and_why_it_was_taken() -> None:
    with pytest.raises(InvalidSetting) as raised:
        method_for(Detection("eagle", "so says the name"))
    assert raised.value.seen.startswith("method eagle (so says the name)")
    assert all(name in raised.value.expected for name in METHODS)
