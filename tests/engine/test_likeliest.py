import numpy as np
import torch

from outrider.engine.likeliest import Likeliest, forget, known, tell

TOLD = Likeliest(np.array([1]), np.array([0.5]))


def test_what_is_told_of_logits_holds_for_that_tensor_alone() -> None:
    logits = torch.tensor([[0.0, 1.0]])
    tell(logits, TOLD)
    assert known(logits) is TOLD
    assert known(logits.clone()) is None
    assert known(logits[:]) is None


def test_it_is_forgotten_when_they_change() -> None:
    logits = torch.tensor([[0.0, 1.0]])
    forget(logits)
    tell(logits, TOLD)
    forget(logits)
    assert known(logits) is None
