"""Suffix decoding beside arctic-inference: `python -m benchmarks.suffix_cost ANSWERS.jsonl`.

ANSWERS has a JSON object a line with `prompt_token_ids` and `completion_token_ids`. Both sides
draft step by step through all answers, one after the other, from Python, at vLLM's defaults; a
request's start, its prompt and its end count too. With `--arctic PYTHON`, an interpreter that has
arctic-inference 0.3.0, the two take turns round by round.
"""

import argparse
import json
import subprocess
import time
from pathlib import Path

import numpy as np

from outrider.engine.drafting.lookup.suffix_cache import SuffixCache
from outrider.engine.drafting.lookup.suffix_settings import SuffixSettings

from .rounds import Spread, paired_ratio
from .tables import spread_text

Answers = list[tuple[list[int], list[int]]]


def play(answers: Answers) -> tuple[float, int]:
    """Draft step by step through all answers, each step as long as its draft was right."""
    settings = SuffixSettings()
    cache = SuffixCache(settings)
    room = np.empty(settings.max_tree_depth, np.int32)
    calls = 0
    start = time.perf_counter()
    for name, (prompt, output) in enumerate(answers):
        request = cache.begin(name, len(prompt))
        history = np.array(prompt + output, np.int32)
        done, draft = 0, list[int]()
        while done < len(output):
            new = 1
            for token in draft:
                if done + new >= len(output) or output[done + new - 1] != token:
                    break
                new += 1
            done += new
            length, _ = cache.draft(request, history[: len(prompt) + done], room)
            draft = room[:length].tolist()
            calls += 1
        cache.end(request)
    return time.perf_counter() - start, calls


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--arctic", type=Path, help="an interpreter that has arctic-inference")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in arguments.answers.read_text("utf-8").splitlines()]
    answers = [(row["prompt_token_ids"], row["completion_token_ids"]) for row in rows]
    play(answers)  # compiles
    ours: list[float] = []
    theirs: list[float] = []
    worker = None
    if arguments.arctic is not None:
        command = [arguments.arctic, Path(__file__).with_name("arctic_worker.py")]
        worker = subprocess.Popen(  # noqa: S603  the user's own interpreter
            [*command, arguments.answers], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    for _ in range(arguments.rounds):
        seconds, calls = play(answers)
        ours.append(1e6 * seconds / calls)
        if worker is not None:
            assert worker.stdin is not None
            assert worker.stdout is not None
            print(file=worker.stdin, flush=True)
            other_s, other_calls = worker.stdout.readline().split()
            assert int(other_calls) == calls, "the two drafted differently"
            theirs.append(1e6 * float(other_s) / calls)
    print(f"{len(answers)} answers, {calls} calls")
    print(f"here: {spread_text(Spread.of(ours), 1)} microseconds per call")
    if worker is not None:
        worker.communicate()
        print(f"arctic-inference: {spread_text(Spread.of(theirs), 1)}")
        print(f"ratio, arctic over here: {spread_text(paired_ratio(theirs, ours), 2)}")


if __name__ == "__main__":
    main()
