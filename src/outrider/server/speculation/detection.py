"""Which method a user means, as far as names can tell: vLLM's order, before anything is loaded."""

from dataclasses import dataclass

from outrider.errors import InvalidSetting
from outrider.server.speculation.config import SpeculativeConfig
from outrider.server.speculation.method_names import DEPRECATED_FOR_MTP

SIGNS = (("eagle-", "eagle"), ("eagle3", "eagle3"), ("dflash", "dflash"), ("dspark", "dspark"))
"""Parts of a draft checkpoint's path in lower case, and the method that each stands for.

The first that is found decides, so `EAGLE-LLaMA3` is EAGLE-1.
"""


@dataclass(frozen=True, slots=True)
class Detection:
    """A method and, where it is not just what the user wrote, why this one."""

    method: str
    reason: str | None = None

    def __str__(self) -> str:
        return self.method if self.reason is None else f"{self.method} ({self.reason})"


def detect(config: SpeculativeConfig) -> Detection:
    """Return the method of `config`; InvalidSetting where it has neither method nor model.

    A draft model whose path says nothing stays `draft_model`: whether its own config makes it
    another method shows only once it is read. As in vLLM, the path outranks an explicit
    `draft_model` or `mtp`.
    """
    written = None if config.method is None else _written(config.method)
    found = written if config.model is None else _with_model(written, config.model)
    if found is None:
        raise _nothing_to_draft_with(config)
    return found


def _written(method: str) -> Detection:
    if method in DEPRECATED_FOR_MTP:
        return Detection("mtp", f"{method} is a deprecated spelling of it")
    return Detection(method)


def _with_model(written: Detection | None, model: str) -> Detection:
    if written is None:
        if _is_dotted_path(model):
            return Detection("custom_class", f"model {model!r} looks like a dotted Python path")
        if model in ("ngram", "[ngram]"):
            return Detection("ngram", f"model is {model!r}")
    elif written.method not in ("draft_model", "mtp"):
        return written
    for sign, meant in SIGNS:
        if sign in model.lower():
            return Detection(meant, f"model {model!r} has {sign!r} in its name")
    return written or Detection(
        "draft_model", f"nothing in the name of model {model!r} says otherwise"
    )


def _is_dotted_path(model: str) -> bool:
    parts = model.split(".")
    return len(parts) > 1 and all(part.isidentifier() for part in parts)


def _nothing_to_draft_with(config: SpeculativeConfig) -> InvalidSetting:
    return InvalidSetting(
        "a speculative config with neither method nor model"
        if config.num_speculative_tokens is None
        else "num_speculative_tokens was provided but without speculative model",
        "a method or a model to draft with",
        'add for instance "method": "ngram"',
    )
