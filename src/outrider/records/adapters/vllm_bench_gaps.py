"""When the events of each answer arrived, in a result of `vllm bench serve --save-detailed`."""

from collections.abc import Mapping, Sequence
from typing import Any

_EVENTS_BEFORE_TEXT = {"openai-chat": 1, "openai": 0, "vllm": 0, "openai-responses": 0}
"""By backend: vLLM's chat streams begin with the role of the answer, which is timed as an event."""


def gaps_of(result: Mapping[str, Any]) -> list[Sequence[Any]] | None:
    """Return the gaps between events with text of each completed answer, in seconds as they stand.

    None where the result was saved without them, or does not tell them from others.
    """
    before_text = _EVENTS_BEFORE_TEXT.get(str(result.get("backend")))
    itls, tokens = result.get("itls"), result.get("output_lens")
    if before_text is None or type(itls) is not list or type(tokens) is not list:
        return None
    if len(itls) != len(tokens) or any(type(each) is not list for each in itls):
        return None
    # A request that failed half-way has gaps, and 0 output tokens.
    answers = [each for each, count in zip(itls, tokens, strict=True) if count]
    # An answer without an event with text is none that could be timed.
    if any(len(each) < before_text for each in answers):
        return None
    return [each[before_text:] for each in answers]
