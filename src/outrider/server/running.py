"""Listens, serves, and ends in good order."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from outrider.errors import InvalidSetting
from outrider.server.connection import Connection
from outrider.server.service.service import Service

FAREWELL_S = 5
"""For the last answers to be sent once they are complete."""
_BACKLOG = 2048
_TICKS = 10
"""Of uvicorn's main loop, about a second, between two looks at who stalls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenSettings:
    """Where to listen, with what certificate, and how long to let requests finish at the end.

    A client that sends no whole request for `patience_s`, or takes nothing, is given up.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    ssl_certfile: Path | None = None
    ssl_keyfile: Path | None = None
    ssl_keyfile_password: str | None = None
    log_level: str = "info"
    access_log: bool = True
    drain_timeout_s: float = 30.0
    patience_s: float = 60.0

    @property
    def scheme(self) -> str:
        """`https` with a certificate, else `http`."""
        return "http" if self.ssl_certfile is None else "https"


def check_certificate(settings: ListenSettings) -> None:
    """Raise InvalidSetting for a certificate or key that cannot be used."""
    certificate, key = settings.ssl_certfile, settings.ssl_keyfile
    if certificate is None:
        if key is not None:
            raise InvalidSetting(
                "--ssl-keyfile without --ssl-certfile", "both", "give the certificate too"
            )
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            certificate, key, password=lambda: settings.ssl_keyfile_password or ""
        )
    except (OSError, ValueError) as error:  # of which ssl.SSLError is one
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise InvalidSetting(
            f"--ssl-certfile {certificate}"
            + (f" with --ssl-keyfile {key}" if key is not None else "")
            + f" cannot be used ({reason})",
            "a PEM certificate and its private key",
            "check both files",
        ) from error


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that holds the address; InvalidSetting where it cannot be had.

    Before the weights are loaded, since a port in use should show at once. Until `listen` clients
    are refused, by which they know that the server is not ready.
    """
    bound = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except (OSError, OverflowError, ValueError) as error:
        if bound is not None:
            bound.close()
        raise _no_address(host, port, error) from error
    return bound


def listen(bound: socket.socket) -> None:
    """Let clients in; InvalidSetting where another server was faster."""
    try:
        bound.listen(_BACKLOG)
    except OSError as error:
        host, port = bound.getsockname()[:2]
        raise _no_address(host, port, error) from error


def _no_address(host: str, port: int, error: Exception) -> InvalidSetting:
    reason = getattr(error, "strerror", None) or error
    return InvalidSetting(
        f"--host {host} --port {port} cannot be listened on ({reason})",
        "a free port at an address of this machine",
        "choose another --port, or end what listens there",
    )


class Server(uvicorn.Server):
    """Ends at a signal once `service` has drained, at a second one as soon as its readers know.

    While it drains it still listens, so that new requests hear why they are not taken. A third
    signal ends it whether they know or not.
    """

    def __init__(self, app: FastAPI, service: Service, settings: ListenSettings) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level=settings.log_level,
                access_log=settings.access_log,
                http=Connection,
                ssl_certfile=settings.ssl_certfile,
                ssl_keyfile=settings.ssl_keyfile,
                ssl_keyfile_password=settings.ssl_keyfile_password,
                timeout_graceful_shutdown=FAREWELL_S,
                server_header=False,
                ws="none",
                lifespan="on",
            )
        )
        self._service = service
        self._drain_timeout_s = settings.drain_timeout_s
        self._patience_s = settings.patience_s
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._draining: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, and remember where."""
        self._event_loop = asyncio.get_running_loop()
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Give up clients that stall, and say whether to end."""
        if counter % _TICKS == 0:
            for connection in tuple(self.server_state.connections):
                assert isinstance(connection, Connection), "chosen above"
                connection.end_if_stalled(self._patience_s)
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal, and hurry at others."""
        del sig, frame
        if self._event_loop is None:
            raise KeyboardInterrupt
        self._event_loop.call_soon_threadsafe(self.end)

    def end(self) -> None:
        """Drain, then end; the second time tell who still waits, and the third go. On the loop."""
        if self._draining is None:
            self._draining = asyncio.ensure_future(self._drain())
        elif not self._draining.done():
            self._service.give_up()
        else:
            self.should_exit = self.force_exit = True

    async def _drain(self) -> None:
        await self._service.drain(self._drain_timeout_s)
        self.should_exit = True


def address_of(bound: socket.socket, settings: ListenSettings) -> str:
    """Return the URL that clients use."""
    host, port = bound.getsockname()[:2]
    return f"{settings.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def serve(
    app: FastAPI,
    service: Service,
    settings: ListenSettings,
    bound: socket.socket,
    ready: Callable[[], None],
) -> None:
    """Serve on `bound` until a signal ends it; `ready` is called as it begins."""
    listen(bound)
    ready()
    Server(app, service, settings).run(sockets=[bound])
