"""The pages of a server: its version, its models, its counters."""

import re
from dataclasses import dataclass

from outrider.errors import UnreadableSource
from outrider.records.adapters.prometheus import PrometheusAdapter
from outrider.records.probe.engines import OF_METRICS, OF_OWNER
from outrider.records.probe.exchange import Exchange
from outrider.records.probe.seen import KEY_ASKED_FOR, Metrics, Missing
from outrider.records.reading import Place
from outrider.records.scrape import read_scrape
from outrider.records.sources.document import TextDocument
from outrider.records.sources.opening import HEAD

_ENGINE_OF_LINE = re.compile(rf"^(?:ray_)?({'|'.join(OF_METRICS)})[:_]", re.MULTILINE)
_LONGEST_VERSION = 60


@dataclass(frozen=True, slots=True)
class Models:
    """The names that a server answers to, in its order, and the engine that it says it is."""

    names: tuple[str, ...]
    engine: str | None


def read_version(exchange: Exchange) -> str | None:
    """Return the version, None where the server tells none.

    This page is read first: UnreadableSource where nothing comes back at all.
    """
    reply = exchange.get("/version")
    if reply.status is None:
        raise UnreadableSource(
            f"{exchange.shown} cannot be reached ({exchange.told(reply)})",
            "the address of a running inference server",
            "check the address and that the server runs, or give it longer with --timeout",
        )
    value = reply.value if reply.ok else None
    version = value.get("version") if isinstance(value, dict) else None
    return version[:_LONGEST_VERSION] if isinstance(version, str) and version else None


def read_models(exchange: Exchange) -> Models | None:
    """Return the models, None where the server lists none."""
    reply = exchange.get("/v1/models")
    value = reply.value if reply.ok else None
    listed = value.get("data") if isinstance(value, dict) else None
    models = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    names = tuple(name for one in models if isinstance(name := one.get("id"), str) and name)
    if not names:
        return None
    owner = models[0].get("owned_by")
    return Models(names, OF_OWNER.get(owner) if isinstance(owner, str) else None)


def read_metrics(exchange: Exchange) -> Metrics | Missing:
    """Return the counters as they are now, with a key only where the page asks for one."""
    reply = exchange.get("/metrics", with_key=False)
    needs_key = reply.status in KEY_ASKED_FOR and exchange.has_key
    if needs_key:
        reply = exchange.get("/metrics")
    if not reply.ok:
        told = f"/metrics cannot be read: {exchange.told(reply)}"
        return Missing(told, asked=True, status=reply.status)
    text = reply.body.decode("utf-8", "replace")
    page = TextDocument(Place("/metrics"), text[:HEAD], lambda: iter(()))
    if not PrometheusAdapter().recognises(page):
        return Missing("/metrics is no page in the Prometheus text format", asked=True)
    engines = frozenset(OF_METRICS[name] for name in _ENGINE_OF_LINE.findall(text))
    return Metrics(read_scrape(text), None, engines, needs_key)
