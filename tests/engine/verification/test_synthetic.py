from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.engine.verification.toys import DRAWS, samplings

from outrider.engine.drafting.draft import Draft
from outrider.engine.sampling import SamplingParameters
from outrider.engine.verification.settings import VerificationSettings
from outrider.engine.verification.synthetic import SyntheticVerifier, spread_length
from outrider.errors import InvalidSetting

THREE = VerificationSettings(num_speculative_tokens=3)
RATES = (0.8, 0.5, 0.1)


def survival(parameters: SamplingParameters, tokens: list[int]) -> list[float]:
    """The share of steps that accepted at least 1, 2, 3 of the drafted tokens."""
    draft = Draft(np.tile(np.array(tokens, np.int32), (DRAWS, 1)), np.full(DRAWS, 3))
    logits = torch.zeros(4 * DRAWS, 4)
    verdict = SyntheticVerifier(RATES).verify(logits, draft, samplings(parameters, DRAWS))
    return [float((verdict.accepted >= r).mean()) for r in (1, 2, 3)]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_positions_survive_at_their_rates_whatever_was_drafted(temperature: float) -> None:
    parameters = SamplingParameters(temperature, seed=1)
    error = 4 * 0.5 / np.sqrt(DRAWS)
    assert survival(parameters, [3, 1, 2]) == pytest.approx(RATES, abs=error)


def test_a_token_that_was_taken_back_is_rejected_all_the_same() -> None:
    first, second, _ = survival(SamplingParameters(1.0, seed=1), [3, -1, 2])
    assert first > 0.7
    assert second == 0


def test_the_token_after_a_rejection_is_the_targets() -> None:
    draft = Draft(np.array([[3, 3]], np.int32), np.array([2]))
    logits = torch.nn.functional.one_hot(torch.tensor([2, 1, 0]), 4) * 1e4
    for rates, emitted in (((0.0, 0.0), [2]), ((1.0, 0.0), [3, 1]), ((1.0, 1.0), [3, 3, 0])):
        for temperature in (0.0, 1.0):
            sampling = samplings(SamplingParameters(temperature, seed=0), 1)
            verdict = SyntheticVerifier(rates).verify(logits, draft, sampling)
            assert verdict.emitted[0].tolist() == emitted


def test_drafts_may_be_shorter_or_longer_than_the_rates() -> None:
    tokens = np.full((2, 3), 1, np.int32)
    draft = Draft(tokens, np.array([1, 3]))
    verdict = SyntheticVerifier((1.0, 1.0)).verify(
        torch.zeros(6, 4), draft, samplings(SamplingParameters(), 2)
    )
    assert verdict.accepted.tolist() == [1, 2]


def test_rates_become_chances_given_what_came_before() -> None:
    np.testing.assert_allclose(
        SyntheticVerifier((0.8, 0.4, 0.0, 0.0)).conditional_rates, [0.8, 0.5, 0, 0]
    )


def test_it_says_that_it_is_not_lossless() -> None:
    assert not SyntheticVerifier(RATES).lossless


@pytest.mark.parametrize(
    ("length", "rates"),
    [(1.0, (0, 0, 0)), (2.5, (1, 0.5, 0)), (3.0, (1, 1, 0)), (4.0, (1, 1, 1))],
)
def test_a_mean_length_is_spread_as_ones_a_rest_and_zeros(
    length: float, rates: tuple[float, ...]
) -> None:
    assert spread_length(length, 3) == rates
    settings = replace(THREE, synthetic_acceptance_length=length)
    assert SyntheticVerifier.from_settings(settings).rates == rates


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (THREE, "neither of"),
        (
            replace(THREE, synthetic_acceptance_rates=RATES, synthetic_acceptance_length=2.0),
            "both of",
        ),
        (replace(THREE, synthetic_acceptance_rates=(0.5, 0.4)), "2 synthetic_acceptance_rates"),
        (replace(THREE, synthetic_acceptance_rates=(0.5, 0.6, 0.1)), "none above the one before"),
        (replace(THREE, synthetic_acceptance_rates=(1.5, 0.6, 0.1)), "from 0 to 1"),
        (replace(THREE, synthetic_acceptance_rates=(float("nan"), 0, 0)), "from 0 to 1"),
        (replace(THREE, synthetic_acceptance_length=4.5), "from 1 to .* = 4"),
        (replace(THREE, synthetic_acceptance_length=0.5), "from 1 to"),
        (replace(THREE, synthetic_acceptance_length=float("nan")), "from 1 to"),
    ],
)
def test_settings_that_make_no_rates_are_refused(
    settings: VerificationSettings, message: str
) -> None:
    with pytest.raises(InvalidSetting, match=message):
        SyntheticVerifier.from_settings(settings)
