"""What engines answer, export and log, with the counts of a case in it."""

from collections.abc import Mapping, Sequence
from typing import Any


def vllm(histogram: Sequence[int], tokens: int, text: str = "...", **counted: Any) -> Any:
    """A response body of vLLM; drafts are full unless the fields say otherwise."""
    k, steps = len(histogram) - 1, sum(histogram)
    accepted = sum(j * n for j, n in enumerate(histogram))
    drafted = counted.get("num_draft_tokens", k * steps)
    return {
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
                "stop_reason": None,
            }
        ],
        "usage": {"prompt_tokens": 20, "completion_tokens": tokens, "total_tokens": 20 + tokens},
        "metrics": {
            "speculative_decoding": {
                "mean_acceptance_length": 1 + accepted / steps,
                "draft_acceptance_rate": accepted / drafted,
                "acceptance_histogram": list(histogram),
                "num_spec_steps": steps,
                "num_accepted_draft_tokens": accepted,
                "num_draft_tokens": drafted,
                "num_spec_tokens": k,
                **counted,
            }
        },
    }


def sglang(histogram: Sequence[int]) -> Any:
    """An answer of SGLang with full drafts."""
    steps, accepted = sum(histogram), sum(j * n for j, n in enumerate(histogram))
    drafted = (len(histogram) - 1) * steps
    return {
        "id": f"sg-{steps}-{accepted}",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "..."},
                "finish_reason": "stop",
                "matched_stop": 2,
            }
        ],
        "usage": {
            "prompt_tokens": 12,
            "completion_tokens": steps + accepted,
            "total_tokens": 12 + steps + accepted,
        },
        "sglext": {
            "spec_tokens_details": {
                "spec_accept_rate": accepted / drafted,
                "spec_accept_length": (steps + accepted) / steps,
                "spec_num_correct_drafts": accepted,
                "spec_num_proposed_drafts": drafted,
                "spec_verify_ct": steps,
                "spec_correct_drafts_histogram": list(histogram),
            }
        },
    }


def tensorrt_llm(**counted: Any) -> Any:
    return {
        "id": "trt",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "..."},
                "finish_reason": "stop",
                **counted,
            }
        ],
        "usage": {"prompt_tokens": 12, "completion_tokens": 50, "total_tokens": 62},
    }


def llama_server(predicted: int, predicted_ms: float, **drafts: int) -> Any:
    return {
        "content": "...",
        "model": "m.gguf",
        "stop": True,
        "tokens_predicted": predicted,
        "timings": {
            "prompt_n": 21,
            "predicted_n": predicted,
            "predicted_ms": predicted_ms,
            **drafts,
        },
    }


def scrape(counts: Mapping[str, Sequence[int]], created: float = 1756736798.7) -> str:
    """A /metrics page: the counts of each engine by counter."""
    lines = []
    for name, by_engine in counts.items():
        lines.append(f"# TYPE vllm:spec_decode_num_{name}_total counter")
        for engine, count in enumerate(by_engine):
            labels = f'{{engine="{engine}",model_name="m"}}'
            lines.append(f"vllm:spec_decode_num_{name}_total{labels} {count}.0")
            lines.append(f"vllm:spec_decode_num_{name}_created{labels} {created}")
    return "\n".join(lines) + "\n"


def positions(counts: Sequence[int]) -> str:
    """The counters of accepted tokens by position of one engine."""
    return "".join(
        "vllm:spec_decode_num_accepted_tokens_per_pos_total"
        f'{{engine="0",model_name="m",position="{place}"}} {count}.0\n'
        for place, count in enumerate(counts)
    )


def bench_result(**figures: Any) -> Any:
    """A result file of `vllm bench serve`."""
    return {
        "date": "20260101-000000",
        "model_id": "m",
        "completed": 80,
        "total_input_tokens": 4000,
        "total_output_tokens": 16990,
        "request_throughput": 2.0,
        "output_throughput": 414.75,
        "max_output_tokens_per_s": 600.0,
        "spec_decode_acceptance_length": 1 + 12208 / 4816,
        "spec_decode_acceptance_rate": 100 * 12208 / 33712,
        "spec_decode_num_drafts": 4816,
        "spec_decode_draft_tokens": 33712,
        "spec_decode_accepted_tokens": 12208,
        **figures,
    }


def log_line(mean: str, accepted: int, drafted: int, rates: str) -> str:
    return (
        "(APIServer pid=7) INFO 11-30 21:50:29 [metrics.py:120] SpecDecoding metrics:"
        f" Mean acceptance length: {mean}, Accepted throughput: 10.21 tokens/s,"
        f" Drafted throughput: 25.49 tokens/s, Accepted: {accepted} tokens,"
        f" Drafted: {drafted} tokens, Per-position acceptance rate: {rates},"
        f" Avg Draft acceptance rate: {100 * accepted / drafted:.1f}%\n"
    )
