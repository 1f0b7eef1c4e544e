"""The conditions that an acceptance length is measured under, and what each may be."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType

from outrider.records.segment_keys import length_band, temperature_band


def _name(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition with the words for it; `form` brings a value into the form that records have.

    `form` raises ValueError for what is none, and `valid` says what is.
    """

    words: str
    valid: str = "a name"
    form: Callable[[str], str] = _name


def _whole(text: str) -> str:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return str(number)


def _temperature(text: str) -> str:
    number = float(text)
    if not (isfinite(number) and number >= 0):
        raise ValueError(text)
    return temperature_band(number)


def _share(text: str) -> str:
    number = float(text)
    if not 0 < number <= 1:
        raise ValueError(text)
    return f"{number:g}"


def _length(text: str) -> str:
    return length_band(int(_whole(text))) or ""


CONDITIONS: Mapping[str, Condition] = MappingProxyType(
    {
        "template": Condition("chat template"),
        "quantisation": Condition("quantisation of the target"),
        "draft_quantisation": Condition("quantisation of the drafter"),
        "k": Condition("K", "a whole number of at least 1", _whole),
        "dataset": Condition("dataset"),
        "engine": Condition("engine"),
        "engine_version": Condition("engine version"),
        "temperature": Condition("temperature", "a number of at least 0", _temperature),
        "top_p": Condition("top_p", "a number above 0 and up to 1", _share),
        "model": Condition("target"),
        "drafter": Condition("drafter"),
        "method": Condition("method"),
        "revision": Condition("revision of the target"),
        "draft_revision": Condition("revision of the drafter"),
        "prompt_length": Condition("prompt length", "a whole number of tokens", _length),
        "language": Condition("language"),
    }
)
"""Another condition that may be told is a line here."""

OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "quantization": "quantisation",
        "draft_quantization": "draft_quantisation",
        "num_speculative_tokens": "k",
        "version": "engine_version",
    }
)


def bare(value: str) -> str:
    """Return a name without what differs from place to place: folder, case and punctuation.

    >>> bare("Qwen/Qwen3-8B") == bare("qwen3_8b")
    True
    """
    last = value.rstrip("/").rpartition("/")[2]
    return "".join(letter for letter in last.casefold() if letter.isalnum())
