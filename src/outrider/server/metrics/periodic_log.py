"""The interval log as it is written: how often, with what in front, and by whom."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from outrider.errors import InvalidSetting
from outrider.server.metrics.interval_log import IntervalLog

VARIABLE = "VLLM_LOG_STATS_INTERVAL"
DEFAULT_S = 10.0


def log_interval_s(environment: Mapping[str, str], given_s: float | None = None) -> float:
    """Return the seconds between two turns of the log: as given, as the environment says, or 10.

    As in vLLM a variable that is not above 0 means the default. Raises InvalidSetting for one that
    is no number, and for a given interval that is not above 0.
    """
    if given_s is not None:
        if not 0 < given_s < float("inf"):
            raise InvalidSetting(
                f"a log interval of {given_s:g} s", "more than 0", "give the seconds between lines"
            )
        return given_s
    text = environment.get(VARIABLE, str(DEFAULT_S))
    try:
        seconds = float(text)
    except ValueError:
        raise InvalidSetting(
            f"{VARIABLE}={text[:40]}", "a number of seconds", "correct or unset it"
        ) from None
    return seconds if 0 < seconds < float("inf") else DEFAULT_S


def vllm_formatter() -> logging.Formatter:
    """Return a formatter that puts in front of a line what vLLM's API server does."""
    return logging.Formatter(
        "(APIServer pid=%(process)d) %(levelname)s %(asctime)s"
        " [%(filename)s:%(lineno)d] %(message)s",
        datefmt="%m-%d %H:%M:%S",
    )


async def keep_log(
    log: IntervalLog,
    *,
    interval_s: float,
    clock: Callable[[], float],
    logger: logging.Logger,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Write the lines of `log` every `interval_s` seconds until cancelled."""
    while True:
        await sleep(interval_s)
        for line in log.turn(clock()):
            logger.info("%s", line)
