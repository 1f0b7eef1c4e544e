"""`outrider probe`: what a running server can tell of its speculation, and how to get it."""

import re
import sys
import time
from typing import Annotated

import httpx2
import typer

from outrider.cli.durations import parse_duration_s
from outrider.cli.options import Debug
from outrider.cli.output import Output
from outrider.errors import InvalidSetting, NothingUsable
from outrider.records.probe.asking import MAX_TOKENS
from outrider.records.probe.exchange import Exchange
from outrider.records.probe.looking import look
from outrider.records.probe.seen import Seen
from outrider.records.sources.addresses import is_url
from outrider.report.probe.document import build_probe_report
from outrider.report.probe.formats import FORMATS, probe_format

MOST_TOKENS = 4096
_BELOW_ROOT = re.compile(r"(?:/+(?:v1(?:/+(?:chat/+completions|completions|models))?|metrics))?/*$")


def probe(
    url: Annotated[str, typer.Argument(help="Address of the server, with or without /v1.")],
    model: Annotated[
        str | None, typer.Option(help="Model to ask.  [default: the first of /v1/models]")
    ] = None,
    no_request: Annotated[
        bool, typer.Option("--no-request", help="Only read pages; send no request.")
    ] = False,
    max_tokens: Annotated[int, typer.Option(help="Length of each answer.")] = MAX_TOKENS,
    api_key: Annotated[
        str | None,
        typer.Option(envvar="OPENAI_API_KEY", help="Sent as a bearer token, never printed."),
    ] = None,
    timeout: Annotated[str, typer.Option(help="How long each request may take.")] = "60s",
    format_name: Annotated[
        str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")
    ] = "text",
    debug: Debug = False,  # noqa: ARG001  read by main()
) -> None:
    """Tell which figures on speculation a running server gives, where, and how to read them.

    Looks in a fixed order, best first: each answer in detail, summed up, in other engines' fields;
    /metrics as a difference, /metrics once; the log; the time alone. Sends two short requests.
    """
    write = probe_format(format_name)
    if not 1 <= max_tokens <= MOST_TOKENS:
        raise InvalidSetting(
            f"--max-tokens {max_tokens}", f"a number from 1 to {MOST_TOKENS}", "choose one of those"
        )
    root = _root(url)
    timeout_s = parse_duration_s("--timeout", timeout)
    with httpx2.Client(follow_redirects=True) as http:
        exchange = Exchange(
            root, http, api_key=_key(api_key), timeout_s=timeout_s, clock=time.monotonic
        )
        _say(exchange.shown, None if no_request else max_tokens)
        seen = look(exchange, model=model, max_tokens=max_tokens, requests=not no_request)
    report = build_probe_report(seen)
    console = Output()
    try:
        write(report, console)
    except BrokenPipeError:
        console.on_broken_pipe()
    if report.best is None:
        raise NothingUsable(
            f"no rung of {seen.root} tells of speculation", "at least one", _remedy(seen)
        )


def _remedy(seen: Seen) -> str:
    if seen.wants_key:
        return "give the key of the server with --api-key"
    if not seen.is_inference_server:
        return "check the address, nothing there looks like an inference server"
    return "see the reason of each rung"


def _root(url: str) -> str:
    """Return the address that all paths go below; InvalidSetting for what is no http(s) URL."""
    try:
        host = httpx2.URL(url).host if is_url(url) else ""
    except httpx2.InvalidURL:
        host = ""
    address = url.partition("?")[0].partition("#")[0]
    if not host:
        remedy = "write for instance http://localhost:8000"
        raise InvalidSetting(f"URL {address.rpartition('@')[2]!r}", "an http(s) address", remedy)
    return _BELOW_ROOT.sub("", address)


def _key(api_key: str | None) -> str | None:
    """Return the key without blanks around it; the text of an error never has it."""
    key = (api_key or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise InvalidSetting(
            "--api-key with characters that no header takes", "plain ASCII", "copy the key again"
        )
    return key or None


def _say(address: str, max_tokens: int | None) -> None:
    asked = (
        "sends no request"
        if max_tokens is None
        else f"sends two short requests (at most {max_tokens} tokens each, temperature 0), which"
        " the server's counters will include; --no-request sends none"
    )
    print(f"outrider: reads pages of {address} and {asked}", file=sys.stderr)  # noqa: T201
