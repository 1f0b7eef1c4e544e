"""How large a constraint a stranger may ask for."""

from dataclasses import dataclass

from outrider.engine.constraints.spec import ConstraintSpec
from outrider.errors import InvalidSetting


@dataclass(frozen=True, slots=True)
class ConstraintLimits:
    """At most `max_bytes` of text, and brackets in a JSON schema nested `max_depth` deep."""

    max_bytes: int = 65_536
    max_depth: int = 64

    def check(self, spec: ConstraintSpec) -> None:
        """Raise `InvalidSetting` for a constraint beyond a limit, or for text that is not UTF-8."""
        try:
            size = sum(len(text.encode()) for text in spec.texts)
        except UnicodeEncodeError as error:
            raise InvalidSetting(
                f"a {spec.kind} constraint with half a surrogate pair",
                "text that UTF-8 can express",
                "write the character whole",
            ) from error
        if size > self.max_bytes:
            raise InvalidSetting(
                f"a {spec.kind} constraint of {size:,} bytes",
                f"at most {self.max_bytes:,}",
                "make it smaller, or raise the limit",
            )
        depth = _depth(spec.texts[0]) if spec.kind == "json" else 0
        if depth > self.max_depth:
            raise InvalidSetting(
                f"a JSON schema nested {depth} deep",
                f"at most {self.max_depth}",
                "make it flatter, or raise the limit",
            )


def _depth(text: str) -> int:
    """How deep brackets nest in a JSON text; a parser might run out of stack on the way."""
    depth = deepest = 0
    in_string = escaped = False
    for letter in text:
        if escaped:
            escaped = False
        elif in_string:
            escaped = letter == "\\"
            in_string = letter != '"'
        elif letter == '"':
            in_string = True
        elif letter in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif letter in "]}":
            depth -= 1
    return deepest
