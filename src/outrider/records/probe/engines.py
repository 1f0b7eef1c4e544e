"""The engines that a server may be, by the name that records have them under."""

ENGINE_NAMES = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tensorrt-llm": "TensorRT-LLM",
    "llama.cpp": "llama.cpp",
    "mlx": "mlx",
}
"""How they write themselves."""

OF_ADAPTER = {
    "vllm-choice": "vllm",
    "sglang": "sglang",
    "tensorrt-llm": "tensorrt-llm",
    "llama-server": "llama.cpp",
    "mlx": "mlx",
}
"""By the adapter that read an answer; vLLM's also reads answers of no engine in particular."""

OF_METRICS = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llama.cpp",
    "trtllm": "tensorrt-llm",
}
"""By how the names of its metrics begin."""

OF_OWNER = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llama.cpp",
    "tensorrt_llm": "tensorrt-llm",
}
"""By the owner of the models that it lists."""


def engine_name(engine: str) -> str:
    """Return how the engine writes itself."""
    return ENGINE_NAMES.get(engine, engine)
