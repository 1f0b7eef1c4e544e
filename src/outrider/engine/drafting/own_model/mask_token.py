"""The token that a draft model for parallel drafting was trained to fill in."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from outrider.errors import InvalidSetting

MASK_KEYS = (
    "dflash_config.mask_token_id",
    "mask_token_id",
    "dspark_noise_token_id",
    "pard_token",
    "ptd_token_id",
)
"""Where a draft's config may name it, in vLLM's order."""


def mask_token_id(path: Path, vocab_size: int) -> int:
    """Return the mask token that `config.json` in the folder `path` names.

    Raises InvalidSetting where it names none, or one that is no id below `vocab_size`.
    """
    file = path / "config.json"
    config = json.loads(file.read_text(encoding="utf-8")) if path.is_dir() else {}
    for key in MASK_KEYS:
        token = _value(config, key)
        if token is None:
            continue
        if type(token) is not int or not 0 <= token < vocab_size:
            raise InvalidSetting(
                f"{key} {token!r} in {file}",
                f"a token id from 0 to {vocab_size - 1}",
                "correct the draft model's config",
            )
        return token
    raise InvalidSetting(
        f"parallel_drafting with {path}, which names no mask token",
        f"one of {', '.join(MASK_KEYS)} in its config.json",
        "take a draft model that was trained for it, or drop parallel_drafting",
    )


def _value(config: Mapping[str, Any], key: str) -> object:
    found: Any = config
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
