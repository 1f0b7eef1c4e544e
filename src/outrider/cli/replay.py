"""`outrider replay`: what lookup drafting would have done for logged traffic."""

import io
import sys
from collections.abc import Sequence
from typing import Annotated, BinaryIO

import typer

from outrider.cli.gathering import check_keys, check_used
from outrider.cli.options import By, Debug, FormatName, ReportFile, StepCostText, format_of
from outrider.cli.output import FileOutput, Output
from outrider.cli.step_costs import read_step_cost
from outrider.cli.targets import check_target
from outrider.errors import InvalidSetting
from outrider.records.collect import usable_jobs
from outrider.records.collecting import Collection
from outrider.records.segment_keys import BASE_KEYS, IDENTITY_KEYS
from outrider.records.sources.addresses import without_password
from outrider.replay.caveats import caveats_of
from outrider.replay.logs.registry import log_format
from outrider.replay.logs.text_encoder import TextEncoder
from outrider.replay.logs.tokenizer_files import read_text_encoder
from outrider.replay.lookup.grid import Grid, chosen, numbers, whole_numbers
from outrider.replay.lookup.registry import LOOKUPS, lookup_settings
from outrider.replay.workplaces.base import Work, Workplace
from outrider.replay.workplaces.here import Here
from outrider.replay.workplaces.on_ray import OnRay
from outrider.replay.workplaces.processes import Processes
from outrider.report.acceptance.formats import report_format
from outrider.report.acceptance.replay.building import build_replay_report

Text = str | None

MOST_CACHED = 10_000_000
MOST_FACTOR = 255.0


