"""One file for each group of addresses."""

from typing import Any

ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer, or a stream of its pieces.",
        "content": {"application/json": {}, "text/event-stream": {}},
    }
}
"""What the document says of an address that answers with a body or with events."""
