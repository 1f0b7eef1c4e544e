import pytest

from outrider.engine.scheduling.limits import Limits
from outrider.errors import InvalidSetting


def test_there_must_be_room_for_a_token_of_every_request() -> None:
    assert Limits(8, 8).max_num_seqs == 8
    with pytest.raises(InvalidSetting, match="--max-num-batched-tokens 7"):
        Limits(8, 7)


def test_at_least_one_request_must_run() -> None:
    with pytest.raises(InvalidSetting, match="--max-num-seqs 0"):
        Limits(0, 8)
