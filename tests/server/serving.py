"""A server on a socket of its own, over an engine that is easy to follow or a real tiny one."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.engine.loops import ScriptedDrafter, engine_of
from tests.engine.models.configs import config_of

from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.engine import Engine
from outrider.engine.models.base import Rows
from outrider.engine.models.config import DecoderConfig
from outrider.engine.scheduling.limits import Limits
from outrider.engine.sequence import Sequence
from outrider.engine.tokenizer import Tokenizer
from outrider.server.api.api import Api
from outrider.server.api.app import create_app
from outrider.server.api.model import ServedModel, fresh_seeds
from outrider.server.api.settings import ApiSettings
from outrider.server.metrics.engine_load import EngineLoad
from outrider.server.metrics.serving_metrics import ServingMetrics
from outrider.server.running import ListenSettings, Server, address_of, bind, listen
from outrider.server.service.service import Service

VOCABULARY = 258
END = 256
NAME = "counter"
LETTERS = range(64, 90)
"""Token ids of a to z, which the model goes around in."""


@dataclass
class AlphabetModel:
    """A target that goes through the alphabet, from `a` after any token that is no letter.

    While `gate` is cleared no step gets on. `passes` are how many forward passes there were.
    """

    config: DecoderConfig = field(default_factory=lambda: config_of(vocab_size=VOCABULARY))
    num_blocks: int = 4_000
    max_length: int = 1_000
    logit_tolerance: float = 0.0
    sharpness: float = 3.0
    gate: threading.Event = field(default_factory=threading.Event)
    passes: int = 0
    failing: bool = False

    def __post_init__(self) -> None:
        self.gate.set()

    def forward(self, rows: Rows) -> torch.Tensor:
        assert self.gate.wait(60), "a test forgot to open the gate"
        self.passes += 1
        if self.failing:
            raise RuntimeError("broken on purpose")
        tokens = np.asarray(rows.token_ids)[list(rows.wanted)]
        following = torch.from_numpy(np.array([after(token) for token in tokens.tolist()]))
        return self.sharpness * torch.nn.functional.one_hot(following, VOCABULARY).float()


def after(token: int) -> int:
    """The likeliest token after `token`."""
    first, count = LETTERS.start, len(LETTERS)
    return first + (token - first + 1) % count if token in LETTERS else first


def alphabet(sequence: Sequence) -> Iterator[int]:
    """Drafts of which all are right, at temperature 0."""
    token = int(sequence.token_ids[-1])
    for _ in range(8):
        token = after(token)
        yield token


def drafting() -> ScriptedDrafter:
    return ScriptedDrafter(alphabet)


def api_over(
    model: Any,
    tokenizer: Tokenizer,
    *,
    settings: ApiSettings | None = None,
    drafter: Drafter | None = None,
    k: int = 0,
    limits: Limits | None = None,
    capacity: int = 500,
    end_token_ids: frozenset[int] = frozenset({END}),
    clock: Callable[[], float] | None = None,
) -> Api:
    """An API over `model`; greedy unless a request says otherwise is not its default."""
    import time  # noqa: PLC0415

    clock = clock or time.perf_counter
    engine, _ = engine_of(
        model, drafter or NoDrafter(), k, clock=clock, limits=limits, prefix_caching=True
    )
    metrics = ServingMetrics(
        model_name=NAME, k=k, load=lambda: EngineLoad.of(engine.scheduler), clock=clock
    )
    engine.loop = replace(engine.loop, recorder=metrics)
    settings = settings or ApiSettings(model_names=(NAME,))
    settings = replace(settings, metrics=replace(settings.metrics, num_spec_tokens=k))
    api = Api(
        ServedModel(
            tokenizer,
            vocabulary_tokens=model.config.vocab_size,
            max_length=model.max_length,
            end_token_ids=end_token_ids,
            fresh_seed=fresh_seeds(7),
        ),
        Service(engine, metrics, capacity=capacity, clock=clock),
        settings,
    )
    ENGINES[id(api)] = engine
    return api


ENGINES: dict[int, Engine] = {}
"""The engines behind the APIs, for tests to look into."""


@dataclass(frozen=True)
class Running:
    """A server at `url`."""

    url: str
    api: Api
    server: Server
    thread: threading.Thread

    @property
    def engine(self) -> Engine:
        return ENGINES[id(self.api)]

    def end(self) -> None:
        """Drain and end, as at a signal; from the test's own thread."""
        loop = self.server._event_loop
        assert loop is not None
        loop.call_soon_threadsafe(self.server.end)

    def blocks_in_use(self) -> int:
        pool = self.engine.scheduler.cache.pool
        return pool.num_blocks - pool.free_blocks


@contextmanager
def running(
    api: Api,
    *,
    certificate: tuple[Path, Path] | None = None,
    drain_timeout_s: float = 30.0,
    patience_s: float = 60.0,
) -> Iterator[Running]:
    """Serve `api` on a free port until the block ends."""
    certfile, keyfile = certificate or (None, None)
    settings = ListenSettings(
        port=0,
        log_level="critical",
        access_log=False,
        ssl_certfile=certfile,
        ssl_keyfile=keyfile,
        drain_timeout_s=drain_timeout_s,
        patience_s=patience_s,
    )
    with bind(settings.host, settings.port) as bound:
        listen(bound)
        server = Server(create_app(api), api.service, settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        url = address_of(bound, settings)
        thread.start()
        serving = Running(url, api, server, thread)
        try:
            yield serving
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive(), "the server does not end"
            del ENGINES[id(api)]
