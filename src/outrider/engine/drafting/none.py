"""No speculation, as a drafter like any other."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from outrider.engine.drafting.draft import Draft
from outrider.engine.sequence import Sequence
from outrider.engine.verification.base import Verdict


class NoDrafter:
    """Proposes nothing, so that every step is a plain one."""

    name: ClassVar[str] = "none"

    def propose(self, batch: list[Sequence], limit: NDArray[np.int64]) -> Draft:  # noqa: ARG002
        """Propose nothing."""
        return Draft.empty(len(batch), 0)

    def observe(self, batch: list[Sequence], verdict: Verdict) -> None:
        """Learn nothing."""
