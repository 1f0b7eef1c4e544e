import numpy as np
import pytest

from outrider.engine.sampling import Sampling, SamplingParameters
from outrider.engine.sequence import Sequence
from outrider.errors import InvalidSetting
from outrider.records.request import FinishReason

SAMPLING = Sampling.seeded(SamplingParameters())


def test_output_follows_the_prompt_in_one_int32_buffer() -> None:
    sequence = Sequence("r", [4, 5, 6], max_tokens=3, sampling=SAMPLING)
    sequence.append([7])
    sequence.append(np.array([8, 9], np.int32))
    assert sequence.token_ids.dtype == np.int32
    assert sequence.token_ids.tolist() == [4, 5, 6, 7, 8, 9]
    assert sequence.output_token_ids.tolist() == [7, 8, 9]
    assert sequence.prompt_tokens == 3
    assert len(sequence) == 6


def test_room_shrinks_to_nothing_as_output_grows() -> None:
    sequence = Sequence("r", [4], max_tokens=2, sampling=SAMPLING)
    assert sequence.room_tokens == 2
    sequence.append([1, 2])
    assert sequence.room_tokens == 0
    with pytest.raises(AssertionError):
        sequence.append([3])


def test_its_output_ends_where_its_room_does() -> None:
    sequence = Sequence("r", [4], max_tokens=2, sampling=SAMPLING)
    delivered = sequence.stops.deliver([1, 2, 3])
    assert (delivered.tokens, delivered.reason) == (2, FinishReason.LENGTH)


def test_the_prompt_is_copied() -> None:
    prompt = np.array([4, 5], np.int32)
    sequence = Sequence("r", prompt, max_tokens=1, sampling=SAMPLING)
    prompt[:] = 0
    assert sequence.token_ids.tolist() == [4, 5]


@pytest.mark.parametrize(("prompt", "max_tokens"), [([], 1), ([1], 0), ([1], -3)])
def test_a_request_with_nothing_to_read_or_to_write_is_refused(
    prompt: list[int], max_tokens: int
) -> None:
    with pytest.raises(InvalidSetting):
        Sequence("r", prompt, max_tokens=max_tokens, sampling=SAMPLING)
