"""What too many clients do to those let in: `python -m benchmarks.overload`, from the root.

A server for a few answers at once, with as many clients as it has places, and with four times as
many, in turn. Each asks again once it is answered, or refused. The clients are a process of their
own, on the same cores or, with `--apart`, on the last of them, which the server then leaves alone.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

import numpy as np
from rich.console import Console

from outrider.bench.target import usable_cores
from outrider.engine.models.packing import PACKINGS
from outrider.engine.models.store import cache_directory, locate_model
from outrider.engine.scheduling.limits import Limits
from outrider.engine.tokenizer import Tokenizer
from outrider.engine.tokenizer_cache import kept_folder
from outrider.server.api.app import create_app
from outrider.server.api.settings import RequestLimits
from outrider.server.running import Server, address_of, bind, listen
from outrider.server.service.building import EngineSettings, build_engine
from outrider.server.serving import build_api
from outrider.server.settings import ServerSettings

from .http_overhead import LISTEN, MODEL
from .rounds import Spread, paired_ratio
from .tables import Table, spread_text

PROMPT_TOKENS = 64
OVERLOAD = 4
IMPATIENT_S = 0.1


@dataclass(frozen=True, slots=True)
class Load:
    """So many clients for so long; one that is refused waits so long before it asks again."""

    clients: int
    seconds: float
    retry_s: float
    max_tokens: int
    seed: int


@dataclass(slots=True)
class Seen:
    """What the clients saw: times in seconds, of answers that ended in time and of refusals."""

    between_tokens_s: list[float] = field(default_factory=list)
    first_token_s: list[float] = field(default_factory=list)
    refused_s: list[float] = field(default_factory=list)


async def crowd(host: str, port: int, load: Load) -> Seen:
    """Keep all clients asking until the time is over; what ends later does not count."""
    seen = Seen()
    rng = np.random.default_rng(load.seed)
    end = time.perf_counter() + load.seconds

    async def ask() -> bool:
        prompt = rng.integers(1_000, 20_000, PROMPT_TOKENS).tolist()
        body = json.dumps(
            {"prompt": prompt, "max_tokens": load.max_tokens, "temperature": 0,
             "ignore_eos": True, "stream": True}
        ).encode()  # fmt: skip
        began = time.perf_counter()
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(
            b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Connection: close\r\n" + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        first = last = 0.0
        while piece := await reader.read(65536):
            if b"data: {" in piece:
                last = time.perf_counter()
                first = first or last
        writer.close()
        now = time.perf_counter()
        if b" 429 " in head:
            assert b"retry-after: 1\r\n" in head, head
            seen.refused_s.append(now - began)
            return False
        assert b" 200 " in head, head
        if now < end:
            seen.first_token_s.append(first - began)
            seen.between_tokens_s.append((last - first) / (load.max_tokens - 1))
        return True

    async def client() -> None:
        while time.perf_counter() < end:
            if not await ask():
                await asyncio.sleep(load.retry_s)

    await asyncio.gather(*(client() for _ in range(load.clients)))
    return seen


class Crowd:
    """The process that the clients are in."""

    def __init__(self, url: str, cores: Collection[int]) -> None:
        self._process = subprocess.Popen(  # noqa: S603  ourselves
            [sys.executable, "-m", "benchmarks.overload", "--crowd", url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        os.sched_setaffinity(self._process.pid, cores)

    def run(self, load: Load) -> Seen:
        """Put `load` on the server and say what came of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(load)) + "\n")
        self._process.stdin.flush()
        return Seen(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def be_the_crowd(url: str) -> None:
    """Do what the other process says on standard input."""
    host, port = url.removeprefix("http://").split(":")
    for line in sys.stdin:
        seen = asyncio.run(crowd(host, int(port), Load(**json.loads(line))))
        print(json.dumps(asdict(seen)), flush=True)


@contextmanager
def serving(options: argparse.Namespace, say: Callable[[str], None]) -> Iterator[str]:
    """Serve the model until the block ends, and give the address."""
    cache_dir = cache_directory()
    files = locate_model(MODEL, cache_dir=cache_dir, report=say)
    tokenizer = Tokenizer(files.path, kept=kept_folder(cache_dir, files.sha256))
    engine = EngineSettings(
        dtype=options.dtype,
        threads=options.threads,
        max_model_len=2048,
        prefix_caching=False,
        limits=Limits(max_num_seqs=options.at_once),
    )
    settings = ServerSettings(
        model=MODEL,
        engine=engine,
        listen=LISTEN,
        limits=RequestLimits(),
        max_queued_requests=options.at_once,
        log_stats=False,
    )
    built = build_engine(files, engine, None, model_name=MODEL)
    api = build_api(settings, files, tokenizer, built, None, None)
    with bind(LISTEN.host, LISTEN.port) as bound:
        listen(bound)
        server = Server(create_app(api), api.service, LISTEN)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        yield address_of(bound, LISTEN)
        server.should_exit = True
        thread.join()


def measure(options: argparse.Namespace, say: Callable[[str], None]) -> Table:
    """Put each load on the server in every round, in an order drawn anew."""
    cores = sorted(os.sched_getaffinity(0))
    own, clients_on = (cores[:-1], cores[-1:]) if options.apart else (cores, cores)
    os.sched_setaffinity(0, own)
    options.threads = options.threads or min(usable_cores(), len(own))
    places = 2 * options.at_once
    ways: dict[str, tuple[int, float]] = {
        f"{places}, all it has room for": (places, 1.0),
        f"{OVERLOAD * places}, who wait as told": (OVERLOAD * places, 1.0),
        f"{OVERLOAD * places}, who wait {IMPATIENT_S:g} s": (OVERLOAD * places, IMPATIENT_S),
    }
    found: dict[str, list[Seen]] = {name: [] for name in ways}
    rng = np.random.default_rng(0)
    with serving(options, say) as url:
        clients = Crowd(url, clients_on)
        for round_ in range(-1, options.rounds):
            for name in rng.permutation(list(ways)).tolist():
                count, retry_s = ways[name]
                load = Load(count, options.seconds, retry_s, options.max_tokens, max(round_, 0))
                seen = clients.run(load)
                if round_ >= 0:
                    found[name].append(seen)
        clients.close()
    return table(found, options)


def table(found: Mapping[str, list[Seen]], options: argparse.Namespace) -> Table:
    """The figures, the first way being what the others are compared with."""
    pace = {
        name: [1e3 * statistics.median(each.between_tokens_s) for each in rounds]
        for name, rounds in found.items()
    }
    reference = next(iter(pace.values()))
    rows = []
    for name, rounds in found.items():
        refused = [1e3 * each for seen in rounds for each in seen.refused_s]
        first = Spread.of([statistics.median(each.first_token_s) for each in rounds])
        late = np.percentile(refused, 99) if refused else 0
        rows.append(
            (
                name,
                str(sum(len(each.between_tokens_s) for each in rounds)),
                spread_text(Spread.of(pace[name]), 1),
                spread_text(paired_ratio(pace[name], reference), 3),
                spread_text(first, 2),
                str(len(refused)),
                f"{statistics.median(refused):.1f}, {late:.1f}" if refused else "–",
            )
        )
    note = (
        f"{options.at_once} answers at once and as many that wait, {options.max_tokens} tokens to"
        f" prompts of {PROMPT_TOKENS}. Median (min–max) of {options.rounds} rounds of"
        f" {options.seconds:g} s in turn, each the median of its answers; ratios paired by round."
        f" {options.dtype}, {options.threads} threads; the clients are a process on"
        f" {'another core' if options.apart else 'the same cores'}."
    )
    header = (
        "clients", "answers", "between tokens, ms", "ratio", "first token, s", "429s",
        "their latency, ms: median, 99 %",
    )  # fmt: skip
    return Table("Too many clients", note, header, tuple(rows))


def main() -> None:
    """Measures and prints a table."""
    options = _options()
    if options.crowd:
        be_the_crowd(options.crowd)
        return
    found = measure(options, Console(stderr=True).print)
    found.tell(as_markdown=options.markdown)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overload", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load in a round")
    parser.add_argument("--at-once", type=int, default=8, help="answers, and as many that wait")
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, help="[as many as there are cores for the server]")
    parser.add_argument("--apart", action="store_true", help="clients have a core of their own")
    parser.add_argument("--dtype", default="bfloat16", choices=tuple(PACKINGS))
    parser.add_argument("--markdown", action="store_true", help="a table for docs/serve.md")
    parser.add_argument("--crowd", metavar="URL", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
