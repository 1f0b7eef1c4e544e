"""The families that the engine runs."""

from outrider.engine.models.families.family import Family
from outrider.engine.models.families.gemma3 import GEMMA3
from outrider.engine.models.families.llama import LLAMA
from outrider.engine.models.families.qwen import QWEN2, QWEN3
from outrider.errors import UnsupportedModel

FAMILIES = (LLAMA, QWEN2, QWEN3, GEMMA3)

_OF_MODEL_TYPE = {each: family for family in FAMILIES for each in family.model_types}


def family_of(model_type: object) -> Family:
    """The family that `config.json` calls `model_type`, or a GGUF file its architecture.

    Raises UnsupportedModel for another, with those that run.
    """
    family = _OF_MODEL_TYPE.get(model_type) if isinstance(model_type, str) else None
    if family is None:
        raise UnsupportedModel(
            f"the model family is {model_type!r}",
            f"one of {', '.join(_OF_MODEL_TYPE)}",
            "choose such a model",
        )
    return family
