"""Decoding beside llama.cpp: `python -m benchmarks.llama_cpp PATH/TO/llama-bench`.

Both read the same GGUF file and have the same cores, one after the other in each round, without
server and tokenizer: llama-bench times tokens of its own choice, the engine its greedy choices.
"""

import argparse
import json
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console

from outrider.bench.target import usable_cores
from outrider.engine.models.base import Rows, TargetModel, blocks_for
from outrider.engine.models.registry import load_model
from outrider.engine.models.settings import ModelSettings
from outrider.engine.models.store import cache_directory, locate_model
from outrider.engine.sampling import greedy_tokens

from .rounds import Spread, paired_ratio
from .tables import Table, spread_text

PROMPT_TOKENS, OUTPUT_TOKENS = 512, 128
DTYPES = ("int4", "int8", "bfloat16")


@dataclass(frozen=True, slots=True)
class Seconds:
    """For a token of a prompt, and for a token of an answer that begins with nothing."""

    prompt: float
    output: float


class LlamaBench:
    """llama.cpp's own benchmark, whose rounds to warm up do not count."""

    def __init__(self, binary: Path, model: Path, threads: int) -> None:
        counts = ["-p", str(PROMPT_TOKENS), "-n", str(OUTPUT_TOKENS), "-r", "1"]
        given = ["-m", str(model), "-t", str(threads), *counts, "-o", "json"]
        self._command = [str(binary), *given]

    def measure(self) -> Seconds:
        """One run of each kind."""
        told = subprocess.run(self._command, check=True, capture_output=True, text=True).stdout  # noqa: S603
        seconds = {test["n_gen"] > 0: 1 / float(test["avg_ts"]) for test in json.loads(told)}
        return Seconds(prompt=seconds[False], output=seconds[True])


class EngineBench:
    """The same of the embedded engine's steps."""

    def __init__(self, model: TargetModel) -> None:
        self._model = model
        self._blocks = [range(blocks_for(PROMPT_TOKENS + OUTPUT_TOKENS))]

    def measure(self) -> Seconds:
        """One run of each kind."""
        began = time.perf_counter()
        token = self._step(range(1, 1 + PROMPT_TOKENS), 0)
        read = time.perf_counter()
        for place in range(OUTPUT_TOKENS):
            token = self._step([token], place)
        done = time.perf_counter()
        return Seconds((read - began) / PROMPT_TOKENS, (done - read) / OUTPUT_TOKENS)

    def _step(self, tokens: list[int] | range, first: int) -> int:
        places = range(first, first + len(tokens))
        rows = Rows(tokens, places, [0] * len(tokens), self._blocks, [len(tokens) - 1])
        return int(greedy_tokens(self._model.forward(rows))[0])


def compare(binary: Path, path: Path, *, threads: int, rounds: int) -> Table:
    """All ways in each round, in an order drawn anew, after a round that does not count."""
    settings = ModelSettings(backend="fused", threads=threads).with_room(
        PROMPT_TOKENS + OUTPUT_TOKENS
    )
    ways: dict[str, LlamaBench | EngineBench] = {"llama.cpp": LlamaBench(binary, path, threads)}
    for dtype in DTYPES:
        model = load_model(path, replace(settings, dtype=dtype))
        ways[f"outrider {dtype}"] = EngineBench(model)
    seen: dict[str, list[Seconds]] = {name: [] for name in ways}
    rng = np.random.default_rng(0)
    for _ in range(rounds + 1):
        for i in rng.permutation(len(ways)):
            name = list(ways)[i]
            seen[name].append(ways[name].measure())
    reference = seen["llama.cpp"][1:]
    rows = []
    for name, (_, *own) in seen.items():
        row = [name]
        for kind in ("output", "prompt"):
            taken, other = ([getattr(each, kind) for each in them] for them in (own, reference))
            row.append(spread_text(Spread.of([1 / each for each in taken]), 0))
            row.append(spread_text(paired_ratio(other, taken), 2))
        rows.append(tuple(row))
    note = (
        f"{path.name} on {threads} threads: a prompt of {PROMPT_TOKENS} tokens, {OUTPUT_TOKENS} "
        f"tokens of an answer. Median (min–max) of {rounds} rounds; speed-up paired by round."
    )
    header = ("system", "decoded, tokens/s", "speed-up", "prompt, tokens/s", "speed-up")
    return Table("Decoding beside llama.cpp", note, header, tuple(rows))


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.llama_cpp", description=__doc__)
    parser.add_argument("binary", type=Path, help="llama-bench, of llama.cpp's tools")
    parser.add_argument("--model", default="smollm2-135m", help="a GGUF file [smollm2-135m]")
    parser.add_argument("--rounds", type=int, default=9, help="[9]")
    parser.add_argument("--markdown", action="store_true", help="the table for docs/performance.md")
    options = parser.parse_args()
    files = locate_model(
        options.model, cache_dir=cache_directory(), report=Console(stderr=True).print
    )
    table = compare(options.binary, files.path, threads=usable_cores(), rounds=options.rounds)
    table.tell(as_markdown=options.markdown)


if __name__ == "__main__":
    main()
