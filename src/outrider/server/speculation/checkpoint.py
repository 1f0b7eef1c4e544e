"""Where a method's draft weights come from."""

from outrider.errors import InvalidSetting
from outrider.server.speculation.config import SpeculativeConfig
from outrider.server.speculation.target_facts import TargetFacts

WITHOUT_MODEL = frozenset({"ngram", "ngram_gpu", "suffix", "extract_hidden_states"})
IN_THE_TARGET = frozenset({"mtp", "dspark"})
"""Methods whose heads a target's own checkpoint may hold."""


def draft_checkpoint(method: str, config: SpeculativeConfig, target: TargetFacts) -> str | None:
    """Return the checkpoint that `method` drafts with, None for one that has no weights.

    Raises InvalidSetting for a model that is missing, or that the method has no use for.
    """
    model = config.model
    if method in WITHOUT_MODEL:
        if model in (None, method) or (method == "ngram" and model == "[ngram]"):
            return None
        raise InvalidSetting(
            f"model {model!r} with method {method}",
            "no model, since the method drafts without one",
            "drop model, or the method to have it found by the model",
        )
    if model is not None:
        return model
    if method in IN_THE_TARGET:
        return target.model
    raise InvalidSetting(f"method {method} without a model", "what it drafts with", 'set "model"')
