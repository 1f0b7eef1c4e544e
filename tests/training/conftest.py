"""One small training run on the tiny model, shared by all that look at what it left."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from outrider.engine.models.settings import ModelSettings
from outrider.engine.models.store import locate_model
from outrider.engine.tokenizer import Tokenizer
from outrider.records.prompt import PromptRecord
from outrider.training.card import PromptSource
from outrider.training.live import LiveAcceptance
from outrider.training.run import TrainingRun
from outrider.training.settings import AnswerSettings, DraftShape, FitSettings, TrainingSettings

SHAPE = DraftShape(hidden_size=32, layers=2, heads=1, intermediate_size=64)
SETTINGS = TrainingSettings(
    answers=AnswerSettings(samples=2, temperature=0.5, top_tokens=4, max_tokens=24),
    shape=SHAPE,
    fit=FitSettings(steps=120, batch_tokens=512, window=64, warmup_steps=10, learning_rate=1e-2),
)
TEXTS = [f"Say {word} {number}." for word in ("one", "two", "the cat") for number in range(5)]


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@dataclass(frozen=True)
class Trained:
    """A finished run: where it is, what it told, and the acceptance that it measured."""

    run: TrainingRun
    lines: list[str]
    live: LiveAcceptance


MakeRun = Callable[..., TrainingRun]


@pytest.fixture(scope="session")
def make_run(tiny_model: Path) -> MakeRun:
    """Makes a run of `SETTINGS` into a folder, with other fields where they are given."""
    files = locate_model(str(tiny_model), cache_dir=tiny_model.parent, report=print)
    tokenizer = Tokenizer(tiny_model)
    prompts = [
        PromptRecord(
            prompt_id=f"p{number}",
            kind=text.split()[1],
            token_ids=tuple(tokenizer.encode_chat([{"role": "user", "content": text}])),
            max_tokens=24,
            messages_json="[]",
        )
        for number, text in enumerate(TEXTS)
    ]

    def made(output: Path, **other: object) -> TrainingRun:
        run = TrainingRun(
            files=files,
            tokenizer=tokenizer,
            prompts=prompts,
            sources=[PromptSource("tests", "0" * 64, len(prompts))],
            settings=SETTINGS,
            engine=ModelSettings(backend="fused", dtype="float32"),
            output=output,
            k=3,
            resume=False,
            say=print,
            clock=lambda: 0.0,
        )
        return replace(run, **other)  # type: ignore[arg-type]

    return made


@pytest.fixture(scope="session")
def trained(make_run: MakeRun, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A finished run; do not write its folders."""
    lines: list[str] = []
    run = make_run(tmp_path_factory.mktemp("trained") / "draft", say=lines.append)
    return Trained(run, lines, run.run())
