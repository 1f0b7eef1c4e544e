"""What a user may ask of verification."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationSettings:
    """The settings of all rules, under vLLM's names; a rule checks and reads its own.

    `num_speculative_tokens` is K. Rates are survivals by position, the length is 1 + their sum;
    the window is in tokens, the threshold in nats.
    """

    num_speculative_tokens: int = 0
    synthetic_acceptance_rates: tuple[float, ...] | None = None
    synthetic_acceptance_length: float | None = None
    fly_window_size: int | None = None
    fly_entropy_threshold: float = 0.3
    fly_entropy_top_k: int = 3
