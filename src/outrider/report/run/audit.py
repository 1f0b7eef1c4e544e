"""Whether speculation left the output alone: the losslessness audit of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

from outrider.records.arm import Arm
from outrider.records.divergence import Divergence
from outrider.records.request import RequestRecord


@dataclass(frozen=True, slots=True)
class LosslessnessAudit:
    """The outputs of the speculating `arms` beside those of no speculation, token by token.

    Of the `pairs` of one prompt and repeat, `identical_pairs` have the same output; `tokens` are
    those of no speculation that were held against the arms'. `divergences` are the first
    differences that were classed, and `unclassified_pairs` differ without one.
    """

    arms: tuple[str, ...]
    pairs: int
    identical_pairs: int
    tokens: int
    divergences: tuple[Divergence, ...]
    unclassified_pairs: int

    @property
    def wrong_arms(self) -> frozenset[str]:
        """The arms that changed the output where the target was not near a tie."""
        return frozenset(found.arm for found in self.divergences if found.kind == "real")


def audit_outputs(
    arms: Sequence[Arm], measured: Sequence[RequestRecord], divergences: Sequence[Divergence]
) -> LosslessnessAudit:
    """Audit the measured requests of a run at temperature 0; only there outputs must be equal."""
    plain = {arm.name for arm in arms if not arm.speculates}
    expected = {
        (request.prompt_id, request.repeat): request.output_token_ids
        for request in measured
        if request.arm in plain
    }
    pairs = [
        (request, expected[request.prompt_id, request.repeat])
        for request in measured
        if request.arm not in plain and (request.prompt_id, request.repeat) in expected
    ]
    different = {
        (request.arm, request.prompt_id, request.repeat)
        for request, output in pairs
        if request.output_token_ids != output
    }
    classed = {(found.arm, found.prompt_id, found.repeat) for found in divergences}
    return LosslessnessAudit(
        arms=tuple(arm.name for arm in arms if arm.speculates),
        pairs=len(pairs),
        identical_pairs=len(pairs) - len(different),
        tokens=sum(len(output) for _, output in pairs),
        divergences=tuple(sorted(divergences, key=lambda found: found.kind != "real")),
        unclassified_pairs=len(different - classed),
    )
