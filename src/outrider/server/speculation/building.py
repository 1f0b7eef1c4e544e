"""The engine's parts for a resolved configuration."""

from collections.abc import Callable
from dataclasses import dataclass

from outrider.engine.adaptive.profiling import profile_steps
from outrider.engine.adaptive.verification import AdaptiveVerification
from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.batch_size_ranges import BatchSizeRanges
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.drafting.own_model.model import OwnModel
from outrider.engine.models.base import TargetModel
from outrider.engine.scheduling.limits import Limits
from outrider.engine.verification.base import Verifier
from outrider.engine.verification.registry import build_verifier
from outrider.server.speculation.resolved import ResolvedSpeculation


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationParts:
    """What `StepLoop` takes beside target, recorder and clock, under the same names."""

    drafter: Drafter
    verifier: Verifier
    k: int
    k_by_batch_size: BatchSizeRanges | None = None
    adaptive: AdaptiveVerification | None = None


def build(
    resolved: ResolvedSpeculation | None,
    *,
    target: TargetModel,
    own: OwnModel | None = None,
    limits: Limits,
    clock: Callable[[], float],
) -> SpeculationParts:
    """Build the parts that `resolved` calls for; None is plain decoding.

    `own` is the model of the resolved checkpoint, see `OpenedDraft.load`.
    Adaptive verification times steps of `target` by `clock`, in seconds, and overwrites the first
    blocks of its cache: build before any request has come.
    """
    if resolved is None:
        return SpeculationParts(drafter=NoDrafter(), verifier=build_verifier("standard"), k=0)
    k = resolved.num_speculative_tokens
    adaptive = None
    if resolved.enable_adaptive_verification:
        most_rows = min(limits.max_num_seqs * (k + 1), limits.max_num_batched_tokens)
        cost = profile_steps(target, most_rows=most_rows, clock=clock)
        adaptive = AdaptiveVerification(cost, k)
    return SpeculationParts(
        drafter=resolved.drafting.build(target, own, judge=adaptive),
        verifier=resolved.verifier,
        k=k,
        k_by_batch_size=resolved.k_by_batch_size,
        adaptive=adaptive,
    )
