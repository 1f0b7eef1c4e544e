"""What a step costs on this machine: `python -m benchmarks.step_cost`, from the repository's root.

Everything in a table comes from one run, its variants interleaved and repeated.
"""

import argparse
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
from rich.console import Console

from outrider.bench.environment import capture_environment
from outrider.bench.target import tokenized, usable_cores
from outrider.bench.workload import bundled_workload, quick_subset
from outrider.engine.models.source import open_weights
from outrider.engine.models.store import ModelFiles, cache_directory, locate_model
from outrider.engine.tokenizer import Tokenizer
from outrider.engine.tokenizer_cache import kept_folder
from outrider.records.environment import ModelIdentity

from .decoding import Systems, measure_decoding
from .linear_layers import measure_linear_layers
from .steps import measure_steps
from .tables import decoding_table, linear_table, step_table

PACKAGES = ("outrider", "torch", "transformers", "numba", "llvmlite")


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to measure, and the seconds after which no more is begun of each part."""

    rounds: int
    prompts: int
    max_tokens: int
    steps_s: float
    linear_s: float
    decoding_s: float


FULL = Effort(rounds=40, prompts=6, max_tokens=64, steps_s=60, linear_s=30, decoding_s=100)
QUICK = Effort(rounds=3, prompts=2, max_tokens=16, steps_s=10, linear_s=10, decoding_s=15)


def main() -> None:
    """Runs the three parts and prints their tables."""
    options = _options()
    effort = QUICK if options.quick else FULL
    console = Console()
    progress = Console(stderr=True)
    threads = usable_cores() if options.threads is None else options.threads
    busy = psutil.cpu_percent(interval=1.0)
    cache_dir = cache_directory()
    files = locate_model(options.model, cache_dir=cache_dir, report=progress.print)

    progress.print("steps of the engine")
    steps = measure_steps(
        files.path, threads=threads, rounds=effort.rounds, budget_s=effort.steps_s
    )
    progress.print("linear layers")
    linear = measure_linear_layers(
        files.path, threads=threads, rounds=effort.rounds, budget_s=effort.linear_s
    )
    progress.print("decoding beside transformers")
    tokenizer = Tokenizer(files.path, kept=kept_folder(cache_dir, files.sha256))
    bundled = bundled_workload().prompts
    chosen = tokenized(quick_subset(bundled, effort.prompts), tokenizer, effort.max_tokens)
    copies = [prompt for prompt in bundled if prompt.kind == "copy"]
    copying = tokenized(copies[: effort.prompts], tokenizer, effort.max_tokens)
    systems = Systems(files.path, tokenizer, (*chosen, *copying), threads=threads)
    decoding = measure_decoding(systems, chosen, budget_s=effort.decoding_s)
    progress.print("copying beside transformers")
    copied = measure_decoding(systems, copying, budget_s=effort.decoding_s)

    machine = (
        f"{_machine(files, threads)} Other processes had {busy:.0f}% of the machine at the start."
    )
    if options.quick:
        machine = f"Smoke run, too short to quote. {machine}"
    tables = (
        step_table(steps),
        linear_table(linear),
        decoding_table(decoding, threads, "prompts of all kinds"),
        decoding_table(copied, threads, "prompts to copy from"),
    )
    if options.markdown:
        print("\n".join([machine, "", *(table.markdown() for table in tables)]))
    else:
        console.print(machine)
        for table in tables:
            table.show(console)
    if options.json is not None:
        results = {
            "machine": machine,
            "steps": asdict(steps),
            "linear_layers": [asdict(cost) for cost in linear],
            "decoding": [asdict(speed) for speed in decoding],
            "copying": [asdict(speed) for speed in copied],
        }
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.step_cost", description=__doc__)
    parser.add_argument("model", nargs="?", default="smollm2-135m", help="[smollm2-135m]")
    parser.add_argument("--quick", action="store_true", help="few rounds: shows that it works")
    parser.add_argument("--threads", type=int, help="[the physical cores]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures")
    parser.add_argument("--markdown", action="store_true", help="tables for docs/performance.md")
    return parser.parse_args()


def _machine(files: ModelFiles, threads: int) -> str:
    """The machine, the versions and the model, in a few sentences without a date."""
    config = open_weights(files.path).config
    identity = ModelIdentity(
        name=files.name,
        source=files.source,
        sha256=files.sha256,
        parameters=config.parameters,
        dtype="both",
        hub_id=files.hub_id,
    )
    seen = capture_environment(
        started_at=datetime.now(UTC), backend="fused", threads=threads, model=identity
    )
    versions = ", ".join(f"{name} {seen.versions[name]}" for name in PACKAGES)
    return (
        f"{seen.cpu} ({', '.join(seen.cpu_features or ())}), {seen.physical_cores} cores, "
        f"{seen.memory_bytes / 2**30:.0f} GiB, {seen.os}; {threads} threads. "
        f"Python {seen.python}, {versions}. "
        f"{files.path.name}: {config.parameters / 1e6:.1f} million weights, "
        f"sha256 {files.sha256[:16]}…."
    )


if __name__ == "__main__":
    main()
