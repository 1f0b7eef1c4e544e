"""Looks at a server: its pages first, then its answers, then its counters again."""

from dataclasses import replace

from outrider.records.probe.asking import Answers, ask
from outrider.records.probe.engines import OF_ADAPTER
from outrider.records.probe.exchange import Exchange
from outrider.records.probe.pages import Models, read_metrics, read_models, read_version
from outrider.records.probe.seen import Answer, Metrics, Missing, Seen

NO_REQUEST = Missing("no request was sent (--no-request)", asked=False)


def look(exchange: Exchange, *, model: str | None, max_tokens: int, requests: bool) -> Seen:
    """Return all that is needed to judge every rung; without `requests` only pages are read.

    Raises UnreadableSource where the server cannot be reached.
    """
    version = read_version(exchange)
    models = read_models(exchange)
    metrics = read_metrics(exchange)
    model = model or (models.names[0] if models else None)
    answers = Answers(NO_REQUEST, NO_REQUEST, 0)
    if requests:
        answers = ask(exchange, model, max_tokens)
        after = read_metrics(exchange) if isinstance(metrics, Metrics) else None
        if isinstance(metrics, Metrics) and isinstance(after, Metrics):
            metrics = replace(metrics, second=after.first)
    engine = _engine(answers, metrics, models)
    return Seen(
        root=exchange.shown,
        has_key=exchange.has_key,
        engine=engine,
        version=version if version or engine != "vllm" else _version_of(answers),
        models=models.names if models else None,
        model=model,
        metrics=metrics,
        plain=answers.plain,
        streamed=answers.streamed,
        requests_sent=answers.sent,
    )


def _engine(answers: Answers, metrics: Metrics | Missing, models: Models | None) -> str | None:
    """Return the engine, going by the answers first: a gateway has pages of its own."""
    if isinstance(answers.plain, Answer):
        record = answers.plain.record
        engine = record.engine if record else OF_ADAPTER.get(answers.plain.adapter or "")
        if engine:
            return engine
    if isinstance(metrics, Metrics) and len(metrics.engines) == 1:
        return next(iter(metrics.engines))
    return models.engine if models else None


def _version_of(answers: Answers) -> str | None:
    record = answers.plain.record if isinstance(answers.plain, Answer) else None
    version = record.tags.get("engine_version") if record else None
    return version if isinstance(version, str) else None
