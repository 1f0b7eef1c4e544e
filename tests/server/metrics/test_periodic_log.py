import asyncio
import logging
import re

import pytest
from tests.engine.loops import Clock
from tests.server.metrics.serving import decoded, metrics_of

from outrider.errors import InvalidSetting
from outrider.server.metrics.interval_log import IntervalLog
from outrider.server.metrics.periodic_log import keep_log, log_interval_s, vllm_formatter


@pytest.mark.parametrize(
    ("environment", "given", "seconds"),
    [
        ({}, None, 10.0),
        ({"VLLM_LOG_STATS_INTERVAL": "2.5"}, None, 2.5),
        ({"VLLM_LOG_STATS_INTERVAL": "2.5"}, 4.0, 4.0),
        ({"VLLM_LOG_STATS_INTERVAL": "0"}, None, 10.0),
        ({"VLLM_LOG_STATS_INTERVAL": "-1"}, None, 10.0),
        ({"VLLM_LOG_STATS_INTERVAL": "nan"}, None, 10.0),
    ],
)
def test_the_interval_is_as_given_or_as_the_environment_says_or_ten_seconds(
    environment: dict[str, str], given: float | None, seconds: float
) -> None:
    assert log_interval_s(environment, given) == seconds


def test_an_interval_that_is_none_is_refused_with_what_was_seen() -> None:
    with pytest.raises(InvalidSetting, match="VLLM_LOG_STATS_INTERVAL=often; expected a number"):
        log_interval_s({"VLLM_LOG_STATS_INTERVAL": "often"})
    for seconds in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(InvalidSetting, match="a log interval of"):
            log_interval_s({}, seconds)


def test_the_log_is_written_every_interval_until_cancelled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    metrics = metrics_of(3, clock)
    log = IntervalLog(metrics.snapshot, now=clock())
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        if len(slept) == 3:
            raise asyncio.CancelledError
        slept.append(seconds)
        clock.now_s += seconds
        metrics._totals.generation_tokens += 30
        metrics._totals.add(decoded(3, 2))

    logger = logging.getLogger("outrider.test")
    with caplog.at_level(logging.INFO, logger.name), pytest.raises(asyncio.CancelledError):
        asyncio.run(keep_log(log, interval_s=5.0, clock=clock, logger=logger, sleep=sleep))
    assert slept == [5.0] * 3
    assert [message.partition(":")[0] for message in caplog.messages] == [
        "Engine 000",
        "SpecDecoding metrics",
    ] * 3
    assert all("Avg generation throughput: 6.0 tokens/s" in m for m in caplog.messages[::2])


def test_lines_look_like_those_of_vllms_api_server() -> None:
    record = logging.LogRecord("n", logging.INFO, "/x/loggers.py", 335, "%s", ("Engine",), None)
    assert re.fullmatch(
        r"\(APIServer pid=\d+\) INFO \d\d-\d\d \d\d:\d\d:\d\d \[loggers\.py:335\] Engine",
        vllm_formatter().format(record),
    )
