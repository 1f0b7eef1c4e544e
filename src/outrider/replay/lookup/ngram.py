"""Prompt lookup over a log: all n-grams of an answer's history, kept as it grows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from outrider.engine.compiling import compiled
from outrider.errors import InvalidSetting
from outrider.records.arm import TieRule
from outrider.replay.answer import TokenIds
from outrider.replay.batch import AnswerBatch
from outrider.replay.lookup.base import Runs
from outrider.replay.lookup.grid import Grid

_FEWEST_SLOT_BITS = 6
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class NgramPass:
    """Drafts as the engine's n-gram drafter of the same settings: see its rule there.

    For each n a table maps n-grams to where the first and the last of them ended, so that a
    position costs the same after 100 and 100,000 tokens. Entries are compared token by token: no
    two n-grams are ever taken for one.
    """

    method: ClassVar[str] = "ngram"
    ordered: ClassVar[bool] = False
    remembers: ClassVar[bool] = False

    prompt_lookup_min: int
    prompt_lookup_max: int
    tie: TieRule
    fill: bool = False

    @property
    def name(self) -> str:
        """Its lengths and tie rule, as in "ngram 2–5 recent", and whether it fills drafts."""
        told = f"ngram {self.prompt_lookup_min}–{self.prompt_lookup_max} {self.tie}"
        return f"{told} filled" if self.fill else told

    @property
    def server_keys(self) -> Mapping[str, int | float | str]:
        """Both n-gram lengths; the tie rule and filling are the server's own choice."""
        return {
            "prompt_lookup_min": self.prompt_lookup_min,
            "prompt_lookup_max": self.prompt_lookup_max,
        }

    def start(self) -> "NgramPass":
        """Return itself: a pass keeps nothing from one answer to the next."""
        return self

    def runs(self, batch: AnswerBatch, ks: tuple[int, ...]) -> Runs:
        """Return the drafts of the largest of `ks`, which begin with those of the others."""
        matching = np.zeros((1, batch.tokens.size), np.uint8)
        available = np.zeros((1, batch.tokens.size), np.uint8)
        sizes = self.prompt_lookup_max - self.prompt_lookup_min + 1
        bits = _slot_bits(int(np.diff(batch.starts).max()))
        _scan_all(
            batch.tokens,
            batch.starts,
            batch.outputs,
            self.prompt_lookup_min,
            self.prompt_lookup_max,
            self.tie == "earliest",
            self.fill,
            max(ks),
            np.empty((sizes, 1 << bits, 2), np.int32),
            matching[0],
            available[0],
        )
        return Runs(matching, available)


def _slot_bits(tokens: int) -> int:
    """How many bits number the slots of a table that is at most half full."""
    return max(_FEWEST_SLOT_BITS, (2 * tokens - 1).bit_length())


@compiled()
def _scan_all(
    tokens: TokenIds,
    starts: NDArray[np.int64],
    outputs: NDArray[np.int64],
    shortest: int,
    longest: int,
    earliest: bool,
    fill: bool,
    most: int,
    tables: NDArray[np.int32],
    matching: NDArray[np.uint8],
    available: NDArray[np.uint8],
) -> None:
    for answer in range(outputs.size):
        start, end = starts[answer], starts[answer + 1]
        # A short answer among long ones uses, and clears, few slots.
        bits = 6
        while (1 << bits) < 2 * (end - start):
            bits += 1
        for row in range(tables.shape[0]):
            for slot in range(1 << bits):
                tables[row, slot, 0] = tables[row, slot, 1] = 0
        _scan(
            tokens[start:end],
            outputs[answer] - start,
            shortest,
            longest,
            earliest,
            fill,
            most,
            tables,
            np.uint64(64 - bits),
            matching[start:end],
            available[start:end],
        )


@compiled()
def _scan(  # noqa: C901  one loop over the text
    tokens: TokenIds,
    prompt_tokens: int,
    shortest: int,
    longest: int,
    earliest: bool,
    fill: bool,
    most: int,
    tables: NDArray[np.int32],
    shift: np.uint64,
    matching: NDArray[np.uint8],
    available: NDArray[np.uint8],
) -> None:
    """Fill `matching` and `available` at each output position but the first.

    A slot holds 1 + the places where an n-gram ended first and last, 0 if free. An n-gram that is
    new with its shorter one is not entered: it is read off the text once the shorter one, of which
    it is the first, comes again. So where little repeats itself a token costs one look-up or two.
    """
    mask = (np.int64(1) << np.int64(np.uint64(64) - shift)) - 1
    for last in range(tokens.size - 1):
        match = np.int64(last)
        shorter = np.int64(-1)
        hashed = np.uint64(0)
        for n in range(1, min(longest, last + 1) + 1):
            hashed = (hashed ^ np.uint64(tokens[last + 1 - n])) * _MULTIPLIER
            if n < shortest:
                continue
            table = tables[n - shortest]
            # The upper bits of the product depend on all tokens.
            slot = np.int64(hashed >> shift)
            while table[slot, 1]:
                end = table[slot, 1] - 1
                same = 0
                while same < n and tokens[end - same] == tokens[last - same]:
                    same += 1
                if same == n:
                    break
                slot = (slot + 1) & mask
            if table[slot, 1]:
                first, recent = np.int64(table[slot, 0] - 1), np.int64(table[slot, 1] - 1)
            elif shorter >= n - 1 and tokens[shorter + 1 - n] == tokens[last + 1 - n]:
                first = recent = shorter
                table[slot, 0] = first + 1
            else:
                table[slot, 0] = table[slot, 1] = last + 1
                break
            table[slot, 1] = last + 1
            match = first if earliest else recent
            shorter = first
        if last < prompt_tokens:
            continue
        found = min(most, last - int(match))
        drafted = most if fill else found
        accepted = 0
        while accepted < drafted and last + 1 + accepted < tokens.size:
            # Beyond what was found, a filled draft says the last token over and over.
            token = tokens[match + 1 + accepted] if accepted < found else tokens[last]
            if token != tokens[last + 1 + accepted]:
                break
            accepted += 1
        matching[last + 1] = accepted
        available[last + 1] = drafted


def ngram_settings(grid: Grid) -> Iterator[NgramPass]:
    """Yield every combination whose n-gram lengths are in order; InvalidSetting for none."""
    lengths = [
        (shortest, longest)
        for shortest in grid.prompt_lookup_min
        for longest in grid.prompt_lookup_max
        if shortest <= longest
    ]
    if not lengths:
        raise InvalidSetting(
            f"--prompt-lookup-min {min(grid.prompt_lookup_min)} above --prompt-lookup-max"
            f" {max(grid.prompt_lookup_max)}",
            "n-gram lengths in that order",
            "swap them",
        )
    for shortest, longest in lengths:
        for tie in grid.ngram_tie:
            for fill in (False, True) if grid.ngram_fill else (False,):
                yield NgramPass(
                    shortest, longest, "earliest" if tie == "earliest" else "recent", fill
                )
