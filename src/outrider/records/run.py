"""What a run was asked to do."""

from dataclasses import dataclass

from outrider.records.arm import Arm


@dataclass(frozen=True, slots=True)
class RunSettings:
    """All that is needed to continue a run; the prompts and their order are kept beside it.

    `model`, `dtype` and `threads` are as asked for (None leaves it to the engine); what they came
    to is in each session's Environment. `arms` are in the order of the request, the measured order
    follows from `seed`. `max_tokens` caps every prompt's own limit, None does not. The figures of a
    `smoke` run show only that everything works.
    """

    model: str
    workload: str
    workload_sha256: str
    arms: tuple[Arm, ...]
    repeats: int
    seed: int
    temperature: float
    dtype: str | None
    threads: int | None
    max_tokens: int | None
    smoke: bool
