"""Where a request's output ends, within a run of tokens too, and the text it has by then."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from outrider.engine.constraints.base import Constraint
from outrider.engine.detokenizer import Detokenizer
from outrider.engine.sampling.parameters import SamplingParameters
from outrider.engine.sampling.stop_strings import StopStrings
from outrider.errors import InvalidSetting
from outrider.records.request import FinishReason


@dataclass(frozen=True, slots=True)
class Delivered:
    """What of a run of tokens reaches the user.

    The first `tokens` of the run belong to the output; when `reason` is set it ended with the last
    of them. `text` may be shown now, after all that was shown before. `stopped_by` is the stop
    string, or the token among the request's `stop_token_ids`; None at the model's own end token,
    at the most tokens, and while the request runs.
    """

    tokens: int
    text: str = ""
    reason: FinishReason | None = None
    stopped_by: int | str | None = None


class Stops:
    """Follows one request's output and ends it, token by token, however its runs are cut.

    `end_token_ids` are the model's own, `max_tokens` at least 1 what the request may have in all.
    A `constraint` hears of every token that does not end the output, and ends it once nothing can
    be added, whatever `min_tokens` says. Without a detokenizer there is no text. Raises
    `InvalidSetting` for stop strings without text.
    """

    def __init__(
        self,
        parameters: SamplingParameters,
        *,
        end_token_ids: Collection[int],
        max_tokens: int,
        detokenizer: Detokenizer | None = None,
        constraint: Constraint | None = None,
    ) -> None:
        if parameters.stop and detokenizer is None:
            raise InvalidSetting(
                f"stop strings {', '.join(map(repr, parameters.stop))} without any text",
                "a tokenizer that turns the output into text",
                "use stop_token_ids instead",
            )
        self._ends = frozenset(() if parameters.ignore_eos else end_token_ids)
        self._stop_token_ids = frozenset(parameters.stop_token_ids)
        self._include = parameters.include_stop_str_in_output
        self._min_tokens = parameters.min_tokens
        self._max_tokens = max_tokens
        self._detokenizer = detokenizer
        self._constraint = constraint
        self._strings = StopStrings(parameters.stop, include=self._include)
        self._tokens = 0

    def deliver(self, run: Sequence[int]) -> Delivered:
        """Take a step's emitted tokens up to the first that ends the output."""
        text = ""
        for count, token in enumerate(run, start=1):
            last = self._take(token)
            text += last.text
            if last.reason is not None:
                return Delivered(count, text, last.reason, last.stopped_by)
        return Delivered(len(run), text)

    def _take(self, token: int) -> Delivered:
        self._tokens += 1
        may_stop = self._tokens > self._min_tokens
        if may_stop and (token in self._ends or token in self._stop_token_ids):
            text = self._text_of(token) if self._include else ""
            stopped_by = None if token in self._ends else token
            rest = self._strings.rest()
            return Delivered(1, rest + text, FinishReason.STOP, stopped_by)
        shown = self._strings.feed(self._text_of(token), may_stop=may_stop)
        if shown.stop is not None:
            return Delivered(1, shown.text, FinishReason.STOP, shown.stop)
        if self._constraint is not None:
            self._constraint.advance(token)
            if self._constraint.ended:
                return Delivered(1, shown.text + self._strings.rest(), FinishReason.STOP)
        if self._tokens >= self._max_tokens:
            return Delivered(1, shown.text + self._strings.rest(), FinishReason.LENGTH)
        return Delivered(1, shown.text)

    def _text_of(self, token: int) -> str:
        return "" if self._detokenizer is None else self._detokenizer.step(token)
