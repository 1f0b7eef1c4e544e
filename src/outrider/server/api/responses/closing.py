"""The last chunk of a stream, which tells of all its answers together."""

from typing import Any

from outrider.server.api.answers import Answers
from outrider.server.api.responses.identity import Identity
from outrider.server.api.responses.metrics import in_stream, of_body
from outrider.server.api.responses.usage import final_usage
from outrider.server.api.settings import ResponseMetrics


def closing_chunk(
    kind: str, identity: Identity, answers: Answers, metrics: ResponseMetrics
) -> dict[str, Any]:
    """Return the chunk with the usage, for a stream of the object `kind`."""
    return {
        **identity.head(kind),
        "choices": [],
        "usage": final_usage(answers),
        "system_fingerprint": identity.fingerprint,
        **in_stream(of_body(answers, metrics)),
    }
