from typing import Any

import pytest
from tests.engine.loops import CountingModel
from tests.server.speculation.settings import TARGET, read

from outrider.engine.drafting.lookup.suffix_settings import SuffixSettings
from outrider.engine.drafting.suffix import SuffixDrafter
from outrider.errors import InvalidSetting
from outrider.server.speculation.methods.suffix import SuffixMethod
from outrider.server.speculation.resolved import ResolvedSpeculation
from outrider.server.speculation.resolving import resolve


def suffix(**settings: Any) -> ResolvedSpeculation:
    return resolve(read(method="suffix", **settings), TARGET)


def test_nothing_but_the_method_is_needed() -> None:
    resolved = suffix()
    assert resolved.drafting == SuffixMethod(24, SuffixSettings(24, 10_000, 1.0, 0.1))
    assert "num_speculative_tokens was not set: 24" in resolved.notes


def test_every_setting_has_vllms_key_and_reaches_the_drafter() -> None:
    asked = {
        "suffix_decoding_max_tree_depth": 9,
        "suffix_decoding_max_cached_requests": 0,
        "suffix_decoding_max_spec_factor": 2.5,
        "suffix_decoding_min_token_prob": 0.0,
    }
    resolved = suffix(num_speculative_tokens=3, **asked)
    assert resolved.drafting.settings == asked
    built = resolved.drafting.build(CountingModel())
    assert built == SuffixDrafter(3, SuffixSettings(9, 0, 2.5, 0.0))
    assert built.name == resolved.method


def test_k_is_the_depth_of_the_tree_where_it_is_not_given() -> None:
    assert suffix(suffix_decoding_max_tree_depth=9).num_speculative_tokens == 9


def test_a_depth_that_is_more_than_may_be_drafted_needs_a_k() -> None:
    with pytest.raises(InvalidSetting, match="num_speculative_tokens 500"):
        suffix(suffix_decoding_max_tree_depth=500)
    assert suffix(suffix_decoding_max_tree_depth=500, num_speculative_tokens=8) is not None


@pytest.mark.parametrize("settings", [{"model": "org/draft"}, {"prompt_lookup_max": 3}])
def test_what_suffix_decoding_has_no_use_for_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match="with method suffix"):
        suffix(**settings)


@pytest.mark.parametrize(("kept", "words"), [(0, "no earlier answers"), (50, "the last 50 req")])
def test_the_log_says_what_is_looked_back_on(kept: int, words: str) -> None:
    described = suffix(suffix_decoding_max_cached_requests=kept).describe()
    assert "speculation suffix, K = 24" in described
    assert words in described
