from typing import Any

import pytest
from tests.server.speculation.settings import ngram

from outrider.engine.verification.fly import FlyVerifier
from outrider.engine.verification.synthetic import SyntheticVerifier
from outrider.errors import InvalidSetting


@pytest.mark.parametrize(("rule", "lossless"), [("standard", True), ("block", True)])
def test_a_rule_without_settings_is_taken_by_name(*, rule: str, lossless: bool) -> None:
    resolved = ngram(rejection_sample_method=rule)
    assert (resolved.verifier.name, resolved.verifier.lossless) == (rule, lossless)
    assert not any("lossy" in note for note in resolved.notes)


@pytest.mark.parametrize(("k", "window"), [(2, 1), (4, 3), (7, 6), (20, 6)])
def test_the_window_of_fly_is_by_default_the_lesser_of_6_and_k_less_1(k: int, window: int) -> None:
    resolved = ngram(rejection_sample_method="fly", num_speculative_tokens=k)
    assert resolved.verifier == FlyVerifier(window, 0.3, 3)
    assert resolved.as_dict()["fly_window_size"] == window
    assert f"fly_window_size was not set: {window}" in resolved.notes


def test_the_settings_of_fly_reach_the_verifier_and_its_loss_is_told() -> None:
    resolved = ngram(
        rejection_sample_method="fly",
        fly_window_size=2,
        fly_entropy_threshold=1,
        fly_entropy_top_k=5,
    )
    assert resolved.verifier == FlyVerifier(2, 1.0, 5)
    assert "verification fly is lossy: the output is not the target's" in resolved.notes
    assert "verification fly (LOSSY)" in resolved.describe()


def test_synthetic_takes_rates_or_a_length() -> None:
    rates = ngram(rejection_sample_method="synthetic", synthetic_acceptance_rates=[1, 0.5, 0.5, 0])
    assert rates.verifier == SyntheticVerifier((1.0, 0.5, 0.5, 0.0))
    length = ngram(rejection_sample_method="synthetic", synthetic_acceptance_length=2.5)
    assert length.verifier == SyntheticVerifier((1.0, 0.5, 0.0, 0.0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fly_window_size": 2}, "fly_window_size.*only with the rule fly"),
        ({"fly_entropy_top_k": 2}, "fly_entropy_top_k.*only with the rule fly"),
        ({"synthetic_acceptance_length": 2}, "only with the rule synthetic"),
        (
            {"synthetic_acceptance_rates": [0.5], "rejection_sample_method": "block"},
            "only with the rule synthetic",
        ),
        ({"rejection_sample_method": "fly", "num_speculative_tokens": 1}, "1 with fly"),
        ({"rejection_sample_method": "fly", "fly_window_size": 4}, "at most 3"),
        ({"rejection_sample_method": "synthetic"}, "neither of"),
        (
            {
                "rejection_sample_method": "synthetic",
                "synthetic_acceptance_length": 2,
                "synthetic_acceptance_rates": [1, 1, 1, 1],
            },
            "both of",
        ),
        (
            {"rejection_sample_method": "synthetic", "synthetic_acceptance_rates": [0.5]},
            "1 synthetic_acceptance_rates; expected one for each",
        ),
        (
            {
                "rejection_sample_method": "synthetic",
                "synthetic_acceptance_rates": [0.5, 0.6, 0, 0],
            },
            "none above the one before",
        ),
        (
            {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 5.1},
            r"from 1 to num_speculative_tokens \+ 1 = 5",
        ),
    ],
)
def test_settings_that_do_not_go_with_the_rule_are_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidSetting, match=message):
        ngram(**settings)
