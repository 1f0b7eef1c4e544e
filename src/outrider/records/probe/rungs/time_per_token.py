"""What is left where nothing tells: the time."""

import shlex

from outrider.records.probe.asking import CHAT, COMPLETIONS
from outrider.records.probe.outcome import Line, NotTried, Outcome
from outrider.records.probe.seen import Answer, Seen

NEEDS_BOTH = "needs the server with its drafter and without; tells whether it pays, not why"


class TimePerToken:
    """The same requests with speculation and without: the time per token, and no acceptance."""

    name = "time_per_token"
    title = "time per token only"

    def judge(self, seen: Seen) -> Outcome:  # noqa: ARG002  nothing seen can tell
        """Say that one server cannot tell this."""
        return NotTried(NEEDS_BOTH)

    def lines(self, seen: Seen) -> tuple[Line, ...]:
        """Return a measurement to be made twice."""
        chat = not (isinstance(seen.answer, Answer) and seen.answer.path == COMPLETIONS)
        backend, path = ("openai-chat", CHAT) if chat else ("openai", COMPLETIONS)
        command = (
            f"vllm bench serve --backend {backend} --base-url {shlex.quote(seen.root)} \\\n"
            f"  --endpoint {path} --model {shlex.quote(seen.model or 'MODEL')} \\\n"
            "  --dataset-name custom --dataset-path prompts.jsonl --save-result"
        )
        return (Line(command, "run it with the drafter and without, and compare mean_tpot_ms"),)
