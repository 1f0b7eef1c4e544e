"""Servers over models from files, as `outrider serve` builds them, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from tests.server.serving import ENGINES, running

from outrider.engine.models.store import locate_model
from outrider.engine.tokenizer import Tokenizer
from outrider.engine.tokenizer_cache import kept_folder
from outrider.server.api.settings import RequestLimits
from outrider.server.running import ListenSettings
from outrider.server.service.building import EngineSettings, build_engine
from outrider.server.serving import build_api, open_draft
from outrider.server.settings import ServerSettings
from outrider.server.speculation.opened_draft import ModelToPair
from outrider.server.speculation.reading import read_speculative_config
from outrider.server.speculation.resolving import resolve
from outrider.server.speculation.target_facts import TargetFacts


@contextmanager
def served_model(
    name: str, where: str, cache: Path, engine: EngineSettings, speculation: str | None
) -> Iterator[httpx2.Client]:
    """A client of a server for the model at `where`, known as `name`; answers tell their steps."""
    settings = ServerSettings(
        model=name,
        engine=engine,
        listen=ListenSettings(),
        limits=RequestLimits(),
        speculation=read_speculative_config(speculation),
        spec_decode_metrics="none" if speculation is None else "detailed",
        seed=1,
    )
    files = locate_model(where, cache_dir=cache, report=print)
    tokenizer = Tokenizer(files.path, kept=kept_folder(cache, files.sha256))
    resolved = draft = None
    if settings.speculation is not None:
        resolved = resolve(settings.speculation, TargetFacts(model=name))
        draft = open_draft(resolved, ModelToPair(name, files.path, tokenizer), cache, say=print)
    built = build_engine(files, engine, resolved, draft=draft, model_name=name)
    api = build_api(settings, files, tokenizer, built, resolved, None)
    ENGINES[id(api)] = built.engine
    with running(api) as server, httpx2.Client(base_url=server.url, timeout=300) as client:
        yield client
