"""The methods that vLLM 0.33 knows by name, and what to write in place of those that it does not.

Which of them this engine runs is for the registry in `methods/` to say.
"""

from collections.abc import Mapping
from types import MappingProxyType

from outrider.errors import InvalidSetting
from outrider.server.speculation.explaining import shown
from outrider.server.speculation.nearest import nearest

ACCEPTED = (
    "ngram",
    "ngram_gpu",
    "draft_model",
    "suffix",
    "custom_class",
    "eagle",
    "eagle3",
    "extract_hidden_states",
    "dflash",
    "dspark",
    "mtp",
)

DEPRECATED_FOR_MTP = frozenset(
    {
        "deepseek_mtp",
        "dots3_note_mtp",
        "mimo_mtp",
        "mimo_v2_mtp",
        "glm4_moe_mtp",
        "glm4_moe_lite_mtp",
        "glm_ocr_mtp",
        "glm5_next_mtp",
        "ernie_mtp",
        "nemotron_h_mtp",
        "exaone_moe_mtp",
        "exaone4_5_mtp",
        "qwen3_next_mtp",
        "qwen3_5_mtp",
        "qwen4_exp_mtp",
        "longcat_flash_mtp",
        "bailing_hybrid_mtp",
        "bailing_hybrid_v3_mtp",
        "minimax_m3_mtp",
        "kimi_k3_mtp",
        "pangu_ultra_moe_mtp",
        "step3p5_mtp",
        "step5_mtp",
        "hy_v3_mtp",
        "hy_v4_mtp",
        "gemma4_mtp",
        "inkling_mtp",
    }
)
"""Spellings that mean `mtp`."""

_REMOVED = (
    "it was removed in vLLM 0.33.0, 0.32.0 is the last with it: use an eagle3 head in its place, "
    "or ngram, which needs no checkpoint"
)

_BY_ARCHITECTURE = (
    'write "method": "dflash"; the `architectures` entry of the checkpoint\'s config tells the rest'
)

ADVICE: Mapping[str, str] = MappingProxyType(
    {
        "medusa": _REMOVED,
        "mlp_speculator": _REMOVED,
        "peagle": 'write "method": "eagle3", "parallel_drafting": true',
        "pard": 'write "method": "draft_model", "parallel_drafting": true',
        "tli": 'write "method": "draft_model", "use_heterogeneous_vocab": true',
        "xpress": _BY_ARCHITECTURE,
        "dflash2": _BY_ARCHITECTURE,
        "lilicorr": _BY_ARCHITECTURE,
        "fly": 'it is a verification rule: write "rejection_sample_method": "fly" beside a method',
        "[ngram]": 'this is a value of "model": write "method": "ngram"',
        "none": "leave the speculative config out for plain decoding",
    }
)
"""What a user wants who writes a name that is no method of vLLM 0.33."""


def known_method(method: str) -> str:
    """Return `method`, an accepted name or a deprecated spelling; InvalidSetting says what to do.

    >>> known_method("qwen3_next_mtp")
    'qwen3_next_mtp'
    """
    if method in ACCEPTED or method in DEPRECATED_FOR_MTP:
        return method
    meant = _meant(method)
    if meant is None:
        expected, advice = f"one of {', '.join(ACCEPTED)}", "choose one of these"
    else:
        expected = "a method of vLLM 0.33"
        advice = ADVICE.get(meant) or f'write "method": "{meant}"'
    raise InvalidSetting(f"method {shown(method)}", expected, advice)


def _meant(method: str) -> str | None:
    folded = method.lower().replace("-", "").replace(" ", "")  # P-EAGLE as peagle
    for name in (method, folded):
        if name in ADVICE:
            return name
    return nearest(method, _NAMES) or nearest(folded, _NAMES)


_NAMES = (*ACCEPTED, *sorted(DEPRECATED_FOR_MTP), *ADVICE)
