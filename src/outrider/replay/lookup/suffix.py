"""Suffix decoding over a log: each answer's own tree, and one of the answers before it."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from outrider.engine.compiling import compiled
from outrider.engine.drafting.lookup.suffix_draft import draft
from outrider.engine.drafting.lookup.suffix_forest import SuffixForest, extend
from outrider.engine.drafting.lookup.suffix_nodes import Forest
from outrider.engine.drafting.lookup.suffix_settings import SuffixSettings
from outrider.replay.answer import TokenIds
from outrider.replay.batch import AnswerBatch
from outrider.replay.lookup.base import Runs
from outrider.replay.lookup.grid import Grid

_NO_TEXT = -1
_OWN, _OTHERS = 1, 2


@dataclass(frozen=True, slots=True)
class SuffixSetting:
    """Suffix decoding with its settings."""

    method: ClassVar[str] = "suffix"

    settings: SuffixSettings

    @property
    def name(self) -> str:
        """The method, and what is not as vLLM has it by default."""
        ours, default = self.settings, SuffixSettings()
        cached = ours.max_cached_requests
        factor, chance = _plain(ours.max_spec_factor), _plain(ours.min_token_prob)
        told = (
            (f"depth {ours.max_tree_depth}", ours.max_tree_depth != default.max_tree_depth),
            (f"factor {factor}", ours.max_spec_factor != default.max_spec_factor),
            (f"chance {chance}", ours.min_token_prob != default.min_token_prob),
            (
                f"{cached} cached" if cached else "own text only",
                cached != default.max_cached_requests,
            ),
        )
        return " ".join(["suffix", *(text for text, other in told if other)])

    @property
    def remembers(self) -> bool:
        """Whether there is a cache of earlier answers."""
        return self.settings.max_cached_requests > 0

    @property
    def server_keys(self) -> Mapping[str, int | float | str]:
        """What is not as vLLM has it by default, under vLLM's names."""
        default = asdict(SuffixSettings())
        return {
            f"suffix_decoding_{name}": value
            for name, value in asdict(self.settings).items()
            if value != default[name]
        }

    def start(self) -> "SuffixPass":
        """Begin with no answer cached."""
        return SuffixPass(self.settings)


@dataclass(slots=True, eq=False)
class SuffixPass:
    """Goes through a log as if each answer had ended before the next began.

    The cache holds the last `max_cached_requests` answers, the current one included, so that its
    size bounds the memory.
    """

    ordered: ClassVar[bool] = True

    settings: SuffixSettings
    _own: SuffixForest = field(init=False)
    _others: SuffixForest = field(init=False)
    _shared_root: int = field(init=False)
    _cached: deque[int] = field(default_factory=deque, init=False)

    def __post_init__(self) -> None:
        self._own = SuffixForest(self.settings.max_tree_depth)
        self._others = SuffixForest(self.settings.max_tree_depth)
        self._shared_root = self._others.plant()

    def runs(self, batch: AnswerBatch, ks: tuple[int, ...]) -> Runs:
        """Return the drafts where a step of each of `ks` begins; elsewhere there are none.

        How long a draft may be decides which match is the best one, so that each K has its own.
        """
        found = Runs(
            np.zeros((len(ks), batch.tokens.size), np.uint8),
            np.zeros((len(ks), batch.tokens.size), np.uint8),
        )
        lengths = np.array(ks, np.int64)
        for answer in range(len(batch.answers)):
            self._answer(batch, answer, lengths, found)
        return found

    def _answer(self, batch: AnswerBatch, answer: int, ks: NDArray[np.int64], found: Runs) -> None:
        own, others, settings = self._own, self._others, self.settings
        start, end = int(batch.starts[answer]), int(batch.starts[answer + 1])
        prompt = int(batch.outputs[answer]) - start
        own.reset()
        text = own.open_text(own.plant())
        own.reserve(text, end - start)
        shared = _NO_TEXT
        if settings.max_cached_requests:
            shared = others.open_text(self._shared_root)
            others.reserve(shared, end - start - prompt)
            self._cached.append(shared)
            while len(self._cached) > settings.max_cached_requests:
                others.close_text(self._cached.popleft(), keep_tree=True)
        begins = np.ones(len(ks), np.int64)
        while full := _replay(
            own.arrays,
            text,
            others.arrays,
            shared,
            self._shared_root,
            batch.tokens[start:end],
            prompt,
            int(batch.max_tokens[answer]),
            ks,
            begins,
            np.float32(settings.max_spec_factor),
            np.float32(settings.min_token_prob),
            found.matching[:, start:end],
            found.available[:, start:end],
        ):
            (own if full == _OWN else others).grow()


def _plain(number: float) -> str:
    """All of its digits, since a name is what tells settings apart."""
    return str(number).removesuffix(".0")


def suffix_settings(grid: Grid) -> Iterator[SuffixSetting]:
    """Yield every combination; with `warm_cache` also without the cache, to tell what it adds."""
    sizes = dict.fromkeys((*grid.max_cached_requests, *((0,) if grid.warm_cache else ())))
    for depth in grid.max_tree_depth:
        for factor in grid.max_spec_factor:
            for least in grid.min_token_prob:
                for cached in sizes:
                    yield SuffixSetting(SuffixSettings(depth, cached, factor, least))


@compiled()
def _replay(
    own: Forest,
    text: int,
    others: Forest,
    shared: int,
    shared_root: int,
    tokens: TokenIds,
    prompt: int,
    max_tokens: int,
    ks: NDArray[np.int64],
    begins: NDArray[np.int64],
    factor: np.float32,
    least: np.float32,
    matching: NDArray[np.uint8],
    available: NDArray[np.uint8],
) -> int:
    """Draft wherever a step of some K begins; tell which forest is full, to be called again, or 0.

    `begins` holds the output position of each K's next step. At the end the answer is cached whole.
    """
    outputs = tokens.size - prompt
    room = np.empty(ks.max(), np.int32)
    while True:
        at = begins.min()
        if at >= outputs:
            if shared >= 0 and not extend(others, shared, tokens[prompt:], 0):
                return _OTHERS
            return 0
        known = prompt + at
        if not extend(own, text, tokens[:known], 0):
            return _OWN
        if shared >= 0 and not extend(others, shared, tokens[prompt:known], 0):
            return _OTHERS
        for place in range(ks.size):
            if begins[place] != at:
                continue
            most = min(ks[place], max_tokens - at - 1)
            accepted = 0
            if most > 0:
                drafted, _ = draft(
                    own, text, others, shared, shared_root, tokens[:known], room[:most],
                    factor, least,
                )  # fmt: skip
                while (
                    accepted < drafted
                    and known + accepted < tokens.size
                    and room[accepted] == tokens[known + accepted]
                ):
                    accepted += 1
                matching[place, known] = accepted
                available[place, known] = drafted
            begins[place] = at + accepted + 1
