"""What in a segment's figures asks for attention."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from outrider.acceptance.figures import PositionFigures, SegmentFigures
from outrider.acceptance.segment_estimates import FEWEST_RECORDS
from outrider.acceptance.totals import Totals
from outrider.acceptance.undrafted import knows_tokens, undrafted_steps

BROKEN_RATE = 0.01
"""A drafter that sees the right text guesses more than 1 in 100 right, whatever the prompts."""
FEWEST_DRAFTED = 100
"""Of fewer tokens not even one need be accepted at a rate of 1 %."""
PERFECT_RATE = 0.99
"""Beyond it the target has nothing left to correct, which only copying explains."""
FEWEST_PERFECT_STEPS = 100
REPLAYED_SHARE = 0.8
"""Steps past the end of an answer emit a few tokens that it lacks, but not every fifth."""
LOW_MEAN = 1.5
"""Perfect drafts of one token give 2; less means steps that gained nothing beside them."""
ENDS_SHARE = 0.95
"""A drafter with one chance per token leaves more than 1 in 20 steps between nothing and all."""
EACH_END_SHARE = 0.1
FEWEST_STEPS_OF_ENDS = 20
REPETITIVE_SHARE = 0.5
LOW_COVERAGE = 0.5
"""Below it most decode steps gain nothing from any drafter, however good."""
LOW_EXPLAINED_SHARE = 0.7
"""Less of the output through steps with a draft, and the other steps decide the speed."""
WASTED_SURVIVAL = 0.05
"""A position that fewer steps reach adds less than the cost of drafting it in any engine."""
FEWEST_STEPS_AT_POSITION = 50
"""None accepted of fewer does not bound the rate: of 50, a rate of 6 % gives none in 1 of 20."""
WIDEST_INTERVAL = 0.25
"""Ends a quarter of M apart differ by more speed than most settings do."""
FEWEST_STEPS_OF_BAND = 50
LOOKUP_METHODS = frozenset({"ngram", "ngram_gpu", "suffix"})
BROKEN_DRAFTER_CHECK = (
    "check that drafter and target have the same tokenizer and chat template, the drafter's weights"
    " and quantisation, and the ids of the target layers it reads"
)


@dataclass(frozen=True, slots=True)
class Flag:
    """A finding with its evidence: `detail` has the figures, `check` what to look at next."""

    code: str
    detail: str
    check: str


@dataclass(frozen=True, slots=True)
class _Segment:
    figures: SegmentFigures
    totals: Totals
    tags: Mapping[str, str]

    @property
    def looks_up(self) -> bool:
        """Whether drafts are copied from the text before them, so that there may be none."""
        return self.tags.get("method") in LOOKUP_METHODS

    @property
    def repeats(self) -> bool:
        """Whether most answers are known to repeat themselves; not every text was looked at."""
        return self.totals.count("repetitive") > REPETITIVE_SHARE * self.figures.records


def find_flags(
    figures: SegmentFigures, totals: Totals, *, tags: Mapping[str, str]
) -> tuple[Flag, ...]:
    """Return what asks for attention in one segment, the gravest first.

    `tags` are the values that all records of the segment share, by key.
    """
    segment = _Segment(figures, totals, tags)
    return tuple(flag for rule in RULES if (flag := rule(segment)) is not None)


def _broken_drafter(segment: _Segment) -> Flag | None:
    f = segment.figures
    counted = f.drafted is not None and not f.drafted_nominal
    # A verification step drafts at least one token, so S bounds an uncounted D from below.
    drafted = f.drafted if counted else 0 if f.steps_estimated else f.steps
    if segment.looks_up or not drafted or drafted < FEWEST_DRAFTED:
        return None
    if f.accepted >= BROKEN_RATE * drafted:
        return None
    of = f"{drafted:,} drafted" if counted else f"the drafts of {drafted:,} steps"
    return Flag(
        "broken_drafter",
        f"broken drafter, not low acceptance: {f.accepted:,} accepted of {of}",
        f"{BROKEN_DRAFTER_CHECK}; a lookup drafter (n-gram, suffix) may just find nothing to copy",
    )


def _corrupted_output(segment: _Segment) -> Flag | None:
    if not segment.repeats:
        return None
    return Flag(
        "corrupted_output",
        f"the text of {segment.totals.count('repetitive'):,} of {segment.figures.records:,}"
        " answers repeats itself, which is easy to draft: their acceptance says nothing of real"
        " traffic",
        "read a few answers; compare them with the same prompts without speculation",
    )


def _all_or_nothing(segment: _Segment) -> Flag | None:
    f = segment.figures
    h = f.histogram
    k = f.k or 0
    if h is None or k < 2 or sum(h) < FEWEST_STEPS_OF_ENDS:  # noqa: PLR2004
        return None
    steps, nothing, all_ = sum(h), h[0], h[k]
    if nothing + all_ < ENDS_SHARE * steps or min(nothing, all_) < EACH_END_SHARE * steps:
        return None
    detail = (
        f"of {steps:,} steps {nothing:,} accepted nothing, {all_:,} all {k}"
        f" and only {steps - nothing - all_:,} something in between"
    )
    if segment.repeats:
        return Flag(
            "all_or_nothing",
            f"{detail}, and the text repeats itself: a corrupted run",
            "look for NaN logits: run the target without speculation on the same prompts",
        )
    return Flag(
        "all_or_nothing",
        f"{detail}: two kinds of prompt behind one mean, or a lookup that copies or misses",
        "split by kind of prompt (--by), and read answers of both ends",
    )


def _suspiciously_perfect(segment: _Segment) -> Flag | None:
    f = segment.figures
    if not f.drafted or f.steps < FEWEST_PERFECT_STEPS or f.accepted <= PERFECT_RATE * f.drafted:
        return None
    detail = (
        f"{f.accepted:,} of {f.drafted:,} drafted tokens accepted"
        f" ({_percent(f.accepted / f.drafted)}) in {f.steps:,} steps"
    )
    m = f.mean_acceptance_length.value
    tokens, explained = f.completion_tokens, f.explained_tokens
    if tokens is not None and explained is not None and tokens < REPLAYED_SHARE * explained:
        detail += (
            f", yet the answers hold only {tokens:,} of the {explained:,} tokens that these steps"
            " emitted: drafts were replayed and counted again"
        )
    elif m is not None and m < LOW_MEAN:
        detail += f", yet M is only {m:.2f}: drafts may be replayed, or most steps lack one"
    return Flag(
        "suspiciously_perfect",
        detail,
        "read answers for text that repeats itself or its prompt; check whether the engine counts"
        " drafts again after a roll-back",
    )


def _low_coverage(segment: _Segment) -> Flag | None:
    f, totals = segment.figures, segment.totals
    check = "find out when no draft is made: lookups without a match, cut-offs, long prompts"
    covered = f.coverage.value
    if covered is not None:
        if covered >= LOW_COVERAGE:
            return None
        detail = (
            f"{_percent(covered)} of decode steps had a draft"
            f" ({totals.count('covered_steps'):,} of {totals.count('decode_steps'):,})"
        )
        return Flag("low_coverage", detail, check)
    undrafted = round(float(undrafted_steps(totals, totals.sums)))
    if not knows_tokens(totals) or not undrafted:
        return None
    explained = totals.count("explained_tokens")
    decoded = explained + undrafted
    most = f.steps / (f.steps + undrafted)
    if most >= LOW_COVERAGE and explained >= LOW_EXPLAINED_SHARE * decoded:
        return None
    return Flag(
        "low_coverage",
        f"steps with a draft emitted {explained:,} of {decoded:,} decoded tokens"
        f" ({_percent(explained / decoded)}), so at most {_percent(most)} of decode steps had one",
        check,
    )


def _wasted_tail(segment: _Segment) -> Flag | None:
    f = segment.figures
    if _broken_drafter(segment) is not None:
        return None
    before = 1.0
    for position in f.positions:
        if _wasted(position, before):
            last, k = position.position - 1, len(f.positions)
            reach = f"{_percent(position.survival.value or 0)} of {f.steps:,} steps reach"
            if position.survival.interval is not None and position.survival.value:
                reach += f" (at most {_percent(position.survival.interval.high)})"
            return Flag(
                "wasted_tail",
                f"everything beyond position {last} of {k} is wasted:"
                f" {reach} position {position.position}{_if_drafted(segment)}",
                f"compare K = {last} with K = {k}" if last else "compare with no speculation",
            )
        before = position.survival.value or 0
    return None


def _if_drafted(segment: _Segment) -> str:
    """Say what the tail ratio takes for granted where no draft's length is known."""
    f = segment.figures
    full = not f.drafted_nominal and f.drafted == (f.k or 0) * f.steps
    return "" if f.survival_estimator == "product_limit" or full else ", if drafts were that long"


