"""How far the draft model is from the target."""

import torch
from torch import Tensor

from outrider.training.examples import Batch


def distillation_loss(logits: Tensor, batch: Batch, soft_weight: float) -> Tensor:
    """The mean over N rows of a cross-entropy in natural logarithms, from `logits` [N, V].

    It is with the target's probabilities over its likeliest tokens for the part `soft_weight`, and
    with the token that the target said for the rest. The former is the Kullback-Leibler divergence
    but for a constant, the entropy of the target.
    """
    said = logits.gather(1, batch.said.unsqueeze(1)).squeeze(1)
    expected = (batch.top * logits.gather(1, batch.top_ids)).sum(dim=1)
    wanted = (1 - soft_weight) * said + soft_weight * expected
    return (torch.logsumexp(logits, dim=1) - wanted).mean()
