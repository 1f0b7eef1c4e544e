"""`outrider tune`: measure no speculation against drafting, and say what to do."""

import os
import re
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from outrider.bench.plan import draft_lengths, ngram_arms
from outrider.bench.workload import Prompt, bundled_workload, quick_subset, read_workload
from outrider.cli.entry import INTERRUPTED
from outrider.cli.options import Debug
from outrider.errors import InvalidSetting
from outrider.records.arm import Arm
from outrider.records.evidence_reader import read_evidence
from outrider.records.output_file import check_vacant
from outrider.records.run import RunSettings

Text = str | None
Whole = int | None


def tune(
    model: Annotated[
        Text, typer.Argument(help="smollm2-135m, a .gguf file, a folder or a hub id.")
    ] = None,
    k: Annotated[Text, typer.Option("--k", help="Draft lengths K.  [default: 1,2,4,8]")] = None,
    prompt_lookup_min: Annotated[
        Whole, typer.Option(help="Shortest n-gram looked up.  [default: 2]")
    ] = None,
    prompt_lookup_max: Annotated[
        Whole, typer.Option(help="Longest n-gram looked up.  [default: 5]")
    ] = None,
    ngram_tie: Annotated[
        Text, typer.Option(help="Of several matches: recent or earliest.  [default: recent]")
    ] = None,
    ngram_fill: Annotated[
        bool, typer.Option("--ngram-fill", help="Fill drafts up to K with the last token.")
    ] = False,
    workload: Annotated[
        Path | None, typer.Option(help="Prompts as JSON lines.  [default: 24 bundled ones]")
    ] = None,
    repeats: Annotated[
        Whole, typer.Option(help="Answers per prompt and arm.  [default: 3]")
    ] = None,
    seed: Annotated[Whole, typer.Option(help="Orders the requests.  [default: 0]")] = None,
    max_tokens: Annotated[Whole, typer.Option(help="Cap on every answer.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smoke run: 6 prompts, 1 repeat.")] = False,
    dtype: Annotated[
        Text, typer.Option(help="auto, bfloat16, float32, int8 or int4.  [default: auto]")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Evidence file to write.  [default: named after the run]")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Continue the run in this evidence file.")
    ] = None,
    backend: Annotated[str, typer.Option(help="auto, fused (CPU kernels) or torch.")] = "auto",
    threads: Annotated[Whole, typer.Option(help="[default: the physical cores]")] = None,
    time_limit: Annotated[
        float, typer.Option(help="Minutes after which no new prompt is begun.")
    ] = 9.0,
    debug: Debug = False,  # noqa: ARG001  read by main()
) -> None:
    """Measure no speculation against n-gram drafting on a model, and print what pays."""
    _minutes(time_limit)
    _within("--threads", threads, 1, os.cpu_count() or 1)
    prompts: tuple[Prompt, ...] = ()
    earlier = None
    if resume is not None:
        _refuse_beside_resume(
            {
                "MODEL": model, "--k": k, "--prompt-lookup-min": prompt_lookup_min,
                "--prompt-lookup-max": prompt_lookup_max, "--ngram-tie": ngram_tie,
                "--ngram-fill": ngram_fill or None, "--workload": workload,
                "--repeats": repeats, "--seed": seed, "--max-tokens": max_tokens,
                "--quick": quick or None, "--dtype": dtype, "--output": output,
            }
        )  # fmt: skip
        path, earlier = resume, read_evidence(resume)
        settings = earlier.settings
        backend = earlier.environments[0].backend if backend == "auto" else backend
    else:
        chosen = bundled_workload() if workload is None else read_workload(workload)
        prompts = quick_subset(chosen.prompts) if quick else chosen.prompts
        settings = RunSettings(
            model=_given(model),
            workload=chosen.name,
            workload_sha256=chosen.sha256,
            arms=_arms(k, prompt_lookup_min, prompt_lookup_max, ngram_tie, fill=ngram_fill),
            repeats=_within("--repeats", repeats, 1, 1000) or (1 if quick else 3),
            seed=_within("--seed", seed, 0, 2**32 - 1) or 0,
            temperature=0.0,
            dtype=dtype,
            threads=threads,
            max_tokens=_within("--max-tokens", max_tokens, 1, 2**20),
            smoke=quick,
        )
        path = output or _default_path(settings.model)
        check_vacant(path)
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    go_on = f"go on with: outrider tune --resume {shlex.quote(str(path))}"
    try:
        # Not above: torch takes seconds to import, which --help and a wrong option should not.
        from outrider.cli.measuring import measure  # noqa: PLC0415

        measure(
            path=path,
            settings=settings,
            prompts=prompts,
            earlier=earlier,
            backend=backend,
            threads=threads,
            time_limit_s=60 * time_limit,
            console=console,
            go_on=go_on,
        )
    except KeyboardInterrupt:
        kept = f"what was measured is in {path}, {go_on}" if path.exists() else "nothing is kept"
        console.print(f"interrupted; {kept}", soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None


def _arms(k: Text, shortest: Whole, longest: Whole, tie: Text, *, fill: bool) -> tuple[Arm, ...]:
    return ngram_arms(
        draft_lengths("1,2,4,8" if k is None else k),
        lookup_min=2 if shortest is None else shortest,
        lookup_max=5 if longest is None else longest,
        tie="recent" if tie is None else tie,
        fill=fill,
    )


def _refuse_beside_resume(fixed: Mapping[str, object]) -> None:
    given = [name for name, value in fixed.items() if value is not None]
    if given:
        raise InvalidSetting(
            f"--resume with {', '.join(given)}",
            "only --resume, --threads, --backend, --time-limit and --debug",
            "drop the others: a run goes on with the settings in its file",
        )


def _given(model: str | None) -> str:
    if model is None:
        raise InvalidSetting("no MODEL", "a model to measure", "run outrider tune smollm2-135m")
    return model


def _within(option: str, value: int | None, least: int, most: int) -> int | None:
    if value is not None and not least <= value <= most:
        raise InvalidSetting(
            f"{option} {value}", f"a number from {least} to {most}", "choose one of those"
        )
    return value


def _minutes(time_limit: float) -> float:
    if not time_limit > 0:
        raise InvalidSetting(
            f"--time-limit {time_limit:g}", "more than 0 minutes", "use for instance --time-limit 9"
        )
    return time_limit


def _default_path(model: str) -> Path:
    name = Path(model).resolve().name.removesuffix(".gguf")
    stem = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:60] or "model"
    return Path(f"outrider-{stem}-{datetime.now(UTC):%Y%m%d-%H%M%S}.duckdb")