def _wasted(position: PositionFigures, before: float) -> bool:
    survival, at_risk = position.survival, position.at_risk
    if survival.value is None or not at_risk or not before:
        return False
    # As many full drafts would say as much of this position.
    if at_risk / before < FEWEST_STEPS_AT_POSITION:
        return False
    if survival.value == 0:
        return True
    return survival.interval is not None and survival.interval.high < WASTED_SURVIVAL


def _nominal_drafted(segment: _Segment) -> Flag | None:
    nominal, records = segment.totals.count("drafted_nominal"), segment.figures.records
    if not nominal:
        return None
    return Flag(
        "nominal_drafted",
        f"in {nominal:,} of {records:,} records D is K·S, not counted: A/D is a lower bound and"
        " the waste an upper one wherever drafts were shorter than K",
        "use counters of drafted tokens if the engine has them",
    )


def _estimated_steps(segment: _Segment) -> Flag | None:
    steps = segment.totals.count("steps_estimated")
    accepted = segment.totals.count("accepted_estimated")
    if not steps and not accepted:
        return None
    what = " and ".join(
        name for name, count in (("steps", steps), ("accepted tokens", accepted)) if count
    )
    return Flag(
        "estimated_steps",
        f"{what} are worked out from other numbers in {max(steps, accepted):,} of"
        f" {segment.figures.records:,} records, so M is an estimate",
        "compare the server's own log or counters, where it has any",
    )


