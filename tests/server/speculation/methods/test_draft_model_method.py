from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.loops import CountingModel
from tests.server.speculation.settings import TARGET, read

from outrider.engine.drafting.draft_model import ModelDrafter
from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.drafting.parallel_draft_model import ParallelModelDrafter
from outrider.errors import InvalidSetting
from outrider.server.speculation.resolved import ResolvedSpeculation
from outrider.server.speculation.resolving import resolve


def drafting(**settings: Any) -> ResolvedSpeculation:
    given_ = {"method": "draft_model", "model": "org/draft", "num_speculative_tokens": 4}
    return resolve(read(**{**given_, **settings}), TARGET)


def test_the_defaults_are_those_of_vllm() -> None:
    resolved = drafting()
    assert resolved.checkpoint == "org/draft"
    assert resolved.drafting.settings == {
        "draft_sample_method": "greedy",
        "max_model_len": None,
        "parallel_drafting": False,
        "use_heterogeneous_vocab": False,
    }
    assert resolved.notes == ()
    assert resolved.describe() == (
        "speculation draft_model with 'org/draft', K = 4, greedy drafts,"
        " verification standard (lossless)"
    )


def test_a_model_alone_is_a_draft_model_and_that_is_told() -> None:
    resolved = resolve(read(model="org/draft", num_speculative_tokens=2), TARGET)
    assert resolved.method == "draft_model"
    assert resolved.notes == (
        "method draft_model (nothing in the name of model 'org/draft' says otherwise)",
    )


def test_what_is_unusual_is_described() -> None:
    line = drafting(parallel_drafting=True, use_heterogeneous_vocab=True).describe()
    assert "greedy drafts, all tokens of a draft at once, shared tokens only" in line
    assert "probabilistic drafts" in drafting(draft_sample_method="probabilistic").describe()


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        (
            {"use_heterogeneous_vocab": True, "draft_sample_method": "probabilistic"},
            "draft_sample_method probabilistic with use_heterogeneous_vocab",
        ),
        ({"num_speculative_tokens": None}, "num_speculative_tokens was not provided"),
        ({"model": None}, "method draft_model without a model"),
        ({"use_local_argmax_reduction": True}, "use_local_argmax_reduction true"),
        ({"draft_tensor_parallel_size": 2}, "draft_tensor_parallel_size 2"),
        ({"quantization": "fp8"}, 'quantization "fp8" with method draft_model'),
        ({"prompt_lookup_max": 3}, "prompt_lookup_max 3 with method draft_model"),
    ],
)
def test_what_it_cannot_do_is_refused(settings: dict[str, Any], seen: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        drafting(**settings)
    assert raised.value.seen.startswith(seen)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "draft_sample_method": st.sampled_from(["greedy", "probabilistic"]),
            "parallel_drafting": st.booleans(),
            "max_model_len": st.integers(1, 4096),
            "enable_adaptive_verification": st.booleans(),
            "rejection_sample_method": st.sampled_from(["standard", "block", "fly"]),
            "num_speculative_tokens_per_batch_size": st.just([[1, 4, 3], [5, 9, 0]]),
        },
    )
)
def test_what_is_resolved_resolves_to_itself(settings: dict[str, Any]) -> None:
    resolved = drafting(**settings)
    said = resolved.as_dict()
    lossless = said.pop("lossless")
    again = resolve(read(**said), TARGET)
    assert again.as_dict() == {**said, "lossless": lossless}
    assert again.drafting == resolved.drafting


def test_it_builds_the_drafter_that_was_asked_for() -> None:
    own = OwnModel(CountingModel(), max_rows=10, mask_token_id=3)
    assert isinstance(drafting().drafting.build(CountingModel(), own), ModelDrafter)
    parallel = drafting(parallel_drafting=True).drafting.build(CountingModel(), own)
    assert isinstance(parallel, ParallelModelDrafter)
    assert parallel.own is own
