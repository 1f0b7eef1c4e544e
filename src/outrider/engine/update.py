"""What one step did for one request."""

from dataclasses import dataclass

from outrider.engine.sampling.logprobs import Logprobs
from outrider.engine.sequence import Sequence
from outrider.records.request import FinishReason


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """The news of `sequence` after a step.

    `tokens` is how many output tokens are new and `text` what may be shown of them. With a
    `finish_reason` the request has ended, with `stopped_by` at that string or stop token, or with a
    `failure` that says in a sentence what went wrong. `logprobs` are of the new tokens, where
    asked for.
    """

    sequence: Sequence
    tokens: int = 0
    text: str = ""
    finish_reason: FinishReason | None = None
    stopped_by: int | str | None = None
    failure: str | None = None
    logprobs: Logprobs | None = None
