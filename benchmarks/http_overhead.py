"""What HTTP costs: `python -m benchmarks.http_overhead`, from the repository's root.

The same requests as streams over HTTP and directly on an engine, in turn, with one copy of the
weights. The client is a process of its own on the same cores, so its work counts as the server's.
"""

import argparse
import asyncio
import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import psutil
from rich.console import Console

from outrider.bench.target import tokenized, usable_cores
from outrider.bench.workload import bundled_workload, quick_subset
from outrider.engine.caching.cache import BlockCache
from outrider.engine.engine import Engine
from outrider.engine.models.packing import PACKINGS
from outrider.engine.models.store import cache_directory, locate_model
from outrider.engine.sampling import SamplingParameters
from outrider.engine.scheduling.scheduler import Scheduler
from outrider.engine.tokenizer import Tokenizer
from outrider.engine.tokenizer_cache import kept_folder
from outrider.server.api.api import Api
from outrider.server.api.app import create_app
from outrider.server.api.settings import RequestLimits
from outrider.server.metrics.engine_load import EngineLoad
from outrider.server.metrics.serving_metrics import ServingMetrics
from outrider.server.running import ListenSettings, Server, address_of, bind, listen
from outrider.server.service.building import BuiltEngine, EngineSettings, build_engine
from outrider.server.serving import build_api
from outrider.server.settings import ServerSettings

from .rounds import Spread, Variant, interleaved, paired_ratio
from .tables import Table, spread_text

MODEL = "smollm2-135m"
LISTEN = ListenSettings(port=0, log_level="warning", access_log=False)


class Direct:
    """Answers prompts on an engine of its own, as one that counts and makes text of tokens."""

    def __init__(self, api: Api, engine: Engine, metrics: ServingMetrics, max_tokens: int) -> None:
        self._api, self._engine, self._metrics = api, engine, metrics
        self._max_tokens = max_tokens

    def run(self, prompts: Sequence[Sequence[int]]) -> None:
        """Answer all of them together."""
        parameters = SamplingParameters(ignore_eos=True)
        for prompt in prompts:
            sequence = self._api.model.sequence(prompt, parameters, self._max_tokens)
            self._engine.add(sequence)
            self._metrics.added(sequence)
        while self._engine.busy:
            self._metrics.stepped(self._engine.step())


class Client:
    """A process that sends the same requests over HTTP each time it is told to."""

    def __init__(self, url: str, bodies: Sequence[dict[str, Any]]) -> None:
        self._process = subprocess.Popen(  # noqa: S603  ourselves
            [sys.executable, "-m", "benchmarks.http_overhead", "--client", url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._say(json.dumps(bodies))

    def run(self) -> None:
        """Send all of them at once and wait for the last answer."""
        self._say("go")
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "done\n", "the client failed"

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()


def client(url: str) -> None:
    """Do what the other process says on standard input."""
    host, port = url.removeprefix("http://").split(":")
    bodies = [json.dumps(body).encode() for body in json.loads(sys.stdin.readline())]

    async def ask(body: bytes) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Connection: close\r\n" + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
        )
        last = b""
        while piece := await reader.read(65536):
            last = (last + piece)[-64:]
        assert b"[DONE]" in last, last
        writer.close()

    async def all_of_them() -> None:
        await asyncio.gather(*map(ask, bodies))

    while sys.stdin.readline():
        asyncio.run(all_of_them())
        print("done", flush=True)


def twin(built: BuiltEngine) -> tuple[Engine, ServingMetrics]:
    """Another engine with the same weights and the same cache, to be used in turn."""
    metrics = ServingMetrics(
        model_name=MODEL,
        k=0,
        load=lambda: EngineLoad.of(scheduler),
        clock=time.perf_counter,
        prefix_caching=False,
    )
    loop = replace(built.engine.loop, recorder=metrics)
    scheduler = Scheduler(BlockCache(loop.model.num_blocks), built.engine.scheduler.limits)
    return Engine(loop, scheduler), metrics


def measure(options: argparse.Namespace, say: Callable[[str], None]) -> Table:
    """Answer the same prompts both ways, in turn."""
    cache_dir = cache_directory()
    files = locate_model(MODEL, cache_dir=cache_dir, report=say)
    tokenizer = Tokenizer(files.path, kept=kept_folder(cache_dir, files.sha256))
    engine = EngineSettings(
        dtype=options.dtype, threads=options.threads, max_model_len=2048, prefix_caching=False
    )
    settings = ServerSettings(
        model=MODEL, engine=engine, listen=LISTEN, limits=RequestLimits(), log_stats=False
    )
    built = build_engine(files, engine, None, model_name=MODEL)
    api = build_api(settings, files, tokenizer, built, None, None)
    direct = Direct(api, *twin(built), options.max_tokens)
    chosen = quick_subset(bundled_workload().prompts, options.streams)
    prompts = [list(each.token_ids) for each in tokenized(chosen, tokenizer, None)]
    bodies = [
        {
            "prompt": prompt,
            "max_tokens": options.max_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        for prompt in prompts
    ]
    with bind(LISTEN.host, LISTEN.port) as bound:
        listen(bound)
        server = Server(create_app(api), api.service, LISTEN)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        client = Client(address_of(bound, LISTEN), bodies)
        seconds = interleaved(
            {"HTTP": Variant(client.run), "direct": Variant(partial(direct.run, prompts))},
            rounds=options.rounds,
            budget_s=math.inf,
        )
        client.close()
        server.should_exit = True
        thread.join()
    tokens = len(prompts) * options.max_tokens
    rates = {name: [tokens / each for each in found] for name, found in seconds.items()}
    ratio = paired_ratio(rates["HTTP"], rates["direct"])
    rows = tuple((name, spread_text(Spread.of(rates[name]), 1)) for name in ("direct", "HTTP"))
    note = (
        f"Output tokens per second of {len(prompts)} streams of {options.max_tokens} tokens,"
        f" prefill included; median (min–max) of {options.rounds} rounds in turn. {options.dtype},"
        f" {options.threads} threads; the client is a process on the same cores."
    )
    return Table(
        "HTTP", note, ("way", "tokens/s"), (*rows, ("HTTP / direct", spread_text(ratio, 3)))
    )


def main() -> None:
    """Measures and prints a table."""
    options = _options()
    if options.client:
        client(options.client)
        return
    progress = Console(stderr=True)
    busy = psutil.cpu_percent(interval=1.0)
    print(f"Other processes had {busy:.0f}% at the start.\n")
    table = measure(options, progress.print)
    table.tell(as_markdown=options.markdown)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http_overhead", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--dtype", default="bfloat16", choices=tuple(PACKINGS))
    parser.add_argument("--markdown", action="store_true", help="a table for docs/serve.md")
    parser.add_argument("--client", metavar="URL", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
