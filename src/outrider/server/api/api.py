"""What every route needs: the model, the engine's service, and the settings."""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable
from importlib import metadata
from typing import TypeVar

from starlette.requests import Request

from outrider.server.api.errors import ApiError
from outrider.server.api.model import ServedModel
from outrider.server.api.settings import ApiSettings
from outrider.server.service.place import Place
from outrider.server.service.service import Service

_log = logging.getLogger(__name__)
_MOST_NAMES = 1000
"""Of unknown fields that are remembered as told."""

Result = TypeVar("Result")


class Api:
    """What every route needs."""

    def __init__(
        self,
        model: ServedModel,
        service: Service,
        settings: ApiSettings,
    ) -> None:
        self.model = model
        self.service = service
        self.settings = settings
        self.started = int(time.time())
        self.version = metadata.version("outrider")
        self.fingerprint = f"outrider-{self.version}-{_digest(settings)}"
        self._told_unknown: set[str] = set()

    def check_model(self, name: str | None) -> None:
        """Raise ApiError, 404, for a model that is not served; no name is any."""
        if name and name not in self.settings.model_names:
            raise self.no_model(name)

    def no_model(self, name: str) -> ApiError:
        """Return the failure, 404, of a request for a model that is not served."""
        names = ", ".join(self.settings.model_names)
        return ApiError(
            404,
            f"The model `{name[:200]}` does not exist. Valid aliases: {names}.",
            param="model",
        )

    def reserve(self, answers: int) -> Place:
        """Make room for a request; Refusal where there is none, ApiError where there never is."""
        if answers > self.service.capacity:
            raise ApiError(
                400,
                f"{answers} answers in one request; there is room for {self.service.capacity}",
                param="n",
            )
        return self.service.reserve(answers)

    async def read(self, work: Callable[[], Result]) -> Result:
        """Return what `work` gives, done in another thread."""
        return await asyncio.get_running_loop().run_in_executor(self.model.readers, work)

    async def read_aside(self, work: Callable[[], Result]) -> Result:
        """The same for work of any length, which no answer has to wait behind."""
        return await asyncio.get_running_loop().run_in_executor(self.model.counter, work)

    def note_unknown(self, names: Iterable[str]) -> None:
        """Log fields that are ignored because nobody knows them, each name once."""
        for name in names:
            if name not in self._told_unknown and len(self._told_unknown) < _MOST_NAMES:
                self._told_unknown.add(name)
                _log.debug("ignored the unknown field %.100r", name)


def api_of(request: Request) -> Api:
    """Return what the application was made with."""
    api: Api = request.app.state.api
    return api


def _digest(settings: ApiSettings) -> str:
    said = [
        settings.model_names,
        dict(settings.sampling),
        settings.chat_template,
        settings.speculation and dict(settings.speculation),
    ]
    return hashlib.sha256(json.dumps(said, default=str).encode()).hexdigest()[:8]
