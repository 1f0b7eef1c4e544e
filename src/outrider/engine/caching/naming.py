"""Names of blocks by content, so that sequences with a common beginning find the same blocks."""

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from outrider.engine.models.base import BLOCK_TOKENS

_NAME_BYTES = 16


def further_names(
    token_ids: NDArray[np.int32], names: list[bytes], *, lookahead_tokens: int
) -> list[bytes]:
    """Return the names of the blocks after those in `names` that `token_ids` [n] fills.

    A name stands for all tokens up to the end of its block. A drafter may store beside a block what
    depends on the `lookahead_tokens` that follow it; they are then part of the name, and a block
    has none before they are known.
    """
    further: list[bytes] = []
    last = names[-1] if names else b""
    start = len(names) * BLOCK_TOKENS
    while start + BLOCK_TOKENS + lookahead_tokens <= len(token_ids):
        end = start + BLOCK_TOKENS
        content = token_ids[start : end + lookahead_tokens].tobytes()
        last = blake2b(last + content, digest_size=_NAME_BYTES).digest()
        further.append(last)
        start = end
    return further
