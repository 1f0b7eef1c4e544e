"""Durations as they are typed."""

import re

from outrider.errors import InvalidSetting

_UNITS_S = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
LONGEST_S = 7 * 24 * 3600.0


def parse_duration_s(option: str, text: str) -> float:
    """Return "60s", "5m" or "90" in seconds; InvalidSetting names the option otherwise.

    >>> parse_duration_s("--for", "1.5m")
    90.0
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text)
    unit_s = _UNITS_S.get(found[2]) if found else None
    seconds = float(found[1]) * unit_s if found and unit_s else 0.0
    if not 0 < seconds <= LONGEST_S:
        raise InvalidSetting(
            f"{option} {text}", "a time above 0 such as 60s, 5m or 1h", "give one of these"
        )
    return seconds