def _chunks_counted_as_tokens(segment: _Segment) -> Flag | None:
    if not _warned(segment, "chunks_counted_as_tokens"):
        return None
    per_chunk = segment.figures.tokens_per_chunk
    size = f"; a chunk holds {per_chunk:.2f} tokens here" if per_chunk is not None else ""
    return Flag(
        "chunks_counted_as_tokens",
        f"events of a stream were counted as tokens{size}: with speculation one event carries"
        " several, so tokens per second and gaps between tokens are wrong",
        "take token counts from usage, and the time per token from them",
    )


def _first_chunk_of_several(segment: _Segment) -> Flag | None:
    if segment.tags.get("first_chunk") != "several tokens":
        return None
    return Flag(
        "first_chunk_of_several",
        "the first event of some streams holds several tokens: counted as one, it makes the tokens"
        " per second after the first look better than they are",
        "take the tokens of the first event from its usage (continuous_usage_stats)",
    )


def _counters_reset(segment: _Segment) -> Flag | None:
    if not _warned(segment, "counters_reset"):
        return None
    return Flag(
        "counters_reset",
        "counters fell between two scrapes: the server was restarted, and only what it counted"
        f" afterwards is here ({segment.figures.steps:,} steps)",
        "scrape both ends of an interval without a restart",
    )


def _weighting_matters(segment: _Segment) -> Flag | None:
    f = segment.figures
    by_step, by_request = f.mean_acceptance_length, f.mean_acceptance_length_by_request
    if by_step.value is None or by_request.value is None or by_step.interval is None:
        return None
    low, high = by_step.interval.low, by_step.interval.high
    if low <= by_request.value <= high:
        return None
    longer = "longer" if by_step.value > by_request.value else "shorter"
    return Flag(
        "weighting_matters",
        f"M is {by_step.value:.2f} by step ({low:.2f}–{high:.2f}) and {by_request.value:.2f} by"
        f" request, over {f.records:,} records: {longer} answers accept more",
        "use M by step for the load of a server, M by request for what one user sees; split by"
        " output length",
    )


def _late_acceptance(segment: _Segment) -> Flag | None:
    bands = [b for b in segment.figures.bands if b.steps >= FEWEST_STEPS_OF_BAND]
    if not bands or bands[0].mean_acceptance_length.interval is None:
        return None
    first = bands[0].mean_acceptance_length
    for band in bands[1:]:
        late = band.mean_acceptance_length
        if (
            first.interval
            and late.value is not None
            and late.interval
            and late.interval.high < first.interval.low
        ):
            return Flag(
                "late_acceptance",
                f"acceptance falls along the answer: from token {band.start:,} on M is"
                f" {late.value:.2f} (at most {late.interval.high:.2f}, {band.steps:,} steps),"
                f" at first {first.value:.2f} (at least {first.interval.low:.2f},"
                f" {bands[0].steps:,} steps)",
                "compare with the length of text that the drafter was trained on",
            )
    return None


def _too_few_requests(segment: _Segment) -> Flag | None:
    f = segment.figures
    summed = f.requests is None or f.requests > f.records
    check = (
        "read the answers one by one, or the counters of more intervals: a sum over requests does"
        " not tell them apart"
        if summed
        else "collect more answers before concluding"
    )
    fewest = min(f.clusters, f.clusters if f.requests is None else f.requests)
    if fewest < FEWEST_RECORDS:
        requests = "an unknown number of" if f.requests is None else f"{f.requests:,}"
        return Flag(
            "too_few_requests",
            f"{requests} request{'' if f.requests == 1 else 's'} in {f.clusters:,}"
            f" independent record{'' if f.clusters == 1 else 's'} ({f.steps:,} steps): intervals"
            f" need at least {FEWEST_RECORDS} of both, as steps of one are not independent",
            check,
        )
    m = f.mean_acceptance_length
    if m.value is None or m.interval is None:
        return None
    low, high = m.interval.low, m.interval.high
    if high - low <= WIDEST_INTERVAL * m.value:
        return None
    return Flag(
        "too_few_requests",
        f"M = {m.value:.2f} is only known as {low:.2f}–{high:.2f} from {m.interval.clusters:,}"
        f" independent records ({f.steps:,} steps)",
        check,
    )


def _warned(segment: _Segment, tag: str) -> bool:
    return segment.tags.get(tag) == "yes"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


RULES: tuple[Callable[[_Segment], Flag | None], ...] = (
    _broken_drafter,
    _corrupted_output,
    _all_or_nothing,
    _suspiciously_perfect,
    _chunks_counted_as_tokens,
    _first_chunk_of_several,
    _counters_reset,
    _low_coverage,
    _wasted_tail,
    _nominal_drafted,
    _estimated_steps,
    _too_few_requests,
    _weighting_matters,
    _late_acceptance,
)
"""One function for each finding; a new one is a function and a line here."""