def replay(
    logs: Annotated[
        list[str], typer.Argument(help="Files, folders, URLs, or - for standard input.")
    ],
    drafter: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join(LOOKUPS)}; repeatable.  [default: all]"),
    ] = None,
    k: Annotated[str, typer.Option("--k", help="Draft lengths K, as 4 or 1,2,8 or 1:16.")] = "1:16",
    prompt_lookup_min: Annotated[str, typer.Option(help="Shortest n-grams to look up.")] = "2",
    prompt_lookup_max: Annotated[str, typer.Option(help="Longest n-grams to look up.")] = "5",
    ngram_tie: Annotated[
        str, typer.Option(help="Which of several matches counts: recent, earliest, or both.")
    ] = "recent",
    ngram_fill: Annotated[
        bool,
        typer.Option("--ngram-fill", help="Also with drafts filled up to K with the last token."),
    ] = False,
    suffix_decoding_max_tree_depth: Annotated[
        str, typer.Option(help="Longest substrings that its trees hold.")
    ] = "24",
    suffix_decoding_max_cached_requests: Annotated[
        str, typer.Option(help="Earlier answers that it remembers; 0 for none.")
    ] = "10000",
    suffix_decoding_max_spec_factor: Annotated[
        str, typer.Option(help="Tokens drafted per token matched.")
    ] = "1.0",
    suffix_decoding_min_token_prob: Annotated[
        str, typer.Option(help="Least chance, as counted, of a drafted token.")
    ] = "0.1",  # noqa: S107  no password
    warm_cache: Annotated[
        bool,
        typer.Option("--warm-cache", help="Suffix without earlier answers too: what they add."),
    ] = False,
    step_cost: StepCostText = None,
    by: By = None,
    tokenizer: Annotated[
        Text, typer.Option(help="For text: a tokenizer.json, a model's folder or a hub id.")
    ] = None,
    vocab_size: Annotated[
        int | None, typer.Option(help="Ids from here on are bad.  [default: the tokenizer's]")
    ] = None,
    from_name: Annotated[
        Text, typer.Option("--from", help="Read all logs as this format.  [default: recognised]")
    ] = None,
    format_name: FormatName = None,
    output: ReportFile = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Threads that share the work.  [default: the cores; 1 for each file apart]"
        ),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="Processes, each with a file of its own at a time.")
    ] = None,
    ray: Annotated[
        Text,
        typer.Option(
            metavar="ADDRESS|auto",
            help="Ray cluster to spread the files over; needs outrider[ray].",
        ),
    ] = None,
    debug: Debug = False,  # noqa: ARG001  read by main()
) -> None:
    """Tell what lookup drafting would have accepted of logged answers, with no model at all.

    A lookup drafter's draft depends on the text before it alone, and verification keeps exactly
    the drafted tokens that the target says itself: the log tells which ones those are.
    """
    format_name = format_of(format_name, output)
    write_report = report_format(format_name)
    cost = None if step_cost is None else read_step_cost(step_cost)
    grid = Grid(
        prompt_lookup_min=whole_numbers("--prompt-lookup-min", prompt_lookup_min),
        prompt_lookup_max=whole_numbers("--prompt-lookup-max", prompt_lookup_max),
        ngram_tie=chosen("--ngram-tie", ngram_tie, ("recent", "earliest")),
        ngram_fill=ngram_fill,
        max_tree_depth=whole_numbers(
            "--suffix-decoding-max-tree-depth", suffix_decoding_max_tree_depth
        ),
        max_cached_requests=whole_numbers(
            "--suffix-decoding-max-cached-requests",
            suffix_decoding_max_cached_requests,
            least=0,
            most=MOST_CACHED,
        ),
        max_spec_factor=numbers(
            "--suffix-decoding-max-spec-factor", suffix_decoding_max_spec_factor, most=MOST_FACTOR
        ),
        min_token_prob=numbers(
            "--suffix-decoding-min-token-prob", suffix_decoding_min_token_prob, most=1
        ),
        warm_cache=warm_cache,
    )
    settings = lookup_settings(_listed(drafter) or tuple(LOOKUPS), grid)
    ks = whole_numbers("--k", k)
    keys = [name for name in _listed(by) if name not in {*BASE_KEYS, *IDENTITY_KEYS}]
    check_target("--output", output, logs)
    encoder = None if tokenizer is None else read_text_encoder(tokenizer)
    workplace = _workplace(processes, ray)
    work = Work(
        settings,
        ks,
        by=tuple(keys),
        jobs=_at_least_one("--jobs", jobs) or (usable_jobs() if isinstance(workplace, Here) else 1),
        encoder=encoder,
        forced=None if from_name is None else log_format(from_name),
        vocabulary_tokens=_vocabulary(vocab_size, encoder),
    )
    replayed = workplace.replay(work, logs)
    collection = replayed.collection
    check_keys(keys, collection)
    _check_used(collection)
    found = build_replay_report(
        collection,
        sources=tuple(map(without_password, logs)),
        by=keys,
        step_cost=cost,
        step_cost_text=step_cost,
        server_keys={each.name: each.server_keys for each in settings},
        caveats=caveats_of(replayed, settings, None if encoder is None else encoder.name),
        every_k=format_name == "json",
    )
    console = FileOutput(output) if output else Output()
    try:
        write_report(found, console)
    except BrokenPipeError:
        console.on_broken_pipe()
    if isinstance(console, FileOutput):
        console.save()


def _listed(names: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for some in names or () for name in some.split(",")))


def _stdin() -> BinaryIO:
    # There is no standard input at all where it was closed.
    return io.BytesIO() if sys.stdin is None else sys.stdin.buffer


def _vocabulary(asked: int | None, encoder: TextEncoder | None) -> int | None:
    if asked is not None and asked < 1:
        raise InvalidSetting(f"--vocab-size {asked}", "at least 1", "leave it out")
    if asked is None and encoder is not None:
        return encoder.vocabulary_tokens
    return asked


def _at_least_one(option: str, number: int | None) -> int | None:
    if number is not None and number < 1:
        raise InvalidSetting(f"{option} {number}", "at least 1", "leave it out")
    return number


def _workplace(processes: int | None, ray: str | None) -> Workplace:
    if processes is not None and ray is not None:
        raise InvalidSetting(
            f"--processes {processes} with --ray {ray}", "one of them", "leave the other out"
        )
    if ray is not None:
        return OnRay(ray)
    if count := _at_least_one("--processes", processes):
        return Processes(count)
    return Here(_stdin())


def _check_used(collection: Collection) -> None:
    check_used(
        collection,
        seen="no answer to replay",
        expected="prompts and completions as token ids or text",
        remedy="see docs/replay.md for what is read",
    )
