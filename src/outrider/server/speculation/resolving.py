"""From what a user asks to what is done."""

from collections.abc import Iterator

from outrider.engine.drafting.batch_size_ranges import BatchSizeRanges
from outrider.engine.verification.base import Verifier
from outrider.engine.verification.registry import build_verifier
from outrider.server.speculation.config import SpeculativeConfig
from outrider.server.speculation.detection import Detection, detect
from outrider.server.speculation.methods.registry import method_for
from outrider.server.speculation.resolved import ResolvedSpeculation
from outrider.server.speculation.target_facts import TargetFacts
from outrider.server.speculation.unused_keys import refuse_unused
from outrider.server.speculation.verification import resolve_verification


def resolve(config: SpeculativeConfig, target: TargetFacts) -> ResolvedSpeculation:
    """Decide all that `config` leaves open for `target`, without loading anything.

    Raises InvalidSetting for a method that this engine does not run, for a key that would change
    nothing, and for settings that do not go together.
    """
    detection = detect(config)
    method = method_for(detection)
    refuse_unused(config, method)
    drafting = method.resolve(config, target)
    k = drafting.num_speculative_tokens
    verification = resolve_verification(config, k)
    asked = config.num_speculative_tokens_per_batch_size
    ranges = None if asked is None else BatchSizeRanges(asked, k)
    filled_in = {
        "num_speculative_tokens": k,
        **drafting.settings,
        "fly_window_size": verification.fly_window_size,
    }
    return ResolvedSpeculation(
        drafting=drafting,
        rejection_sample_method=config.rejection_sample_method,
        verification=verification,
        enable_adaptive_verification=config.enable_adaptive_verification,
        k_by_batch_size=None if ranges is None else _within_k(ranges),
        notes=(
            *_on_detection(detection),
            *(
                f"{key} was not set: {value}"
                for key, value in filled_in.items()
                if getattr(config, key) is None and value is not None
            ),
            *_on_ranges(ranges),
            *_on_rule(build_verifier(config.rejection_sample_method, verification)),
        ),
    )


def _within_k(ranges: BatchSizeRanges) -> BatchSizeRanges:
    most = ranges.num_speculative_tokens
    return BatchSizeRanges(tuple((*size, min(k, most)) for *size, k in ranges.ranges), most)


def _on_detection(detection: Detection) -> Iterator[str]:
    if detection.reason is not None:
        yield f"method {detection}"


def _on_ranges(ranges: BatchSizeRanges | None) -> Iterator[str]:
    if ranges is None:
        return
    for asked in ranges.clamped:
        yield (
            f"{list(asked)} in num_speculative_tokens_per_batch_size asks for more than "
            f"num_speculative_tokens, and gets {ranges.num_speculative_tokens}"
        )


def _on_rule(verifier: Verifier) -> Iterator[str]:
    if not verifier.lossless:
        yield f"verification {verifier.name} is lossy: the output is not the target's"
