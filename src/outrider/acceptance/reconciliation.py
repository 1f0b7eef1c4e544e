"""Identities that should hold between the sums of a segment, and what is known to break them."""

from collections.abc import Iterator
from dataclasses import dataclass

from outrider.acceptance.figures import SegmentFigures
from outrider.acceptance.totals import Totals

TOKENS, DRAFTED, STEPS, ACCEPTED, REQUESTS = (
    "completion tokens = A + S",
    "D = K·S",
    "Σ H_j = S",
    "Σ j·H_j = A",
    "every record tells its requests",
)
"""The names of the identities."""

_NO_DRAFT = "steps without a draft (none proposed, or switched off), which emit one token each"
_THROWN_AWAY = (
    "tokens accepted in a step that ran past a stop, EOS or max_tokens: counted as accepted,"
    " cut from the answer"
)
_ABORTED = "aborted requests, whose steps were counted and whose tokens were not"
_PADDED = (
    "padded or filler steps, counted as steps although the request had no draft of its own there"
)
_CHUNKS = "events of a stream counted as tokens"
_SHORT_DRAFTS = (
    "a lookup that found fewer than K tokens",
    "an adaptive draft length",
    "drafts that a grammar invalidated, which are taken from D",
    "drafts clipped by the token budget or the context length",
)


@dataclass(frozen=True, slots=True)
class Identity:
    """One identity: `left` should equal `right`; `gap` is left - right.

    `holds` is None where one side is unknown. `detail` puts the gap into words with its size, and
    `causes` are what is known to open such a gap, the likeliest first.
    """

    name: str
    left: float | None
    right: float | None
    gap: float | None
    holds: bool | None
    detail: str
    causes: tuple[str, ...]


def reconcile(totals: Totals, figures: SegmentFigures) -> tuple[Identity, ...]:
    """Return every identity between the sums of one segment, those that hold included.

    On a vLLM server completion tokens = A + S + P - C, with P decode steps without a draft, of
    which the prefill is one, and C accepted tokens thrown away past the end of the answer. The
    gap is therefore P - C, and neither can be told from it alone.
    """
    return (
        _completion_tokens(totals),
        _full_drafts(totals, figures),
        *_histogram_sums(totals),
        *_requests(totals),
    )


def _completion_tokens(totals: Totals) -> Identity:
    told, records = totals.count("completion_records"), totals.count("records")
    if not told:
        estimated = totals.count("steps_estimated")
        return _unknown(
            TOKENS,
            "steps are estimated from the completion tokens, so the two cannot check each other"
            if estimated
            else f"{_of(records, records, 'record')} without a count of completion tokens",
        )
    left, right = totals.count("completion_tokens"), totals.count("explained_tokens")
    more, fewer = totals.count("more_tokens"), totals.count("fewer_tokens")
    over = "" if told == records else f" over the {told:,} of {records:,} records that tell both"
    if not more and not fewer:
        return _identity(TOKENS, left, right, f"{left:,} tokens, all explained{over}", ())
    spread = ", ".join(
        f"{size:,} {word} in {_of(totals.count(f'{word}_tokens_records'), told, 'record')}"
        for word, size in (("more", more), ("fewer", fewer))
        if size
    )
    detail = f"{left:,} tokens where accepted + steps are {right:,}{over}: {spread}"
    gap = left - right
    if gap > 0:
        detail += f"; {_first_tokens(totals, gap)}"
    elif fewer:
        detail += f"; at least {fewer:,} accepted tokens are in no answer"
    return Identity(
        TOKENS, left, right, gap, holds=False, detail=detail, causes=_token_causes(totals)
    )


def _first_tokens(totals: Totals, gap: int) -> str:
    """Say how much of a gap the first tokens of all answers explain, as prefill emits those."""
    whole = totals.count("completion_records") == totals.count("records")
    known = whole and not totals.count("requests_unknown")
    answers = totals.count("requests") if known else totals.count("completion_records")
    first = min(answers, gap)
    told = f"the first token of each answer, from prefill, alone explains {first:,} of {gap:,}"
    return told if known else f"{told} if each record is one answer"


