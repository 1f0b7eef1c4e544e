"""`/v1/completions`: texts and pieces of texts."""

from dataclasses import dataclass
from typing import Any

from outrider.server.api.answers import Answer, Answers
from outrider.server.api.model import ServedModel
from outrider.server.api.requests.completion import CompletionRequest
from outrider.server.api.responses.closing import closing_chunk
from outrider.server.api.responses.identity import Identity
from outrider.server.api.responses.logprobs import LogprobsWording, TokenLogprob, rows
from outrider.server.api.responses.metrics import in_stream, of_body, of_choice
from outrider.server.api.responses.usage import running_usage, usage
from outrider.server.api.settings import ResponseMetrics
from outrider.server.service.news import News


@dataclass(frozen=True, slots=True)
class CompletionWording:
    """See `Wording`. With `echo` an answer begins with its prompt."""

    request: CompletionRequest
    identity: Identity
    logprobs: LogprobsWording
    metrics: ResponseMetrics
    answers: int
    model: ServedModel
    only_echo: bool = False
    """Whether nothing but the prompt was asked for: the one token that the engine adds is kept."""

    def opening(self, answer: Answer) -> None:
        """See `Wording`; there is none."""

    def chunk(self, answer: Answer, news: News) -> dict[str, Any]:
        """See `Wording`."""
        first = answer.tokens == len(news.token_ids)
        choice = self._choice(answer, news, echo=first and bool(self.request.echo))
        choice["prompt_token_ids"] = self._prompt_ids(answer) if first else None
        choice["token_ids"] = self._ids(news)
        chunk = {**self.identity.head("text_completion"), "choices": [choice]}
        if news.end is not None:
            own = of_choice(answer, self.metrics, answers=self.answers)
            choice |= in_stream(own.get("metrics"))
        options = self.request.stream_options
        if options is not None and options.continuous_usage_stats:
            chunk["usage"] = running_usage(answer)
        if news.end is not None and not self.request.wants_usage:
            chunk["system_fingerprint"] = self.identity.fingerprint
        return chunk

    def closing(self, answers: Answers) -> dict[str, Any]:
        """See `Wording`."""
        return closing_chunk("text_completion", self.identity, answers, self.metrics)

    def body(self, answers: Answers, news: list[News]) -> dict[str, Any]:
        """See `Wording`."""
        return {
            **self.identity.head("text_completion"),
            "choices": [self._whole(answers.each[each.answer], each) for each in news],
            "service_tier": None,
            "system_fingerprint": self.identity.fingerprint,
            "usage": usage(answers),
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "metrics": of_body(answers, self.metrics),
        }

    def _whole(self, answer: Answer, news: News) -> dict[str, Any]:
        choice = self._choice(answer, news, echo=bool(self.request.echo))
        choice["token_ids"] = self._ids(news)
        choice["prompt_logprobs"] = (
            self.logprobs.prompt(answer.prompt_ids, answer.prompt_logprobs)
            if self.request.prompt_logprobs is not None
            else None
        )
        choice["prompt_token_ids"] = self._prompt_ids(answer)
        choice["routed_experts"] = None
        return choice | of_choice(answer, self.metrics, answers=self.answers)

    def _choice(self, answer: Answer, news: News, *, echo: bool) -> dict[str, Any]:
        text = "" if self.only_echo else news.text
        if echo:
            text = self._prompt_text(answer) + text
        return {
            "index": answer.index,
            "text": text,
            "logprobs": self._logprobs(answer, news, echo=echo),
            "finish_reason": None if news.end is None else news.end.reason.value,
            "stop_reason": None if news.end is None else news.end.stopped_by,
        }

    def _logprobs(self, answer: Answer, news: News, *, echo: bool) -> dict[str, Any] | None:
        if self.request.logprobs is None:
            return None
        found: list[TokenLogprob | int] = []
        before = answer.characters - len(news.text)
        if echo:
            found += [answer.prompt_ids[0], *rows(answer.prompt_ids[1:], answer.prompt_logprobs)]
        elif self.request.echo:
            before += len(self._prompt_text(answer))
        if not self.only_echo:
            found += rows(news.token_ids, news.logprobs)
        return self.logprobs.completion(found, characters=before)

    def _prompt_text(self, answer: Answer) -> str:
        return self.model.tokenizer.decode(
            answer.prompt_ids, skip_special_tokens=self.request.skip_special_tokens is not False
        )

    def _prompt_ids(self, answer: Answer) -> list[int] | None:
        return answer.prompt_ids if self.request.return_token_ids else None

    def _ids(self, news: News) -> list[int] | None:
        if not self.request.return_token_ids:
            return None
        return [] if self.only_echo else news.token_ids
