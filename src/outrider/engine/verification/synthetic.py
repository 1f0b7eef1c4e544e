"""Acceptance at given rates whatever was drafted: for testing everything around a verifier."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import Sampling, greedy_choices
from outrider.engine.verification.base import Verdict
from outrider.engine.verification.judging import Judgement, judge
from outrider.engine.verification.random_rows import RandomRows, row_uniforms
from outrider.engine.verification.rows import DraftRows
from outrider.engine.verification.settings import VerificationSettings
from outrider.errors import InvalidSetting


@dataclass(frozen=True, slots=True)
class SyntheticVerifier:
    """For testing only, and lossy: position r is accepted with probability `rates[r]`.

    `rates` are survivals: unconditional, in [0, 1], never rising. Draft tokens past their end, and
    those taken back, are rejected. The token after a rejection comes from the target. A greedy
    sequence draws uniforms too. Raises `InvalidSetting` for rates that are none.
    """

    name: ClassVar[str] = "synthetic"
    lossless: ClassVar[bool] = False

    rates: tuple[float, ...]

    def __post_init__(self) -> None:
        steps = (1.0, *self.rates)
        # Written so that NaN fails.
        if not all(0 <= rate <= before for before, rate in zip(steps, self.rates, strict=False)):
            raise InvalidSetting(
                f"synthetic_acceptance_rates {list(self.rates)}",
                "numbers from 0 to 1, none above the one before it",
                "use for instance [0.8, 0.5, 0.2]",
            )

    @classmethod
    def from_settings(cls, settings: VerificationSettings) -> Self:
        """Take the rates, or the mean acceptance length to spread, just one of the two."""
        k = settings.num_speculative_tokens
        rates, length = settings.synthetic_acceptance_rates, settings.synthetic_acceptance_length
        if rates is not None and length is None:
            if len(rates) != k:
                raise InvalidSetting(
                    f"{len(rates)} synthetic_acceptance_rates",
                    f"one for each of num_speculative_tokens = {k}",
                    "give that many",
                )
            return cls(tuple(rates))
        if length is not None and rates is None:
            return cls(spread_length(length, k))
        raise InvalidSetting(
            f"{'neither' if rates is None else 'both'} of synthetic_acceptance_rates and "
            "synthetic_acceptance_length",
            "just one of the two",
            "set one",
        )

    @property
    def conditional_rates(self) -> NDArray[np.float64]:
        """Float64 [len(rates)], acceptance given that all positions before were accepted."""
        rates = np.array(self.rates, np.float64)
        before = np.concatenate([[1.0], rates[:-1]])[: len(rates)]
        conditional = np.zeros_like(rates)
        np.divide(rates, before, out=conditional, where=before > 0)
        return conditional

    def verify(self, logits: torch.Tensor, draft: Draft, sampling: Sequence[Sampling]) -> Verdict:
        """Judge `draft` by chance; `logits` [sum(lengths + 1), V] only give the bonus tokens."""
        return judge(logits, draft, sampling, greedy=self._judge_greedy, random=self._judge_random)

    def _judge_greedy(
        self, logits: torch.Tensor, draft: Draft, sampling: Sequence[Sampling]
    ) -> Judgement:
        layout = DraftRows.of(draft)
        accepted = self._accepted(layout, row_uniforms(draft, sampling))
        target = greedy_choices(logits).astype(np.int32)
        return Judgement(accepted, target[layout.first + accepted])

    def _judge_random(
        self, logits: torch.Tensor, draft: Draft, sampling: Sequence[Sampling]
    ) -> Judgement:
        rows = RandomRows.of(logits, draft, sampling)
        accepted = self._accepted(rows.layout, rows.u)
        return Judgement(accepted, rows.bonus(accepted))

    def _accepted(self, layout: DraftRows, u: torch.Tensor) -> NDArray[np.int64]:
        rates = np.zeros(layout.owned.shape[1])
        known = self.conditional_rates[: len(rates)]
        rates[: len(known)] = known
        by_row = np.broadcast_to(rates, layout.owned.shape)[layout.owned]
        return layout.accepted((layout.drafted >= 0) & (u.cpu().numpy() < by_row))


def spread_length(length: float, k: int) -> tuple[float, ...]:
    """Return `k` rates with mean acceptance length `length` in [1, k + 1]: ones, a rest, zeros.

    >>> spread_length(2.5, 3)
    (1.0, 0.5, 0.0)
    """
    if not 1 <= length <= k + 1 or math.isnan(length):
        raise InvalidSetting(
            f"synthetic_acceptance_length {length}",
            f"a number from 1 to num_speculative_tokens + 1 = {k + 1}",
            "it counts the bonus token too",
        )
    return tuple(float(min(max(length - 1 - r, 0.0), 1.0)) for r in range(k))
