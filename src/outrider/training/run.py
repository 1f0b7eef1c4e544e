"""A training run from prompts to a draft model with its card."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch

from outrider.engine.models.base import TargetModel
from outrider.engine.models.registry import load_model
from outrider.engine.models.settings import ModelSettings
from outrider.engine.models.source import open_weights
from outrider.engine.models.store import ModelFiles
from outrider.engine.tokenizer import Tokenizer
from outrider.errors import InvalidWorkload, RequestFailed, UnwritableOutput
from outrider.records.interrupt import interrupt_held
from outrider.records.prompt import PromptRecord
from outrider.records.whole_file import write_whole
from outrider.training.answer import TargetAnswer
from outrider.training.answering import TOGETHER, answers_of
from outrider.training.card import CardFacts, PromptSource, card
from outrider.training.checkpoint import save_checkpoint
from outrider.training.draft import DraftNetwork
from outrider.training.embedding import reduced_embedding
from outrider.training.estimate import Estimate, HeldOut
from outrider.training.examples import Example
from outrider.training.fitting import Fitting
from outrider.training.live import LiveAcceptance, live_acceptance
from outrider.training.settings import TrainingSettings
from outrider.training.split import WantedAnswer, held_out_prompts, wanted_answers
from outrider.training.work_folder import WorkFolder

TELL_EVERY_S = 60.0
"""How often a line tells of the progress, and the state is saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """What to train, on what, and where it goes.

    `prompts` are as the target reads them, with ids of their own and with `max_tokens` of the
    settings. `k` is the draft length that acceptance is told for. `say` gets a line now and then,
    `clock` gives seconds.
    """

    files: ModelFiles
    tokenizer: Tokenizer
    prompts: Sequence[PromptRecord]
    sources: Sequence[PromptSource]
    settings: TrainingSettings
    engine: ModelSettings
    output: Path
    k: int
    resume: bool
    say: Callable[[str], None]
    clock: Callable[[], float]
    _work: WorkFolder = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_work", WorkFolder(self.output))

    def run(self) -> LiveAcceptance:
        """Do what is missing, and return the acceptance that the card tells.

        Ctrl-C loses the answers that are being given, and no step of the training. Raises what the
        parts raise: see `WorkFolder`, `load_model`, `answers_of`, `Fitting` and `save_checkpoint`.
        """
        config = open_weights(self.files.path).config
        prompts = self._fitting_prompts(config.max_positions)
        held_out = held_out_prompts(
            prompts, self.settings.answers.held_out_every, self.settings.answers.seed
        )
        if self.resume:
            self._work.resume(self._identity())
        else:
            self._work.begin(self._identity())
        answers = self._answers([*wanted_answers(prompts, held_out, self.settings.answers)])
        held = [each for each in answers if each.held_out]
        draft, kept_share = self._new_draft(answers)
        watched = HeldOut([Example.of(each) for each in held], [e.max_tokens for e in held], self.k)
        before = watched.estimate(draft, self.settings.fit.batch_tokens)
        self.say(f"untrained: {_told(before)}")
        self._fit(draft, [each for each in answers if not each.held_out], watched)
        after = watched.estimate(draft, self.settings.fit.batch_tokens)
        file_bytes = save_checkpoint(draft, config, self.tokenizer, self.output)
        self.say(f"trained: {_told(after)}; {self.output} is saved, measuring it in the engine")
        live = self._live(held)
        facts = CardFacts(
            name=self.output.name,
            target=self.files.hub_id or self.files.name,
            served=self.files.name if self.files.source != "path" else f"./{self.files.name}",
            target_sha256=self.files.sha256,
            parameters=sum(weight.numel() for weight in draft.parameters()),
            embedding_parameters=draft.model.embed_tokens.weight.numel(),
            kept_share=kept_share,
            file_bytes=file_bytes,
            sources=self.sources,
            answers=answers,
            settings=self.settings,
            before=before,
            after=after,
            live=live,
        )
        write_whole(self.output / "README.md", card(facts).encode())
        return live

    def _identity(self) -> Mapping[str, Any]:
        """What a run that goes on must have in common with the one that began."""
        return {
            "model": self.files.sha256,
            "prompts": {each.name: each.sha256 for each in self.sources},
            "k": self.k,
            **self.settings.as_json(),
        }

    def _fitting_prompts(self, most: int) -> list[PromptRecord]:
        fitting = [each for each in self.prompts if len(each.token_ids) + each.max_tokens <= most]
        if left := len(self.prompts) - len(fitting):
            self.say(f"{left} of {len(self.prompts)} prompts are left out, too long for the model")
        if not fitting:
            raise InvalidWorkload(
                "no prompt fits the model",
                f"prompts that leave room for an answer in {most:,} tokens",
                "shorten them or lower --max-tokens",
            )
        return fitting

    def _answers(self, wanted: Sequence[WantedAnswer]) -> list[TargetAnswer]:
        """All answers in the order in which they are wanted, so that a resumed run is the same."""
        made = {each.answer_id: each for each in self._work.read_answers()}
        missing = [each for each in wanted if each.answer_id not in made]
        if missing:
            self.say(f"{len(missing):,} of {len(wanted):,} answers are to be made")
            log, start, told = self._work.keep_answers(), self.clock(), self.clock()
            tokens = 0
            done = 0
            for answer in answers_of(self._target(missing), missing, self._stop_ids()):
                line = answer.to_line()
                if cause := log.append([line]):
                    raise UnwritableOutput(
                        f"{log.path} cannot be written ({cause})",
                        "room on its disk",
                        "free some space, and go on with --resume",
                    )
                # As a run that goes on would read it, with its rounded logarithms.
                made[answer.answer_id] = TargetAnswer.of_line(line, str(log.path))
                done, tokens = done + 1, tokens + len(answer.completion)
                now = self.clock()
                if now - told >= TELL_EVERY_S or done == len(missing):
                    told = now
                    spent = max(now - start, 1e-9)
                    self.say(
                        f"answers {done:,}/{len(missing):,}, {tokens / spent:.0f} tokens/s,"
                        f" about {_time(spent / done * (len(missing) - done))} left"
                    )
        if any(not len(made[each.answer_id].completion) for each in wanted):
            raise RequestFailed("an empty answer", "a token at least", "check the model's files")
        return [made[each.answer_id] for each in wanted]

    def _target(self, wanted: Sequence[WantedAnswer]) -> TargetModel:
        longest = max(len(each.prompt.token_ids) + each.prompt.max_tokens for each in wanted)
        return load_model(self.files.path, self.engine.with_room(longest, TOGETHER))

    def _stop_ids(self) -> frozenset[int]:
        config = open_weights(self.files.path).config
        named = {*config.eos_token_ids, self.tokenizer.eos_token_id}
        return frozenset(token for token in named if token is not None)

    def _new_draft(self, answers: Sequence[TargetAnswer]) -> tuple[DraftNetwork, float]:
        torch.set_num_threads(self.engine.threads)
        embedding = open_weights(self.files.path).tensor("model.embed_tokens.weight")
        trained = [each.completion for each in answers if not each.held_out]
        counts = np.bincount(np.concatenate(trained), minlength=len(embedding))
        shape, seed = self.settings.shape, self.settings.fit.seed
        reduced = reduced_embedding(embedding, torch.from_numpy(counts), shape.hidden_size)
        draft = DraftNetwork(shape, reduced.rows, seed)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return draft.to(device), reduced.kept_share

    def _fit(self, draft: DraftNetwork, answers: Sequence[TargetAnswer], watched: HeldOut) -> None:
        fit = self.settings.fit
        fitting = Fitting(draft, [Example.of(each, fit.window) for each in answers], fit)
        if self._work.state.exists():
            fitting.load(self._work.state)
        begun, start, told, losses = fitting.step, self.clock(), self.clock(), list[float]()
        try:
            while not fitting.finished:
                with interrupt_held():
                    losses.append(fitting.advance())
                now = self.clock()
                if now - told >= TELL_EVERY_S:
                    rate = (fitting.step - begun) / (now - start)
                    estimate = watched.estimate(draft, fit.batch_tokens)
                    self.say(
                        f"step {fitting.step:,}/{fit.steps:,}, loss {np.mean(losses):.3f},"
                        f" held out: {_told(estimate)}; {rate:.2f} steps/s,"
                        f" about {_time((fit.steps - fitting.step) / rate)} left"
                    )
                    fitting.save(self._work.state)
                    told, losses = self.clock(), []
        finally:
            with interrupt_held():
                fitting.save(self._work.state)

    def _live(self, held: Sequence[TargetAnswer]) -> LiveAcceptance:
        longest = max(len(each.prompt) + each.max_tokens for each in held)
        room = self.engine.with_room(longest + self.k, TOGETHER)
        return live_acceptance(
            load_model(self.files.path, room),
            load_model(self.output, room),
            held,
            k=self.k,
            stop_ids=self._stop_ids(),
        )


def _told(estimate: Estimate) -> str:
    length = estimate.histogram.mean_acceptance_length
    mean = "" if length is None else f", M {float(length):.2f} at K = {estimate.histogram.k}"
    return f"{100 * estimate.agreement:.1f} % of tokens agree{mean}"


def _time(seconds: float) -> timedelta:
    return timedelta(seconds=round(seconds))
