"""From what stands on the command line to a `SpeculativeConfig`."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from pydantic import ValidationError

from outrider.errors import InvalidSetting
from outrider.server.speculation.config import KEYS, SpeculativeConfig
from outrider.server.speculation.explaining import explained, shown
from outrider.server.speculation.nearest import nearest

OPTION = "--speculative-config"
FLAGS = {
    "method": "--spec-method",
    "model": "--spec-model",
    "num_speculative_tokens": "--spec-tokens",
}
"""The shortcut flag of a key."""

_EXAMPLE = f"""write for instance {OPTION} '{{"method": "ngram", "num_speculative_tokens": 4}}'"""

_FOREIGN_KEYS = {
    "adaptive_verification": 'since vLLM 0.32 it is called "enable_adaptive_verification"',
    **dict.fromkeys(
        (
            "target_model_config",
            "target_parallel_config",
            "draft_model_config",
            "draft_parallel_config",
        ),
        "drop it: vLLM fills it in by itself and lets nobody set it",
    ),
}
"""Keys that a user may have met elsewhere, and what to do about them."""


def read_speculative_config(
    text: str | None,
    *,
    method: str | None = None,
    model: str | None = None,
    num_speculative_tokens: int | None = None,
) -> SpeculativeConfig | None:
    """Return what `--speculative-config` (JSON) and the three shortcut flags ask for together.

    None where nothing was given. In top-level keys `-` stands for `_`. Raises InvalidSetting for
    text that is no JSON object, for what is given twice, for an unknown key, and for a value of the
    wrong type or outside its range.
    """
    flags = {
        key: value
        for key, value in (
            ("method", method),
            ("model", model),
            ("num_speculative_tokens", num_speculative_tokens),
        )
        if value is not None
    }
    if text is None and not flags:
        return None
    settings = {} if text is None else _known_keys(_parsed(text))
    for key in flags:
        if key in settings:
            raise InvalidSetting(
                f"{FLAGS[key]} and {OPTION}['{key}'] are mutually exclusive",
                "one of the two",
                "drop one",
            )
    try:
        return SpeculativeConfig.model_validate(settings | flags)
    except ValidationError as error:
        raise explained(error, {key: FLAGS[key] for key in flags}) from error


def _parsed(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" at")
        raise InvalidSetting(
            f"{OPTION} is not JSON ({reason} at line {error.lineno} column {error.colno})",
            "a JSON object",
            _EXAMPLE,
        ) from error
    except (ValueError, RecursionError) as error:  # a number or a nesting beyond all use
        raise InvalidSetting(
            f"{OPTION} with a number too long or nested too deeply", "a JSON object", _EXAMPLE
        ) from error
    if not isinstance(parsed, dict):
        raise InvalidSetting(f"{OPTION} {shown(parsed)}", "a JSON object", _EXAMPLE)
    return parsed


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise _twice(key, key)
        result[key] = value
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidSetting(f"{name} in {OPTION}", "a finite number", "correct that value")


def _known_keys(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings under the names that the keys stand for."""
    typed: dict[str, str] = {}
    for key in given:
        name = key.replace("-", "_")
        if name not in KEYS:
            raise InvalidSetting(
                f"{OPTION} has the key {shown(key)}",
                "the keys of vLLM 0.33's speculative config",
                _FOREIGN_KEYS.get(name) or _key_remedy(name),
            )
        if name in typed:
            raise _twice(typed[name], key)
        typed[name] = key
    return {name: given[key] for name, key in typed.items()}


def _twice(first: str, second: str) -> InvalidSetting:
    keys = shown(first) if first == second else f"{shown(first)} and {shown(second)}"
    return InvalidSetting(f"{OPTION} gives {keys} more than once", "each key once", "drop one")


def _key_remedy(name: str) -> str:
    meant = nearest(name, KEYS)
    return f'rename it to "{meant}"' if meant else "drop it"
