"""The adapters by name, in the order in which they are asked."""

from outrider.errors import InvalidSetting
from outrider.records.adapters.aiperf import AiperfAdapter
from outrider.records.adapters.base import Adapter
from outrider.records.adapters.evidence import EvidenceAdapter
from outrider.records.adapters.guidellm import GuidellmAdapter
from outrider.records.adapters.llama_log import LlamaLogAdapter
from outrider.records.adapters.llama_server import LlamaServerAdapter
from outrider.records.adapters.mlx import MlxAdapter
from outrider.records.adapters.partial import PartialReport
from outrider.records.adapters.plain import PlainAdapter
from outrider.records.adapters.prometheus import PrometheusAdapter
from outrider.records.adapters.sglang import SglangAdapter
from outrider.records.adapters.tensorrt_llm import TensorrtLlmAdapter
from outrider.records.adapters.vllm import VllmAdapter
from outrider.records.adapters.vllm_bench import VllmBenchAdapter
from outrider.records.adapters.vllm_choice import VllmChoiceAdapter
from outrider.records.adapters.vllm_log import VllmLogAdapter

ADAPTERS: tuple[Adapter, ...] = (
    PartialReport(),
    EvidenceAdapter(),
    PrometheusAdapter(),
    VllmLogAdapter(),
    LlamaLogAdapter(),
    VllmBenchAdapter(),
    AiperfAdapter(),
    GuidellmAdapter(),
    VllmChoiceAdapter(),
    SglangAdapter(),
    TensorrtLlmAdapter(),
    MlxAdapter(),
    LlamaServerAdapter(),
    VllmAdapter(),
    PlainAdapter(),
)
"""The most specific first; vLLM's after all others that read OpenAI bodies."""


def adapter(name: str) -> Adapter:
    """Return the adapter that `--from` names; raises `InvalidSetting` for a name that is none."""
    for known in ADAPTERS:
        if known.name == name:
            return known
    names = ", ".join(known.name for known in ADAPTERS)
    raise InvalidSetting(f"--from {name}", "a known format", f"use one of {names}")