def _token_causes(totals: Totals) -> tuple[str, ...]:
    plain = totals.count("decode_steps") - totals.count("covered_steps")
    recorded = f": {plain:,} of them are recorded" if plain else ""
    more = ("the first token of each answer comes from prefill", _NO_DRAFT + recorded)
    fewer = (_THROWN_AWAY, _ABORTED, _PADDED, _CHUNKS)
    first, second = totals.count("more_tokens"), totals.count("fewer_tokens")
    if not first:
        return fewer
    if not second:
        return more
    return more + fewer if first >= second else fewer + more


def _full_drafts(totals: Totals, figures: SegmentFigures) -> Identity:
    records, steps, k = totals.count("records"), totals.count("steps"), figures.k
    unknown, nominal = totals.count("drafted_unknown"), totals.count("drafted_nominal")
    estimated = totals.count("steps_estimated")
    for count, reason in (
        (0 if k else records, "K is unknown"),
        (unknown, f"{_of(unknown, records, 'record')} without a count of drafted tokens"),
        (nominal, f"D is nominal in {_of(nominal, records, 'record')}: K·S itself, not counted"),
        (estimated, f"steps are estimated in {_of(estimated, records, 'record')}"),
    ):
        if count:
            return _unknown(DRAFTED, reason)
    drafted, full = totals.count("drafted"), (k or 0) * steps
    if not steps:
        return _identity(DRAFTED, drafted, full, "no step had a draft", ())
    if drafted == full:
        detail = f"{drafted:,} drafted in {_of(steps, steps, 'step')}, each draft full"
        if k is not None and k > 1:
            detail += (
                "; a drafter that always proposes K does that, of a lookup it means filler (vLLM's"
                " V2 n-gram) or padding (the first step of a fully cached prompt)"
            )
        return _identity(DRAFTED, drafted, full, detail, ())
    detail = (
        f"{drafted:,} drafted of {full:,} possible: short by {full - drafted:,},"
        f" {drafted / steps:.2f} per step with K = {k}"
    )
    return _identity(DRAFTED, drafted, full, detail, _SHORT_DRAFTS)


def _histogram_sums(totals: Totals) -> Iterator[Identity]:
    records, unknown = totals.count("records"), totals.count("histogram_unknown")
    counts = totals.counts("histogram")
    for name, left, right in (
        (STEPS, sum(counts), totals.count("steps")),
        (ACCEPTED, sum(j * steps for j, steps in enumerate(counts)), totals.count("accepted")),
    ):
        if unknown:
            detail = f"{_of(unknown, records, 'record')} without a histogram"
            if unknown < records:
                detail += f"; the others hold {left:,} of {right:,}"
            yield _unknown(name, detail)
        else:
            yield _identity(name, left, right, f"{left:,} in the histogram, {right:,} told", ())


def _requests(totals: Totals) -> Iterator[Identity]:
    unknown, records = totals.count("requests_unknown"), totals.count("records")
    if unknown:
        detail = f"{_of(unknown, records, 'record')} without a count of requests"
        yield _unknown(REQUESTS, detail)


def _identity(name: str, left: int, right: int, detail: str, causes: tuple[str, ...]) -> Identity:
    gap = left - right
    return Identity(name, left, right, gap, holds=gap == 0, detail=detail, causes=causes)


def _unknown(name: str, reason: str) -> Identity:
    return Identity(name, None, None, None, holds=None, detail=reason, causes=())


def _of(part: int, whole: int, noun: str) -> str:
    """Return "3 of 8 records", "all 8 records" or "1 record"."""
    if part != whole:
        return f"{part:,} of {whole:,} {noun}s"
    return f"1 {noun}" if whole == 1 else f"all {whole:,} {noun}s"
