"""How a drafter with a model of its own turns logits into drafted tokens, and q into a promise.

q is always the distribution that the tokens were really drawn from. An argmax was drawn from
none: it is a point mass, whatever the softmax said of it.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.engine.kernels import exponential_sum
from outrider.engine.likeliest import known
from outrider.engine.sampling import Sampling, draw, greedy_tokens, probabilities

LARGEST_LOG_ODDS = 40.0
"""Confidence beyond it says nothing more; a single possible token has it."""

DraftSampleMethod = Literal["greedy", "probabilistic"]


class Drafted(NamedTuple):
    """One drafted token for each of B sequences, int64 [B], and q float32 [B, V].

    q is None where every token was proposed with certainty.
    """

    tokens: torch.Tensor
    q: torch.Tensor | None


def draft_tokens(
    logits: torch.Tensor,
    sampling: Sequence[Sampling],
    method: DraftSampleMethod = "greedy",
    *,
    greedy: torch.Tensor | None = None,
) -> Drafted:
    """Choose a token for each row of the drafter's `logits` [B, V], whose `greedy` may be known.

    "greedy" takes the argmax. "probabilistic" draws at the sequence's temperature, without top-k,
    top-p and min-p, one uniform from the generator of each sequence above temperature 0; a greedy
    sequence gets the argmax, and a one-hot q if others in the batch have one. The verifier's
    numbers come after it from the same generator, so the two are independent.
    """
    best = greedy_tokens(logits) if greedy is None else greedy
    random = [row for row, each in enumerate(sampling) if not each.parameters.greedy]
    if method == "greedy" or not random:
        return Drafted(best, None)
    q = probabilities(logits, [each.parameters.temperature or 1.0 for each in sampling])
    u = torch.cat([sampling[row].uniforms(1) for row in random]).to(logits.device)
    if len(random) == len(sampling):
        return Drafted(draw(q, u), q)
    tokens = best.clone()
    tokens[random] = draw(q[random], u)
    certain = torch.ones(len(sampling), dtype=torch.bool, device=logits.device)
    certain[random] = False
    q[certain] = torch.nn.functional.one_hot(best[certain], q.shape[-1]).to(q.dtype)
    return Drafted(tokens, q)


def compile_log_odds() -> None:
    """Compile what `top_log_odds` needs, before there is a request to wait for it."""
    for logits in (torch.zeros(2, 32), torch.zeros(2, 33)[:, :32]):  # with and without padding
        exponential_sum.top_log_odds(logits.numpy(), np.zeros(2, np.int64), np.ones(2), 1.0)


def top_log_odds(
    logits: torch.Tensor, likeliest: NDArray[np.int64], sampling: Sequence[Sampling]
) -> NDArray[np.float64]:
    """Return float64 [B], the log-odds of the `likeliest` token of each row of `logits` [B, V].

    At the sequence's temperature, 1 where it is greedy, and within `LARGEST_LOG_ODDS` of 0. It is
    known before a token is drawn, so drafts may be cut by it.
    """
    divisors = [each.parameters.temperature or 1.0 for each in sampling]
    told = known(logits)
    if told is not None and divisors.count(1.0) == len(divisors):
        return np.array(
            [max(-LARGEST_LOG_ODDS, min(f, LARGEST_LOG_ODDS)) for f in told.log_odds.tolist()]
        )
    temperatures = np.array(divisors)
    if logits.device.type == "cpu" and logits.dtype == torch.float32:
        # On a row of 49,152 a ninth of the time of torch's operators.
        found: NDArray[np.float64] = exponential_sum.top_log_odds(
            logits.numpy(), likeliest, temperatures, LARGEST_LOG_ODDS
        )
        return found
    column = torch.from_numpy(temperatures).to(logits.device, torch.float32).unsqueeze(-1)
    scaled = logits.float() / column
    places = torch.from_numpy(likeliest).to(logits.device).unsqueeze(-1)
    others = scaled.scatter(-1, places, -torch.inf).logsumexp(dim=-1)
    odds = (scaled.gather(-1, places).squeeze(-1) - others).clamp(
        -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS
    )
    return odds.double().cpu().numpy()
