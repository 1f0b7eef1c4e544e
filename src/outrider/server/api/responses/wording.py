"""What every form of answer offers, whoever writes it."""

from typing import Any, Protocol

from outrider.server.api.answers import Answer, Answers
from outrider.server.service.news import News


class Wording(Protocol):
    """Words the answers to one request, whole or in chunks."""

    def opening(self, answer: Answer) -> dict[str, Any] | None:
        """Return the chunk that begins an answer, where there is one."""

    def chunk(self, answer: Answer, news: News) -> dict[str, Any]:
        """Return the chunk that tells `news`, which count as told already."""

    def closing(self, answers: Answers) -> dict[str, Any]:
        """Return the chunk that tells what all of it took."""

    def body(self, answers: Answers, news: list[News]) -> dict[str, Any]:
        """Return the whole response from the one piece of news of each answer."""
