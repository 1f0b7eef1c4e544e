"""The speculation counters of a server's /metrics page, and the difference of two such pages."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import httpx2
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from outrider.errors import UnreadableSource
from outrider.records.adapters.positions import histogram_of_positions
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics, Reading, Scope
from outrider.records.sources.addresses import page_address, without_password
from outrider.records.validation import MOST_COUNTED

CounterName = Literal["drafts", "draft_tokens", "accepted_tokens", "accepted_tokens_per_pos"]

SPECULATION_SAMPLE = re.compile(
    r"(?:ray_)?(?:vllm[:_]spec_decode_num_"
    r"(?P<counter>drafts|draft_tokens|accepted_tokens_per_pos|accepted_tokens)"
    r"(?P<kind>_total|_created)?"
    r"|sglang[:_](?P<gauge>spec_accept_length|spec_accept_rate))(?![\w:])"
)
"""The start of a line that is read; Ray puts its name in front, and `_` in place of `:`."""

_NO_COUNTERS = (
    "the server's /metrics has no speculative decoding counters:"
    " speculation is off, or log stats are off"
)
_LARGEST_PAGE = 64 << 20
_LONGEST_LINE = 1 << 16
_LARGEST_FLOAT = 1e300


class Counter(NamedTuple):
    """One time series: what is counted, for which model, by which of its engines.

    `engine` is every label besides the model and the position; `position` counts from 0.
    """

    model: str
    engine: str
    name: CounterName
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Scrape:
    """What a page says of speculation.

    `created` are the moments (Unix time, seconds) at which a series began to count. `gauges` are
    SGLang's running values by name. `bad` lists the lines that could not be read, with the reason.
    """

    counts: Mapping[Counter, int]
    created: Mapping[Counter, float]
    gauges: Mapping[str, tuple[float, ...]]
    bad: tuple[tuple[int, str], ...]


def read_scrape(text: str) -> Scrape:
    """Read a page in the Prometheus text format, or as much of it as can be read."""
    return scrape_of_lines(enumerate(text.split("\n"), 1))


def scrape_of_lines(lines: Iterable[tuple[int, str]]) -> Scrape:
    """Read the lines of a page with their numbers; of several states of a series the last."""
    counts: dict[Counter, int] = {}
    created: dict[Counter, float] = {}
    gauges: dict[str, list[float]] = defaultdict(list)
    bad = []
    for number, line in lines:
        told = SPECULATION_SAMPLE.match(line)
        if told is None:
            continue
        try:
            sample = _sample(line)
            if told["gauge"]:
                gauges[told["gauge"]].append(_finite(sample.value))
            elif told["kind"] == "_created":
                created[_counter(told["counter"], sample)] = _finite(sample.value)
            else:
                counts[_counter(told["counter"], sample)] = _whole(sample.value)
        except ValueError as error:
            bad.append((number, str(error)))
    return Scrape(
        counts, created, {name: tuple(values) for name, values in gauges.items()}, tuple(bad)
    )


def scrape_url(url: str, http: httpx2.Client) -> Scrape:
    """Read the page at an address, at /metrics where it names a server alone.

    Raises UnreadableSource where no such page comes back.
    """
    address = page_address(url)
    shown = without_password(address)
    pieces: list[str] = []
    length = 0
    try:
        with http.stream("GET", address) as response:
            if response.status_code != httpx2.codes.OK:
                raise _no_page(f"{shown} answers {response.status_code}")
            for piece in response.iter_text():
                pieces.append(piece)
                length += len(piece)
                if length > _LARGEST_PAGE:
                    raise _no_page(f"{shown} sends more than {_LARGEST_PAGE >> 20} MiB")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise _no_page(f"{shown}: {str(error) or type(error).__name__}") from error
    return read_scrape("".join(pieces))


def since_start(scrape: Scrape) -> list[Reading]:
    """Return what a server did since it started: a record per model and K, or why there is none.

    Lines that could not be read are not among the readings; the scrape lists them.
    """
    if not scrape.counts:
        return [_without_counters(scrape)]
    readings: list[Reading] = []
    for group in _groups(scrape.counts, readings):
        started = [f"{e.engine}@{scrape.created.get(e.series('drafts'), '?')}" for e in group]
        readings.append(
            _reading(
                group,
                Scope.SERVER,
                snapshot=f"vllm {group[0].model} {' '.join(sorted(started))}",
                idle="nothing was drafted since the server started",
            )
        )
    return readings


def difference(before: Scrape, after: Scrape, *, by_rank: bool = False) -> list[Reading]:
    """Return what a server did between two scrapes: a record per model and K, or why there is none.

    With `by_rank` each engine of a server has a record of its own, tagged `rank`. An engine that
    restarted in between counts from its restart, and the record is tagged `counters_reset`. Lines
    that could not be read are among the readings.
    """
    readings: list[Reading] = [
        BadRecord(f"line {number} of the {which} scrape: {reason}")
        for which, scrape in (("first", before), ("second", after))
        for number, reason in scrape.bad
    ]
    if not after.counts:
        return [*readings, _without_counters(after)]
    if not before.counts:
        return [*readings, NoMetrics("the first scrape has no speculative decoding counters")]
    restarted = _restarted(before, after)
    between: dict[Counter, int] = {}
    for series, count in after.counts.items():
        if (series.model, series.engine) in restarted:
            between[series] = count
        elif series in before.counts:
            between[series] = count - before.counts[series]
        elif not before.bad:  # A counter that a damaged line may have held is unknown, not new.
            between[series] = count
    groups = _groups(between, readings)
    if by_rank:
        groups = [[engine] for group in groups for engine in group]
    for group in groups:
        rank = {"rank": group[0].engine.removeprefix("engine ") or "only"} if by_rank else {}
        reset = any((engine.model, engine.engine) in restarted for engine in group)
        readings.append(
            _reading(
                group,
                Scope.INTERVAL,
                tags={**rank, **({"counters_reset": "yes"} if reset else {})},
                idle="nothing was drafted between the two scrapes",
            )
        )
    return readings


def swapped(before: Scrape, after: Scrape) -> bool:
    """Whether the second scrape was taken first: counters fell that had not started anew."""
    common = after.counts.keys() & before.counts.keys()
    fell = [series for series in common if after.counts[series] < before.counts[series]]
    rose = any(after.counts[series] > before.counts[series] for series in common)
    same_start = all(
        before.created.get(series) == after.created.get(series) is not None for series in fell
    )
    return bool(fell) and not rose and same_start


def _restarted(before: Scrape, after: Scrape) -> set[tuple[str, str]]:
    """Return the engines of which any series fell, or began to count at another moment."""
    fell = (series for series, n in after.counts.items() if n < before.counts.get(series, 0))
    began = (s for s, t in after.created.items() if t != before.created.get(s, t))
    return {(series.model, series.engine) for series in (*fell, *began)}


@dataclass(frozen=True, slots=True)
class _Engine:
    """The counts of one engine; `positions` is empty unless all from 0 on are known."""

    model: str
    engine: str
    drafts: int
    accepted: int
    drafted: int | None
    positions: tuple[int, ...]

    def series(self, name: CounterName) -> Counter:
        return Counter(self.model, self.engine, name)


def _groups(counts: Mapping[Counter, int], readings: list[Reading]) -> list[list[_Engine]]:
    """Return the engines that may be added: of one model, with one number of positions."""
    by_engine: dict[tuple[str, str], dict[tuple[CounterName, int | None], int]] = defaultdict(dict)
    for series, count in counts.items():
        by_engine[series.model, series.engine][series.name, series.position] = count
    groups: dict[tuple[str, int], list[_Engine]] = defaultdict(list)
    for (model, name), told in by_engine.items():
        drafts, accepted = told.get(("drafts", None)), told.get(("accepted_tokens", None))
        if drafts is None or accepted is None:
            missing = "drafts" if drafts is None else "accepted tokens"
            readings.append(
                BadRecord(f"the number of {missing} of {_named(model, name)} is missing")
            )
            continue
        found = sum(position is not None for _, position in told)
        in_order = [told.get(("accepted_tokens_per_pos", place)) for place in range(found)]
        positions = tuple(count for count in in_order if count is not None)
        if len(positions) < found:
            positions = ()
        drafted = told.get(("draft_tokens", None))
        engine = _Engine(model, name, drafts, accepted, drafted, positions)
        groups[model, len(positions)].append(engine)
    return list(groups.values())


def _reading(
    group: list[_Engine],
    scope: Scope,
    *,
    idle: str,
    snapshot: str | None = None,
    tags: Mapping[str, str] | None = None,
) -> Reading:
    steps = sum(engine.drafts for engine in group)
    if steps == 0:
        return NoMetrics(idle)
    accepted = sum(engine.accepted for engine in group)
    drafted = [engine.drafted for engine in group if engine.drafted is not None]
    positions = [sum(counts) for counts in zip(*(e.positions for e in group), strict=True)]
    model = group[0].model
    return AcceptanceRecord(
        engine="vllm",
        scope=scope,
        snapshot=snapshot,
        requests=None,
        k=len(positions) or None,
        histogram=histogram_of_positions(steps, accepted, positions),
        steps=steps,
        accepted=accepted,
        drafted=sum(drafted) if len(drafted) == len(group) else None,
        tags={**({"model": model} if model else {}), **(tags or {})},
    )


def _without_counters(scrape: Scrape) -> NoMetrics:
    if not scrape.gauges:
        return NoMetrics(_NO_COUNTERS)
    told = ", ".join(
        f"{name} {' / '.join(f'{value:g}' for value in values[:4])}"
        for name, values in sorted(scrape.gauges.items())
    )
    return NoMetrics(
        f"SGLang's /metrics has running values and no counts of accepted tokens ({told}):"
        " read the answers to requests with return_spec_tokens_details instead"
    )


def _named(model: str, engine: str) -> str:
    return " ".join(part for part in (engine or "the engine", model and f"of {model}") if part)


def _sample(line: str) -> Sample:
    if len(line) > _LONGEST_LINE:
        raise ValueError(f"a line of {len(line)} characters")
    samples = [
        sample for family in text_string_to_metric_families(line) for sample in family.samples
    ]
    if len(samples) != 1:
        raise ValueError(f"no sample in {line[:80]!r}")
    return samples[0]


def _counter(name: str, sample: Sample) -> Counter:
    labels = dict(sample.labels)
    model = labels.pop("model_name", "")
    position = labels.pop("position", None)
    if name == "accepted_tokens_per_pos" and not (position or "").isdecimal():
        raise ValueError(f"position is {position!r}; expected a whole number from 0")
    return Counter(
        model,
        " ".join(f"{label} {value}" for label, value in sorted(labels.items())),
        cast("CounterName", name),
        None if position is None else int(position),
    )


def _finite(value: float) -> float:
    if not -_LARGEST_FLOAT < value < _LARGEST_FLOAT:
        raise ValueError(f"the value is {str(value)[:40]}; expected a number")
    return float(value)


def _whole(value: float) -> int:
    if not (0 <= value <= MOST_COUNTED and value == int(value)):
        raise ValueError(f"the count is {str(value)[:40]}; expected a whole number from 0")
    return int(value)


def _no_page(seen: str) -> UnreadableSource:
    return UnreadableSource(
        seen, "a page in the Prometheus text format", "check the address and that the server runs"
    )
