"""The lookup drafters by name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from outrider.errors import InvalidSetting
from outrider.replay.lookup.base import LookupSetting
from outrider.replay.lookup.grid import MOST_VALUES, Grid
from outrider.replay.lookup.ngram import ngram_settings
from outrider.replay.lookup.suffix import suffix_settings

LOOKUPS: Mapping[str, Callable[[Grid], Iterator[LookupSetting]]] = MappingProxyType(
    {"ngram": ngram_settings, "suffix": suffix_settings}
)


def lookup_settings(methods: Sequence[str], grid: Grid) -> tuple[LookupSetting, ...]:
    """Return every setting of the drafters that are named.

    Raises InvalidSetting for a name that is none, or more settings than can be compared.
    """
    settings: list[LookupSetting] = []
    for method in dict.fromkeys(methods):
        of_method = LOOKUPS.get(method)
        if of_method is None:
            raise InvalidSetting(
                f"--drafter {method!r}", f"one of {', '.join(LOOKUPS)}", "use one of these"
            )
        settings.extend(of_method(grid))
    if len(settings) > MOST_VALUES:
        raise InvalidSetting(
            f"{len(settings)} settings", f"at most {MOST_VALUES}", "ask for fewer values"
        )
    return tuple(settings)
