"""`outrider tune`: measure no speculation against drafting, and say what to do."""

import re
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from outrider.bench.plan import draft_lengths, ngram_arms
from outrider.bench.session import Session
from outrider.bench.target import usable_cores
from outrider.bench.workload import Prompt, bundled_workload, quick_subset, read_workload
from outrider.cli.progress import RunProgress
from outrider.cli.report import Debug
from outrider.engine.models.registry import ModelSettings, resolve
from outrider.errors import InvalidSetting, NotLossless
from outrider.records.evidence_reader import read_evidence
from outrider.records.output_file import check_vacant
from outrider.records.run import RunSettings
from outrider.report.document import build_document
from outrider.report.formats import report_format

INTERRUPTED = 130

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
    workload: Annotated[
        Path | None, typer.Option(help="Prompts as JSON lines.  [default: 24 bundled ones]")
    ] = None,
    repeats: Annotated[
        Whole, typer.Option(help="Answers per prompt and arm.  [default: 3]")
    ] = None,
    seed: Annotated[Whole, typer.Option(help="Orders the requests.  [default: 0]")] = None,
    max_tokens: Annotated[Whole, typer.Option(help="Cap on every answer.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smoke run: 6 prompts, 1 repeat.")] = False,
    dtype: Annotated[Text, typer.Option(help="auto, bfloat16 or float32.  [default: auto]")] = None,
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
    console = Console(stderr=True, highlight=False)
    prompts: tuple[Prompt, ...]
    fixed = {
        "MODEL": model, "--k": k, "--prompt-lookup-min": prompt_lookup_min,
        "--prompt-lookup-max": prompt_lookup_max, "--ngram-tie": ngram_tie,
        "--workload": workload, "--repeats": repeats, "--seed": seed,
        "--max-tokens": max_tokens, "--quick": quick or None, "--dtype": dtype, "--output": output,
    }  # fmt: skip
    if resume is not None:
        _refuse_beside_resume(fixed)
        earlier = read_evidence(resume)
        settings, prompts, path = earlier.settings, (), resume
        backend = earlier.environments[0].backend if backend == "auto" else backend
    else:
        earlier = None
        chosen = bundled_workload() if workload is None else read_workload(workload)
        prompts = quick_subset(chosen.prompts) if quick else chosen.prompts
        settings = RunSettings(
            model=_given(model),
            workload=chosen.name,
            workload_sha256=chosen.sha256,
            arms=ngram_arms(
                draft_lengths("1,2,4,8" if k is None else k),
                lookup_min=2 if prompt_lookup_min is None else prompt_lookup_min,
                lookup_max=5 if prompt_lookup_max is None else prompt_lookup_max,
                tie=ngram_tie or "recent",
            ),
            repeats=_positive("--repeats", repeats) or (1 if quick else 3),
            seed=seed or 0,
            temperature=0.0,
            dtype=dtype,
            threads=threads,
            max_tokens=_positive("--max-tokens", max_tokens),
            smoke=quick,
        )
        path = output or _default_path(settings.model)
        check_vacant(path)
    engine = ModelSettings(
        backend=backend,
        dtype=settings.dtype or "auto",
        threads=_positive("--threads", threads) or settings.threads or usable_cores(),
    )
    resolve(engine)
    session = Session(
        path=path,
        settings=settings,
        prompts=prompts,
        earlier=earlier,
        engine=engine,
        time_limit_s=60 * time_limit,
        say=lambda line: console.print(line, soft_wrap=True),
        progress=lambda total, done: RunProgress(
            console, total=total, done=done, clock=time.monotonic
        ),
        clock=time.perf_counter,
    )
    _conclude(session, console)


def _conclude(session: Session, console: Console) -> None:
    """Runs the session, then prints the report from the evidence file alone."""
    go_on = f"outrider tune --resume {session.path}"
    try:
        complete = session.run()
    except KeyboardInterrupt:
        if session.path.exists():
            console.print(
                f"interrupted; what was measured is in {session.path}, go on with: {go_on}",
                soft_wrap=True,
            )
        raise typer.Exit(INTERRUPTED) from None
    document = build_document(read_evidence(session.path))
    report_format("terminal")(document, Console(file=sys.stdout))
    console.print(f"evidence: {session.path}", soft_wrap=True)
    if not complete:
        console.print(f"stopped by --time-limit, go on with: {go_on}", soft_wrap=True)
    if document.audit is not None and document.audit.wrong_arms:
        raise NotLossless(
            f"the output of {', '.join(document.audit.wrong_arms)} differs from no speculation",
            "the same tokens, or differences where the target's best two tokens are near a tie",
            f"see the differences with outrider report {session.path}",
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


def _positive(option: str, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise InvalidSetting(f"{option} {value}", "1 or more", "choose a positive number")
    return value


def _default_path(model: str) -> Path:
    stem = re.sub(r"[^A-Za-z0-9.]+", "-", Path(model).stem).strip("-") or "model"
    return Path(f"outrider-{stem}-{datetime.now(UTC):%Y%m%d-%H%M%S}.duckdb")
