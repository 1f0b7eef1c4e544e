"""What it takes a drafter to draft, learned while it does."""

from dataclasses import dataclass

MEMORY = 0.95
"""What a step leaves of the weight of those before it: half after 14 steps."""
RIDGE = 1e-3
"""Holds on to what was known of lengths that have not been seen for long."""


@dataclass(slots=True)
class DraftCost:
    """Seconds of a draft by its length: a fixed part, and one for each token.

    A model that drafts token by token has nearly none of the first, one that drafts all in one pass
    nearly none of the second. Until two lengths were seen it is all taken for the second. Recursive
    least squares with forgetting; `weight`, `weighted_tokens` and `weighted_squares` are the sums
    of 1, k and k² over the steps.
    """

    fixed_s: float = 0.0
    token_s: float = 0.0
    weight: float = 0.0
    weighted_tokens: float = 0.0
    weighted_squares: float = 0.0

    def observe(self, tokens: int, seconds: float) -> None:
        """Learn that a draft of up to `tokens`, at least one, took so long."""
        if not self.weight:
            self.token_s = seconds / tokens
        self.weight = MEMORY * self.weight + 1
        self.weighted_tokens = MEMORY * self.weighted_tokens + tokens
        self.weighted_squares = MEMORY * self.weighted_squares + tokens * tokens
        error_s = seconds - self.fixed_s - self.token_s * tokens
        # The two unknowns move by the error times the inverse of the 2 x 2 sums times (1, tokens).
        ones, both, squares = (
            self.weight + RIDGE,
            self.weighted_tokens,
            self.weighted_squares + RIDGE,
        )
        scale = error_s / (ones * squares - both * both)
        self.fixed_s += scale * (squares - both * tokens)
        self.token_s += scale * (ones * tokens - both)

    def seconds(self, tokens: int) -> float:
        """Return what a draft of so many tokens is thought to take; of none, the fixed part."""
        return max(self.fixed_s, 0.0) + max(self.token_s, 0.0) * tokens
