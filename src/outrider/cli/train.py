"""`outrider train`: a small draft model for a target, trained on the target's own answers."""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from outrider.bench.workload import Workload, bundled_workload, read_workload
from outrider.cli.entry import INTERRUPTED
from outrider.cli.options import Debug
from outrider.errors import InvalidSetting
from outrider.training.settings import AnswerSettings, DraftShape, FitSettings, TrainingSettings

Whole = int | None

MOST_K = 64
_ASKED, _SHAPE, _FIT = AnswerSettings(), DraftShape(), FitSettings()


def train(
    model: Annotated[
        str, typer.Argument(help="The target: smollm2-135m, a .gguf file, a folder or a hub id.")
    ],
    output: Annotated[Path, typer.Option(help="Folder to write the draft model to.")],
    workload: Annotated[
        list[Path] | None,
        typer.Option(help="Prompts as JSON lines, beside 24 bundled ones; repeatable."),
    ] = None,
    samples: Annotated[
        int, typer.Option(help="Random answers per prompt, beside one greedy.")
    ] = _ASKED.samples,
    temperature: Annotated[float, typer.Option(help="Of the random answers.")] = _ASKED.temperature,
    max_tokens: Annotated[int, typer.Option(help="Longest answer.")] = _ASKED.max_tokens,
    top_tokens: Annotated[
        int, typer.Option(help="Likeliest next tokens to learn from.")
    ] = _ASKED.top_tokens,
    held_out_every: Annotated[
        int, typer.Option(help="One prompt in so many is held out.")
    ] = _ASKED.held_out_every,
    hidden_size: Annotated[int, typer.Option(help="Of the draft model.")] = _SHAPE.hidden_size,
    layers: Annotated[int, typer.Option(help="Of the draft model.")] = _SHAPE.layers,
    heads: Annotated[int, typer.Option(help="Of the draft model.")] = _SHAPE.heads,
    intermediate_size: Annotated[
        int, typer.Option(help="Of the draft model.")
    ] = _SHAPE.intermediate_size,
    steps: Annotated[int, typer.Option(help="Steps of the training.")] = _FIT.steps,
    batch_tokens: Annotated[int, typer.Option(help="Most rows of a step.")] = _FIT.batch_tokens,
    window: Annotated[
        int, typer.Option(help="Most tokens of a prompt's end and its answer.")
    ] = _FIT.window,
    learning_rate: Annotated[float, typer.Option(help="At its peak.")] = _FIT.learning_rate,
    warmup_steps: Annotated[
        int, typer.Option(help="Steps until then; at most half.")
    ] = _FIT.warmup_steps,
    soft_weight: Annotated[
        float, typer.Option(help="Part of the loss on the target's probabilities.")
    ] = _FIT.soft_weight,
    k: Annotated[int, typer.Option("--k", help="Draft length that acceptance is told for.")] = 4,
    seed: Annotated[int, typer.Option(help="Of answers, weights and order.")] = _FIT.seed,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run of the same options.")
    ] = False,
    backend: Annotated[str, typer.Option(help="auto, fused (CPU kernels) or torch.")] = "auto",
    dtype: Annotated[str, typer.Option(help="Of the target: as for tune.")] = "auto",
    threads: Annotated[Whole, typer.Option(help="[default: the physical cores]")] = None,
    debug: Debug = False,  # noqa: ARG001  read by main()
) -> None:
    """Train a small draft model for a target, on the target's own answers.

    Writes a model folder with its card: data, steps and the acceptance on prompts held out. What it
    takes to go on is kept beside it, in a folder of the same name with .work at its end.
    """
    settings = TrainingSettings(
        answers=AnswerSettings(
            samples=samples,
            temperature=temperature,
            top_tokens=top_tokens,
            max_tokens=max_tokens,
            held_out_every=held_out_every,
            seed=seed,
        ),
        shape=DraftShape(
            hidden_size=hidden_size,
            layers=layers,
            heads=heads,
            intermediate_size=intermediate_size,
        ),
        fit=FitSettings(
            steps=steps,
            batch_tokens=batch_tokens,
            window=window,
            learning_rate=learning_rate,
            warmup_steps=warmup_steps,
            soft_weight=soft_weight,
            seed=seed,
        ),
    )
    _within("--k", k, MOST_K)
    _within("--threads", threads or 1, os.cpu_count() or 1)
    workloads = [bundled_workload(), *map(read_workload, workload or ())]
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    try:
        _run(
            model,
            output,
            workloads,
            settings,
            k=k,
            resume=resume,
            how=(backend, dtype, threads),
            console=console,
        )
    except KeyboardInterrupt:
        kept = output.with_name(f"{output.name}.work")
        told = f"what is done is in {kept}, go on with the same command and --resume"
        console.print(
            f"interrupted; {told if kept.exists() else 'nothing is kept'}", soft_wrap=True
        )
        raise typer.Exit(INTERRUPTED) from None


def _run(
    model: str,
    output: Path,
    workloads: Sequence[Workload],
    settings: TrainingSettings,
    *,
    k: int,
    resume: bool,
    how: tuple[str, str, int | None],
    console: Console,
) -> None:
    # Not above: torch takes seconds to import, which --help and a wrong option should not.
    from outrider.bench.target import tokenized, usable_cores  # noqa: PLC0415
    from outrider.engine.models.settings import ModelSettings  # noqa: PLC0415
    from outrider.engine.models.store import cache_directory, locate_model  # noqa: PLC0415
    from outrider.engine.tokenizer import Tokenizer  # noqa: PLC0415
    from outrider.engine.tokenizer_cache import kept_folder  # noqa: PLC0415
    from outrider.training.card import PromptSource  # noqa: PLC0415
    from outrider.training.run import TrainingRun  # noqa: PLC0415

    def say(line: str) -> None:
        console.print(line, soft_wrap=True)

    cache_dir = cache_directory()
    files = locate_model(model, cache_dir=cache_dir, report=say)
    tokenizer = Tokenizer(files.path, kept=kept_folder(cache_dir, files.sha256))
    longest = settings.answers.max_tokens
    prompts = [
        replace(each, prompt_id=f"{chosen.name}/{each.prompt_id}")
        for chosen in workloads
        for each in tokenized(
            [replace(prompt, max_tokens=longest) for prompt in chosen.prompts], tokenizer, None
        )
    ]
    backend, dtype, threads = how
    live = TrainingRun(
        files=files,
        tokenizer=tokenizer,
        prompts=prompts,
        sources=[PromptSource(each.name, each.sha256, len(each.prompts)) for each in workloads],
        settings=settings,
        engine=ModelSettings(backend=backend, dtype=dtype, threads=threads or usable_cores()),
        output=output,
        k=k,
        resume=resume,
        say=say,
        clock=time.monotonic,
    ).run()
    length = live.histogram.mean_acceptance_length
    told = "–" if length is None else f"{float(length):.2f}"
    say(f"M {told} at K = {k} over {live.answers} held-out answers; see {output / 'README.md'}")


def _within(option: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InvalidSetting(
            f"{option} {value}", f"a number from 1 to {most}", "choose one of those"
        )
