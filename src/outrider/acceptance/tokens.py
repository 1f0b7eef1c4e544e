"""Speeds made of tokens that were emitted, never of drafted tokens or of chunks."""


def emitted_tokens_per_s(emitted: int, seconds: float) -> float | None:
    """Return emitted tokens over the time of drafting and verifying, None for no time.

    Drafted tokens that were rejected are no output: 503 tokens in 29.56 s are 17.02 tokens/s,
    however many were drafted on the way.
    """
    return emitted / seconds if seconds > 0 else None


def peak_below_average(peak: float, average: float) -> bool:
    """Whether a peak speed lies below its own average, which no speed can.

    The peak then counted something larger than tokens, most often chunks of a stream.
    """
    return peak < average * (1 - 1e-9)
