"""A model's settings under their Hugging Face names, each checked as it is read."""

from collections.abc import Mapping
from typing import Any

from outrider.errors import UnsupportedModel


class Settings:
    """An object of a config; errors say that a setting is `whose`."""

    def __init__(self, stated: Mapping[str, Any], whose: str = "the model's") -> None:
        self.stated = dict(stated)
        self._whose = whose

    def get(self, name: str, otherwise: Any = None) -> Any:
        """The setting, or `otherwise` where it is missing or null."""
        value = self.stated.get(name)
        return otherwise if value is None else value

    def size(self, name: str, otherwise: int | None = None) -> int:
        """A whole number above 0, or `otherwise` where it is missing, null or 0."""
        value = self.get(name) or otherwise
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.wrong(name, "a whole number above 0")
        return value

    def number(self, name: str, otherwise: float | None = None) -> float:
        """A number above 0, or `otherwise` where it is missing or null."""
        value = self.get(name, otherwise)
        if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
            raise self.wrong(name, "a number above 0")
        return float(value)

    def ids(self, name: str) -> tuple[int, ...]:
        """Token ids, of which there may be none, one or a list."""
        stated = self.get(name, [])
        ids = stated if isinstance(stated, list) else [stated]
        if any(not isinstance(each, int) or isinstance(each, bool) or each < 0 for each in ids):
            raise self.wrong(name, "token ids")
        return tuple(ids)

    def part(self, name: str) -> "Settings":
        """An object inside, without settings where it is missing or null."""
        stated = self.get(name, {})
        if not isinstance(stated, Mapping):
            raise self.wrong(name, "an object")
        return Settings(stated, f"{self._whose} {name}'s")

    def wrong(self, name: str, expected: str) -> UnsupportedModel:
        """The error for a setting that is missing or not what is `expected`."""
        stated = self.stated.get(name)
        seen = "missing" if stated is None else repr(stated)
        return UnsupportedModel(
            f"{self._whose} {name} is {seen}", expected, "choose another model or export it again"
        )
