"""A target whose every answer can be worked out by hand, and a clock that counts its readings."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest
import torch
from tests.engine.models.configs import config_of

from outrider.bench.answering import Answerer
from outrider.engine.models.base import Rows, TargetModel
from outrider.records.arm import BASELINE, Arm
from outrider.records.divergence import Divergence
from outrider.records.prompt import PromptRecord
from outrider.records.request import RequestRecord


@pytest.fixture(autouse=True)
def torch_threads() -> Iterator[None]:
    """Tiny operators gain nothing from more than one; undoes what loading a backend sets."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


VOCABULARY = 5
CAPACITY = 64


def following(token_ids: Sequence[int]) -> int:
    """The most likely token after `token_ids`: they count up, and skip one now and then."""
    return (token_ids[-1] + (2 if len(token_ids) % 7 == 0 else 1)) % VOCABULARY


class ToyTarget:
    """Answers with `following`, out of a cache that holds what rows have written.

    The logits of its best two tokens, `following` and the one after it, are 2 and 1.
    """

    config = config_of(vocab_size=VOCABULARY)
    num_blocks = 8
    max_length = CAPACITY
    logit_tolerance = 0.0

    def __init__(self) -> None:
        self._cache = [-1] * CAPACITY

    def forward(self, rows: Rows) -> torch.Tensor:
        logits = torch.zeros(len(rows.token_ids), VOCABULARY)
        for row, (token, position) in enumerate(zip(rows.token_ids, rows.positions, strict=True)):
            self._cache[position] = token
            if row in rows.wanted:
                best = following(self._cache[: position + 1])
                logits[row, best] = 2.0
                logits[row, (best + 1) % VOCABULARY] = 1.0
        return logits[list(rows.wanted)]


@pytest.fixture
def toy() -> TargetModel:
    return ToyTarget()


@pytest.fixture
def plain_answer() -> Callable[..., tuple[int, ...]]:
    """What any arm has to answer, without an engine."""

    def answer(prompt: PromptRecord, stop_ids: frozenset[int] = frozenset()) -> tuple[int, ...]:
        token_ids = list(prompt.token_ids)
        for _ in range(prompt.max_tokens):
            token_ids.append(following(token_ids))
            if token_ids[-1] in stop_ids:
                break
        return tuple(token_ids[len(prompt.token_ids) :])

    return answer


@pytest.fixture
def arms() -> tuple[Arm, ...]:
    return (
        BASELINE,
        *(Arm(f"ngram K={k}", "ngram", k, 1, 3, "recent") for k in (1, 4)),
    )


@pytest.fixture
def prompts() -> tuple[PromptRecord, ...]:
    return (
        PromptRecord("first", "chat", (1, 2, 3), 30, "[]"),
        PromptRecord("second", "copy", (4, 4, 0, 4, 4), 20, "[]"),
        PromptRecord("third", "chat", (2, 0), 25, "[]"),
    )


@pytest.fixture
def ticks() -> Callable[[], float]:
    """A clock on which a second passes between two readings."""
    return itertools.count(0.0, 1.0).__next__


@pytest.fixture
def answerer(toy: TargetModel, arms: tuple[Arm, ...], ticks: Callable[[], float]) -> Answerer:
    return Answerer(toy, arms, stop_ids=frozenset(), clock=ticks)


class ListKeeper:
    """Keeps results in lists."""

    def __init__(self) -> None:
        self.requests: list[RequestRecord] = []
        self.divergences: list[Divergence] = []

    def record(self, request: RequestRecord) -> None:
        self.requests.append(request)

    def record_divergences(self, divergences: Iterable[Divergence]) -> None:
        self.divergences += divergences


@pytest.fixture
def keeper() -> ListKeeper:
    return ListKeeper()
