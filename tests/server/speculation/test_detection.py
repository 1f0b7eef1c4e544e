import pytest
from tests.server.speculation.settings import read

from outrider.errors import InvalidSetting
from outrider.server.speculation.detection import detect
from outrider.server.speculation.method_names import ACCEPTED, DEPRECATED_FOR_MTP


@pytest.mark.parametrize("method", ACCEPTED)
def test_a_method_without_a_model_is_what_was_written(method: str) -> None:
    assert str(detect(read(method=method))) == method


@pytest.mark.parametrize("method", sorted(DEPRECATED_FOR_MTP))
def test_a_deprecated_spelling_is_mtp_and_says_so(method: str) -> None:
    found = detect(read(method=method, model="org/draft"))
    assert found.method == "mtp"
    assert str(found) == f"mtp ({method} is a deprecated spelling of it)"


def test_all_27_deprecated_spellings_are_known() -> None:
    assert len(DEPRECATED_FOR_MTP) == 27


@pytest.mark.parametrize(
    ("model", "method"),
    [
        ("my_package.drafters.Mine", "custom_class"),
        ("a.b", "custom_class"),
        ("ngram", "ngram"),
        ("[ngram]", "ngram"),
        ("org/EAGLE-llama", "eagle"),
        ("org/EAGLE3-llama", "eagle3"),
        ("org/EAGLE-LLaMA3", "eagle"),
        ("org/eagle-eagle3", "eagle"),
        ("/models/Qwen3-DFlash", "dflash"),
        ("org/dspark-4b", "dspark"),
        ("org/dspark-dflash", "dflash"),
        ("org/Qwen2.5-0.5B", "draft_model"),
        ("Qwen2.5", "draft_model"),
        ("folder/a.b", "draft_model"),
        ("a..b", "draft_model"),
        ("plain", "draft_model"),
    ],
)
def test_a_model_alone_tells_the_method_in_vllms_order_and_why(model: str, method: str) -> None:
    found = detect(read(model=model))
    assert found.method == method
    assert found.reason is not None
    assert repr(model) in found.reason


@pytest.mark.parametrize(
    ("method", "model", "found"),
    [
        ("draft_model", "org/my-eagle3-lm", "eagle3"),
        ("mtp", "org/eagle-x", "eagle"),
        ("qwen3_next_mtp", "org/dflash", "dflash"),
        ("draft_model", "a.b", "draft_model"),
        ("draft_model", "ngram", "draft_model"),
        ("eagle", "org/eagle3", "eagle"),
        ("eagle3", "org/eagle-dspark", "eagle3"),
        ("dflash", "org/eagle-x", "dflash"),
        ("dspark", "org/dflash", "dspark"),
        ("ngram", "org/eagle3", "ngram"),
        ("suffix", "org/eagle3", "suffix"),
        ("extract_hidden_states", "org/eagle3", "extract_hidden_states"),
    ],
)
def test_a_path_outranks_draft_model_and_mtp_but_no_other_method(
    method: str, model: str, found: str
) -> None:
    assert detect(read(method=method, model=model)).method == found


def test_neither_method_nor_model_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="neither method nor model"):
        detect(read(prompt_lookup_max=3))
    with pytest.raises(
        InvalidSetting,
        match="num_speculative_tokens was provided but without speculative model",
    ):
        detect(read(num_speculative_tokens=3))
