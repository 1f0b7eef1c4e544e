"""How the drafts of one request have fared lately."""

from dataclasses import dataclass
from math import log

MEMORY = 0.9
"""What a step leaves of the weight of those before it: half after 7 steps."""


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """Accepted and rejected tokens of the steps so far, the recent ones counting most."""

    accepted: float = 0.0
    rejected: float = 0.0

    @property
    def log_odds(self) -> float:
        """ln(accepted / rejected), with half a token added to each; 0 where nothing is known."""
        return log((self.accepted + 0.5) / (self.rejected + 0.5))

    def after(self, verified: int, accepted: int) -> "TrackRecord":
        """Return the record with one more step, of `verified` tokens at least one.

        What follows the first rejected token says nothing.
        """
        rejected = 1 if accepted < verified else 0
        return TrackRecord(MEMORY * self.accepted + accepted, MEMORY * self.rejected + rejected)
