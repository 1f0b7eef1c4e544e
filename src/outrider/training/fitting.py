"""Fits a draft model to answers of its target, step by step."""

import math
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from outrider.errors import CorruptFile, UnwritableOutput
from outrider.training.draft import DraftNetwork
from outrider.training.examples import Batch, Example, batches_from
from outrider.training.loss import distillation_loss
from outrider.training.settings import FitSettings

LEAST_RATE = 0.1
"""The part of the learning rate that is left at the last step."""


class Fitting:
    """AdamW under a cosine schedule; `step` counts what is done.

    Its state, saved and loaded, goes on exactly as it would have without.
    """

    def __init__(
        self, draft: DraftNetwork, examples: Sequence[Example], settings: FitSettings
    ) -> None:
        self.draft = draft
        self.step = 0
        self._settings = settings
        self._examples = examples
        self._device = draft.model.embed_tokens.weight.device
        matrices = [weight for weight in draft.parameters() if weight.dim() > 1]
        norms = [weight for weight in draft.parameters() if weight.dim() == 1]
        self._optimizer = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": settings.weight_decay},
                {"params": norms, "weight_decay": 0.0},
            ],
            lr=settings.learning_rate,
            betas=(0.9, 0.95),
        )
        self._batches = self._from_here()

    def _from_here(self) -> Iterator[Batch]:
        return batches_from(
            self._examples,
            batch_tokens=self._settings.batch_tokens,
            seed=self._settings.seed,
            first=self.step,
        )

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.step >= self._settings.steps

    def advance(self) -> float:
        """Take one step; return the loss before it."""
        batch = next(self._batches).to(self._device)
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate(self.step, self._settings)
        self._optimizer.zero_grad()
        logits = self.draft(batch.token_ids, batch.predicting)
        loss = distillation_loss(logits, batch, self._settings.soft_weight)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.draft.parameters(), self._settings.most_gradient)
        self._optimizer.step()
        self.step += 1
        return loss.item()

    def save(self, path: Path) -> None:
        """Write the state, whole or not at all; UnwritableOutput where the disk refuses."""
        unfinished = path.with_name(f"{path.name}.unfinished")
        state = {
            "step": self.step,
            "draft": self.draft.state_dict(),
            "optimizer": self._optimizer.state_dict(),
        }
        try:
            torch.save(state, unfinished)
            unfinished.replace(path)
        except (OSError, RuntimeError) as error:
            unfinished.unlink(missing_ok=True)
            raise UnwritableOutput(
                f"{path} cannot be written ({error})",
                "a writable folder with room on its disk",
                "free some space, and go on with --resume",
            ) from error

    def load(self, path: Path) -> None:
        """Go on from a saved state; CorruptFile where it is none of this draft model."""
        try:
            state = torch.load(path, weights_only=True, map_location=self._device)
            self.draft.load_state_dict(state["draft"])
            self._optimizer.load_state_dict(state["optimizer"])
            self.step = int(state["step"])
        except (OSError, RuntimeError, KeyError, TypeError, ValueError, EOFError,
                pickle.UnpicklingError) as error:  # fmt: skip
            raise CorruptFile(
                f"{path} cannot be read ({' '.join(str(error).split())[:120]})",
                "the state of this training",
                "delete it to train from the start",
            ) from error
        self._batches = self._from_here()


def learning_rate(step: int, settings: FitSettings) -> float:
    """Rise in a line over the warm-up, then fall by a cosine to a tenth at the last step."""
    warmup = settings.warmup
    if step < warmup:
        return settings.learning_rate * (step + 1) / warmup
    done = (step - warmup) / max(1, settings.steps - 1 - warmup)
    falling = 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))
    return settings.learning_rate * (LEAST_RATE + (1 - LEAST_RATE) * falling)
