"""A scrape of a server's /metrics page."""

import re
from collections.abc import Iterator

from outrider.records.adapters.base import PlacedReading
from outrider.records.reading import BadRecord, Place
from outrider.records.scrape import SPECULATION_SAMPLE, scrape_of_lines, since_start
from outrider.records.sources.document import Document, TextDocument

_TYPES = "counter|gauge|histogram|summary|untyped|unknown|info|stateset"
_MARKS = re.compile(
    rf"^(?:# TYPE [a-zA-Z_:][\w:]* (?:{_TYPES})\s*$|{SPECULATION_SAMPLE.pattern}[{{ \t])",
    re.MULTILINE,
)


class PrometheusAdapter:
    """Reads the Prometheus text format: counters since the server started."""

    name = "prometheus"

    def recognises(self, document: Document) -> bool:
        """Say yes to text that declares a metric, or has a sample of a speculation counter."""
        return isinstance(document, TextDocument) and _MARKS.search(document.head) is not None

    def convert(self, document: Document) -> Iterator[PlacedReading]:
        """Yield a reading for each model and K, and one for each line that cannot be read."""
        source = document.place.source
        if not isinstance(document, TextDocument):
            yield document.place, BadRecord("it is not text in the Prometheus format")
            return
        scrape = scrape_of_lines(document.lines())
        for number, reason in scrape.bad:
            yield Place(source, number), BadRecord(reason)
        for reading in since_start(scrape):
            yield document.place, reading
