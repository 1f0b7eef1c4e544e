"""What a request may ask its output to look like."""

from dataclasses import dataclass
from typing import Literal, get_args

from outrider.errors import InvalidSetting

ConstraintKind = Literal["json", "json_object", "regex", "choice", "grammar"]
"""vLLM's names: a JSON schema, any JSON object, one of several strings, a Lark or GBNF grammar."""


@dataclass(frozen=True, slots=True)
class ConstraintSpec:
    """A kind of constraint and its text, as a request gives it.

    `value` is the schema as JSON text, the regex, the grammar, or for "choice" a tuple of strings;
    "json_object" has none. A regex must match the whole output. Raises `InvalidSetting` for
    another kind or type; whether the text makes sense is for `ConstraintCompiler` to say.
    """

    kind: ConstraintKind
    value: str | tuple[str, ...] = ""

    def __post_init__(self) -> None:
        kinds = get_args(ConstraintKind)
        if self.kind not in kinds:
            raise InvalidSetting(
                f"constraint {self.kind!r}", "a known one", f"use one of {', '.join(kinds)}"
            )
        if self.kind == "choice":
            if not isinstance(self.value, tuple) or not _are_texts(self.value):
                raise InvalidSetting(
                    f"choice {self.value!r:.80}",
                    "a list of strings, none of them empty",
                    "name at least one choice",
                )
        elif not isinstance(self.value, str) or bool(self.value) == (self.kind == "json_object"):
            expected = "no text" if self.kind == "json_object" else "a text that is not empty"
            raise InvalidSetting(f"{self.kind} {self.value!r:.80}", expected, "give it so")

    @property
    def texts(self) -> tuple[str, ...]:
        """The value, always as a tuple."""
        return self.value if isinstance(self.value, tuple) else (self.value,)


def _are_texts(choices: tuple[object, ...]) -> bool:
    return bool(choices) and all(isinstance(each, str) and each for each in choices)
