"""Lines of vLLM's answers by the thousand, several times as fast as the adapter reads them.

Decoding straight into the few typed fields that count skips the text of the answer, which is most
of a line, and the checks are made of all lines at once. What is not entirely plain is left to the
adapter: its records and these are the same.
"""

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import Annotated, TypeAlias

import msgspec
import numpy as np

from outrider.acceptance.intervals import FloatArray
from outrider.records.batch import RecordBatch
from outrider.records.numbers import BoolArray, IntArray, Numbers, StepLists
from outrider.records.reading import AcceptanceRecord
from outrider.records.validation import LONGEST_DRAFT, MOST_COUNTED

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_COUNTED)]
K: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=LONGEST_DRAFT)]

_FEWEST_STEPS_TO_TELL = 8
_VERSION_PREFIX = "vllm-"
_OBJECTS = frozenset(("chat.completion", "text_completion"))


class Speculation(msgspec.Struct, gc=False):
    """vLLM's counts of one answer."""

    mean_acceptance_length: float
    draft_acceptance_rate: float
    acceptance_histogram: tuple[Count, ...]
    num_spec_steps: Count
    num_accepted_draft_tokens: Count
    num_draft_tokens: Count
    num_spec_tokens: K
    per_step_accepted: list[int] | None = None
    per_step_drafted: list[int] | None = None
    acceptance_histogram_by_draft_length: msgspec.Raw | None = None


class _Metrics(msgspec.Struct, gc=False):
    speculative_decoding: Speculation


class _PromptDetails(msgspec.Struct, gc=False):
    cached_tokens: Count | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: Count
    completion_tokens: Count
    prompt_tokens_details: _PromptDetails | None = None


class _Choice(msgspec.Struct, gc=False):
    finish_reason: str
    stop_reason: int | None = None


class PlainBody(msgspec.Struct, gc=False):
    """What counts of a response body with one answer."""

    id: str
    object: str
    model: str
    choices: list[_Choice]
    usage: _Usage
    metrics: _Metrics
    system_fingerprint: str | None = None


_decode = msgspec.json.Decoder(PlainBody).decode


def plain_body(line: bytes) -> PlainBody | None:
    """Return the body of a line, or None for one that the adapter has to read."""
    try:
        body = _decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    counted = body.metrics.speculative_decoding
    if (
        len(body.choices) != 1
        or body.object not in _OBJECTS
        or not body.id
        or len(counted.acceptance_histogram) != counted.num_spec_tokens + 1
        or counted.acceptance_histogram_by_draft_length is not None
    ):
        return None
    if counted.per_step_accepted is None and counted.per_step_drafted is None:
        return body
    accepted, drafted, steps = (
        counted.per_step_accepted,
        counted.per_step_drafted,
        counted.num_spec_steps,
    )
    if accepted is None or drafted is None or not len(accepted) == len(drafted) == steps:
        return None
    return body


def batches(
    bodies: Sequence[PlainBody], lines: Sequence[int]
) -> tuple[list[RecordBatch], list[int]]:
    """Return the bodies with their line numbers as batches, one for each K.

    The second part is the places of those that the adapter has to read after all: something in
    them does not agree, or only their text can tell what they are.
    """
    ks = np.array([body.metrics.speculative_decoding.num_spec_tokens for body in bodies])
    found, left = [], []
    for k in np.unique(ks).tolist():
        places = np.flatnonzero(ks == k).tolist()
        some = [bodies[place] for place in places]
        try:
            numbers, agree = _numbers_of(some, k)
        except ValueError:
            # A length of a step that is none.
            left += places
            continue
        if not agree.all():
            left += [place for place, good in zip(places, agree, strict=True) if not good]
            places = [place for place, good in zip(places, agree, strict=True) if good]
            some = [bodies[place] for place in places]
            if not some:
                continue
            numbers, _ = _numbers_of(some, k)
        kinds, examples = _kinds(some, numbers)
        found.append(
            RecordBatch(
                numbers=numbers,
                ids=[body.id for body in some],
                lines=[lines[place] for place in places],
                kinds=kinds,
                examples=examples,
            )
        )
    return found, sorted(left)


_counts = attrgetter(
    "num_spec_steps",
    "num_accepted_draft_tokens",
    "num_draft_tokens",
    "mean_acceptance_length",
    "draft_acceptance_rate",
)


