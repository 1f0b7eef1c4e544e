from outrider.engine.recorder import RecordedSteps, StepRecorder
from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.sequence import Sequence
from outrider.records.request import StepRecord

SAMPLING = Sampling.seeded(SamplingParameters())


def step(accepted: int) -> StepRecord:
    return StepRecord(4, accepted, accepted + 1, draft_s=0.1, verify_s=0.2, step_s=0.4)


def test_each_sequences_steps_are_kept_apart_and_in_order_until_taken() -> None:
    one, two, idle = (Sequence(name, [1], max_tokens=1, sampling=SAMPLING) for name in "abc")
    recorder = StepRecorder()
    recorder.step(one, step(0))
    recorder.step(two, step(1))
    recorder.step(one, step(2))
    assert recorder.take(one).steps == [step(0), step(2)]
    assert recorder.take(one) == RecordedSteps()
    assert recorder.take(two).steps == [step(1)]
    assert recorder.take(idle) == RecordedSteps()


def test_the_time_of_a_prefill_is_that_of_all_its_steps() -> None:
    sequence = Sequence("a", [1], max_tokens=1, sampling=SAMPLING)
    recorder = StepRecorder()
    recorder.prefill(sequence, 1.5)
    recorder.prefill(sequence, 2.0)
    assert recorder.take(sequence) == RecordedSteps(3.5, [])
