"""Command lines that read a server, as they can be pasted into a shell."""

import json
import shlex

from outrider.records.probe.asking import CHAT, prompt_field
from outrider.records.probe.seen import Answer, Metrics, Seen

PROMPT = "Count from one to thirty, twice."
KEY = '-H "Authorization: Bearer $OPENAI_API_KEY"'
"""The shell puts the key in, so that it is in no output and no history."""
_GO_ON = " \\\n  "
_LONGEST_ON_ONE_LINE = 96


def curl_answer(seen: Seen) -> str:
    """Return the line that asks for one answer and reports on it."""
    answer = seen.answer
    path = answer.path if isinstance(answer, Answer) else CHAT
    asked = prompt_field(path, PROMPT)
    named = {"model": seen.model} if seen.model else {}
    fields = answer.fields if isinstance(answer, Answer) and seen.engine == "sglang" else {}
    body = json.dumps({**named, "max_tokens": 256, **fields}, ensure_ascii=False)[:-1]
    # JSON may be broken between its members, also within the quotes of a shell.
    body = f"{body},\n      {json.dumps(asked, ensure_ascii=False)[1:]}"
    parts = [f"curl -s {shlex.quote(seen.root + path)} -H 'Content-Type: application/json'"]
    if seen.has_key:
        parts.append(KEY)
    return _GO_ON.join([*parts, f"-d {shlex.quote(body)}", "| outrider report -"])


def report_metrics(seen: Seen, *, interval: str | None = None) -> str:
    """Return the line that reports on /metrics, of so long or since the start."""
    address = shlex.quote(f"{seen.root}/metrics")
    if not (isinstance(seen.metrics, Metrics) and seen.metrics.needs_key):
        return f"outrider report {address}" + (f" --for {interval}" if interval else "")
    curl = f"curl -s {KEY} {address}"
    if interval is None:
        return _joined(curl, "| outrider report -")
    return (
        f"{curl} > before.prom\nsleep {interval}\n{curl} > after.prom\n"
        "outrider report --before before.prom --after after.prom"
    )


def vllm_serve(seen: Seen, *flags: str) -> str:
    """Return the line that starts the server with these flags, its own left to the user."""
    return _joined(f"vllm serve {shlex.quote(seen.model or 'MODEL')} …", *flags)


def _joined(*parts: str) -> str:
    line = " ".join(parts)
    return line if len(line) <= _LONGEST_ON_ONE_LINE else _GO_ON.join(parts)
