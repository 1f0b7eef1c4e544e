"""How many blocks a cache may have."""

import re

from outrider.engine.models.base import BLOCK_TOKENS, blocks_for
from outrider.errors import InvalidSetting, NotEnoughMemory

SHARE = 0.5
"""The part of the memory left by the weights that the cache takes unless it is told otherwise."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?) *([KMGT]?)(i?)B?", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_MOST = 2**63
"""Bytes that no machine has."""


def parse_memory(option: str, text: str) -> int:
    """Return the bytes that "4GiB", "500MB", "0.5g" or "1073741824" mean.

    Without an i a unit is a power of 1000, but a single letter means its power of 1024. Raises
    InvalidSetting, naming `option`.
    """
    size = 0.0
    found = _SIZE.fullmatch(text.strip())
    if found is not None:
        number, unit, binary = found.groups()
        spelled = text.strip().upper().endswith("B")
        base = 1024 if binary or not spelled else 1000
        size = float(number) * base ** _POWERS[unit.upper()]
    if not 1 <= size < _MOST:
        raise InvalidSetting(
            f"{option} {text[:60]}",
            "a size such as 4GiB, 500MB or a number of bytes, above 0",
            "give it so",
        )
    return int(size)


def cache_blocks(
    kv_bytes_per_token: int,
    *,
    free_bytes: int,
    memory_bytes: int | None,
    max_length: int,
    max_num_seqs: int,
) -> int:
    """Return the number of blocks that `memory_bytes` hold, by default a `SHARE` of `free_bytes`.

    Not more than `max_num_seqs` requests of `max_length` tokens can use. Raises NotEnoughMemory
    where not even one such request fits.
    """
    block_bytes = BLOCK_TOKENS * kv_bytes_per_token
    given = int(free_bytes * SHARE) if memory_bytes is None else memory_bytes
    blocks = min(given // block_bytes, max_num_seqs * blocks_for(max_length))
    if blocks < blocks_for(max_length):
        held = blocks * BLOCK_TOKENS
        raise NotEnoughMemory(
            f"{given / 2**20:,.0f} MiB for the cache hold {held:,} tokens",
            f"room for one request of {max_length:,} tokens,"
            f" {blocks_for(max_length) * block_bytes / 2**20:,.0f} MiB",
            "raise --kv-cache-memory or lower --max-model-len",
        )
    return blocks
