"""What a model knows of its logits already when it hands them over.

To look for the likeliest token of each row takes a pass over all logits, another core's among them,
where a model has had every one of them at hand. So it tells, and who asks for the likeliest tokens
does not look where it is known.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray


class Likeliest(NamedTuple):
    """Of rows of finite logits the likeliest `tokens` int64 [R], the first of equals.

    `log_odds` float64 [R] are ln(p / (1 - p)) of these, by the softmax of the row; infinite where p
    is 1 as far as numbers can tell.
    """

    tokens: NDArray[np.int64]
    log_odds: NDArray[np.float64]


_NAME = "likeliest"


def tell(logits: torch.Tensor, likeliest: Likeliest) -> None:
    """Say what is known of `logits` [R, V], of this very tensor and not of views or copies of it.

    It holds as long as they are not changed, or until `forget`.
    """
    logits.__dict__[_NAME] = likeliest


def known(logits: torch.Tensor) -> Likeliest | None:
    """Return what was told of `logits`, if anything was."""
    found: Likeliest | None = logits.__dict__.get(_NAME)
    return found


def forget(logits: torch.Tensor) -> None:
    """What was told of `logits`, if anything, holds no longer."""
    logits.__dict__.pop(_NAME, None)
