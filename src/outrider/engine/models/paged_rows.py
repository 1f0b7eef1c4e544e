"""Where the rows of a batch write in a paged cache, and what each of them reads."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from outrider.engine.models.base import BLOCK_TOKENS, Rows


@dataclass(frozen=True, slots=True)
class RowGroup:
    """S sequences that have N rows each in the batch, and at most T tokens in the cache."""

    rows: Tensor
    """The numbers of their rows [S, N]."""
    places: Tensor
    """Where in the cache their tokens are [S, T]; a shorter sequence repeats its last one."""
    visible: dict[int, Tensor]
    """For each window: whether a row sees a token [S, 1, N, T]."""


@dataclass(frozen=True, slots=True)
class PagedRows:
    """R rows on a device. A cache of `num_blocks` blocks has `num_blocks * BLOCK_TOKENS` places."""

    token_ids: Tensor
    positions: Tensor
    places: Tensor
    """Where in the cache each row's own keys and values go [R]."""
    groups: tuple[RowGroup, ...]
    wanted: Tensor


def paged_rows(rows: Rows, windows: Iterable[int], device: torch.device) -> PagedRows:
    """Lays `rows` out for a model whose layers have these `windows` (0: all tokens before).

    All sizes are known to the host, so that a device is never waited for.
    """
    positions, sequences = torch.tensor(rows.positions), torch.tensor(rows.sequences)
    tables = pad_sequence([torch.tensor(table) for table in rows.block_tables], batch_first=True)
    places = places_of(tables[sequences], positions.unsqueeze(1)).squeeze(1)
    return PagedRows(
        token_ids=sent(torch.tensor(rows.token_ids), device),
        positions=sent(positions, device),
        places=sent(places, device),
        groups=tuple(_groups(positions, sequences, tables, set(windows), device)),
        wanted=sent(torch.tensor(rows.wanted, dtype=torch.int64), device),
    )


def row_group(
    rows: Tensor, positions: Tensor, tables: Tensor, tokens: int, windows: Iterable[int]
) -> RowGroup:
    """Let `rows` [S, N] read `tokens` cached tokens of `tables` [S, B], up to themselves.

    Their `positions` [S, N] ascend, and the last one is the last token of the sequence.
    No size depends on a value, so that all of it can be computed on a device.
    """
    at, last = positions.unsqueeze(2), positions[:, -1:]
    cached = torch.arange(tokens, device=positions.device)
    # Whatever else a block holds may be of another request, and not even finite.
    own = torch.minimum(cached, last)
    before = cached <= at
    visible = {
        window: (before & (cached > at - window) if window else before).unsqueeze(1)
        for window in windows
    }
    return RowGroup(rows, places_of(tables, own), visible)


def places_of(tables: Tensor, positions: Tensor) -> Tensor:
    """Where the cache holds `positions` [S, T] of the sequences with the block `tables` [S, B]."""
    blocks = tables.gather(1, positions // BLOCK_TOKENS)
    return blocks * BLOCK_TOKENS + positions % BLOCK_TOKENS


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """Return `tensor` on `device`; to a GPU it is on its way while the host goes on."""
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def _groups(
    positions: Tensor, sequences: Tensor, tables: Tensor, windows: set[int], device: torch.device
) -> Iterator[RowGroup]:
    """Sequences with equally many rows together, so that no row is computed in vain."""
    present, counts = torch.unique_consecutive(sequences, return_counts=True)
    starts = counts.cumsum(0) - counts
    for count in counts.unique().tolist():
        chosen = counts == count
        rows = starts[chosen].unsqueeze(1) + torch.arange(count)
        tokens = int(positions[rows].max()) + 1
        yield row_group(
            sent(rows, device),
            sent(positions[rows], device),
            sent(tables[present[chosen]], device),
            tokens,
            windows,
        )
