"""How a page is written: the Prometheus text format, or OpenMetrics for who asks for it."""

from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

_OPENMETRICS = "application/openmetrics-text"
# Without this escaping prometheus_client writes `:` as `_` in the samples and not in their types.
_ASK = f"{_OPENMETRICS}; version=1.0.0; escaping=allow-utf-8"


@dataclass(frozen=True)
class _Collected(Collector):
    metrics: Iterable[Metric]

    def collect(self) -> Iterable[Metric]:
        return self.metrics


def encoded(metrics: Iterable[Metric], accept: str) -> tuple[bytes, str]:
    """Return the page and its content type, chosen by the request's Accept header."""
    # What else a header from outside asks for is not passed on: odd versions raise.
    if _OPENMETRICS in accept.lower():
        encode, _ = choose_encoder(_ASK)
        return encode(_Collected(metrics)), f"{_OPENMETRICS}; version=1.0.0; charset=utf-8"
    encode, content_type = choose_encoder("")
    return encode(_Collected(metrics)), content_type
