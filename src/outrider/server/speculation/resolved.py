"""What a server really does: every setting decided."""

from dataclasses import dataclass, fields

from outrider.engine.drafting.batch_size_ranges import BatchSizeRanges
from outrider.engine.verification.base import Verifier
from outrider.engine.verification.registry import build_verifier
from outrider.engine.verification.settings import VerificationSettings
from outrider.server.speculation.methods.base import DraftingMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSpeculation:
    """Method, K, checkpoint, verifier and all else that `build` needs.

    `notes` has one line for each thing that was filled in or that the user should know.
    """

    drafting: DraftingMethod
    rejection_sample_method: str
    verification: VerificationSettings
    enable_adaptive_verification: bool
    k_by_batch_size: BatchSizeRanges | None
    notes: tuple[str, ...]

    @property
    def method(self) -> str:
        """The drafting method."""
        return self.drafting.name

    @property
    def num_speculative_tokens(self) -> int:
        """K, the most tokens in a draft."""
        return self.drafting.num_speculative_tokens

    @property
    def checkpoint(self) -> str | None:
        """Where the draft weights are, None for a method without any."""
        return self.drafting.checkpoint

    @property
    def verifier(self) -> Verifier:
        """The rule that judges drafts."""
        return build_verifier(self.rejection_sample_method, self.verification)

    def describe(self) -> str:
        """Return one line for the log."""
        verifier = self.verifier
        parts = [
            f"speculation {self.method}"
            + (f" with {self.checkpoint!r}" if self.checkpoint is not None else ""),
            f"K = {self.num_speculative_tokens}",
            self.drafting.describe(),
            f"verification {verifier.name} ({'lossless' if verifier.lossless else 'LOSSY'})",
        ]
        if self.k_by_batch_size is not None:
            ranges = " ".join(f"{start}-{end}:{k}" for start, end, k in self.k_by_batch_size.ranges)
            parts.append(f"K by batch size {ranges}")
        if self.enable_adaptive_verification:
            parts.append("adaptive verification")
        return ", ".join(parts)

    def as_dict(self) -> dict[str, object]:
        """Return it under vLLM's keys, as JSON can hold it; `lossless` is not one of them.

        As in vLLM the model of a method without one is the method's own name.
        """
        ranges = self.k_by_batch_size
        return {
            "method": self.method,
            "model": self.checkpoint or self.method,
            "num_speculative_tokens": self.num_speculative_tokens,
            **self.drafting.settings,
            "num_speculative_tokens_per_batch_size": (
                None if ranges is None else [list(each) for each in ranges.ranges]
            ),
            "enable_adaptive_verification": self.enable_adaptive_verification,
            "rejection_sample_method": self.rejection_sample_method,
            **self._rule_settings(),
            "lossless": self.verifier.lossless,
        }

    def _rule_settings(self) -> dict[str, object]:
        values = {
            field.name: getattr(self.verification, field.name)
            for field in fields(self.verification)
            if field.name.startswith(f"{self.rejection_sample_method}_")
        }
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in values.items()
            if value is not None
        }
