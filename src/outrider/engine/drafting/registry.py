"""The drafters by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from outrider.engine.drafting.base import Drafter
from outrider.engine.drafting.ngram import NgramDrafter
from outrider.engine.drafting.none import NoDrafter
from outrider.engine.drafting.suffix import SuffixDrafter
from outrider.errors import InvalidSetting
from outrider.records.arm import Arm

DRAFTERS: Mapping[str, Callable[[Arm], Drafter]] = MappingProxyType(
    {
        NoDrafter.name: lambda _: NoDrafter(),
        NgramDrafter.name: NgramDrafter.from_arm,
        SuffixDrafter.name: SuffixDrafter.from_arm,
    }
)


def build_drafter(arm: Arm) -> Drafter:
    """Build the drafter that `arm` names; raises `InvalidSetting` for a method that is none."""
    build = DRAFTERS.get(arm.method)
    if build is None:
        names = ", ".join(DRAFTERS)
        raise InvalidSetting(
            f"drafting method {arm.method!r}", "a known one", f"use one of {names}"
        )
    return build(arm)
