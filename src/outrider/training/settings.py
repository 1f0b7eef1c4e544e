"""What a training run is asked to do, checked once."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from outrider.errors import InvalidSetting

MOST_TOP_TOKENS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSettings:
    """What the target is asked for.

    Every prompt is answered once at temperature 0, those to train on `samples` times more at
    `temperature`, the n-th with seed `seed + n`. At each position the `top_tokens` likeliest next
    tokens are kept with their probabilities. One in `held_out_every` prompts of a kind is held out.
    Raises InvalidSetting for what is out of range.
    """

    samples: int = 4
    temperature: float = 0.8
    top_tokens: int = 8
    max_tokens: int = 192
    held_out_every: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        _within("--samples", self.samples, 0, 1_000)
        _within("--temperature", self.temperature, 1e-3, 10)
        _within("--top-tokens", self.top_tokens, 1, MOST_TOP_TOKENS)
        _within("--max-tokens", self.max_tokens, 2, 2**20)
        _within("--held-out-every", self.held_out_every, 2, 1_000)
        _within("--seed", self.seed, 0, 2**32 - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftShape:
    """The sizes of the draft model, a Llama whose head is its embedding.

    A head has `hidden_size / heads` numbers, an even count. Raises InvalidSetting otherwise.
    """

    hidden_size: int = 96
    layers: int = 4
    heads: int = 3
    intermediate_size: int = 1_536

    def __post_init__(self) -> None:
        _within("--layers", self.layers, 1, 64)
        _within("--heads", self.heads, 1, 256)
        _within("--intermediate-size", self.intermediate_size, 1, 2**16)
        if self.hidden_size < 1 or self.hidden_size % (2 * self.heads):
            raise InvalidSetting(
                f"--hidden-size {self.hidden_size} with --heads {self.heads}",
                "heads of an even size",
                f"choose a multiple of {2 * self.heads}",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSettings:
    """How the draft model is fitted.

    `batch_tokens` is the most rows of a step, padding included; a longer prompt loses its beginning
    so that it and its answer are `window` tokens. `soft_weight` is the part of the loss that
    compares with the target's probabilities, the rest with the token that it said. Raises
    InvalidSetting for what is out of range.
    """

    steps: int = 2_000
    batch_tokens: int = 2_048
    window: int = 512
    learning_rate: float = 3e-3
    warmup_steps: int = 100
    soft_weight: float = 0.5
    weight_decay: float = 0.01
    most_gradient: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        _within("--steps", self.steps, 1, 10**9)
        _within("--window", self.window, 2, 2**20)
        _within("--batch-tokens", self.batch_tokens, self.window, 2**24)
        _within("--learning-rate", self.learning_rate, 1e-8, 1)
        _within("--warmup-steps", self.warmup_steps, 0, 10**9)
        _within("--soft-weight", self.soft_weight, 0, 1)

    @property
    def warmup(self) -> int:
        """The steps that the learning rate rises for: `warmup_steps`, at most half of all."""
        return min(self.warmup_steps, self.steps // 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """All that decides what comes out, beside the model and the prompts."""

    answers: AnswerSettings = field(default_factory=AnswerSettings)
    shape: DraftShape = field(default_factory=DraftShape)
    fit: FitSettings = field(default_factory=FitSettings)

    def as_json(self) -> Mapping[str, Any]:
        """The settings by group, as JSON takes them."""
        return asdict(self)


def _within(option: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise InvalidSetting(
            f"{option} {value:g}", f"a number from {least:g} to {most:g}", "choose one of those"
        )
