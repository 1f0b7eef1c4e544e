"""Asks one server, within a time limit, and never shows the key."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from outrider.records.sources.addresses import without_password
from outrider.records.sources.decoding import NotJson, decoded

LARGEST_REPLY = 64 << 20
"""Bytes; a page or answer is never that long."""
LONGEST_MESSAGE = 120
"""Characters of a server's own words that are quoted."""

_WEB_PAGE = re.compile(rb"\s*(?:<!doctype html|<html)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: `status` is None where nothing did, and `failure` says why."""

    status: int | None
    body: bytes = b""
    failure: str | None = None

    @property
    def ok(self) -> bool:
        """Whether it is what was asked for."""
        return self.status == httpx2.codes.OK

    @property
    def is_web_page(self) -> bool:
        """Whether it is HTML, which no engine sends."""
        return _WEB_PAGE.match(self.body) is not None

    @property
    def value(self) -> Any | None:
        """The JSON in it, None for anything else."""
        try:
            return decoded(self.body)
        except NotJson:
            return None


class Exchange:
    """Sends requests through `http` below the `root` of one server; a key goes along, never shown.

    `timeout_s` is for each request as a whole, `clock` counts seconds.
    """

    def __init__(
        self,
        root: str,
        http: httpx2.Client,
        *,
        api_key: str | None,
        timeout_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._root = root
        self.http = http
        self._key = api_key
        self._timeout_s = timeout_s
        self._clock = clock

    @property
    def has_key(self) -> bool:
        """Whether a key was given."""
        return self._key is not None

    @property
    def shown(self) -> str:
        """The address of the server without a password."""
        return without_password(self._root)

    def get(self, path: str, *, with_key: bool = True) -> Reply:
        """Return the page at the path."""
        return self._send("GET", path, None, with_key=with_key)

    def post(self, path: str, body: Mapping[str, Any]) -> Reply:
        """Return the answer to a request, a stream as the text that it is."""
        return self._send("POST", path, body, with_key=True)

    def told(self, reply: Reply) -> str:
        """Say in a few words how a request failed, the server's message included."""
        if reply.status is None:
            return self._without_key(reply.failure or "no answer")
        if reply.is_web_page:
            return f"status {reply.status}, a web page"
        message = _message(reply.value)
        return f"status {reply.status}" + (f": {self._without_key(message)}" if message else "")

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None, *, with_key: bool
    ) -> Reply:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key and with_key else {}
        limit_s = self._timeout_s
        end_s = self._clock() + limit_s
        pieces: list[bytes] = []
        length = 0
        try:
            with self.http.stream(
                method, self._root + path, json=body, headers=headers, timeout=limit_s
            ) as response:
                for piece in response.iter_bytes():
                    pieces.append(piece)
                    length += len(piece)
                    if length > LARGEST_REPLY:
                        return Reply(None, failure=f"more than {LARGEST_REPLY >> 20} MiB")
                    # The limit of the client is for each piece, and a server may trickle.
                    if self._clock() > end_s:
                        return Reply(None, failure=f"no complete answer within {limit_s:g} s")
                return Reply(response.status_code, b"".join(pieces))
        except httpx2.TimeoutException:
            return Reply(None, failure=f"no answer within {limit_s:g} s")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            return Reply(None, failure=str(error) or type(error).__name__)

    def _without_key(self, text: str) -> str:
        # Some servers repeat a key that they refuse.
        return text.replace(self._key, "***") if self._key else text


def _message(value: Any) -> str | None:
    """Return the words of an error body, whichever of the usual places they are in."""
    for name in ("error", "message", "detail"):
        told = value.get(name) if isinstance(value, dict) else None
        if isinstance(told, dict):
            told = told.get("message")
        if isinstance(told, str) and told:
            line = " ".join(told.split())
            return line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE - 1]}…"
    return None
