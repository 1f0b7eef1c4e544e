"""The card of a draft model: what it is, what it learned from, what it reaches."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from typing import Self

from jinja2 import StrictUndefined, Template

from outrider.training.answer import TargetAnswer
from outrider.training.estimate import Estimate
from outrider.training.live import LiveAcceptance
from outrider.training.settings import AnswerSettings, TrainingSettings


@dataclass(frozen=True, slots=True)
class PromptSource:
    """A prompt file that was trained on."""

    name: str
    sha256: str
    prompts: int


@dataclass(frozen=True, slots=True)
class CardFacts:
    """All that a card says; `file_bytes` are those of the folder without its card.

    `target` is what the target is known as, `served` the name or path of the very weights.
    """

    name: str
    target: str
    served: str
    target_sha256: str
    parameters: int
    embedding_parameters: int
    kept_share: float
    file_bytes: int
    sources: Sequence[PromptSource]
    answers: Sequence[TargetAnswer]
    settings: TrainingSettings
    before: Estimate
    after: Estimate
    live: LiveAcceptance


def card(facts: CardFacts) -> str:
    """The card as Markdown."""
    template = resources.files("outrider.training") / "card.md.jinja"
    whole = facts.live.histogram
    text: str = Template(
        template.read_text(encoding="utf-8"), keep_trailing_newline=True, undefined=StrictUndefined
    ).render(
        facts=facts,
        shape=facts.settings.shape,
        asked=facts.settings.answers,
        seeds=_seeds(facts.settings.answers),
        fit=facts.settings.fit,
        trained=_Part.of([each for each in facts.answers if not each.held_out]),
        held=_Part.of([each for each in facts.answers if each.held_out]),
        whole=whole,
        rows=[*facts.live.by_kind.items(), ("all", whole)],
        number=_number,
        percent=_percent,
    )
    return text


@dataclass(frozen=True, slots=True)
class _Part:
    answers: int
    prompts: int
    tokens: int

    @classmethod
    def of(cls, answers: Sequence[TargetAnswer]) -> Self:
        return cls(
            len(answers),
            len({each.prompt_id for each in answers}),
            sum(len(each.completion) for each in answers),
        )


def _seeds(asked: AnswerSettings) -> str:
    first, last = asked.seed + 1, asked.seed + asked.samples
    return f"seed {first}" if first == last else f"seeds {first} to {last}"


def _number(value: Fraction | None) -> str:
    return "–" if value is None else f"{float(value):.2f}"


def _percent(value: Fraction | float | None) -> str:
    return "–" if value is None else f"{100 * float(value):.1f} %"
