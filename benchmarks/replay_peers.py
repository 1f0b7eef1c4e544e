"""Loops around the lookup drafters of others, each in an interpreter that has it.

A loop replays the answers of a log, asks for a draft before each step, and tells (drafted,
accepted) of each, with the seconds that all took.
"""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from outrider.replay.batch import AnswerBatch

_LOOP = """
import sys, time
import numpy as np
{imports}
data = np.load(sys.argv[1])
tokens, starts, outputs = data["tokens"], data["starts"], data["outputs"]
k = int(sys.argv[3])
{setup}
told = []
begin = time.perf_counter()
for name in range(len(outputs)):
    start, output, end = starts[name], outputs[name], starts[name + 1]
    {first}
    at, fed = output + 1, output
    while at < end:
        {ask}
        accepted = 0
        while accepted < len(draft) and at + accepted < end and draft[accepted] == tokens[at + accepted]:
            accepted += 1
        told.append((len(draft), accepted))
        at += accepted + 1
    {last}
seconds = time.perf_counter() - begin
np.savez(sys.argv[2], steps=np.array(told, np.int64), seconds=seconds)
"""  # noqa: E501

ARCTIC = _LOOP.format(
    imports="from arctic_inference.suffix_decoding import SuffixDecodingCache",
    setup="cache = SuffixDecodingCache(max_tree_depth=24, max_cached_requests=int(sys.argv[4]))",
    first="cache.start_request(name, tokens[start:output])",
    ask="""cache.add_active_response(name, tokens[fed:at].tolist())
        fed = at
        draft = cache.speculate(
            name, tokens[max(start, at - 24):at], max_spec_tokens=k,
            max_spec_factor=1.0, min_token_prob=0.1,
        ).token_ids""",
    last="""cache.add_active_response(name, tokens[fed:end].tolist())
    cache.stop_request(name)""",
)
"""arctic-inference 0.3.0; takes K and the number of cached requests."""

VLLM = _LOOP.format(
    imports="from vllm.v1.spec_decode.ngram_proposer import "
    "_find_longest_matched_ngram_and_propose_tokens as search",
    setup="search(np.arange(9, dtype=np.int32), 2, 5, 1 << 20, k)",
    first="pass",
    ask="draft = search(tokens[start:at], 2, 5, 1 << 20, k)",
    last="pass",
)
"""The search of vLLM's first runner, for n-grams of 2 to 5 tokens; takes K."""


def peer_steps(
    batch: AnswerBatch, python: Path, loop: str, *arguments: int
) -> tuple["np.ndarray[Any, np.dtype[np.int64]]", float]:
    """Run a loop over the answers of `batch`; return its steps [N, 2] and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        given, told = Path(folder, "log.npz"), Path(folder, "told.npz")
        np.savez(given, tokens=batch.tokens, starts=batch.starts, outputs=batch.outputs)
        command = [str(python), "-c", loop, str(given), str(told), *map(str, arguments)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        result = np.load(told)
        return result["steps"], float(result["seconds"])
