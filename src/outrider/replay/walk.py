"""From drafts at every position to the steps that a drafter of each K would have made."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outrider.acceptance.columns import OUTPUT_BANDS
from outrider.engine.compiling import compiled
from outrider.replay.batch import AnswerBatch
from outrider.replay.lookup.base import Runs

_BANDS = np.array(OUTPUT_BANDS, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """The steps of N answers at one K, counted answer by answer.

    `decode_steps` [N] are all of them, those without a draft included; every other count is of
    those with one. `drafted` [N] is D. `histograms` [N, K + 1] are H_0 ... H_K. `reached`
    [N, K + 1] counts by the last position that a step decided: of a draft of d tokens with a
    accepted, the lesser of d and a + 1. `band_steps` and `band_accepted` [N, bands] are by the
    output position where the step began.
    """

    k: int
    decode_steps: NDArray[np.int64]
    drafted: NDArray[np.int64]
    histograms: NDArray[np.int64]
    reached: NDArray[np.int64]
    band_steps: NDArray[np.int64]
    band_accepted: NDArray[np.int64]

    @classmethod
    def empty(cls, answers: int, k: int) -> "Tally":
        """Nothing counted yet."""

        def zeros(*shape: int) -> NDArray[np.int64]:
            return np.zeros((answers, *shape), np.int64)

        bands = len(OUTPUT_BANDS)
        return cls(k, zeros(), zeros(), zeros(k + 1), zeros(k + 1), zeros(bands), zeros(bands))


def tally(batch: AnswerBatch, runs: Runs, place: int, k: int) -> Tally:
    """Walk through the answers in steps of at most `k` drafted tokens, the `place`-th K of `runs`.

    As in the engine, a step that begins after i output tokens drafts no more than max_tokens - i
    - 1 tokens. Accepted tokens beyond the end of the log are unknown, and not counted.
    """
    told = Tally.empty(len(batch.answers), k)
    row = place if len(runs.matching) > 1 else 0
    _walk(
        batch.starts,
        batch.outputs,
        batch.max_tokens,
        runs.matching[row],
        runs.available[row],
        k,
        _BANDS,
        told.decode_steps,
        told.drafted,
        told.histograms,
        told.reached,
        told.band_steps,
        told.band_accepted,
    )
    return told


@compiled()
def _walk(
    starts: NDArray[np.int64],
    outputs: NDArray[np.int64],
    max_tokens: NDArray[np.int64],
    matching: NDArray[np.uint8],
    available: NDArray[np.uint8],
    k: int,
    bands: NDArray[np.int64],
    decode_steps: NDArray[np.int64],
    drafted_tokens: NDArray[np.int64],
    histograms: NDArray[np.int64],
    reached: NDArray[np.int64],
    band_steps: NDArray[np.int64],
    band_accepted: NDArray[np.int64],
) -> None:
    for answer in range(outputs.size):
        start = outputs[answer]
        length = starts[answer + 1] - start
        most = max_tokens[answer] - 1
        band = 0
        at = np.int64(1)
        while at < length:
            decode_steps[answer] += 1
            drafted = min(np.int64(k), np.int64(available[start + at]), most - at)
            if drafted <= 0:
                at += 1
                continue
            accepted = min(drafted, np.int64(matching[start + at]))
            while band + 1 < bands.size and bands[band + 1] <= at:
                band += 1
            drafted_tokens[answer] += drafted
            histograms[answer, accepted] += 1
            reached[answer, min(drafted, accepted + 1)] += 1
            band_steps[answer, band] += 1
            band_accepted[answer, band] += accepted
            at += accepted + 1
