import pytest

from outrider.engine.verification.registry import VERIFIERS, build_verifier
from outrider.engine.verification.settings import VerificationSettings
from outrider.errors import InvalidSetting

SUITABLE = {
    "standard": VerificationSettings(),
    "block": VerificationSettings(num_speculative_tokens=4),
    "synthetic": VerificationSettings(num_speculative_tokens=4, synthetic_acceptance_length=2.5),
    "fly": VerificationSettings(num_speculative_tokens=4),
}


def test_every_verifier_bears_the_name_it_is_registered_under() -> None:
    assert SUITABLE.keys() == VERIFIERS.keys()
    for name, settings in SUITABLE.items():
        assert build_verifier(name, settings).name == name


def test_which_rules_leave_the_output_alone_is_known() -> None:
    lossless = {name for name in VERIFIERS if build_verifier(name, SUITABLE[name]).lossless}
    assert lossless == {"standard", "block"}


def test_an_unknown_rule_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidSetting, match=r"'typical'.*standard, block, synthetic, fly"):
        build_verifier("typical")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("standard", VerificationSettings(fly_window_size=2)),
        ("block", VerificationSettings(synthetic_acceptance_length=2.0)),
        ("synthetic", VerificationSettings(fly_entropy_top_k=5)),
        ("fly", VerificationSettings(synthetic_acceptance_rates=(0.5,))),
    ],
)
def test_a_setting_of_another_rule_is_refused(name: str, settings: VerificationSettings) -> None:
    with pytest.raises(InvalidSetting, match=rf"with verification rule '{name}'.*or use"):
        build_verifier(name, settings)
