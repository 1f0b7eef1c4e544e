"""Files that a command writes, and options that exclude each other."""

from collections.abc import Sequence
from pathlib import Path

from outrider.errors import InvalidSetting


def check_target(option: str, target: Path | None, sources: Sequence[str]) -> None:
    """Raise InvalidSetting where what is written would replace what is read."""
    if target is None or not target.exists():
        return
    for source in sources:
        path = Path(source)
        # A histogram typed by hand may be longer than any name of a file.
        if len(source) < _LONGEST_NAME and path.is_file() and path.samefile(target):
            raise InvalidSetting(
                f"{option} {target}, which is also read", "another file", "choose another name"
            )


_LONGEST_NAME = 4096


def check_alone(option: str, others: Sequence[str]) -> None:
    """Raise InvalidSetting where others were given beside an option that has no use for them."""
    if others:
        raise InvalidSetting(
            f"{option} with {', '.join(others)}",
            f"only {option}, which keeps sums and makes no report",
            f"leave {'it' if len(others) == 1 else 'them'} to the report that merges",
        )
