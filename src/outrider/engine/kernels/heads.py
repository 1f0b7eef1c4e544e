"""What happens to a row's query, key and value heads between the projection and attention."""

from typing import Any

from outrider.engine.compiling import compiled
from outrider.engine.kernels.norm import rms_norm


@compiled()
def rotate(heads: Any, cos: Any, sin: Any) -> None:
    """Rotary embedding in place: `heads` is [n, D], the halves of a head form the pairs."""
    half = cos.shape[0]
    for h in range(heads.shape[0]):
        for i in range(half):
            a, b = heads[h, i], heads[h, i + half]
            heads[h, i] = a * cos[i] - b * sin[i]
            heads[h, i + half] = b * cos[i] + a * sin[i]


@compiled()
def prepare_heads(heads: Any, kv_heads: int, layer: Any, epsilon: float, turn: Any) -> None:
    """Adds the bias, norms and rotates, in place, what of these the family has.

    `heads` is [Q + 2 G, D]; `layer` the bias and the norms of queries and keys, each of size 0
    where there is none; `turn` the cosines and sines [D / 2] of the row's position.
    """
    bias, query_norm, key_norm = layer
    count, size = heads.shape
    queries = count - 2 * kv_heads
    if bias.shape[0]:
        for h in range(count):
            for d in range(size):
                heads[h, d] += bias[h * size + d]
    if query_norm.shape[0]:
        rms_norm(heads[:queries], query_norm, epsilon, heads[:queries])
        keys = heads[queries : queries + kv_heads]
        rms_norm(keys, key_norm, epsilon, keys)
    rotate(heads[: queries + kv_heads], turn[0], turn[1])
