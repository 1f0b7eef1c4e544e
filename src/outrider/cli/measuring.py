"""One session of `outrider tune`: the run with its progress, then the report.

Apart from the command, because the engine takes seconds to import: `outrider --help` and a wrong
option do without it.
"""

import time
from pathlib import Path

from rich.console import Console

from outrider.bench.session import Session
from outrider.bench.target import usable_cores
from outrider.bench.workload import Prompt
from outrider.cli.output import Output
from outrider.cli.progress import RunProgress
from outrider.engine.models.registry import resolve
from outrider.engine.models.settings import ModelSettings
from outrider.errors import NotLossless
from outrider.records.evidence import Evidence
from outrider.records.evidence_reader import read_evidence
from outrider.records.run import RunSettings
from outrider.report.run.document import build_document
from outrider.report.run.terminal import write_terminal


def measure(
    *,
    path: Path,
    settings: RunSettings,
    prompts: tuple[Prompt, ...],
    earlier: Evidence | None,
    backend: str,
    threads: int | None,
    time_limit_s: float,
    console: Console,
    go_on: str,
) -> None:
    """Runs the session and prints the report, to standard output, from the evidence file alone.

    `console` gets all else, such as `go_on`, the advice for a run that is stopped early. Raises
    NotLossless after the report where speculation changed the output.
    """
    engine = ModelSettings(
        backend=backend,
        dtype=settings.dtype or "auto",
        threads=threads or settings.threads or usable_cores(),
    )
    resolve(engine)
    complete = Session(
        path=path,
        settings=settings,
        prompts=prompts,
        earlier=earlier,
        engine=engine,
        time_limit_s=time_limit_s,
        say=lambda line: console.print(line, soft_wrap=True),
        progress=lambda total, done: RunProgress(
            console, total=total, done=done, clock=time.monotonic
        ),
        clock=time.perf_counter,
    ).run()
    document = build_document(read_evidence(path))
    write_terminal(document, Output())
    console.print(f"evidence: {path}", soft_wrap=True)
    if not complete:
        console.print(f"stopped by --time-limit, {go_on}", soft_wrap=True)
    if document.audit is not None and document.audit.wrong_arms:
        raise NotLossless(
            f"the output of {', '.join(sorted(document.audit.wrong_arms))} is not that of no"
            " speculation",
            "the same tokens, or differences where the target's best two tokens are near a tie",
            f"see the differences with outrider report {path}",
        )
