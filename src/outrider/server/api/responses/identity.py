"""What all parts of one response have in common."""

import secrets
import time
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Identity:
    """A response's own name, when it was asked for (Unix time in seconds), and the model's name.

    `fingerprint` changes with whatever may change the output.
    """

    name: str
    created: int
    model: str
    fingerprint: str

    @classmethod
    def fresh(cls, prefix: str, model: str, fingerprint: str) -> Self:
        """Return that of a new response."""
        return cls(f"{prefix}-{secrets.token_hex(8)}", int(time.time()), model, fingerprint)

    def head(self, kind: str) -> dict[str, Any]:
        """Return the fields that a body or chunk of this `kind` begins with."""
        return {"id": self.name, "object": kind, "created": self.created, "model": self.model}
