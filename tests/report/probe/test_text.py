"""The report on a probe as it is printed."""

import io

import pytest
from rich.console import Console

from outrider.records.probe.looking import NO_REQUEST
from outrider.records.probe.seen import Missing, Seen
from outrider.report.probe.document import build_probe_report
from outrider.report.probe.text import write_text


def printed(engine: str | None, version: str | None, width: int = 100) -> str:
    seen = Seen(
        root="http://host:8000",
        has_key=False,
        engine=engine,
        version=version,
        models=("a-model",),
        model="a-model",
        metrics=Missing("/metrics cannot be read: status 500", asked=True, status=500),
        plain=NO_REQUEST,
        streamed=NO_REQUEST,
        requests_sent=0,
    )
    out = io.StringIO()
    write_text(build_probe_report(seen), Console(file=out, width=width))
    return out.getvalue()


@pytest.mark.parametrize(
    ("engine", "version", "told"),
    [
        ("vllm", "0.32.0", "vLLM 0.32.0, model a-model; no request sent"),
        ("vllm", None, "vLLM, version unknown, model a-model"),
        (None, "0.32.0", "engine unknown, version 0.32.0, model a-model"),
        (None, None, "engine unknown, version unknown, model a-model"),
    ],
)
def test_a_version_is_that_of_an_engine_only_where_that_is_known(
    engine: str | None, version: str | None, told: str
) -> None:
    assert told in printed(engine, version)


def test_a_reason_that_several_rungs_share_is_said_once() -> None:
    text = printed("vllm", "0.32.0")
    assert text.count("No request was sent") == 1
    assert text.count("As 1") == 2
    assert text.count("As 4") == 1


def test_what_is_below_next_can_be_pasted_whole() -> None:
    lines = printed(None, None, width=60).partition("Next\n")[2].splitlines()
    shell = [line.strip() for line in lines if not line.startswith("  #")]
    comments = [line.strip() for line in lines if line.startswith("  #")]
    assert "vllm serve a-model … 2>&1 | tee server.log" in shell
    assert "outrider report server.log" in shell
    assert max(len(line) for line in comments) <= 58
