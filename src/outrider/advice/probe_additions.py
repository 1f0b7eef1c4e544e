"""What would make a server tell more of its speculation than it does."""

from dataclasses import dataclass

from outrider.records.adapters import llama_server, sglang, tensorrt_llm
from outrider.records.probe.commands import vllm_serve
from outrider.records.probe.rungs.answer_figures import object_record
from outrider.records.probe.seen import Answer, Missing, Seen
from outrider.records.probe.versions import has_request_figures
from outrider.records.reading import AcceptanceRecord

DETAILED = "--per-request-spec-decode-metrics detailed"
NGRAM = (
    """--speculative-config '{"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":5}'"""
)
OLDER_VLLM = "vllm-choice"
"""The adapter of what vLLM had before 0.32."""


@dataclass(frozen=True, slots=True)
class Addition:
    """A change to the server or to how it is asked: a line to type, or words; and what it gives."""

    change: str
    gives: str


def additions(seen: Seen) -> tuple[Addition, ...]:
    """Return the changes that fit what was seen, none where it tells all there is."""
    found: list[Addition | None] = [_asking(seen)]
    match seen.engine:
        case "vllm":
            found += [_vllm_answers(seen), _vllm_stats(seen)]
        case "sglang" | "llama.cpp" | "tensorrt-llm":
            found.append(_other_engine(seen))
    return tuple(one for one in found if one is not None)


def _asking(seen: Seen) -> Addition | None:
    answer = seen.answer
    if not isinstance(answer, Missing):
        return None
    if not answer.asked:
        return Addition(f"outrider probe {seen.root}", "rungs 1 to 3, for which requests are sent")
    if seen.wants_key:
        key = f'outrider probe {seen.root} --api-key "$KEY"'
        return Addition(key, "rungs 1 to 3: the server asks for a key")
    return None


def _vllm_answers(seen: Seen) -> Addition | None:
    answer = seen.answer
    record = object_record(answer) if isinstance(answer, Answer) else None
    if record is not None:
        return _longer_lists(seen, record)
    if seen.speculates is False:
        gives = "a drafter (here n-gram lookup) and rungs 1, 2, 4, 5 and 6"
        return Addition(vllm_serve(seen, NGRAM, DETAILED), gives)
    gives = "rungs 1 and 2: figures on each answer"
    older = isinstance(answer, Answer) and answer.adapter == OLDER_VLLM
    if older or has_request_figures(seen.version) is False:
        running = f"vLLM {seen.version}" if seen.version else "vLLM"
        return Addition(f"upgrade {running} to 0.32 or later, and add {DETAILED}", gives)
    if isinstance(answer, Missing):
        return None
    if seen.speculates is None:
        gives += "; vLLM starts with this flag only where a drafter is configured"
    return Addition(vllm_serve(seen, DETAILED), gives)


def _longer_lists(seen: Seen, record: AcceptanceRecord) -> Addition | None:
    """Return what adds the lengths of the steps, None where they are there or that is unknown."""
    if record.per_step_accepted is not None or not record.steps:
        return None
    gives = "rung 1: the length of every step, so that short drafts do not bias survival"
    return Addition(vllm_serve(seen, DETAILED), gives)


def _vllm_stats(seen: Seen) -> Addition | None:
    if seen.log_stats is not False:
        return None
    return Addition("start the server without --disable-log-stats", "rungs 4 to 6")


def _other_engine(seen: Seen) -> Addition | None:
    reading = seen.answer.reading if isinstance(seen.answer, Answer) else None
    if reading in (sglang.NOT_ASKED_FOR, sglang.NOTHING_SAID):
        return Addition("start SGLang with a drafter (--speculative-algorithm …)", "rung 3")
    if reading == llama_server.NOTHING_DRAFTED:
        change = "start llama-server with a draft model (--model-draft draft.gguf)"
        return Addition(change, "rung 3, where it drafts")
    if reading in (tensorrt_llm.NOTHING_SAID, tensorrt_llm.ALL_ZERO):
        change = "use a TensorRT-LLM that has NVIDIA/TensorRT-LLM#19311, with a drafter"
        return Addition(change, "rung 3")
    return None
