from threading import Event, Thread

import pytest
from tests.engine.loops import request
from tests.server.metrics.serving import Served, decoded, metrics_of

from outrider.engine.sampling import SamplingParameters
from outrider.engine.scheduling.limits import Limits
from outrider.engine.update import Update
from outrider.records.request import FinishReason
from outrider.server.metrics.engine_load import EngineLoad
from outrider.server.metrics.serving_metrics import ServingMetrics

SPEC = "vllm:spec_decode_num_"


def histogram(served: Served, name: str) -> tuple[float | None, float | None]:
    """Count and sum."""
    return served.value(f"{name}_count"), served.value(f"{name}_sum")


def test_a_requests_life_is_told_in_counts_and_times() -> None:
    """Prefill from 5 to 7 gives one token; decode steps to 10 and 13 give four each."""
    served = Served(k=3)
    served.clock.now_s = 4.0
    sequence = request([0] * 10, 9)
    served.add(sequence, arrived=1.0)
    served.clock.now_s = 5.0
    ended = served.finish()["r"]
    assert served.value("vllm:prompt_tokens_total") == 10
    assert served.value("vllm:generation_tokens_total") == 9
    assert served.value("vllm:request_success_total", finished_reason="length") == 1
    assert served.value("outrider:decode_steps_total") == 2
    assert served.value("outrider:decode_tokens_total") == 8
    # The drafter is asked during the prefill too, for nothing.
    first, last = 8.0, 14.0
    assert histogram(served, "vllm:time_to_first_token_seconds") == (1, first - 1.0)
    assert histogram(served, "vllm:inter_token_latency_seconds") == (2, last - first)
    assert histogram(served, "vllm:e2e_request_latency_seconds") == (1, last - 1.0)
    assert histogram(served, "vllm:request_queue_time_seconds") == (1, 5.0 - 4.0)
    assert histogram(served, "vllm:request_prefill_time_seconds") == (1, first - 5.0)
    assert histogram(served, "vllm:request_decode_time_seconds") == (1, last - first)
    assert histogram(served, "vllm:request_inference_time_seconds") == (1, last - 5.0)
    assert histogram(served, "vllm:request_time_per_output_token_seconds") == (1, 6.0 / 8)
    assert histogram(served, "vllm:request_prompt_tokens") == (1, 10)
    assert histogram(served, "vllm:request_generation_tokens") == (1, 9)
    assert histogram(served, "vllm:iteration_tokens_total") == (3, 19)
    assert ended.completion_tokens == 9
    assert (ended.times.queued, ended.times.scheduled, ended.times.first_token) == (4.0, 5.0, first)
    assert ended.times.last_token == last
    assert [step.accepted for step in ended.recorded.steps] == [3, 3]
    assert ended.recorded.prefill_s == 3.0


def test_the_times_of_a_step_are_observed_once_however_many_requests_it_has() -> None:
    served = Served(k=3)
    for name in "abc":
        served.add(request([0], 5, name))
    served.finish()
    assert histogram(served, "outrider:draft_time_seconds") == (1, 1.0)
    assert histogram(served, "outrider:verify_time_seconds") == (1, 2.0)
    assert histogram(served, "outrider:step_time_seconds") == (1, 3.0)


def test_accepted_tokens_past_a_stop_count_and_the_delivered_ones_are_told_beside() -> None:
    served = Served(k=4)
    served.add(request([0], 20, stop_ids=[3]))
    served.finish()
    assert served.value(f"{SPEC}accepted_tokens_total") == 4
    assert served.value("outrider:spec_decode_num_accepted_emitted_tokens_total") == 2
    assert served.value("vllm:request_success_total", finished_reason="stop") == 1


def test_only_steps_with_a_draft_are_verification_steps() -> None:
    served = Served(k=3, script=lambda sequence: () if len(sequence) % 2 else (1, 1))
    served.add(request([0], 6))
    served.finish()
    assert served.value("outrider:decode_steps_total") == 5
    assert served.value(f"{SPEC}drafts_total") == 2
    assert served.value(f"{SPEC}draft_tokens_total") == 4


def test_every_position_is_at_zero_before_the_first_step() -> None:
    served = Served(k=2)
    for position, value in (("0", 0.0), ("1", 0.0), ("2", None)):
        assert served.value(f"{SPEC}accepted_tokens_per_pos_total", position=position) == value
        name = "outrider:spec_decode_num_draft_tokens_per_pos_total"
        assert served.value(name, position=position) == value


def test_nothing_is_told_of_speculation_that_is_off() -> None:
    page = metrics_of(k=0).render()[0].decode()
    assert "spec_decode" not in page
    assert "draft_time" not in page
    assert "outrider:verify_time_seconds" in page


def test_a_request_that_was_never_added_is_in_no_number() -> None:
    served = Served(k=3)
    before = served.metrics.snapshot()
    warm_up = request([0] * 10, 9, "warm-up")
    served.engine.add(warm_up)
    assert served.finish() == {}
    assert served.metrics.snapshot() == before
    assert histogram(served, "outrider:step_time_seconds") == (0, 0)
    assert histogram(served, "vllm:iteration_tokens_total") == (0, 0)


