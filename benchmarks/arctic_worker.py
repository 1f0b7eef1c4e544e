"""The other side of `suffix_cost`: runs where arctic-inference is, with numpy alone beside it.

Plays the answers of a file through its cache once for each line on standard input, and prints the
seconds and the number of calls.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from arctic_inference.suffix_decoding import SuffixDecodingCache

DEPTH, CACHED, FACTOR, LEAST = 24, 10_000, 1.0, 0.1


def play(answers: list[tuple[list[int], list[int]]]) -> tuple[float, int]:
    """Draft step by step through all answers, each step as long as its draft was right."""
    cache = SuffixDecodingCache(DEPTH, CACHED)
    calls = 0
    start = time.perf_counter()
    for name, (prompt, output) in enumerate(answers):
        cache.start_request(name, np.array(prompt, np.int32))
        history = np.array(prompt + output, np.int32)
        done, draft = 0, []
        while done < len(output):
            new = 1
            for token in draft:
                if done + new >= len(output) or output[done + new - 1] != token:
                    break
                new += 1
            end = len(prompt) + done + new
            cache.add_active_response(name, history[len(prompt) + done : end])
            done += new
            draft = cache.speculate(
                name,
                history[max(0, end - DEPTH) : end],
                max_spec_tokens=DEPTH,
                max_spec_factor=FACTOR,
                min_token_prob=LEAST,
            ).token_ids
            calls += 1
        cache.stop_request(name)
    return time.perf_counter() - start, calls


def main() -> None:
    """Answer each line until there are no more."""
    rows = [json.loads(line) for line in Path(sys.argv[1]).read_text("utf-8").splitlines()]
    answers = [(row["prompt_token_ids"], row["completion_token_ids"]) for row in rows]
    for _ in sys.stdin:
        seconds, calls = play(answers)
        print(seconds, calls, flush=True)


if __name__ == "__main__":
    main()
