"""Runs of tokens that the output must not complete."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence

import torch

from outrider.engine.sampling.history import History


class BadWords:
    """Forbids the last token of each run where the tokens before it have just been put out.

    The prompt does not count, as in vLLM: a run must lie in the output as a whole.
    """

    def __init__(self, runs: Sequence[Sequence[int]]) -> None:
        forbidden: defaultdict[tuple[int, ...], set[int]] = defaultdict(set)
        for *beginning, last in runs:
            forbidden[tuple(beginning)].add(last)
        self._forbidden_after = {
            beginning: tuple(sorted(tokens)) for beginning, tokens in forbidden.items()
        }
        self._lengths = sorted({len(beginning) for beginning in forbidden})

    def apply(self, rows: torch.Tensor, history: History) -> None:
        """Set the logits of tokens that would complete a run to minus infinity."""
        longest = self._lengths[-1]
        before = history.output[max(len(history.output) - longest, 0) :].tolist()
        past = before + history.drafted.tolist()
        hit, tokens = list[int](), list[int]()
        for i in range(len(rows)):
            end = len(before) + i
            for length in self._lengths:
                if length > end:
                    break
                completing = self._forbidden_after.get(tuple(past[end - length : end]), ())
                hit += [i] * len(completing)
                tokens += completing
        cells = torch.tensor([hit, tokens], dtype=torch.int64, device=rows.device)
        rows[cells[0], cells[1]] = -math.inf


def tokenize_bad_words(
    words: Sequence[str], encode: Callable[[str], Sequence[int]]
) -> tuple[tuple[int, ...], ...]:
    """Return the token runs of `words`, for `SamplingParameters.bad_words_token_ids`.

    `encode` adds no special tokens. As in vLLM each word counts at the beginning of a text, and
    in the middle after a space where that is another run of equally many tokens.
    """
    runs = []
    for word in words:
        alone, spaced = (tuple(encode(prefix + word.lstrip())) for prefix in ("", " "))
        if alone:
            runs.append(alone)
        if spaced and len(spaced) == len(alone) and spaced[0] != alone[0]:
            runs.append(spaced)
    return tuple(runs)
