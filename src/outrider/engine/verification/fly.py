"""FLy: a rejected token is let pass where the target was unsure and agrees again right after it.

Lossy: the output is no longer the target's. The rule is that of vLLM's `fly`. With p the target's
distribution and q the draft's, token i of D is accepted if the standard rule accepts it, or else
if all of these hold:

    p(x_i) > 0 and q(x_i) > 0
    H_i = -(sum of p ln p over the k likeliest tokens, not renormalised) >= the threshold
    i + W <= D, and the standard rule accepts each of x_{i+1} … x_{i+W}

A token accepted only in this way is no evidence in the window of another.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch

from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import Sampling, greedy_tokens
from outrider.engine.verification.base import Verdict
from outrider.engine.verification.judging import Judgement, judge
from outrider.engine.verification.random_rows import RandomRows
from outrider.engine.verification.rejection import accepts, of_drafted
from outrider.engine.verification.rows import DraftRows
from outrider.engine.verification.settings import VerificationSettings
from outrider.errors import InvalidSetting

LONGEST_DEFAULT_WINDOW = 6


@dataclass(frozen=True, slots=True)
class FlyVerifier:
    """Lossy: accepts a doubtful token if the `window` drafted tokens after it are right.

    `window` is W, from 1 to K - 1; `entropy_threshold` in nats, 0 or more; `entropy_top_k` is k,
    1 or more. Raises `InvalidSetting` for anything else.
    """

    name: ClassVar[str] = "fly"
    lossless: ClassVar[bool] = False

    window: int
    entropy_threshold: float = 0.3
    entropy_top_k: int = 3

    def __post_init__(self) -> None:
        if self.window < 1:
            raise InvalidSetting(
                f"fly_window_size {self.window}", "1 or more", "use for instance 2"
            )
        if not 0 <= self.entropy_threshold < math.inf:
            raise InvalidSetting(
                f"fly_entropy_threshold {self.entropy_threshold}",
                "a finite number of nats, 0 or more",
                "use for instance 0.3",
            )
        if self.entropy_top_k < 1:
            raise InvalidSetting(
                f"fly_entropy_top_k {self.entropy_top_k}", "1 or more", "use for instance 3"
            )

    @classmethod
    def from_settings(cls, settings: VerificationSettings) -> Self:
        """Take the settings whose names begin with `fly_`; W is by default min(6, K - 1)."""
        k = settings.num_speculative_tokens
        if k < 2:  # noqa: PLR2004 - one token to let pass and one that vouches for it
            raise InvalidSetting(
                f"num_speculative_tokens {k} with fly",
                "2 or more",
                "raise it, or use the rule standard",
            )
        window = settings.fly_window_size
        if window is None:
            window = min(LONGEST_DEFAULT_WINDOW, k - 1)
        if window >= k:
            raise InvalidSetting(
                f"fly_window_size {window} with num_speculative_tokens {k}",
                f"at most {k - 1}, since the window lies after a drafted token",
                "lower the window or draft more tokens",
            )
        return cls(window, settings.fly_entropy_threshold, settings.fly_entropy_top_k)

    def verify(self, logits: torch.Tensor, draft: Draft, sampling: Sequence[Sampling]) -> Verdict:
        """Judge `draft` by `logits` [sum(lengths + 1), V], one `sampling` per sequence."""
        return judge(logits, draft, sampling, greedy=self._judge_greedy, random=self._judge_random)

    def _judge_greedy(self, logits: torch.Tensor, draft: Draft, _: Sequence[Sampling]) -> Judgement:
        layout = DraftRows.of(draft)
        drafted = torch.from_numpy(layout.drafted).to(logits.device, torch.int64)
        target = greedy_tokens(logits)
        p = logits.float().softmax(dim=-1)
        accept = self._accept(layout, target == drafted, p, None, drafted)
        accepted = layout.accepted(accept.cpu().numpy())
        choices = target.to(torch.int32).cpu().numpy()
        return Judgement(accepted, choices[layout.first + accepted])

    def _judge_random(
        self, logits: torch.Tensor, draft: Draft, sampling: Sequence[Sampling]
    ) -> Judgement:
        rows = RandomRows.of(logits, draft, sampling)
        native = accepts(rows.p, rows.q, rows.drafted, rows.u)
        accept = self._accept(rows.layout, native, rows.p, rows.q, rows.drafted)
        accepted = rows.layout.accepted(accept.cpu().numpy())
        return Judgement(accepted, rows.bonus(accepted))

    def _accept(
        self,
        layout: DraftRows,
        native: torch.Tensor,
        p: torch.Tensor,
        q: torch.Tensor | None,
        drafted: torch.Tensor,
    ) -> torch.Tensor:
        p_d, q_d = of_drafted(p, q, drafted)
        unsure = top_entropy(p, self.entropy_top_k) >= self.entropy_threshold
        vouched = layout.gather(agreement_after(layout.spread(native), self.window))
        return native | (unsure & vouched & (p_d > 0) & (q_d > 0))


def top_entropy(p: torch.Tensor, k: int) -> torch.Tensor:
    """Return -(sum of p ln p) [rows] in nats over the `k` largest of `p` [rows, V]."""
    top = p.topk(min(k, p.shape[-1]), dim=-1).values
    terms: torch.Tensor = torch.special.entr(top)
    return terms.sum(dim=-1)


def agreement_after(native: torch.Tensor, window: int) -> torch.Tensor:
    """Return bool [B, C], whether the `window` cells after each of `native` [B, C] are all true.

    Cells past the end, like those without a drafted token, count as false.
    """
    padded = torch.nn.functional.pad(native, (0, window))
    return padded[:, 1:].unfold(1, window, 1).all(dim=-1)
