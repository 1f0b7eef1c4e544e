"""The lines that the server logs every few seconds, as vLLM words them."""

from collections.abc import Callable

from outrider.server.metrics.serving_totals import ServingTotals, Snapshot
from outrider.server.metrics.speculation_counts import SpeculationCounts, steps_at_positions


class IntervalLog:
    """Words what happened since the last turn; `read` gives the counts, times are in seconds.

    `device` is what holds the cache of keys and values, in vLLM's words GPU or CPU.
    """

    def __init__(
        self,
        read: Callable[[], Snapshot],
        *,
        now: float,
        engine: int = 0,
        device: str = "GPU",
    ) -> None:
        self._read = read
        self._engine = engine
        self._device = device
        self._before = read().totals
        self._began = now
        self._last_speculation = now
        self._was_idle = True

    def lines(self, now: float) -> tuple[str, ...]:
        """Return what the log says if the interval ends at `now`; changes nothing.

        The engine's line is left out when neither this interval nor the last had a token, and that
        of speculation when no verification step was counted. The throughputs of the latter are
        over the time since the last such line, as in vLLM.
        """
        return self._lines(self._read(), now)

    def turn(self, now: float) -> tuple[str, ...]:
        """Return the same and begin the next interval."""
        snapshot = self._read()
        lines = self._lines(snapshot, now)
        self._was_idle = self._idle(snapshot.totals)
        if _speculated(self._before, snapshot.totals) is not None:
            self._last_speculation = now
        self._before, self._began = snapshot.totals, now
        return lines

    def _idle(self, totals: ServingTotals) -> bool:
        before = self._before
        return (totals.computed_prompt_tokens, totals.generation_tokens) == (
            before.computed_prompt_tokens,
            before.generation_tokens,
        )

    def _lines(self, snapshot: Snapshot, now: float) -> tuple[str, ...]:
        totals, lines = snapshot.totals, []
        if not (self._was_idle and self._idle(totals)):
            lines.append(self._engine_line(snapshot, now - self._began))
        counts = _speculated(self._before, totals)
        if counts is not None:
            lines.append(_speculation_line(*counts, now - self._last_speculation))
        return tuple(lines)

    def _engine_line(self, snapshot: Snapshot, seconds: float) -> str:
        totals, before, load = snapshot.totals, self._before, snapshot.load
        prompt_tokens = totals.computed_prompt_tokens - before.computed_prompt_tokens
        generated = totals.generation_tokens - before.generation_tokens
        return (
            f"Engine {self._engine:03}: "
            f"Avg prompt throughput: {_rate(prompt_tokens, seconds):.1f} tokens/s, "
            f"Avg generation throughput: {_rate(generated, seconds):.1f} tokens/s, "
            f"Running: {load.running} reqs, Waiting: {load.waiting} reqs, "
            f"{self._device} KV cache usage: {100 * load.kv_cache_usage:.1f}%, "
            f"Prefix cache hit rate: {100 * snapshot.prefix_hit_rate:.1f}%"
        )


def _speculated(
    before: ServingTotals, after: ServingTotals
) -> tuple[SpeculationCounts, SpeculationCounts] | None:
    """Return the counts of both moments if verification steps lie between them."""
    first, last = before.speculation, after.speculation
    if first is None or last is None or first.steps == last.steps:
        return None
    return first, last


def _speculation_line(before: SpeculationCounts, after: SpeculationCounts, seconds: float) -> str:
    steps = after.steps - before.steps
    accepted, drafted = after.accepted - before.accepted, after.drafted - before.drafted
    reached = zip(
        steps_at_positions(after.by_accepted), steps_at_positions(before.by_accepted), strict=True
    )
    rates = ", ".join(f"{(last - first) / steps:.3f}" for last, first in reached)
    return (
        f"SpecDecoding metrics: Mean acceptance length: {1 + accepted / steps:.2f}, "
        f"Accepted throughput: {_rate(accepted, seconds):.2f} tokens/s, "
        f"Drafted throughput: {_rate(drafted, seconds):.2f} tokens/s, "
        f"Accepted: {accepted} tokens, Drafted: {drafted} tokens, "
        f"Per-position acceptance rate: {rates}, "
        f"Avg Draft acceptance rate: {100 * accepted / drafted:.1f}%"
    )


def _rate(tokens: int, seconds: float) -> float:
    return tokens / seconds if seconds > 0 else 0.0
