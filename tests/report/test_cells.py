import pytest

from outrider.report.cells import counted


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 prompts"), (1, "1 prompt"), (2, "2 prompts"), (1234, "1,234 prompts")],
)
def test_a_noun_follows_its_count(count: int, shown: str) -> None:
    assert counted(count, "prompt") == shown
