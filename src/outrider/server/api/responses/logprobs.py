"""Log-probabilities as chats, completions and prompts tell them."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from outrider.engine.sampling.logprobs import Logprobs
from outrider.server.api.model import ServedModel

LOWEST = -9999.0
"""Stands for minus infinity, which JSON does not have; vLLM's choice."""


class TokenLogprob(NamedTuple):
    """A token, its log-probability and rank, and the likeliest tokens with theirs, in order."""

    token: int
    logprob: float
    rank: int
    top: list[tuple[int, float]]


def rows(token_ids: Sequence[int], logprobs: Sequence[Logprobs]) -> Iterator[TokenLogprob]:
    """Yield one row for each of the tokens that `logprobs` are of, together."""
    tokens = iter(token_ids)
    for block in logprobs:
        for row, chosen in enumerate(block.chosen.tolist()):
            top = zip(block.top_ids[row].tolist(), block.top[row].tolist(), strict=True)
            yield TokenLogprob(
                next(tokens),
                max(chosen, LOWEST),
                int(block.ranks[row]),
                [(token, max(value, LOWEST)) for token, value in top],
            )


class LogprobsWording:
    """Words log-probabilities; tokens by their text, or as `token_id:5` with `as_ids`."""

    def __init__(self, model: ServedModel, *, as_ids: bool) -> None:
        self._model = model
        self._as_ids = as_ids

    def chat(self, token_ids: Sequence[int], logprobs: Sequence[Logprobs]) -> dict[str, Any]:
        """Word those of a message; only the tokens asked for are beside the chosen one."""
        return {
            "content": [
                {
                    **self._entry(row.token, row.logprob),
                    "top_logprobs": [self._entry(token, value) for token, value in row.top],
                }
                for row in rows(token_ids, logprobs)
            ]
        }

    def completion(
        self, found: Sequence[TokenLogprob | int], *, characters: int
    ) -> dict[str, list[Any]]:
        """Word those of a text that begins `characters` in; a bare token has none.

        As in OpenAI's API the chosen token is among the top ones, likely or not.
        """
        told: dict[str, list[Any]] = {
            "text_offset": [], "token_logprobs": [], "tokens": [], "top_logprobs": [],
        }  # fmt: skip
        for row in found:
            token = row if isinstance(row, int) else row.token
            name = self._name(token)
            told["text_offset"].append(characters)
            told["tokens"].append(name)
            characters += len(self._model.token_text(token))
            if isinstance(row, int):
                told["token_logprobs"].append(None)
                told["top_logprobs"].append(None)
                continue
            told["token_logprobs"].append(row.logprob)
            top = {name: row.logprob}
            for other, value in row.top:
                top.setdefault(self._name(other), value)
            told["top_logprobs"].append(top)
        return told

    def prompt(self, prompt: Sequence[int], logprobs: Sequence[Logprobs]) -> list[Any]:
        """Word those of a prompt: null for its first token, then one map for each."""
        told: list[Any] = [None]
        for row in rows(prompt[1:], logprobs):
            entries = {row.token: self._prompt_entry(row.token, row.logprob, row.rank)}
            for rank, (token, value) in enumerate(row.top, start=1):
                entries.setdefault(token, self._prompt_entry(token, value, rank))
            told.append({str(token): entry for token, entry in entries.items()})
        return told

    def _name(self, token: int) -> str:
        return f"token_id:{token}" if self._as_ids else self._model.token_text(token)

    def _entry(self, token: int, logprob: float) -> dict[str, Any]:
        text = self._name(token)
        return {"token": text, "logprob": logprob, "bytes": list(text.encode())}

    def _prompt_entry(self, token: int, logprob: float, rank: int) -> dict[str, Any]:
        return {
            "logprob": logprob,
            "rank": rank,
            "decoded_token": self._model.token_text(token),
        }
