import pytest

from outrider.engine.verification.registry import VERIFIERS, build_verifier
from outrider.errors import InvalidSetting


def test_every_verifier_bears_the_name_it_is_registered_under() -> None:
    for name in VERIFIERS:
        assert build_verifier(name).name == name


def test_an_unknown_rule_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidSetting, match=r"'fly'.*standard"):
        build_verifier("fly")
