"""From acceptance to time: speed-up = M̂ / ρ, and break-even where ρ = M̂.

A speculative step yields M̂ tokens on average and takes ρ times as long as a plain step, which
yields one. Speculation therefore pays exactly when the step inflation stays below the tokens
per decode step. None stands for a figure that is undefined or made of one that is.
"""

from fractions import Fraction

from outrider.acceptance.ratio import ratio


def tokens_per_decode_step(emitted: int, decode_steps: int) -> Fraction | None:
    """Return M̂, the tokens emitted by all decode steps, those without a draft included.

    It equals M, the mean acceptance length, when every step had a draft and no stop cut one short.
    """
    return ratio(emitted, decode_steps)


def coverage(verification_steps: int, decode_steps: int) -> Fraction | None:
    """Return the share of decode steps that had a draft, 0 to 1; ValueError if beyond that."""
    if not 0 <= verification_steps <= decode_steps:
        raise ValueError(
            f"{verification_steps} verification steps among {decode_steps} decode steps;"
            " expected 0 up to all of them"
        )
    return ratio(verification_steps, decode_steps)


def step_inflation(spec_step_s: float | None, plain_step_s: float | None) -> float | None:
    """Return ρ, the mean time of a speculative step over that of a plain one-token step."""
    if spec_step_s is None or not plain_step_s:
        return None
    return spec_step_s / plain_step_s


def speed_up(m_hat: Fraction | float | None, rho: float | None) -> float | None:
    """Return M̂ / ρ, how many times faster decoding is than without speculation.

    Above 1 speculation pays; 1 is break-even, where ρ = M̂.

    >>> speed_up(2.46, 3.6) < 1
    True
    """
    if m_hat is None or not rho:
        return None
    return float(m_hat) / rho
