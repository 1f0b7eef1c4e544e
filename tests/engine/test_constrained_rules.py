"""A constraint beside the other rules of a request, one at a time."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.engine.constraints.letters import (
    END,
    WORDS,
    LetterModel,
    ids_of,
    logits_after,
    text_of,
)
from tests.engine.constraints.running import MAX_TOKENS, K, constrained, run
from tests.engine.constraints.wishes import WISHES
from tests.engine.loops import ScriptedDrafter, engine_of

from outrider.engine.constraints.spec import ConstraintSpec
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.sampling import SamplingParameters
from outrider.engine.sequence import Sequence
from outrider.engine.update import Update
from outrider.records.request import FinishReason, StepRecord


def told(
    spec: ConstraintSpec,
    parameters: SamplingParameters = SamplingParameters(),  # noqa: B008  frozen
    *,
    draft: Callable[[Sequence], list[int]] | None = None,
    max_tokens: int = MAX_TOKENS,
) -> tuple[str, Update, tuple[StepRecord, ...]]:
    """The text, the last news, and the steps of one request."""
    engine, recorder = engine_of(
        LetterModel(), ScriptedDrafter(draft) if draft else NoDrafter(), K if draft else 0
    )
    sequence = constrained("r", spec, parameters, max_tokens=max_tokens)
    updates = run(engine, sequence)["r"]
    steps = recorder.take(sequence).steps
    return text_of(sequence.output_token_ids.tolist()), updates[-1], tuple(steps)


def outputs_of(update: Update) -> list[int]:
    output: list[int] = update.sequence.output_token_ids.tolist()
    return output


def spelling(text: str) -> Callable[[Sequence], list[int]]:
    """Drafts the rest of `text`, letter by letter."""
    return lambda sequence: ids_of(text[len(text_of(sequence.output_token_ids.tolist())) :])


ABABAB = ConstraintSpec("choice", ("ababab",))
LETTERS_ONLY = SamplingParameters(
    bad_words_token_ids=((WORDS.index("ab"),), (WORDS.index("ba"),)), logprobs=1
)


@pytest.mark.parametrize("draft", [None, spelling("ababab" + "red")])
def test_an_output_ends_where_nothing_can_be_added_without_a_step_for_the_end(
    draft: Callable[[Sequence], list[int]] | None,
) -> None:
    text, last, _ = told(ABABAB, LETTERS_ONLY, draft=draft)
    assert text == "ababab"
    assert last.finish_reason is FinishReason.STOP
    assert last.stopped_by is None
    assert outputs_of(last) == ids_of("ababab")


def test_what_is_drafted_beyond_the_end_is_invalidated_and_what_is_left_judged() -> None:
    _, _, steps = told(
        ABABAB, LETTERS_ONLY, draft=lambda s: [*spelling("ababab")(s), *ids_of("ccc")]
    )
    (step,) = steps
    # The prefill gave "a", five letters were left.
    assert (step.drafted, step.accepted, step.emitted, step.invalidated) == (5, 5, 5, 0)
    _, _, steps = told(ABABAB, LETTERS_ONLY, draft=lambda s: ids_of("bacab"))
    first = steps[0]
    assert (first.drafted, first.accepted, first.invalidated, first.trimmed) == (2, 2, 3, 0)


def test_reaching_the_end_with_the_last_token_that_fits_is_a_stop() -> None:
    assert told(ABABAB, LETTERS_ONLY, max_tokens=6)[1].finish_reason is FinishReason.STOP
    text, last, _ = told(ABABAB, LETTERS_ONLY, max_tokens=5)
    assert (text, last.finish_reason) == ("ababa", FinishReason.LENGTH)


def test_a_fewest_number_of_tokens_holds_back_the_end_as_long_as_something_can_be_added() -> None:
    more = replace(LETTERS_ONLY, min_tokens=9, logit_bias={END: 50.0})
    text, last, _ = told(ConstraintSpec("regex", "(ab)+"), more)
    assert last.finish_reason is FinishReason.STOP
    assert outputs_of(last) == [*ids_of(text), END]
    assert len(text) == 10
    # The grammar is over before, and nothing valid could follow.
    text, last, _ = told(ABABAB, more)
    assert (text, last.finish_reason) == ("ababab", FinishReason.STOP)


def test_an_end_token_that_ends_nothing_is_never_chosen() -> None:
    eager = replace(LETTERS_ONLY, logit_bias={END: 50.0})
    spec = ConstraintSpec("regex", "(ab){1,4}")
    assert told(spec, eager)[0] == "ab"
    text, last, _ = told(spec, replace(eager, ignore_eos=True), draft=lambda _: [END] * K)
    assert text == "abababab"
    assert last.finish_reason is FinishReason.STOP
    assert END not in outputs_of(last)


def test_a_stop_string_ends_the_output_wherever_the_grammar_is() -> None:
    text, last, _ = told(ABABAB, replace(LETTERS_ONLY, stop=("ba",)), draft=spelling("ababab"))
    assert (text, last.stopped_by) == ("aba", "ba")


def test_a_stop_token_ends_the_output_where_the_grammar_allows_it() -> None:
    b, c = WORDS.index("b"), WORDS.index("c")
    text, last, _ = told(ABABAB, replace(LETTERS_ONLY, stop_token_ids=(b, c)))
    assert (text, last.stopped_by) == ("ab", b)
    eager = replace(LETTERS_ONLY, stop_token_ids=(c,), logit_bias={c: 90.0})
    assert told(ABABAB, eager)[0] == "ababab"


def test_log_probabilities_are_of_the_target_before_the_constraint() -> None:
    _, last, _ = told(ABABAB, LETTERS_ONLY)
    assert last.logprobs is not None
    raw = logits_after(tuple(ids_of("ba"))).log_softmax(dim=-1)
    assert last.logprobs.chosen[0] == pytest.approx(float(raw[WORDS.index("b")]), abs=1e-5)


def test_allowed_tokens_and_a_grammar_that_have_nothing_in_common_fail_the_request() -> None:
    _, last, _ = told(ABABAB, SamplingParameters(allowed_token_ids=(WORDS.index("c"),)))
    assert last.finish_reason is FinishReason.ERROR
    assert last.failure == "every token is forbidden"


@pytest.mark.parametrize("draft", [None, spelling("abz"[:2] + "abab")])
def test_a_grammar_that_no_token_follows_fails_its_request_alone_and_says_why(
    draft: Callable[[Sequence], list[int]] | None,
) -> None:
    drafter = ScriptedDrafter(draft) if draft else NoDrafter()
    engine, _ = engine_of(LetterModel(), drafter, K if draft else 0)
    dying = constrained("dying", ConstraintSpec("regex", "abz|abab(z|z)"), LETTERS_ONLY)
    other = constrained("other", ABABAB, LETTERS_ONLY)
    updates = run(engine, dying, other)
    assert updates["dying"][-1].failure == "the grammar goes on where no token of the model does"
    assert updates["dying"][-1].finish_reason is FinishReason.ERROR
    assert text_of(dying.output_token_ids.tolist()) == "abab"
    assert text_of(other.output_token_ids.tolist()) == "ababab"
    assert engine.scheduler.cache.pool.free_blocks == 300


def test_each_of_n_answers_has_a_constraint_of_its_own() -> None:
    spec, judge = WISHES["letters"]
    engine, _ = engine_of(LetterModel(), NoDrafter(), 0)
    samples = SamplingParameters(1.0, 3, n=6).samples()
    answers = [constrained(f"r{i}", spec, asked) for i, asked in enumerate(samples)]
    run(engine, *answers)
    texts = [text_of(each.output_token_ids.tolist()) for each in answers]
    assert len(set(texts)) > 2
    assert all(judge(text) for text in texts)


def test_nothing_is_invalidated_without_a_constraint() -> None:
    engine, recorder = engine_of(LetterModel(), ScriptedDrafter(lambda _: [0] * K), K)
    free = constrained("r", None, max_tokens=20)
    run(engine, free)
    assert {step.invalidated for step in recorder.take(free).steps} == {0}
