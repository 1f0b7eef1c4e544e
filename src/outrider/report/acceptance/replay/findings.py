"""What a replay found of its settings, before it is laid out."""

from dataclasses import dataclass

from outrider.acceptance.estimate import Estimate


@dataclass(frozen=True, slots=True)
class SettingAtK:
    """One setting at one K.

    `tokens_per_step` is M̂, tokens per decode step, those without a draft included; coverage is the
    share with one, and `mean_acceptance_length` is of these alone. `speed` is predicted from a
    step cost, in tokens per plain step or tokens/s, and `speed_up` is over no speculation; None
    without a cost of that K and of a plain step.
    """

    setting: str
    method: str
    k: int
    answers: int
    decode_steps: int
    tokens_per_step: Estimate
    mean_acceptance_length: Estimate
    coverage: Estimate
    draft_acceptance_rate: Estimate
    speed: Estimate | None
    speed_up: Estimate | None


@dataclass(frozen=True, slots=True)
class SegmentChoice:
    """The best that was found for one segment, "" for all answers, and whether it pays.

    `pays` is None without a step cost, unless nothing is gained at all. It is False unless the
    whole interval of the speed-up is above 1 and the gain is no tie: off is simpler. `flags` are
    the server's flags for the best, None where it does not pay.
    """

    segment: str
    best: SettingAtK
    pays: bool | None
    flags: str | None


@dataclass(frozen=True, slots=True)
class ReplayFindings:
    """The settings of a replay, each at its best K, the best first.

    The best K is the smallest that is within 2 % of the fastest; without a step cost, of the most
    tokens per decode step. `choice` is of all answers, and `segments` are those by segment, empty
    where there is but one. `replayed_k` are all K that were replayed; `caveats` say how far the
    figures hold.
    """

    settings: tuple[SettingAtK, ...]
    choice: SegmentChoice
    segments: tuple[SegmentChoice, ...]
    replayed_k: tuple[int, ...]
    relative: bool | None
    caveats: tuple[str, ...]
