import pytest
from tests.server.speculation.settings import read

from outrider.errors import InvalidSetting
from outrider.server.speculation.method_names import ACCEPTED, known_method


@pytest.mark.parametrize("method", [*ACCEPTED, "qwen3_next_mtp", "step3p5_mtp"])
def test_a_method_of_vllm_is_kept_as_it_was_written(method: str) -> None:
    assert read(method=method).method == method


@pytest.mark.parametrize("method", ["medusa", "mlp_speculator"])
def test_a_removed_method_is_told_since_when_and_what_to_use(method: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        read(method=method)
    assert f'method "{method}"' in raised.value.seen
    for part in ("removed in vLLM 0.33.0", "0.32.0 is the last", "eagle3", "ngram"):
        assert part in raised.value.remedy


@pytest.mark.parametrize(
    ("method", "asked_for_by"),
    [
        ("peagle", '"method": "eagle3", "parallel_drafting": true'),
        ("P-EAGLE", '"method": "eagle3", "parallel_drafting": true'),
        ("pard", '"method": "draft_model", "parallel_drafting": true'),
        ("tli", '"method": "draft_model", "use_heterogeneous_vocab": true'),
        ("xpress", '"method": "dflash"; the `architectures` entry'),
        ("dflash2", '"method": "dflash"; the `architectures` entry'),
        ("lilicorr", '"method": "dflash"; the `architectures` entry'),
        ("fly", '"rejection_sample_method": "fly"'),
        ("[ngram]", '"method": "ngram"'),
        ("none", "leave the speculative config out"),
    ],
)
def test_an_idea_that_is_no_method_is_told_how_it_is_asked_for(
    method: str, asked_for_by: str
) -> None:
    with pytest.raises(InvalidSetting) as raised:
        known_method(method)
    assert asked_for_by in raised.value.remedy


@pytest.mark.parametrize(
    ("method", "meant"),
    [
        ("egale3", "eagle3"),
        ("EAGLE-3", "eagle3"),
        ("n-gram", "ngram"),
        ("NGRAM", "ngram"),
        ("draft-model", "draft_model"),
        ("sufix", "suffix"),
        ("qwen3_nxt_mtp", "qwen3_next_mtp"),
    ],
)
def test_a_misspelt_method_is_told_the_nearest(method: str, meant: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        known_method(method)
    assert raised.value.remedy == f'write "method": "{meant}"'


def test_a_misspelling_of_an_idea_gets_the_advice_on_the_idea() -> None:
    with pytest.raises(InvalidSetting, match=r"removed in vLLM 0\.33\.0"):
        known_method("medussa")


def test_a_name_like_no_other_is_told_all_methods() -> None:
    with pytest.raises(InvalidSetting) as raised:
        known_method("xyz\n" * 100)
    assert all(method in raised.value.expected for method in ACCEPTED)
    assert "\n" not in str(raised.value)
