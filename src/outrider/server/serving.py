"""From settings to a running server."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

import torch

from outrider.engine.models.source import open_weights
from outrider.engine.models.store import ModelFiles, cache_directory, locate_model
from outrider.engine.tokenizer import Tokenizer
from outrider.engine.tokenizer_cache import kept_folder
from outrider.errors import InvalidSetting, InvalidWorkload, UnknownModel
from outrider.server.api.api import Api
from outrider.server.api.app import create_app
from outrider.server.api.model import ServedModel, fresh_seeds
from outrider.server.api.settings import ApiSettings, ResponseMetrics
from outrider.server.metrics.periodic_log import log_interval_s, vllm_formatter
from outrider.server.recommended import recommended_sampling
from outrider.server.running import address_of, bind, check_certificate, serve
from outrider.server.service.building import BuiltEngine, build_engine
from outrider.server.service.service import Service
from outrider.server.settings import ServerSettings
from outrider.server.speculation.methods.draft_model import DraftModelMethod
from outrider.server.speculation.opened_draft import ModelToPair, OpenedDraft
from outrider.server.speculation.resolved import ResolvedSpeculation
from outrider.server.speculation.resolving import resolve
from outrider.server.speculation.target_facts import TargetFacts


def run_server(settings: ServerSettings, *, say: Callable[[str], None]) -> None:
    """Serve until a signal ends it; `say` gets a line for whatever is slow, found or decided.

    Raises what is wrong with the settings, the model or the address, before it serves.
    """
    check_certificate(settings.listen)
    _log_as_vllm_does(settings.listen.log_level)
    with bind(settings.listen.host, settings.listen.port) as bound:
        speculation = None
        if settings.speculation is not None:
            speculation = resolve(settings.speculation, TargetFacts(model=settings.model))
            for note in speculation.notes:
                say(f"speculation: {note}")
        cache_dir = cache_directory()
        files = locate_model(settings.model, cache_dir=cache_dir, report=say)
        say(f"loading {files.path}")
        # First, because it tells in a moment what is wrong with a model.
        open_weights(files.path)
        tokenizer = Tokenizer(files.path, kept=kept_folder(cache_dir, files.sha256))
        template = read_chat_template(settings.chat_template, tokenizer)
        draft = None
        if speculation is not None:
            target = ModelToPair(settings.model, files.path, tokenizer)
            draft = open_draft(speculation, target, cache_dir, say=say)
        built = build_engine(
            files,
            settings.engine,
            speculation,
            draft=draft,
            model_name=settings.model_names[0],
        )
        api = build_api(settings, files, tokenizer, built, speculation, template)
        url = address_of(bound, settings.listen)
        serve(
            create_app(api),
            api.service,
            settings.listen,
            bound,
            ready=lambda: say(_ready_line(url, api, built, speculation)),
        )


def open_draft(
    speculation: ResolvedSpeculation,
    target: ModelToPair,
    cache_dir: Path,
    *,
    say: Callable[[str], None],
) -> OpenedDraft | None:
    """Find the draft model that `speculation` calls for, if any, and hold it against its target."""
    method = speculation.drafting
    if not isinstance(method, DraftModelMethod):
        return None
    try:
        files = locate_model(method.checkpoint, cache_dir=cache_dir, report=say)
    except UnknownModel as error:
        raise UnknownModel(f"the draft model {error.seen}", error.expected, error.remedy) from error
    tokenizer = Tokenizer(files.path, kept=kept_folder(cache_dir, files.sha256))
    draft = ModelToPair(method.checkpoint, files.path, tokenizer)
    return OpenedDraft.of(method, target, draft, say=lambda line: say(f"speculation: {line}"))


def build_api(
    settings: ServerSettings,
    files: ModelFiles,
    tokenizer: Tokenizer,
    built: BuiltEngine,
    speculation: ResolvedSpeculation | None,
    chat_template: str | None,
) -> Api:
    """Put an engine behind the API."""
    model = built.engine.loop.model
    ends = {*model.config.eos_token_ids, tokenizer.eos_token_id} - {None}
    served = ServedModel(
        tokenizer,
        vocabulary_tokens=model.config.vocab_size,
        max_length=model.max_length,
        end_token_ids=frozenset(each for each in ends if each is not None),
        fresh_seed=fresh_seeds(settings.seed),
        constraint_limits=settings.limits.constraints,
        device="GPU" if built.backend == "torch" and torch.cuda.is_available() else "CPU",
    )
    return Api(
        served,
        Service(built.engine, built.metrics, capacity=settings.capacity),
        ApiSettings(
            model_names=settings.model_names,
            limits=settings.limits,
            metrics=ResponseMetrics(
                spec_decode=settings.spec_decode_metrics,
                timing=settings.timing_metrics,
                strict=settings.strict_vllm_metrics,
                num_spec_tokens=built.engine.loop.k,
            ),
            sampling=(
                recommended_sampling(files.path) if settings.generation_config == "auto" else {}
            ),
            chat_template=chat_template,
            speculation=None if speculation is None else speculation.as_dict(),
            api_keys=settings.api_keys,
            log_interval_s=log_interval_s(os.environ) if settings.log_stats else None,
        ),
    )


def _log_as_vllm_does(level: str) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(vllm_formatter())
    logger = logging.getLogger("outrider")
    logger.handlers = [handler]
    logger.setLevel("DEBUG" if level == "trace" else level.upper())
    logger.propagate = False


def read_chat_template(given: str | None, tokenizer: Tokenizer) -> str | None:
    """Return the template itself, which may be `given` by the name of its file; InvalidSetting."""
    if given is None:
        return None
    try:
        template = given if "{" in given else Path(given).read_text(encoding="utf-8")
        tokenizer.encode_chat([{"role": "user", "content": "x"}], chat_template=template)
    except (OSError, ValueError, InvalidWorkload) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "seen", None) or error
        raise InvalidSetting(
            f"--chat-template {given[:60]} cannot be used ({reason})",
            "a Jinja template, or a file that has one",
            "check the file",
        ) from error
    return template


def _ready_line(
    url: str, api: Api, built: BuiltEngine, speculation: ResolvedSpeculation | None
) -> str:
    model, limits = api.settings.model_names[0], built.engine.scheduler.limits
    parts = [
        f"serving {model} ({built.dtype}, {built.backend}) at {url}/v1",
        "no speculation" if speculation is None else speculation.describe(),
        f"cache of {built.cache_bytes / 2**20:,.0f} MiB for {built.cache_tokens:,} tokens",
        f"requests of up to {api.model.max_length:,} tokens, {limits.max_num_seqs} at once",
    ]
    if api.settings.sampling:
        said = ", ".join(f"{name} {value}" for name, value in api.settings.sampling.items())
        parts.append(f"the model's own defaults {said}")
    return "; ".join(parts)
