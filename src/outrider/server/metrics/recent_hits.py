"""The prefix cache hit rate that the log tells: of the most recent requests."""

from collections import deque

MOST_REQUESTS = 1000
"""As many as vLLM looks back on."""


class RecentHits:
    """Adds up prompt tokens looked for and found in the cache, over the last `MOST_REQUESTS`."""

    def __init__(self) -> None:
        self._requests: deque[tuple[int, int]] = deque()
        self._queried = 0
        self._found = 0

    def add(self, queried: int, found: int) -> None:
        """Take note of one request's tokens."""
        self._requests.append((queried, found))
        self._queried += queried
        self._found += found
        if len(self._requests) > MOST_REQUESTS:
            oldest_queried, oldest_found = self._requests.popleft()
            self._queried -= oldest_queried
            self._found -= oldest_found

    @property
    def rate(self) -> float:
        """Tokens found over tokens looked for, from 0 to 1; 0 before the first request."""
        return self._found / self._queried if self._queried else 0.0
