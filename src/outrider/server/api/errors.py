"""Failures of a request, told in OpenAI's shape."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from outrider.errors import OutriderError

NAMES: Mapping[int, str] = {
    400: "BadRequestError",
    401: "AuthenticationError",
    404: "NotFoundError",
    405: "MethodNotAllowedError",
    408: "RequestTimeoutError",
    413: "RequestTooLargeError",
    415: "UnsupportedMediaTypeError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
    431: "RequestTooLargeError",
    500: "InternalServerError",
    503: "ServiceUnavailableError",
}
"""What each status is called in an error's `type`."""


class ApiError(Exception):
    """A request that ends with `status`; `param` names the field at fault, where one is."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.headers = headers

    @property
    def body(self) -> dict[str, Any]:
        """The error as clients get it."""
        kind = NAMES.get(self.status, "BadRequestError")
        return {
            "error": {
                "message": self.message,
                "type": kind,
                "param": self.param,
                "code": self.status,
            }
        }


def bad_request(message: str, param: str | None = None) -> ApiError:
    """Return the failure of a request that can never be answered."""
    return ApiError(400, message, param=param)


def refused(error: OutriderError, fields: Collection[str]) -> ApiError:
    """Return what `error` is to a client: the first of `fields` that it names is at fault."""
    words = re.findall(r"\w+", error.seen)
    param = next((_FIELD_OF.get(word, word) for word in words if word in fields), None)
    return bad_request(str(error), param)


_FIELD_OF = {"bad_words_token_ids": "bad_words"}
