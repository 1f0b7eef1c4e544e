"""Which release of vLLM brought which place for its figures.

From vLLM's sources: the object of an answer and its metric names are the same in 0.32.0 and 0.33.0.
Its pull request (vllm-project/vllm#48915) is known not to be in 0.28.0; releases between were not
looked at.
"""

import re

WITH_REQUEST_FIGURES = (0, 32)
KNOWN_WITHOUT = (0, 28)


def release(version: str | None) -> tuple[int, int] | None:
    """Return the first two numbers of a version; None where it has none.

    >>> release("0.23.1.dev0+g0fc695fc6")
    (0, 23)
    """
    found = re.match(r"v?(\d{1,6})\.(\d{1,6})", version or "")
    return (int(found[1]), int(found[2])) if found else None


def has_request_figures(version: str | None) -> bool | None:
    """Whether this vLLM can put figures on each answer; None: unknown."""
    number = release(version)
    # A build from source may call itself 0.1.dev.
    if number is None or number < (0, 2) or KNOWN_WITHOUT < number < WITH_REQUEST_FIGURES:
        return None
    return number >= WITH_REQUEST_FIGURES
