"""From the bytes of an answer to what they say, by the very steps of `outrider report -`."""

import io

import httpx2

from outrider.records.adapters.registry import ADAPTERS
from outrider.records.reading import AcceptanceRecord, BadRecord, InvalidRecord, NoMetrics, Reading
from outrider.records.sources.document import Document
from outrider.records.sources.framing import framed
from outrider.records.sources.opening import STDIN, open_sources
from outrider.records.validation import validated

NOT_RECOGNISED = BadRecord("it is no answer of a kind that is read here")


def read_answer(body: bytes, http: httpx2.Client) -> tuple[str | None, Reading]:
    """Return the adapter that recognised an answer, and its first record or why there is none.

    `http` is not used, as the bytes are there already.
    """
    found: tuple[str | None, Reading] = (None, NOT_RECOGNISED)
    for source in open_sources(STDIN, stdin=io.BytesIO(body), http=http):
        if isinstance(source, tuple):
            continue
        for document in framed(source):
            if not isinstance(document, tuple):
                found = _converted(document)
            elif found[1] is NOT_RECOGNISED and isinstance(document[1], BadRecord):
                found = (None, document[1])
            if isinstance(found[1], AcceptanceRecord):
                return found
    return found


def _converted(document: Document) -> tuple[str | None, Reading]:
    adapter = next((each for each in ADAPTERS if each.recognises(document)), None)
    if adapter is None:
        return None, NOT_RECOGNISED
    first: Reading | None = None
    for _, reading in adapter.convert(document):
        if isinstance(reading, AcceptanceRecord):
            try:
                return adapter.name, validated(reading)
            except InvalidRecord as error:
                return adapter.name, BadRecord(str(error))
        if first is None and isinstance(reading, (NoMetrics, BadRecord)):
            first = reading
    return adapter.name, first or NOT_RECOGNISED
