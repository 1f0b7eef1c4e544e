"""Reports on acceptance as the command might make them, put together by hand from histograms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from outrider.acceptance.draft_length import DraftLengthChoice, DraftLengthOption
from outrider.acceptance.estimate import Estimate
from outrider.acceptance.figures import BandFigures, PositionFigures, SegmentFigures
from outrider.acceptance.flags import Flag
from outrider.acceptance.intervals import Interval
from outrider.acceptance.reconciliation import Identity
from outrider.records.segment_keys import SegmentValue
from outrider.report.acceptance.document import (
    AcceptanceReport,
    BadRecordEntry,
    KeyVariation,
    RecordCounts,
    SegmentReport,
    Split,
)
from outrider.report.acceptance.expected.asked import read_expected
from outrider.report.acceptance.expected.expectation import Cause, Expectation
from outrider.report.acceptance.expected.holding import held_against
from outrider.report.definitions import Definition

ONE_REQUEST = "a single request gives no interval"
NO_DECODE_STEPS = "the records do not tell their decode steps"
NO_STEP_COST = "no step cost was given; measure one or pass --step-cost"

DEFINITIONS = (
    Definition("S", "verification steps: target passes that judged a draft"),
    Definition("D, A", "draft tokens proposed and accepted; the target's own token is in neither"),
    Definition("A/D", "draft acceptance rate: accepted over drafted tokens"),
    Definition("M", "mean acceptance length, 1 + A/S: tokens per verification step, own included"),
    Definition("M by request", "mean of the M of each request, whatever their lengths"),
    Definition("H_j", "verification steps that accepted exactly j; H_0/S nothing, H_K/S all of K"),
    Definition("coverage", "share of decode steps that had a draft"),
    Definition("survival", "share of steps that reach a position; s_0 = 1"),
    Definition("conditional", "survival among the steps that accepted all before the position"),
    Definition(
        "naive", "tail ratio over all S, where drafts too short to get there count as failed"
    ),
    Definition("intervals", "95 %, bootstrap over requests"),
)


def known(value: float | None, half: float = 0.0, clusters: int = 18) -> Estimate:
    """Return a figure with an interval of about that half width, or without one where it is 0.

    That of a figure up to 1, taken for a share, stays between 0 and 1.
    """
    if value is None:
        return Estimate.missing("not told")
    if half == 0:
        return Estimate(value, None, ONE_REQUEST)
    low, high = value - half, value + half * 1.1
    if value <= 1:
        low, high = max(low, 0.0), min(high, 1.0)
    return Estimate(value, Interval(low, high, 0.95, clusters), None)


def positions(
    histogram: Sequence[int], at_risk: Sequence[int] | None, half: float
) -> tuple[PositionFigures, ...]:
    """Return the figures of each position; without `at_risk` all drafts count as whole."""
    steps = sum(histogram)
    tails = list(accumulate(reversed(histogram)))[::-1]
    risks = at_risk or tails[:-1]
    found = []
    survival = 1.0
    for position, risk in enumerate(risks, start=1):
        naive = tails[position] / steps
        if risk == 0:
            unknown = Estimate.missing("no step drafted this far and reached it")
            found.append(PositionFigures(position, unknown, unknown, known(naive, half), 0, None))
            continue
        conditional = tails[position] / risk
        survival *= conditional
        found.append(
            PositionFigures(
                position,
                known(survival, half),
                known(conditional, 1.4 * half),
                known(naive, half),
                risk,
                survival,
            )
        )
    return tuple(found)


def figures(
    histogram: Sequence[int],
    drafted: int,
    *,
    requests: int = 1,
    half: float = 0.0,
    at_risk: Sequence[int] | None = None,
    coverage: float | None = None,
    by_request: float | None = None,
    bands: tuple[BandFigures, ...] = (),
    extra_tokens: int = 0,
) -> SegmentFigures:
    """Return the figures of a histogram; `half` is the half width of every interval of a share."""
    steps = sum(histogram)
    accepted = sum(j * n for j, n in enumerate(histogram))
    mean = 1 + accepted / steps
    k = len(histogram) - 1
    found = positions(histogram, at_risk, half)
    reached = [each.position for each in found if each.at_risk]
    return SegmentFigures(
        k=k,
        records=requests,
        requests=requests,
        clusters=requests,
        steps=steps,
        steps_estimated=False,
        accepted=accepted,
        accepted_estimated=False,
        drafted=drafted,
        drafted_nominal=False,
        wasted=drafted - accepted,
        histogram=tuple(histogram),
        mean_acceptance_length=known(mean, 3 * half),
        mean_acceptance_length_by_request=known(
            mean if by_request is None else by_request, 3 * half
        ),
        draft_acceptance_rate=known(accepted / drafted, half),
        immediate_failure_rate=known(histogram[0] / steps, half),
        full_draft_rate=known(histogram[-1] / steps, half),
        coverage=Estimate.missing(NO_DECODE_STEPS) if coverage is None else known(coverage, half),
        survival_estimator="product_limit",
        positions=found,
        largest_position=max(reached, default=None),
        bands=bands,
        completion_tokens=accepted + steps + extra_tokens if half else None,
        explained_tokens=accepted + steps if half else None,
        tokens_per_chunk=None,
        repetitive_share=None,
    )


def segment(
    name: str,
    values: Mapping[str, SegmentValue],
    made: SegmentFigures,
    *,
    flags: tuple[Flag, ...] = (),
    reconciliation: tuple[Identity, ...] = (),
    draft_length: DraftLengthChoice | None = None,
    reason: str | None = NO_STEP_COST,
) -> SegmentReport:
    """Return a segment of requests to vLLM unless `values` say otherwise."""
    return SegmentReport(
        name=name,
        values={"scope": "request", "engine": "vllm", "k": made.k, **values},
        figures=made,
        flags=flags,
        reconciliation=reconciliation,
        draft_length=draft_length,
        draft_length_reason=None if draft_length else reason,
    )


def all_used(read: int) -> RecordCounts:
    """Return the counts of a reading without incident."""
    return RecordCounts(read, read, {}, 0, (), verdict_withheld=False)


def one_segment() -> AcceptanceReport:
    """A histogram typed by hand: one answer, so no interval anywhere."""
    made = figures([39, 1, 0, 3], 129)
    identities = (
        Identity("drafted = K · steps", 129, 129, 0, True, "129 drafted, 3 · 43 = 129", ()),
        Identity(
            "completion tokens = accepted + steps",
            None,
            53,
            None,
            None,
            "the records do not tell their completion tokens",
            (),
        ),
    )
    flags = (
        Flag(
            "too_few_requests",
            "1 request, 43 steps: no interval can be given",
            "capture some 20 answers before changing a setting",
        ),
        Flag(
            "mostly_wasted",
            "39 of 43 steps accepted nothing; 119 of 129 drafted tokens were thrown away",
            "whether this prompt is of the kind that the drafter was made for",
        ),
    )
    only = segment("all", {"engine": "typed"}, made, flags=flags, reconciliation=identities)
    return AcceptanceReport(
        sources=("[39, 1, 0, 3]",),
        verdict="M = 1.233 tokens per step over 43 steps of 1 request: too little to conclude.",
        segments=(only,),
        whole=(),
        pooled=only,
        pooled_refused=None,
        split=None,
        records=all_used(1),
        step_cost=None,
        notes=(),
        definitions=DEFINITIONS,
    )


CHAT = (78, 27, 9, 3, 3)
COPY = (51, 30, 27, 21, 207)
BOTH = (129, 57, 36, 24, 210)


def _choice(
    speeds: Sequence[tuple[float, float, float, float]], best: int, low: int, high: int
) -> DraftLengthChoice:
    top = max(speed for _, _, speed, _ in speeds)
    return DraftLengthChoice(
        relative=False,
        options=tuple(
            DraftLengthOption(k, tokens, cost, known(speed, half), 1 - speed / top)
            for k, (tokens, cost, speed, half) in enumerate(speeds)
        ),
        best_k=best,
        best_k_low=low,
        best_k_high=high,
        estimated=True,
        notes=(
            *(
                ("K = 4 looks fastest, but resampling cannot tell it from K = 1: a tie",)
                if best == 1
                else ()
            ),
            "K below 4 is an estimate from drafts of up to 4: a drafter set to less may adapt",
        ),
    )


def _bands(*rows: tuple[int, int | None, int, float, float]) -> tuple[BandFigures, ...]:
    return tuple(
        BandFigures(start, end, steps, known(mean, half)) for start, end, steps, mean, half in rows
    )


def _identities(accepted: int, steps: int, extra: int, drafted: int) -> tuple[Identity, ...]:
    return (
        Identity(
            "completion tokens = accepted + steps",
            accepted + steps + extra,
            accepted + steps,
            extra,
            extra == 0,
            f"{extra} more completion tokens than accepted + steps",
            (
                "the first token of each answer comes from its prefill, not from a step",
                "decode steps without a draft emit a token that no verification step counts",
            ),
        ),
        Identity(
            "drafted = K · steps",
            drafted,
            4 * steps,
            drafted - 4 * steps,
            False,
            f"{4 * steps - drafted} fewer drafted tokens than K for every step",
            ("a lookup that finds less than K tokens drafts what it finds",),
        ),
        Identity("Σ j · H_j = accepted", accepted, accepted, 0, True, "equal", ()),
    )


def split_report() -> AcceptanceReport:
    """Two kinds of prompt behind one mean, of n-gram drafts up to 4; nearly all is known."""
    chat = segment(
        "kind=chat",
        {"kind": "chat", "method": "ngram"},
        figures(
            CHAT,
            453,
            requests=18,
            half=0.06,
            at_risk=(120, 42, 14, 6),
            coverage=0.082,
            by_request=1.489,
            bands=_bands(
                (0, 32, 41, 1.41, 0.21), (32, 128, 64, 1.61, 0.2), (128, 512, 15, 1.67, 0.5)
            ),
            extra_tokens=1344,
        ),
        flags=(
            Flag(
                "low_coverage",
                "8.2 % of decode steps had a draft (120 of 1,463)",
                "whether the prompts share text with their answers; if not, switch lookup off",
            ),
            Flag(
                "wasted_beyond",
                "positions 3 and 4 add 0.07 tokens per step and cost 160 of 387 wasted tokens",
                "a smaller num_speculative_tokens for this kind",
            ),
        ),
        reconciliation=_identities(66, 120, 1344, 453),
        draft_length=_choice(
            (
                (1.0, 16.2, 61.7, 0.5),
                (1.35, 16.8, 80.4, 3.1),
                (1.475, 17.5, 84.3, 4.2),
                (1.529, 17.8, 85.9, 4.9),
                (1.556, 18.0, 86.4, 5.6),
            ),
            1,
            1,
            4,
        ),
    )
    copy = segment(
        "kind=copy",
        {"kind": "copy", "method": "ngram"},
        figures(
            COPY,
            1317,
            requests=18,
            half=0.04,
            at_risk=(336, 282, 250, 222),
            coverage=0.485,
            by_request=4.204,
            bands=_bands(
                (0, 32, 98, 3.61, 0.3), (32, 128, 211, 4.04, 0.24), (128, 512, 27, 4.11, 0.6)
            ),
            extra_tokens=369,
        ),
        reconciliation=_identities(975, 336, 369, 1317),
        draft_length=_choice(
            (
                (1.0, 16.2, 61.7, 0.5),
                (1.848, 16.8, 110.0, 3.0),
                (2.612, 17.5, 149.3, 6.1),
                (3.293, 17.8, 185.0, 9.3),
                (3.934, 18.0, 218.6, 12.8),
            ),
            4,
            4,
            4,
        ),
    )
    whole = segment(
        "all",
        {},
        figures(
            BOTH,
            1770,
            requests=36,
            half=0.07,
            at_risk=(456, 324, 264, 228),
            coverage=0.211,
            by_request=2.846,
            extra_tokens=1713,
        ),
        reconciliation=_identities(1041, 456, 1713, 1770),
    )
    bad = tuple(
        BadRecordEntry("logs/answers-2.jsonl", line, reason)
        for line, reason in (
            (17, "not JSON: the input ends inside a string"),
            (204, "histogram sums to 43, steps say 44"),
        )
    )
    return AcceptanceReport(
        sources=("logs/answers-1.jsonl", "logs/answers-2.jsonl"),
        verdict=(
            "Two kinds of prompt hide behind one mean of 3.28: kind=copy accepts 3.90 tokens per"
            " step, kind=chat 1.55. Keep K = 4 for copy; for chat K = 1 does."
        ),
        segments=(copy, chat),
        whole=(whole,),
        pooled=whole,
        pooled_refused=None,
        split=Split(
            "kind",
            (
                KeyVariation("kind", 2, 0.713, 0.00002),
                KeyVariation("output_length", 3, 0.094, 0.071),
                KeyVariation("finish_reason", 2, 0.0, 0.64),
            ),
            "kind explains 71 % of the variation of M between requests (p < 0.001).",
        ),
        records=RecordCounts(
            read=45,
            used=36,
            no_metrics={
                "the field is null: n > 1 answers were asked for": 4,
                "no metrics field: the server was started without --enable-per-request-metrics": 3,
            },
            bad_count=2,
            bad=bad,
            verdict_withheld=False,
        ),
        step_cost="measured table: 16.2, 16.8, 17.5, 17.8, 18.0 ms for K = 0 to 4",
        notes=("M by steps and by request differ by more than the interval for kind=copy.",),
        definitions=DEFINITIONS,
    )


def mixed_k() -> AcceptanceReport:
    """K = 1 and K = 8 in one pile: never added."""
    short = segment("K=1", {}, figures((534, 1296), 1830, requests=72, half=0.045, coverage=0.352))
    long = segment(
        "K=8",
        {},
        figures(
            (405, 150, 54, 45, 36, 9, 33, 9, 174),
            6975,
            requests=72,
            half=0.05,
            at_risk=(915, 507, 357, 303, 258, 225, 204, 183),
            coverage=0.215,
            by_request=2.912,
        ),
    )
    return AcceptanceReport(
        sources=("captures",),
        verdict=(
            "K = 1 yields M = 1.71, K = 8 yields M = 3.44 tokens per step; without a step cost"
            " neither can be called faster."
        ),
        segments=(short, long),
        whole=(),
        pooled=None,
        pooled_refused="histograms of K = 1 and K = 8 are never added: their positions differ",
        split=Split(
            None, (KeyVariation("finish_reason", 2, 0.01, 0.4),), "no key explains enough."
        ),
        records=all_used(144),
        step_cost=None,
        notes=(),
        definitions=DEFINITIONS,
    )


def estimated() -> AcceptanceReport:
    """A llama.cpp server tells drafted and accepted tokens only: steps are estimated."""
    unknown = "llama.cpp tells no histogram"
    no_interval = Estimate(1.4815, None, ONE_REQUEST)
    made = SegmentFigures(
        k=None,
        records=1,
        requests=1,
        clusters=1,
        steps=135,
        steps_estimated=True,
        accepted=65,
        accepted_estimated=False,
        drafted=347,
        drafted_nominal=False,
        wasted=282,
        histogram=None,
        mean_acceptance_length=no_interval,
        mean_acceptance_length_by_request=no_interval,
        draft_acceptance_rate=known(65 / 347),
        immediate_failure_rate=Estimate.missing(unknown),
        full_draft_rate=Estimate.missing(unknown),
        coverage=Estimate.missing(NO_DECODE_STEPS),
        survival_estimator="tail",
        positions=(),
        largest_position=None,
        bands=(),
        completion_tokens=200,
        explained_tokens=None,
        tokens_per_chunk=None,
        repetitive_share=None,
    )
    identity = Identity(
        "completion tokens = accepted + steps",
        200,
        200,
        0,
        None,
        "steps were estimated from this very identity, so it shows nothing",
        (),
    )
    only = segment(
        "all",
        {"engine": "llama.cpp"},
        made,
        flags=(
            Flag(
                "too_few_requests",
                "1 request, about 135 steps",
                "capture some 20 answers before changing a setting",
            ),
        ),
        reconciliation=(identity,),
        reason="K is unknown and no histogram was recorded",
    )
    return AcceptanceReport(
        sources=("llama.json",),
        verdict="18.7 % of 347 drafted tokens were accepted, M ≈ 1.48 over about 135 steps.",
        segments=(only,),
        whole=(),
        pooled=only,
        pooled_refused=None,
        split=None,
        records=all_used(1),
        step_cost=None,
        notes=("Estimated steps include those without a draft, so the true M is higher.",),
        definitions=(
            *DEFINITIONS[:5],
            Definition("≈", "estimated or nominal, not counted"),
        ),
    )


def withheld() -> AcceptanceReport:
    """More than one record in twenty was bad."""
    listed = tuple(
        BadRecordEntry("traffic.jsonl", 3 * place + 2, "drafted is -4; expected 0 or more")
        for place in range(19)
    )
    only = segment(
        "all", {}, figures((120, 60, 30, 90), 880, requests=31, half=0.05, at_risk=(300, 175, 112))
    )
    return AcceptanceReport(
        sources=("traffic.jsonl",),
        verdict="No verdict: 57 of 88 records were bad (64.8 %); more than 5 % is too many.",
        segments=(only,),
        whole=(),
        pooled=only,
        pooled_refused=None,
        split=None,
        records=RecordCounts(
            read=88,
            used=31,
            no_metrics={},
            bad_count=57,
            bad=(*listed, BadRecordEntry("traffic.jsonl.gz", None, "the gzip stream is cut short")),
            verdict_withheld=True,
        ),
        step_cost=None,
        notes=(),
        definitions=DEFINITIONS,
    )


def many_segments(count: int = 40) -> AcceptanceReport:
    """As many tags, each a segment of its own."""
    names = [f"tag=customer-{place:02d}" for place in range(count)]
    made = tuple(
        segment(
            name,
            {"tag": name.removeprefix("tag=")},
            figures(
                (90 + 13 * place, 40 + 7 * (place % 5), 22, 31 + 5 * (place % 7)),
                3 * (183 + 13 * place + 7 * (place % 5) + 5 * (place % 7)),
                requests=12 + place,
                half=0.05,
                coverage=1.0,
            ),
        )
        for place, name in enumerate(names)
    )
    return replace(
        mixed_k(),
        verdict="Customers differ: from M = 1.28 for customer-35 to 1.97 for customer-00.",
        segments=made,
        sources=("big.jsonl.zst",),
        pooled_refused=None,
    )


HOSTILE_TEXTS = (
    "[bold red]markup[/bold red] and [link=http://example.org]more[/link]",
    "a | b || c \\| d",
    "two\nlines\r\nand a\ttab",
    "\x1b[31mred\x1b[0m \x1b]8;;http://example.org\x1b\\",
    "<script>alert(1)</script> &amp; <b>",
    "*star* _under_ __twice__ `tick` ~~gone~~ $x$",
    "[text](http://example.org) ![image](x.png) [a]: b",
    "# heading",
    "- item",
    "12. twelfth",
    "right \u202e to left",
    "\udcff not of any encoding",
    "モデル名がとても長い" * 12,
    "x" * 3000,
)


def below_its_card() -> AcceptanceReport:
    """A split report beside what a card promised under other conditions."""
    wanted = "5.5,k=7,engine=sglang,dataset=mt-bench,temperature=0,model=org/target-8b"
    return held_against(split_report(), read_expected(wanted))


def hostile(text: str) -> AcceptanceReport:
    """A report with that text wherever words come from outside."""
    report = split_report()

    def spoilt(each: SegmentReport) -> SegmentReport:
        reason = Estimate.missing(text)
        return replace(
            each,
            name=f"tag={text}",
            values={**each.values, "tag": text},
            figures=replace(each.figures, coverage=reason),
            flags=tuple(replace(flag, detail=text) for flag in each.flags),
            draft_length=None,
            draft_length_reason=text,
            expected=Expectation(
                *(text, 5.5, 5.45, 5.55, 7, "below", -3.0, -0.5, text),
                causes=(Cause(text, "differs", text, text),),
            ),
        )

    return replace(
        report,
        sources=(text,),
        verdict=text,
        notes=(text,),
        segments=tuple(map(spoilt, report.segments)),
        whole=tuple(map(spoilt, report.whole)),
        pooled=None,
        pooled_refused=text,
        records=replace(
            report.records,
            no_metrics={text: 7},
            bad=(BadRecordEntry(text, 3, text), BadRecordEntry(text, None, text)),
        ),
    )


SAMPLES: Mapping[str, Callable[[], AcceptanceReport]] = {
    sample.__name__: sample
    for sample in (
        one_segment,
        split_report,
        mixed_k,
        estimated,
        withheld,
        many_segments,
        below_its_card,
    )
}
"""Every report by name, to run a test on each."""
