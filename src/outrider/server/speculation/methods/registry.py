"""The methods by name."""

from collections.abc import Mapping
from types import MappingProxyType

from outrider.errors import InvalidSetting
from outrider.server.speculation.detection import Detection
from outrider.server.speculation.methods.base import DraftingMethod
from outrider.server.speculation.methods.ngram import NgramMethod
from outrider.server.speculation.methods.suffix import SuffixMethod

METHODS: Mapping[str, type[DraftingMethod]] = MappingProxyType(
    {method.name: method for method in (NgramMethod, SuffixMethod)}
)

_ADVICE = {
    "ngram_gpu": 'write "method": "ngram", which drafts by the same rule',
    "custom_class": "no class is loaded from a path here: use a method that it runs",
    "extract_hidden_states": "it makes training data and no output faster: run it in vLLM",
}


def method_for(detection: Detection) -> type[DraftingMethod]:
    """Return the method that was asked for; InvalidSetting names those that this engine runs."""
    found = METHODS.get(detection.method)
    if found is None:
        raise InvalidSetting(
            f"method {detection}, which this engine does not run",
            f"a method that it runs ({', '.join(METHODS)})",
            _ADVICE.get(detection.method, "use one of these here, or serve this one with vLLM"),
        )
    return found
