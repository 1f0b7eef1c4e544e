"""The benchmark's results as tables, for a terminal or for docs/performance.md."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table as RichTable

from .decoding import DecodingSpeed
from .linear_layers import LinearCost
from .rounds import Spread
from .steps import StepCosts


@dataclass(frozen=True, slots=True)
class Table:
    """A heading, what the figures are, and the figures."""

    title: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """The table as Markdown, with its heading."""
        lines = [self.header, tuple("---" for _ in self.header), *self.rows]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return f"### {self.title}\n\n{self.note}\n\n{body}\n"

    def tell(self, *, as_markdown: bool) -> None:
        """Prints the table on standard output, in either form."""
        if as_markdown:
            print(self.markdown(), flush=True)
        else:
            self.show(Console())

    def show(self, console: Console) -> None:
        """Prints the table on a terminal."""
        shown = RichTable(*self.header, title=self.title, caption=self.note, title_justify="left")
        for row in self.rows:
            shown.add_row(*row)
        console.print(shown)


def step_table(costs: StepCosts) -> Table:
    """Steps of the engine against the floor that memory sets."""
    best = costs.bandwidth_gb_per_s
    floors = ", ".join(
        f"{dtype} {size / 1e6:.0f} MB = {costs.floor_ms(dtype):.1f} ms"
        for dtype, size in costs.weight_bytes.items()
    )
    note = (
        f"Median (min–max) of {best.count} rounds; inflation over 1 row is paired by round. "
        f"Memory is read at {spread_text(best, 1)} GB/s in the same rounds; at the best of them "
        f"the weights take: {floors}. Weights read is their size over the step's time, its share "
        "that of the bandwidth in the same round, and in brackets of the best of all rounds."
    )
    rows = tuple(
        (
            step.dtype,
            str(step.context_tokens),
            str(step.rows),
            spread_text(step.step_ms, 1),
            spread_text(step.inflation, 2),
            f"{step.read_gb_per_s:.1f} GB/s",
            f"{step.bandwidth_share.median:.0%} ({step.read_gb_per_s / best.greatest:.0%})",
        )
        for step in costs.steps
    )
    header = ("weights", "context", "rows", "step, ms", "inflation", "weights read", "share")
    return Table("One step of the embedded engine", note, header, rows)


def linear_table(costs: Sequence[LinearCost]) -> Table:
    """The products with all weights, in several ways."""
    note = (
        "All weights of the model once, nothing else; median (min–max) of "
        f"{costs[0].inflation.count} rounds, in ms. torch has all threads, and one beside the "
        "kernel's own team."
    )
    rows = tuple(
        (
            cost.way,
            cost.dtype,
            spread_text(cost.one_row_ms, 1),
            spread_text(cost.nine_rows_ms, 1),
            spread_text(cost.inflation, 2),
        )
        for cost in costs
    )
    header = ("products by", "weights", "1 row", "9 rows", "inflation")
    return Table("The linear layers alone", note, header, rows)


def decoding_table(speeds: Iterable[DecodingSpeed], threads: int, prompts: str) -> Table:
    """Tokens per second beside transformers, on what `prompts` says."""
    note = (
        "Greedy, prompt by prompt in turn. All output tokens but the first: prefill is taken out "
        "on both sides (for `generate` by the time of a second call, for one token). Speed-up: "
        "median (min–max) over prompts, against `generate` without lookup in the same type, or in "
        "bfloat16. Lookup: K tokens after the first match of the last 5 to 1 tokens, on both "
        f"sides. torch has {threads} threads for `generate`, and 1 beside the engine's team of "
        f"{threads}."
    )
    rows = tuple(
        (
            speed.dtype,
            speed.system,
            speed.arm,
            f"{speed.tokens_per_s:.1f}",
            spread_text(speed.speed_up, 2),
            f"{speed.alike} of {speed.answers}",
        )
        for speed in speeds
    )
    header = ("weights", "system", "arm", "tokens/s", "speed-up", "same tokens")
    return Table(f"Decoding beside transformers: {prompts}", note, header, rows)


def spread_text(spread: Spread, digits: int) -> str:
    """The median and the range around it."""
    return f"{spread.median:.{digits}f} ({spread.least:.{digits}f}–{spread.greatest:.{digits}f})"
