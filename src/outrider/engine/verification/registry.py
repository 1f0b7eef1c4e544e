"""The verifiers by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from outrider.engine.verification.base import Verifier
from outrider.engine.verification.standard import StandardVerifier
from outrider.errors import InvalidSetting

VERIFIERS: Mapping[str, Callable[[], Verifier]] = MappingProxyType(
    {StandardVerifier.name: StandardVerifier}
)


def build_verifier(name: str) -> Verifier:
    """Build the verifier called `name`; raises `InvalidSetting` for a name that is none."""
    build = VERIFIERS.get(name)
    if build is None:
        names = ", ".join(VERIFIERS)
        raise InvalidSetting(f"verification rule {name!r}", "a known one", f"use one of {names}")
    return build()
