"""What the API is told when the server starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from outrider.engine.constraints.limits import ConstraintLimits

SpecDecodeMetrics = Literal["none", "summary", "detailed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """The most that one request may ask for; None leaves it to the length of the model.

    `stop_strings` may have `stop_characters` each. `body_bytes` is the size of a request's body,
    `constraints` are of a structured output.
    """

    prompt_tokens: int | None = None
    max_tokens: int | None = None
    n: int = 16
    prompts: int = 64
    logprobs: int = 20
    stop_strings: int = 16
    stop_characters: int = 1024
    body_bytes: int = 4 * 2**20
    constraints: ConstraintLimits = field(default_factory=ConstraintLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseMetrics:
    """What of its own work the server tells in a response, as vLLM's flags of these names say.

    `strict` limits it to what vLLM tells, and to when it does. `num_spec_tokens` is K.
    """

    spec_decode: SpecDecodeMetrics = "none"
    timing: bool = False
    strict: bool = False
    num_spec_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """`model_names` are what requests may call the model, the first is what answers call it.

    `sampling` holds what the model's makers recommend where a request does not say.
    `chat_template` takes the place of the model's own. `speculation` is told by `/version`.
    Every `log_interval_s` the log says what happened, None is never. A
    reader of a stream who takes nothing for `stalled_s` is given up.
    """

    model_names: tuple[str, ...]
    limits: RequestLimits = RequestLimits()
    metrics: ResponseMetrics = ResponseMetrics()
    sampling: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    chat_template: str | None = None
    speculation: Mapping[str, Any] | None = None
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    retry_after_s: int = 1
    log_interval_s: float | None = None
    stalled_s: float = 60.0
