"""One session of a run, from a model's name to an evidence file: a new run or one to continue."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from outrider.bench.answering import Answerer
from outrider.bench.comparison_run import ComparisonRun, planned_requests
from outrider.bench.environment import capture_environment
from outrider.bench.target import Target, load_target, tokenized
from outrider.bench.workload import Prompt
from outrider.engine.models.settings import ModelSettings
from outrider.engine.models.source import open_weights
from outrider.engine.models.store import cache_directory, locate_model
from outrider.engine.tokenizer import Tokenizer
from outrider.engine.tokenizer_cache import kept_folder
from outrider.records.evidence import Evidence
from outrider.records.evidence_writer import EvidenceWriter
from outrider.records.run import RunSettings


class Progress(Protocol):
    """Hears of every measured request."""

    def advance(self) -> None:
        """One more is done."""


@dataclass(frozen=True, slots=True)
class Session:
    """What to run and where to keep it.

    `prompts` are those of a new run; a continued one takes them from `earlier`. `say` gets a line
    for each slow thing that begins, `progress` makes the display from the numbers of planned and
    finished requests, `clock` gives seconds.
    """

    path: Path
    settings: RunSettings
    prompts: tuple[Prompt, ...]
    earlier: Evidence | None
    engine: ModelSettings
    time_limit_s: float | None
    say: Callable[[str], None]
    progress: Callable[[int, int], AbstractContextManager[Progress]]
    clock: Callable[[], float]

    def run(self) -> bool:
        """Measures what is missing; False when the time limit came first."""
        settings, earlier = self.settings, self.earlier
        cache_dir = cache_directory()
        files = locate_model(settings.model, cache_dir=cache_dir, report=self.say)
        self.say(f"loading {files.path}")
        # First, because it tells in a moment what is wrong with a model.
        open_weights(files.path)
        tokenizer = Tokenizer(files.path, kept=kept_folder(cache_dir, files.sha256))
        if not tokenizer.has_chat_template:
            self.say("the model has no chat template: prompts are given as plain text")
        prompts = (
            tokenized(self.prompts, tokenizer, settings.max_tokens)
            if earlier is None
            else earlier.prompts
        )
        target = load_target(files, tokenizer, self.engine, prompts)
        environment = capture_environment(
            started_at=datetime.now(UTC),
            backend=target.backend,
            threads=target.threads,
            model=target.identity,
        )
        writer = (
            EvidenceWriter.create(self.path, settings, environment, prompts)
            if earlier is None
            else EvidenceWriter.append(self.path, environment)
        )
        done = () if earlier is None else earlier.measured
        with writer, self.progress(planned_requests(settings, prompts), len(done)) as progress:
            return ComparisonRun(
                settings=settings,
                prompts=prompts,
                answerer=self._answerer(target),
                keeper=writer,
                clock=self.clock,
                advance=progress.advance,
                time_limit_s=self.time_limit_s,
                earlier=done,
            ).run()

    def _answerer(self, target: Target) -> Answerer:
        self.say("warming up (the first run on a machine compiles the kernels, once)")
        return Answerer(
            target.model, self.settings.arms, stop_ids=target.stop_ids, clock=self.clock
        )