def test_a_cancelled_request_is_an_abort_and_is_forgotten() -> None:
    served = Served(k=3)
    served.add(request([0], 50))
    served.step()
    served.step()
    served.engine.cancel("r")
    ended = served.metrics.cancelled("r")
    assert ended is not None
    assert (ended.completion_tokens, len(ended.recorded.steps)) == (5, 1)
    assert served.metrics.cancelled("r") is None
    assert served.value("vllm:request_success_total", finished_reason="abort") == 1
    assert histogram(served, "vllm:e2e_request_latency_seconds") == (0, 0)


def test_a_request_that_fails_in_a_step_or_beside_one_is_an_error() -> None:
    served = Served(k=3)
    one, two = request([0], 50, "a"), request([0], 50, "b")
    served.add(one)
    served.add(two)
    update = Update(one, finish_reason=FinishReason.ERROR, failure="a draft of no tokens")
    assert set(served.metrics.stepped([update])) == {"a"}
    assert served.metrics.failed("b") is not None
    assert served.metrics.failed("b") is None
    assert served.value("vllm:request_success_total", finished_reason="error") == 2


def test_prefix_cache_hits_are_tokens_and_are_no_computed_ones() -> None:
    served = Served(k=3, prefix_caching=True)
    for name in "ab":
        served.add(request([0] * 100, 2, name))
        served.finish()
    assert served.value("vllm:prefix_cache_queries_total") == 200
    assert served.value("vllm:prefix_cache_hits_total") == 64
    assert served.value("vllm:prompt_tokens_total") == 200
    assert served.value("vllm:prompt_tokens_cached_total") == 64
    assert served.value("vllm:iteration_tokens_total_sum") == 200 - 64 + 4
    assert served.metrics.snapshot().prefix_hit_rate == 64 / 200


@pytest.mark.parametrize("caching", [True, False])
def test_a_request_that_does_not_look_into_the_cache_is_no_query(caching: bool) -> None:
    served = Served(prefix_caching=caching)
    asks = SamplingParameters(prompt_logprobs=1 if caching else None)
    served.add(request([0] * 100, 2, parameters=asks))
    served.finish()
    assert served.value("vllm:prefix_cache_queries_total") == 0
    assert served.value("vllm:prompt_tokens_total") == 100


def test_a_prompt_computed_in_pieces_is_scheduled_once_and_counted_when_it_is_done() -> None:
    served = Served(limits=Limits(max_num_seqs=1, max_num_batched_tokens=40))
    served.add(request([0] * 100, 1))
    served.step()
    served.step()
    assert served.value("vllm:prompt_tokens_total") == 0
    ended = served.finish()["r"]
    assert served.value("vllm:prompt_tokens_total") == 100
    assert (ended.times.scheduled, ended.times.first_token) == (0.0, served.clock.now_s)


def test_the_load_is_what_the_scheduler_holds_at_that_moment() -> None:
    served = Served(k=0, limits=Limits(max_num_seqs=2), num_blocks=8)
    for name in "abc":
        served.add(request([0] * 100, 10, name))
    served.step()
    assert served.value("vllm:num_requests_running") == 2
    assert served.value("vllm:num_requests_waiting") == 1
    assert served.value("vllm:kv_cache_usage_perc") == 0.5
    served.finish()
    assert served.value("vllm:kv_cache_usage_perc") == 0.0


def test_a_request_that_gave_its_blocks_up_is_a_preemption_and_counted_once() -> None:
    served = Served(k=0, num_blocks=4)
    for name in "ab":
        served.add(request([0] * 60, 100, name))
    served.finish()
    assert (served.value("vllm:num_preemptions_total") or 0) > 0
    assert served.value("vllm:prompt_tokens_total") == 120
    assert served.value("vllm:generation_tokens_total") == 200
    assert histogram(served, "vllm:time_to_first_token_seconds")[0] == 2


def test_nothing_is_kept_of_requests_that_have_ended() -> None:
    served = Served(k=3)
    for number in range(20):
        served.add(request([0], 5, str(number)))
    served.finish()
    assert not served.metrics._requests
    assert not served.metrics._pending
    assert not served.metrics._steps._recorded


def test_a_page_shows_no_step_half_counted() -> None:
    """While a page is gathered, a step that another thread reports has to wait."""
    sequence = request([0], 50)
    counted, waited = Event(), []

    def count() -> None:
        metrics.stepped([])
        counted.set()

    def load() -> EngineLoad:
        Thread(target=count, daemon=True).start()
        waited.append(not counted.wait(0.2))
        return EngineLoad()

    metrics = ServingMetrics(model_name="m", k=3, load=load, clock=lambda: 0.0)
    metrics.added(sequence)
    metrics.step(sequence, decoded(3, 2))
    page = metrics.render()[0].decode()
    assert waited == [True]
    assert counted.wait(10)
    assert f'{SPEC}drafts_total{{engine="0",model_name="m"}} 0.0' in page
    assert metrics.registry.get_sample_value(
        f"{SPEC}accepted_tokens_total", {"engine": "0", "model_name": "m"}
    )


def test_engines_have_a_label_of_their_own() -> None:
    metrics = ServingMetrics(model_name="a/b", k=1, load=EngineLoad, clock=lambda: 0.0, engine=7)
    assert '{engine="7",model_name="a/b"}' in metrics.render()[0].decode()
