import doctest

from hypothesis import given
from hypothesis import strategies as st
from tests.server.metrics.serving import decoded

from outrider.acceptance.survival import product_limit_survival
from outrider.server.metrics import speculation_counts
from outrider.server.metrics.speculation_counts import SpeculationCounts, steps_at_positions

K = 5
LENGTHS = st.lists(
    st.integers(1, K).flatmap(lambda d: st.tuples(st.just(d), st.integers(0, d))), max_size=30
)


def counts(lengths: list[tuple[int, int]]) -> SpeculationCounts:
    found = SpeculationCounts(K)
    for drafted, accepted in lengths:
        found.add(decoded(drafted, accepted))
    return found


@given(LENGTHS)
def test_steps_and_tokens_are_those_of_the_records(lengths: list[tuple[int, int]]) -> None:
    found = counts(lengths)
    assert found.steps == len(lengths)
    assert found.drafted == sum(drafted for drafted, _ in lengths)
    assert found.accepted == sum(accepted for _, accepted in lengths)
    assert steps_at_positions(found.by_drafted) == [
        sum(drafted > place for drafted, _ in lengths) for place in range(K)
    ]


@given(LENGTHS)
def test_accepted_over_at_risk_is_the_product_limit_estimate(
    lengths: list[tuple[int, int]],
) -> None:
    found = counts(lengths)
    told = product_limit_survival([a for _, a in lengths], [d for d, _ in lengths], K)
    assert steps_at_positions(found.by_at_risk) == [each.at_risk for each in told]
    assert steps_at_positions(found.by_accepted) == [each.accepted for each in told]


def test_a_step_without_a_draft_is_no_verification_step_and_what_was_trimmed_of_it_counts() -> None:
    found = SpeculationCounts(K)
    found.add(decoded(0, 0, trimmed=4))
    assert (found.steps, found.drafted, found.trimmed) == (0, 0, 4)


def test_what_a_stop_cut_off_is_accepted_and_not_delivered() -> None:
    found = SpeculationCounts(K)
    found.add(decoded(4, 4, emitted=2))
    assert (found.accepted, found.accepted_emitted) == (4, 2)


def test_a_copy_stays_as_it_was() -> None:
    found = counts([(2, 1)])
    copy = found.copy()
    found.add(decoded(3, 3))
    assert copy == counts([(2, 1)])


def test_the_example_holds() -> None:
    results = doctest.testmod(speculation_counts)
    assert (results.attempted, results.failed) == (1, 0)
