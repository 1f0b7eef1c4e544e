"""Servers beside each other: `python -m benchmarks.peers outrider=http://… vllm=http://…`.

Each answers the bundled prompts greedily through its OpenAI-compatible API, round by round in turn.
A server that has nothing to do has to be quiet. The first round is warm-up.
"""

import argparse
import asyncio
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx2
import numpy as np

from outrider.bench.workload import Prompt, bundled_workload, quick_subset

from .rounds import Spread, paired_ratio
from .tables import Table, spread_text

TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Answered:
    """The texts of a round, their tokens together as the server counts them, and the seconds."""

    texts: tuple[str, ...]
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Server:
    """One address, and the name of the model that it serves."""

    url: str
    model: str

    @classmethod
    async def at(cls, url: str) -> "Server":
        """Ask the server what it serves."""
        async with httpx2.AsyncClient(timeout=TIMEOUT_S) as client:
            listed = (await client.get(f"{url}/v1/models")).raise_for_status().json()
        return cls(url, listed["data"][0]["id"])

    async def answer(self, prompts: Sequence[Prompt], streams: int, max_tokens: int) -> Answered:
        """Send the prompts, `streams` at a time."""
        free = asyncio.Semaphore(streams)
        async with httpx2.AsyncClient(timeout=TIMEOUT_S) as client:

            async def one(prompt: Prompt) -> tuple[str, int]:
                body = {
                    "model": self.model,
                    "messages": prompt.chat,
                    "temperature": 0.0,
                    "max_tokens": max_tokens,
                }
                async with free:
                    reply = await client.post(f"{self.url}/v1/chat/completions", json=body)
                told = reply.raise_for_status().json()
                text = told["choices"][0]["message"]["content"]
                return text, int(told["usage"]["completion_tokens"])

            start = time.perf_counter()
            answers = await asyncio.gather(*(one(prompt) for prompt in prompts))
            seconds = time.perf_counter() - start
        texts, tokens = zip(*answers, strict=True)
        return Answered(texts, sum(tokens), seconds)


async def compare(
    servers: Mapping[str, Server],
    prompts: Sequence[Prompt],
    *,
    streams: Sequence[int],
    rounds: int,
    max_tokens: int,
) -> Table:
    """Answer all prompts by every server with each number of streams, in an order drawn anew."""
    rng = np.random.default_rng(0)
    seen: dict[tuple[str, int], list[Answered]] = {
        way: [] for way in itertools.product(servers, streams)
    }
    ways = list(seen)
    for _ in range(rounds + 1):
        for i in rng.permutation(len(ways)):
            name, count = ways[i]
            seen[name, count].append(await servers[name].answer(prompts, count, max_tokens))
    first = next(iter(servers))
    rows = []
    for name, count in sorted(ways, key=lambda way: way[1]):
        own, reference = seen[name, count][1:], seen[first, count][1:]
        times = [each.seconds / each.tokens for each in own]
        alike = sum(a == b for a, b in zip(own[-1].texts, reference[-1].texts, strict=True))
        rows.append(
            (
                str(count),
                name,
                spread_text(Spread.of([1 / each for each in times]), 1),
                spread_text(
                    paired_ratio(times, [each.seconds / each.tokens for each in reference]), 2
                ),
                str(own[-1].tokens),
                f"{alike} of {len(prompts)}",
            )
        )
    note = (
        f"Greedy, {len(prompts)} of the bundled prompts, up to {max_tokens} tokens each, prefill"
        f" and HTTP included; prompts come again, so that each server may have them cached. Median"
        f" (min–max) of {rounds} rounds; time per token against {first}, paired by round: below 1"
        f" is faster. Same text: as {first} gives, in the last round."
    )
    header = ("streams", "server", "tokens/s", f"time against {first}", "tokens", "same text")
    return Table("Servers beside each other", note, header, tuple(rows))


async def _run(options: argparse.Namespace) -> Table:
    servers = {}
    for given in options.servers:
        name, _, url = given.partition("=")
        servers[name] = await Server.at(url.rstrip("/"))
    return await compare(
        servers,
        quick_subset(bundled_workload().prompts, options.prompts),
        streams=[int(each) for each in options.streams.split(",")],
        rounds=options.rounds,
        max_tokens=options.max_tokens,
    )


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("servers", nargs="+", metavar="NAME=URL", help="the first is the yardstick")
    parser.add_argument("--streams", default="1,16", help="[1,16]")
    parser.add_argument("--prompts", type=int, default=16, help="[16]")
    parser.add_argument("--rounds", type=int, default=3, help="[3]")
    parser.add_argument("--max-tokens", type=int, default=64, help="[64]")
    parser.add_argument("--markdown", action="store_true", help="the table for docs/performance.md")
    options = parser.parse_args()
    table = asyncio.run(_run(options))
    table.tell(as_markdown=options.markdown)


if __name__ == "__main__":
    main()
