"""What one sequence keeps for its sampling: parameters, randomness, and rules with their memory."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Self

import torch

from outrider.engine.sampling.history import Rule
from outrider.engine.sampling.parameters import SamplingParameters
from outrider.engine.sampling.processing import rules_of
from outrider.errors import InvalidSetting


@dataclass(frozen=True, slots=True)
class Sampling:
    """One sequence's parameters, the generator that only it draws from, and its own rules.

    The rules remember the sequence's tokens, so two sequences never share a `Sampling`.
    """

    parameters: SamplingParameters
    generator: torch.Generator
    rules: tuple[Rule, ...] = ()
    _ahead: list[float] = field(default_factory=list, repr=False)

    @classmethod
    def seeded(
        cls,
        parameters: SamplingParameters,
        *,
        end_token_ids: Collection[int] = (),
        fresh_seed: Callable[[], int] | None = None,
    ) -> Self:
        """Start a generator from the parameters' seed, or from `fresh_seed()` where it is None.

        `end_token_ids` are the model's own. Greedy decoding needs no seed. Raises
        `InvalidSetting` where random sampling has neither seed nor `fresh_seed`.
        """
        seed = parameters.seed
        if seed is None and fresh_seed is not None:
            seed = fresh_seed()
        if seed is None and not parameters.greedy:
            raise InvalidSetting(
                f"temperature {parameters.temperature} without a seed",
                "a seed, or a source of fresh ones",
                "set a seed",
            )
        generator = torch.Generator().manual_seed(seed or 0)
        return cls(parameters, generator, rules_of(parameters, end_token_ids))

    def peek(self, count: int) -> torch.Tensor:
        """Return the next `count` uniforms, float64 [count] in [0, 1); they come again until used.

        Plain decoding uses one for each output token. Who looks ahead so finds the number that a
        token will be drawn by.
        """
        missing = count - len(self._ahead)
        if missing > 0:
            drawn = torch.rand(missing, generator=self.generator, dtype=torch.float64)
            self._ahead.extend(drawn.tolist())
        return torch.tensor(self._ahead[:count], dtype=torch.float64)

    def use(self, count: int) -> None:
        """Use up `count` uniforms that were peeked at."""
        del self._ahead[:count]

    def uniforms(self, count: int) -> torch.Tensor:
        """Return the next `count` uniforms and use them up."""
        drawn = self.peek(count)
        self.use(count)
        return drawn
