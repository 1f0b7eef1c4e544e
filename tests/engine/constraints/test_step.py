import numpy as np
import torch
from tests.engine.constraints.letters import END, SIZE, WORDS, begun, ids_of
from tests.engine.loops import request

from outrider.engine.constraints.spec import ConstraintSpec
from outrider.engine.constraints.step import ConstrainedStep
from outrider.engine.drafting.draft import Draft
from outrider.engine.sequence import Sequence

AB = ConstraintSpec("regex", "(ab){1,9}")


def sequence(spec: ConstraintSpec | None = None) -> Sequence:
    free = request([0], 9)
    if spec is None:
        return free
    return Sequence("c", [0], max_tokens=9, sampling=free.sampling, constraint=begun(spec))


def draft_of(*texts: str, q: torch.Tensor | None = None) -> Draft:
    draft = Draft.empty(len(texts), max(map(len, texts)))
    for row, text in enumerate(texts):
        draft.tokens[row, : len(text)] = ids_of(text)
        draft.lengths[row] = len(text)
    return Draft(draft.tokens, draft.lengths, q)


def test_without_constraints_draft_and_logits_come_back_as_they_are() -> None:
    draft, logits = draft_of("ab", "c"), torch.zeros(5, SIZE)
    step = ConstrainedStep.of([sequence(), sequence()], draft, SIZE)
    assert step.draft is draft
    assert step.mask(logits, draft) is logits
    assert not step.failures


def test_a_draft_ends_before_the_first_forbidden_token() -> None:
    draft = draft_of("abac", "abac", "c")
    step = ConstrainedStep.of([sequence(), sequence(AB), sequence(AB)], draft, SIZE)
    assert step.draft.lengths.tolist() == [4, 3, 0]
    assert step.draft.tokens[1].tolist() == [*ids_of("aba"), -1]
    assert draft.lengths.tolist() == [4, 4, 1]


def names_of(row: torch.Tensor) -> list[str]:
    return [[*WORDS, "<end>"][token] for token in row.isfinite().nonzero().flatten().tolist()]


def test_every_row_that_is_verified_has_the_tokens_that_may_come_after_its_draft() -> None:
    step = ConstrainedStep.of([sequence(), sequence(AB)], draft_of("c", "abac"), SIZE)
    logits = torch.randn(6, SIZE)
    before = logits.clone()
    masked = step.mask(logits, step.draft)
    assert torch.equal(logits, before)
    assert torch.equal(masked[:2], logits[:2])
    assert [names_of(row) for row in masked[2:]] == [
        ["a", "ab"],
        ["b", "ba"],
        ["a", "ab", "<end>"],
        ["b", "ba"],
    ]
    left = masked.isfinite()
    assert torch.equal(masked[left], logits[left])


def test_a_draft_that_was_trimmed_further_keeps_its_first_rows() -> None:
    step = ConstrainedStep.of([sequence(AB), sequence(AB)], draft_of("abac", "ab"), SIZE)
    trimmed = step.draft.cut(np.array([1, 2]))
    masked = step.mask(torch.zeros(5, SIZE), trimmed)
    assert [names_of(row)[0] for row in masked] == ["a", "b", "a", "b", "a"]


def test_q_is_what_the_constraint_leaves_of_it() -> None:
    torch.manual_seed(5)
    q = torch.rand(2, 2, SIZE).softmax(dim=-1)
    given = q.clone()
    step = ConstrainedStep.of([sequence(), sequence(AB)], draft_of("ab", "ab", q=q), SIZE)
    assert step.draft.lengths.tolist() == [2, 2]
    left = step.draft.probabilities
    assert left is not None
    assert torch.equal(q, given)
    assert torch.equal(left[0], q[0])
    a, ab = WORDS.index("a"), WORDS.index("ab")
    assert left[1, 0].nonzero().flatten().tolist() == [a, ab]
    torch.testing.assert_close(left[1, 0, a], q[1, 0, a] / (q[1, 0, a] + q[1, 0, ab]))


def test_a_constraint_that_cannot_go_on_fails_its_sequence_without_a_draft() -> None:
    dead = sequence(ConstraintSpec("regex", "az"))
    dead.append(ids_of("a"))
    assert dead.constraint is not None
    dead.constraint.advance(WORDS.index("a"))
    step = ConstrainedStep.of([dead, sequence(AB)], draft_of("ab", "ab"), SIZE)
    assert step.failures == {0: "the grammar goes on where no token of the model does"}
    assert step.draft.lengths.tolist() == [0, 2]
    assert step.mask(torch.zeros(4, SIZE), step.draft)[0].isfinite().all()


def test_an_end_is_a_token_like_any_other_in_a_draft() -> None:
    draft = draft_of("ab")
    draft.tokens[0, 1] = END
    step = ConstrainedStep.of([sequence(ConstraintSpec("regex", "ab?"))], draft, SIZE)
    assert step.draft.lengths.tolist() == [2]
