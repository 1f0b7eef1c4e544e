"""The verifiers by name."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType

from outrider.engine.verification.base import Verifier
from outrider.engine.verification.block import BlockVerifier
from outrider.engine.verification.fly import FlyVerifier
from outrider.engine.verification.settings import VerificationSettings
from outrider.engine.verification.standard import StandardVerifier
from outrider.engine.verification.synthetic import SyntheticVerifier
from outrider.errors import InvalidSetting

VERIFIERS: Mapping[str, Callable[[VerificationSettings], Verifier]] = MappingProxyType(
    {
        StandardVerifier.name: lambda _: StandardVerifier(),
        BlockVerifier.name: lambda _: BlockVerifier(),
        SyntheticVerifier.name: SyntheticVerifier.from_settings,
        FlyVerifier.name: FlyVerifier.from_settings,
    }
)

DEFAULTS = VerificationSettings()


def build_verifier(name: str, settings: VerificationSettings = DEFAULTS) -> Verifier:
    """Build the verifier called `name`.

    Raises `InvalidSetting` for a name that is none, for a setting outside its range, and for one
    that belongs to another rule.
    """
    build = VERIFIERS.get(name)
    if build is None:
        names = ", ".join(VERIFIERS)
        raise InvalidSetting(f"verification rule {name!r}", "a known one", f"use one of {names}")
    for field in fields(settings):
        owner = field.name.partition("_")[0]
        changed = getattr(settings, field.name) != field.default
        if changed and owner in VERIFIERS and owner != name:
            raise InvalidSetting(
                f"{field.name} with verification rule {name!r}",
                f"it only with the rule {owner}",
                f"drop it, or use {owner}",
            )
    return build(settings)
