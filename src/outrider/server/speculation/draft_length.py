"""K where the user gave it, and where it follows from the method or the draft checkpoint."""

from outrider.errors import InvalidSetting
from outrider.server.speculation.config import SpeculativeConfig

MOST_DRAFTED = 128
"""The most that vLLM's first runner drafts (MAX_SPEC_LEN), and so the most that is portable."""


def draft_length(
    method: str,
    config: SpeculativeConfig,
    *,
    n_predict: int | None = None,
    block_size: int | None = None,
) -> int:
    """Return K, 1 to `MOST_DRAFTED`.

    `n_predict` is the number of tokens that a draft checkpoint was trained to predict, `block_size`
    that of DSpark. Raises InvalidSetting where nothing tells K, or where it is out of range or no
    multiple of `n_predict`.
    """
    k = config.num_speculative_tokens
    if k is None:
        k = _default(method, config, n_predict, block_size)
    if k is None:
        raise InvalidSetting(
            f"num_speculative_tokens was not provided with method {method}",
            "how many tokens to draft at most",
            'set for instance "num_speculative_tokens": 4',
        )
    if n_predict is not None and k > n_predict and k % n_predict:
        raise InvalidSetting(
            f"num_speculative_tokens:{k} must be divisible by n_predict={n_predict}",
            "a multiple of what the draft was trained to predict",
            f"use {k - k % n_predict} or {k - k % n_predict + n_predict}",
        )
    if k > MOST_DRAFTED:
        raise InvalidSetting(
            f"num_speculative_tokens {k}", f"at most {MOST_DRAFTED}", "draft fewer tokens"
        )
    return k


def _default(
    method: str, config: SpeculativeConfig, n_predict: int | None, block_size: int | None
) -> int | None:
    if n_predict is not None:
        return n_predict
    if method == "suffix":
        return config.suffix_decoding_max_tree_depth
    return block_size if method == "dspark" else None
