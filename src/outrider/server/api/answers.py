"""The answers to one request while they come."""

from dataclasses import dataclass, field

from outrider.engine.sampling.logprobs import Logprobs
from outrider.engine.sequence import Sequence
from outrider.server.service.news import End, News


@dataclass(slots=True)
class Answer:
    """One answer: number `index` of a request, to its prompt number `prompt`.

    `tokens` and `characters` are how much of it has been told.
    """

    index: int
    prompt: int
    prompt_ids: list[int]
    sequence: Sequence
    tokens: int = 0
    characters: int = 0
    end: End | None = None

    @property
    def prompt_logprobs(self) -> list[Logprobs]:
        """What was asked about the prompt's tokens; complete once the answer has begun."""
        return self.sequence.prompt_logprobs

    def told(self, news: News) -> None:
        """Take note that `news` have been told."""
        self.tokens += len(news.token_ids)
        self.characters += len(news.text)
        self.end = news.end


@dataclass(frozen=True, slots=True)
class Answers:
    """All answers to one request, `n` to each of its prompts in turn."""

    prompts: list[list[int]]
    each: list[Answer] = field(default_factory=list)

    @property
    def prompt_tokens(self) -> int:
        """Tokens of all prompts, each counted once."""
        return sum(map(len, self.prompts))

    @property
    def tokens(self) -> int:
        """Output tokens of all answers."""
        return sum(answer.tokens for answer in self.each)

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens that the cache held already when the first answer to each prompt began."""
        first = {answer.prompt: answer for answer in reversed(self.each)}
        return sum(answer.sequence.cached_tokens or 0 for answer in first.values())
