from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from outrider.engine.sampling.token_counts import TokenCounts

TOKENS = st.lists(st.integers(0, 200), max_size=150)


@given(seen=TOKENS, outputs=st.lists(TOKENS, max_size=3), drafted=st.lists(st.integers(-1, 200)))
def test_each_row_counts_the_output_and_the_draft_before_it(
    seen: list[int], outputs: list[list[int]], drafted: list[int]
) -> None:
    counts = TokenCounts()
    counts.see(seen)
    for run in outputs:
        counts.add(run)
    ids, found, came = counts.with_draft(drafted)
    assert len(set(ids.tolist())) == len(ids)
    for i in range(len(drafted) + 1):
        expected = Counter(token for run in [*outputs, drafted[:i]] for token in run if token >= 0)
        row = dict(zip(ids.tolist(), found[i].tolist(), strict=True))
        assert {token: count for token, count in row.items() if count} == expected
        assert {*seen, *expected} == set(ids[came[i]].tolist())
