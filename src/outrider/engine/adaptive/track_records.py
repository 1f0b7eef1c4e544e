"""How drafts have fared lately, by request and by what they were found with."""

from collections.abc import Hashable, MutableMapping
from collections.abc import Sequence as Batch
from dataclasses import dataclass, field
from math import log
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from outrider.engine.drafting.draft import Draft
from outrider.engine.sequence import Sequence

REQUEST_MEMORY = 0.9
"""What a step leaves of the weight of those before it: half after 7 steps."""
MATCH_MEMORY = 0.99
"""The same for all drafts with one length of match, of all requests: half after 69 of them."""

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """Accepted and rejected tokens of the drafts so far, the recent ones counting most."""

    accepted: float = 0.0
    rejected: float = 0.0

    @property
    def log_odds(self) -> float:
        """ln(accepted / rejected), with half a token added to each; 0 where nothing is known."""
        return log((self.accepted + 0.5) / (self.rejected + 0.5))

    def after(self, verified: int, accepted: int, memory: float) -> "TrackRecord":
        """Return the record with one more draft, of `verified` tokens at least one.

        What follows the first rejected token says nothing.
        """
        rejected = 1 if accepted < verified else 0
        return TrackRecord(memory * self.accepted + accepted, memory * self.rejected + rejected)


NO_RECORD = TrackRecord()


@dataclass(frozen=True, slots=True)
class TrackRecords:
    """A confidence for drafts that come without one.

    A request that copies its prompt does so again and again, and a long context that was found
    again goes on as before more often than a short one does.
    """

    requests: MutableMapping[Sequence, TrackRecord] = field(default_factory=WeakKeyDictionary)
    matches: dict[int, TrackRecord] = field(default_factory=dict)

    def log_odds(self, batch: Batch[Sequence], draft: Draft) -> list[float]:
        """Return for each of `batch` the sum of the log-odds of its records."""
        of_requests = [self.requests.get(each, NO_RECORD).log_odds for each in batch]
        if draft.matched_tokens is None:
            return of_requests
        known = {n: record.log_odds for n, record in self.matches.items()}
        lengths = draft.matched_tokens.tolist()
        return [odds + known.get(n, 0.0) for odds, n in zip(of_requests, lengths, strict=True)]

    def learn(self, batch: Batch[Sequence], draft: Draft, accepted: NDArray[np.int64]) -> None:
        """Learn how much of `draft`, as it was verified, was `accepted` [B]."""
        matched = None if draft.matched_tokens is None else draft.matched_tokens.tolist()
        right = accepted.tolist()
        for row, verified in enumerate(draft.lengths.tolist()):
            if not verified:
                continue
            _update(self.requests, batch[row], verified, right[row], REQUEST_MEMORY)
            if matched is not None:
                _update(self.matches, matched[row], verified, right[row], MATCH_MEMORY)


def _update(
    records: MutableMapping[Key, TrackRecord],
    key: Key,
    verified: int,
    accepted: int,
    memory: float,
) -> None:
    records[key] = records.get(key, NO_RECORD).after(verified, accepted, memory)
