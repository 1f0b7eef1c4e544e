import pytest
from tests.server.speculation.settings import TARGET, read

from outrider.errors import InvalidSetting
from outrider.server.speculation.checkpoint import draft_checkpoint


@pytest.mark.parametrize(
    ("method", "model", "checkpoint"),
    [
        ("mtp", None, "org/target"),
        ("dspark", None, "org/target"),
        ("mtp", "org/draft", "org/draft"),
        ("eagle3", "org/draft", "org/draft"),
        ("draft_model", "org/draft", "org/draft"),
        ("ngram", None, None),
        ("ngram", "ngram", None),
        ("ngram", "[ngram]", None),
        ("suffix", None, None),
        ("suffix", "suffix", None),
        ("extract_hidden_states", None, None),
    ],
)
def test_the_draft_weights_come_from_the_model_the_target_or_nowhere(
    method: str, model: str | None, checkpoint: str | None
) -> None:
    assert draft_checkpoint(method, read(method=method, model=model), TARGET) == checkpoint


@pytest.mark.parametrize("method", ["draft_model", "eagle", "eagle3", "dflash", "custom_class"])
def test_a_method_that_needs_a_model_asks_for_it(method: str) -> None:
    with pytest.raises(InvalidSetting, match=f'method {method} without a model.*set "model"'):
        draft_checkpoint(method, read(method=method), TARGET)


@pytest.mark.parametrize(
    ("method", "model"), [("ngram", "org/draft"), ("suffix", "ngram"), ("suffix", "[suffix]")]
)
def test_a_model_for_a_method_without_one_is_refused(method: str, model: str) -> None:
    with pytest.raises(InvalidSetting, match=f"with method {method}; expected no model"):
        draft_checkpoint(method, read(method=method, model=model), TARGET)
