"""`/v1/chat/completions`: messages and pieces of messages."""

from dataclasses import dataclass
from typing import Any

from outrider.server.api.answers import Answer, Answers
from outrider.server.api.requests.chat import ChatRequest
from outrider.server.api.responses.closing import closing_chunk
from outrider.server.api.responses.identity import Identity
from outrider.server.api.responses.logprobs import LogprobsWording
from outrider.server.api.responses.metrics import in_stream, of_body, of_choice
from outrider.server.api.responses.usage import running_usage, usage
from outrider.server.api.settings import ResponseMetrics
from outrider.server.service.news import News


@dataclass(frozen=True, slots=True)
class ChatWording:
    """See `Wording`. Bodies have nulls where vLLM has them, and chunks lack what it leaves out."""

    request: ChatRequest
    identity: Identity
    logprobs: LogprobsWording
    metrics: ResponseMetrics
    answers: int

    def opening(self, answer: Answer) -> dict[str, Any]:
        """See `Wording`."""
        choice = {
            "index": answer.index,
            "delta": {"role": "assistant", "content": ""},
            "logprobs": None,
            "finish_reason": None,
        }
        return {
            **self._chunk_with(answer, choice),
            "prompt_token_ids": answer.prompt_ids if self.request.return_token_ids else None,
            "prompt_text": None,
        }

    def chunk(self, answer: Answer, news: News) -> dict[str, Any]:
        """See `Wording`."""
        end = news.end
        choice = {
            "index": answer.index,
            "delta": {"content": news.text},
            "logprobs": self._logprobs(news),
            "finish_reason": None if end is None else end.reason.value,
            **({} if end is None else {"stop_reason": end.stopped_by}),
            "token_ids": news.token_ids if self.request.return_token_ids else None,
        }
        if end is not None:
            own = of_choice(answer, self.metrics, answers=self.answers)
            choice |= in_stream(own.get("metrics"))
        chunk = self._chunk_with(answer, choice)
        if end is not None and not self.request.wants_usage:
            chunk["system_fingerprint"] = self.identity.fingerprint
        return chunk

    def closing(self, answers: Answers) -> dict[str, Any]:
        """See `Wording`."""
        return closing_chunk("chat.completion.chunk", self.identity, answers, self.metrics)

    def body(self, answers: Answers, news: list[News]) -> dict[str, Any]:
        """See `Wording`."""
        first = answers.each[0]
        ids, asked = self.request.return_token_ids, self.request.prompt_logprobs is not None
        return {
            **self.identity.head("chat.completion"),
            "choices": [self._choice(answers.each[each.answer], each) for each in news],
            "service_tier": None,
            "system_fingerprint": self.identity.fingerprint,
            "usage": usage(answers),
            "prompt_logprobs": (
                self.logprobs.prompt(first.prompt_ids, first.prompt_logprobs) if asked else None
            ),
            "prompt_token_ids": first.prompt_ids if ids else None,
            "prompt_text": None,
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "metrics": of_body(answers, self.metrics),
        }

    def _choice(self, answer: Answer, news: News) -> dict[str, Any]:
        assert news.end is not None, "told as a whole"
        return {
            "index": answer.index,
            "message": {
                "role": "assistant",
                "content": news.text,
                "refusal": None,
                "annotations": None,
                "audio": None,
                "function_call": None,
                "reasoning": None,
            },
            "logprobs": self._logprobs(news),
            "finish_reason": news.end.reason.value,
            "stop_reason": news.end.stopped_by,
            "token_ids": news.token_ids if self.request.return_token_ids else None,
            "routed_experts": None,
            **of_choice(answer, self.metrics, answers=self.answers),
        }

    def _chunk_with(self, answer: Answer, choice: dict[str, Any]) -> dict[str, Any]:
        chunk = {**self.identity.head("chat.completion.chunk"), "choices": [choice]}
        options = self.request.stream_options
        if options is not None and options.continuous_usage_stats:
            chunk["usage"] = running_usage(answer)
        return chunk

    def _logprobs(self, news: News) -> dict[str, Any] | None:
        if not self.request.logprobs:
            return None
        return self.logprobs.chat(news.token_ids, news.logprobs)