def _numbers_of(bodies: Sequence[PlainBody], k: int) -> tuple[Numbers, BoolArray]:
    """Return the numbers of bodies of one K, and in which of them all agree."""
    counted = [body.metrics.speculative_decoding for body in bodies]
    counts = np.array([_counts(each) for each in counted], dtype=np.float64)
    steps, accepted, drafted, mean, rate = counts.T
    flat = chain.from_iterable(each.acceptance_histogram for each in counted)
    histograms = np.fromiter(flat, np.float64, len(counted) * (k + 1)).reshape(-1, k + 1)
    usage = np.array([_tokens(body.usage) for body in bodies], dtype=np.float64)
    listed = [place for place, each in enumerate(counted) if each.per_step_drafted is not None]
    step_lists = StepLists.of(
        listed,
        [counted[place].per_step_accepted or () for place in listed],
        [counted[place].per_step_drafted or () for place in listed],
    )
    ends = histograms[:, 0] + histograms[:, -1]
    agree = (
        (histograms.sum(axis=1) == steps)
        & (histograms @ np.arange(k + 1) == accepted)
        & (accepted <= drafted)
        & (drafted <= k * steps)
        & (mean == np.where(steps > 0, 1 + _ratio(accepted, steps), 1.0))
        & (rate == np.where(drafted > 0, _ratio(accepted, drafted), 0.0))
        # Only the text tells a corrupted run from a mixture.
        & ~((ends == steps) & (steps >= _FEWEST_STEPS_TO_TELL))
    )
    agree[step_lists.places] &= _steps_agree(step_lists, histograms, drafted, k)
    unknown, no = np.full_like(steps, np.nan), np.zeros(len(steps), dtype=bool)
    numbers = Numbers(
        k=k,
        requests=np.ones_like(steps),
        steps=steps,
        accepted=accepted,
        drafted=drafted,
        decode_steps=unknown,
        prompt_tokens=usage[:, 0],
        completion_tokens=usage[:, 1],
        cached_tokens=usage[:, 2],
        chunks=unknown,
        steps_estimated=no,
        accepted_estimated=no,
        drafted_nominal=no,
        repetitive=no,
        text_seen=no,
        histogram_known=~no,
        histograms=histograms,
        step_lists=step_lists if listed else None,
        tabled=np.zeros(0, dtype=np.int64),
        tables=np.zeros((0, k + 1, k + 1)),
    )
    return numbers, agree


def _tokens(usage: _Usage) -> tuple[int, int, int | None]:
    details = usage.prompt_tokens_details
    return (
        usage.prompt_tokens,
        usage.completion_tokens,
        None if details is None else details.cached_tokens,
    )


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _steps_agree(
    lists: StepLists, histograms: FloatArray, drafted: FloatArray, k: int
) -> BoolArray:
    records = len(lists.places)
    impossible = (lists.drafted > k) | (lists.accepted > lists.drafted)
    cells = lists.owner * (k + 1) + np.minimum(lists.accepted, k)
    counts = np.bincount(cells, minlength=records * (k + 1)).reshape(-1, k + 1)
    sums = np.bincount(lists.owner, weights=lists.drafted, minlength=records)
    agree: BoolArray = (
        (np.bincount(lists.owner[impossible], minlength=records) == 0)
        & (counts == histograms[lists.places]).all(axis=1)
        & (sums == drafted[lists.places])
    )
    return agree


def _kinds(
    bodies: Sequence[PlainBody], numbers: Numbers
) -> tuple[IntArray, list[AcceptanceRecord]]:
    """Number the bodies by what segments are made of, and give a record of each number."""
    tags: dict[tuple[str, str, str | None], int] = {}
    of_tags = [
        tags.setdefault(
            (body.model, body.choices[0].finish_reason, body.system_fingerprint), len(tags)
        )
        for body in bodies
    ]
    # Bands of length begin at powers of two.
    _, prompt_bits = np.frexp(numbers.prompt_tokens)
    _, output_bits = np.frexp(numbers.completion_tokens)
    codes = (np.array(of_tags) * 64 + prompt_bits) * 64 + output_bits
    _, first, kinds = np.unique(codes, return_index=True, return_inverse=True)
    return kinds, [record_of(bodies[place]) for place in first]


def record_of(body: PlainBody) -> AcceptanceRecord:
    """Return the record of a body whose numbers agree."""
    counted = body.metrics.speculative_decoding
    tags = {
        "model": body.model,
        "finish_reason": body.choices[0].finish_reason,
        "streamed": "no",
    }
    version = body.system_fingerprint
    if version is not None and version.startswith(_VERSION_PREFIX):
        tags["engine_version"] = version.split("-", 2)[1]
    return AcceptanceRecord(
        engine="vllm",
        id=body.id,
        k=counted.num_spec_tokens,
        histogram=counted.acceptance_histogram,
        steps=counted.num_spec_steps,
        accepted=counted.num_accepted_draft_tokens,
        drafted=counted.num_draft_tokens,
        per_step_accepted=counted.per_step_accepted,
        per_step_drafted=counted.per_step_drafted,
        prompt_tokens=body.usage.prompt_tokens,
        completion_tokens=body.usage.completion_tokens,
        cached_tokens=_tokens(body.usage)[2],
        tags=tags,
    )
