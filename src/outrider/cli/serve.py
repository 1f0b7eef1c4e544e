"""`outrider serve`: a model behind OpenAI's API, with vLLM's flags."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Console

from outrider.cli.durations import parse_duration_s
from outrider.cli.options import Debug
from outrider.errors import InvalidSetting

if TYPE_CHECKING:
    from outrider.server.api.settings import SpecDecodeMetrics
    from outrider.server.settings import GenerationConfig

Text = str | None
Whole = int | None

API_KEY = "OUTRIDER_API_KEY"
LOG_LEVELS = ("critical", "error", "warning", "info", "debug", "trace")
LEVELS = ("none", "summary", "detailed")


def serve(
    model: Annotated[str, typer.Argument(help="smollm2-135m, a .gguf file, a folder or a hub id.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than this machine's need a key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 8000,
    served_model_name: Annotated[
        list[str] | None, typer.Option(help="What requests call the model; may be repeated.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="auto, bfloat16, float32, int8 or int4.")] = "auto",
    max_model_len: Annotated[
        Whole, typer.Option(help="Longest prompt and answer.  [default: the model's own]")
    ] = None,
    max_num_seqs: Annotated[int, typer.Option(help="Answers computed at once.")] = 64,
    max_num_batched_tokens: Annotated[
        int, typer.Option(help="Tokens in one step; longer prompts take several.")
    ] = 512,
    kv_cache_memory: Annotated[
        Text,
        typer.Option(
            "--kv-cache-memory",
            "--kv-cache-memory-bytes",
            help="Such as 4GiB.  [default: half of what is free]",
        ),
    ] = None,
    enable_prefix_caching: Annotated[
        bool, typer.Option(help="Whether prompts that begin alike share what was computed.")
    ] = True,
    seed: Annotated[
        Whole, typer.Option(help="Gives requests without a seed theirs.  [default: by chance]")
    ] = None,
    chat_template: Annotated[
        Text, typer.Option(help="A Jinja file or text in place of the model's own template.")
    ] = None,
    generation_config: Annotated[
        str, typer.Option(help="auto takes the model's own sampling defaults, vllm does not.")
    ] = "auto",
    speculative_config: Annotated[
        Text, typer.Option("--speculative-config", "-sc", help="JSON with vLLM's keys.")
    ] = None,
    spec_method: Annotated[Text, typer.Option(help="Short for its method.")] = None,
    spec_model: Annotated[Text, typer.Option(help="Short for its model.")] = None,
    spec_tokens: Annotated[
        Whole, typer.Option(help="Short for its num_speculative_tokens.")
    ] = None,
    per_request_spec_decode_metrics: Annotated[
        str, typer.Option(help=f"What responses tell of speculation: {', '.join(LEVELS)}.")
    ] = "none",
    enable_per_request_metrics: Annotated[
        bool, typer.Option("--enable-per-request-metrics", help="Tell times in responses.")
    ] = False,
    strict_vllm_metrics: Annotated[
        bool, typer.Option("--strict-vllm-metrics", help="Tell only what vLLM would, and when.")
    ] = False,
    api_key: Annotated[
        list[str] | None,
        typer.Option(help=f"Key that requests must bear; may be repeated.  [env var: {API_KEY}]"),
    ] = None,
    api_key_file: Annotated[
        Path | None, typer.Option(help="File with such keys, one on each line.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen on any address without a key.")
    ] = False,
    ssl_certfile: Annotated[Path | None, typer.Option(help="Certificate, for HTTPS.")] = None,
    ssl_keyfile: Annotated[Path | None, typer.Option(help="Its private key.")] = None,
    uvicorn_log_level: Annotated[
        str, typer.Option(help=f"One of {', '.join(LOG_LEVELS)}.")
    ] = "info",
    disable_log_stats: Annotated[
        bool, typer.Option("--disable-log-stats", help="No line on throughput every 10 seconds.")
    ] = False,
    disable_log_requests: Annotated[
        bool,
        typer.Option(
            "--disable-log-requests", "--disable-uvicorn-access-log", help="No line per request."
        ),
    ] = False,
    backend: Annotated[str, typer.Option(help="auto, fused (CPU kernels) or torch.")] = "auto",
    enforce_eager: Annotated[
        bool, typer.Option("--enforce-eager", help="On a GPU no CUDA graphs.")
    ] = False,
    threads: Annotated[Whole, typer.Option(help="[default: the physical cores]")] = None,
    drain_timeout: Annotated[
        str, typer.Option(help="How long requests may finish after a signal.")
    ] = "30s",
    max_queued_requests: Annotated[
        int, typer.Option(help="Answers that may wait; more are refused with 429.")
    ] = 256,
    max_body_size: Annotated[str, typer.Option(help="Largest body of a request.")] = "4MiB",
    max_prompt_tokens: Annotated[
        Whole, typer.Option(help="Longest prompt.  [default: the model's room]")
    ] = None,
    max_tokens: Annotated[
        Whole, typer.Option(help="Longest answer.  [default: the model's room]")
    ] = None,
    max_n: Annotated[int, typer.Option(help="Most answers to one prompt.")] = 16,
    max_prompts: Annotated[int, typer.Option(help="Most prompts in one request.")] = 64,
    max_stop: Annotated[int, typer.Option(help="Most stop strings in one request.")] = 16,
    max_logprobs: Annotated[int, typer.Option(help="Most logprobs for one token.")] = 20,
    max_schema_size: Annotated[
        str, typer.Option(help="Largest schema, regex or grammar of a structured output.")
    ] = "64KiB",
    max_schema_depth: Annotated[int, typer.Option(help="Deepest nesting of a JSON schema.")] = 64,
    debug: Debug = False,  # noqa: ARG001  read by main()
) -> None:
    """Serve a model behind OpenAI's API, with vLLM's fields, flags and metrics."""
    _one_of("--uvicorn-log-level", uvicorn_log_level, LOG_LEVELS)
    _one_of("--per-request-spec-decode-metrics", per_request_spec_decode_metrics, LEVELS)
    _one_of("--generation-config", generation_config, ("auto", "vllm"))
    _within("--port", port, 0, 2**16 - 1)
    _within("--seed", seed, 0, 2**63 - 1)
    _within("--threads", threads, 1, os.cpu_count() or 1)
    _within("--max-queued-requests", max_queued_requests, 0, 2**20)
    _within("--max-logprobs", max_logprobs, 0, 2**20)
    for option, value in (
        ("--max-model-len", max_model_len), ("--max-prompt-tokens", max_prompt_tokens),
        ("--max-tokens", max_tokens), ("--max-n", max_n), ("--max-prompts", max_prompts),
        ("--max-stop", max_stop), ("--max-schema-depth", max_schema_depth),
    ):  # fmt: skip
        _within(option, value, 1, 2**31 - 1)
    drain_timeout_s = parse_duration_s("--drain-timeout", drain_timeout)
    keys = _keys(api_key or (), api_key_file, os.environ.get(API_KEY))
    # Not above: the engine takes seconds to import, which --help and a wrong option should not.
    from outrider.bench.target import usable_cores  # noqa: PLC0415
    from outrider.engine.caching.memory import parse_memory  # noqa: PLC0415
    from outrider.engine.constraints.limits import ConstraintLimits  # noqa: PLC0415
    from outrider.engine.scheduling.limits import Limits  # noqa: PLC0415
    from outrider.server.api.settings import RequestLimits  # noqa: PLC0415
    from outrider.server.running import ListenSettings  # noqa: PLC0415
    from outrider.server.service.building import EngineSettings  # noqa: PLC0415
    from outrider.server.serving import run_server  # noqa: PLC0415
    from outrider.server.settings import ServerSettings  # noqa: PLC0415
    from outrider.server.speculation.reading import read_speculative_config  # noqa: PLC0415

    settings = ServerSettings(
        model=model,
        served_model_names=tuple(served_model_name or ()),
        engine=EngineSettings(
            backend=backend,
            dtype=dtype,
            threads=threads or usable_cores(),
            max_model_len=max_model_len,
            kv_cache_bytes=(
                None
                if kv_cache_memory is None
                else parse_memory("--kv-cache-memory", kv_cache_memory)
            ),
            prefix_caching=enable_prefix_caching,
            enforce_eager=enforce_eager,
            limits=Limits(max_num_seqs, max_num_batched_tokens),
        ),
        listen=ListenSettings(
            host=host,
            port=port,
            ssl_certfile=ssl_certfile,
            ssl_keyfile=ssl_keyfile,
            log_level=uvicorn_log_level,
            access_log=not disable_log_requests,
            drain_timeout_s=drain_timeout_s,
        ),
        limits=RequestLimits(
            prompt_tokens=max_prompt_tokens,
            max_tokens=max_tokens,
            n=max_n,
            prompts=max_prompts,
            logprobs=max_logprobs,
            stop_strings=max_stop,
            body_bytes=parse_memory("--max-body-size", max_body_size),
            constraints=ConstraintLimits(
                parse_memory("--max-schema-size", max_schema_size), max_schema_depth
            ),
        ),
        speculation=read_speculative_config(
            speculative_config,
            method=spec_method,
            model=spec_model,
            num_speculative_tokens=spec_tokens,
        ),
        seed=seed,
        chat_template=chat_template,
        generation_config=cast("GenerationConfig", generation_config),
        api_keys=keys,
        insecure=insecure,
        max_queued_requests=max_queued_requests,
        spec_decode_metrics=cast("SpecDecodeMetrics", per_request_spec_decode_metrics),
        timing_metrics=enable_per_request_metrics,
        strict_vllm_metrics=strict_vllm_metrics,
        log_stats=not disable_log_stats,
    )
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    run_server(settings, say=lambda line: console.print(line, soft_wrap=True))


def _keys(given: Sequence[str], file: Path | None, environment: str | None) -> tuple[str, ...]:
    """Return all keys; InvalidSetting for a file that has none, or for an empty one."""
    keys = [*given, *([environment] if environment else [])]
    if file is not None:
        try:
            found = file.read_text(encoding="utf-8").split()
        except (OSError, ValueError) as error:
            raise InvalidSetting(
                f"--api-key-file {file} cannot be read", "a text file", "check its name"
            ) from error
        if not found:
            raise InvalidSetting(f"--api-key-file {file} is empty", "a key", "write one into it")
        keys += found
    if not all(key.strip() for key in keys):
        raise InvalidSetting("an empty --api-key", "a key", "give one, or leave the option out")
    return tuple(keys)


def _one_of(option: str, value: str, valid: tuple[str, ...]) -> None:
    if value not in valid:
        raise InvalidSetting(
            f"{option} {value}", f"one of {', '.join(valid)}", "choose one of them"
        )


def _within(option: str, value: int | None, least: int, most: int) -> None:
    if value is not None and not least <= value <= most:
        raise InvalidSetting(
            f"{option} {value}", f"a number from {least} to {most}", "choose one of those"
        )
