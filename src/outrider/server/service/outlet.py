"""Where the news of one request wait for its reader."""

import asyncio
from collections.abc import Callable

from outrider.server.service.news import News


class Outlet:
    """Holds what the reader of a request with so many `answers` has not taken yet.

    News of one answer are added together while they wait, so a reader however slow holds no more
    than its own answers. With `whole` it is woken once, when all of them have ended. Everything
    here happens on the event loop. `on_end` is called when the last answer has ended, read or not.
    """

    def __init__(
        self, answers: int, *, whole: bool = False, on_end: Callable[[], None] = lambda: None
    ) -> None:
        self.running = set(range(answers))
        self._whole = whole
        self._on_end = on_end
        self._waiting: dict[int, News] = {}
        self._something = asyncio.Event()

    @property
    def ended(self) -> bool:
        """Whether nothing more will come; something may still wait."""
        return not self.running

    def add(self, news: News) -> None:
        """Keep `news` until they are taken; those of an answer that has ended come too late."""
        if news.answer not in self.running:
            return
        held = self._waiting.get(news.answer)
        if held is None:
            self._waiting[news.answer] = news
        else:
            held.add(news)
        if news.end is not None:
            self.running.discard(news.answer)
            if self.ended:
                self._on_end()
        if self.ended or not self._whole:
            self._something.set()

    async def take(self) -> list[News]:
        """Wait for news and return all there are; nothing once all is taken."""
        if self.ended and not self._waiting:
            return []
        await self._something.wait()
        self._something.clear()
        taken, self._waiting = self._waiting, {}
        return list(taken.values())
