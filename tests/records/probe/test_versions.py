import pytest

from outrider.records.probe.versions import has_request_figures


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("0.33.0", True),
        ("0.32.0rc1", True),
        ("v1.0.0", True),
        ("0.28.0", False),
        ("0.23.1.dev0+g0fc695fc6", False),
        ("0.29.1", None),
        ("0.1.dev1+gabc", None),
        ("dev", None),
        (None, None),
    ],
)
def test_a_version_tells_only_what_was_looked_at(version: str | None, known: bool | None) -> None:
    assert has_request_figures(version) is known
