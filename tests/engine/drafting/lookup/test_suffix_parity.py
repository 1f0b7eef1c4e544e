"""Suffix decoding, draft for draft that of arctic-inference 0.3.0.

`make_suffix_vectors.py` has written what is replayed here.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from outrider.engine.drafting.lookup.suffix_cache import SuffixCache, SuffixRequest
from outrider.engine.drafting.lookup.suffix_settings import SuffixSettings

VECTORS = Path(__file__).with_name("suffix_vectors.npz")


@pytest.fixture(scope="module")
def vectors() -> dict[str, NDArray[np.float64]]:
    with np.load(VECTORS) as stored:
        return dict(stored)


def starts(lengths: NDArray[np.float64]) -> list[int]:
    return [0, *np.cumsum(lengths.astype(np.int64)).tolist()]


def test_every_draft_and_score_of_10_000_histories_is_that_of_arctic_inference(
    vectors: dict[str, NDArray[np.float64]],
) -> None:
    tokens = vectors["tokens"].astype(np.int32)
    prompts = vectors["prompt_lengths"].tolist()
    outputs = vectors["output_lengths"].tolist()
    texts = starts(vectors["prompt_lengths"].astype(np.int64) + vectors["output_lengths"])
    expected = starts(vectors["draft_lengths"])
    draft_tokens = vectors["draft_tokens"].tolist()
    scores = vectors["draft_scores"]
    steps = list(
        zip(*(vectors[f"step_{of}"].tolist() for of in ("text", "name", "new")), strict=True)
    )
    ended = drafted = 0
    at = 0
    for (depth, cached, factor, least, k), count in zip(
        vectors["settings"].tolist(), vectors["steps_of_case"].tolist(), strict=True
    ):
        cache = SuffixCache(SuffixSettings(int(depth), int(cached), factor, least))
        running: dict[int, tuple[SuffixRequest, int]] = {}
        for step in range(at, at + count):
            text, name, new = steps[step]
            if text not in running:
                running[text] = cache.begin(name, prompts[text]), 0
            request, done = running[text]
            done += new
            history = tokens[texts[text] : texts[text] + prompts[text] + done]
            room = np.empty(int(k), np.int32)
            length, score = cache.draft(request, history, room)
            wanted = draft_tokens[expected[step] : expected[step + 1]]
            assert room[:length].tolist() == wanted, (step, depth, cached, factor, least, k)
            assert score == scores[step], (step, depth, cached, factor, least, k)
            drafted += length > 0
            running[text] = request, done
            if done == outputs[text]:
                cache.end(request)
                del running[text]
                ended += 1
        assert not running
        at += count
    assert at == len(steps)
    assert ended >= 10_000
    assert drafted > len(steps) / 4
