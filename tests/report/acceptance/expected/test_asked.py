import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.acceptance.builders import collected, record

from outrider.errors import InvalidSetting
from outrider.records.reading import AcceptanceRecord
from outrider.report.acceptance.as_json import report_to_json
from outrider.report.acceptance.building import build_acceptance_report
from outrider.report.acceptance.expected.asked import Figure, read_expected
from outrider.report.acceptance.expected.conditions import CONDITIONS

NAMES = st.text("abcdefghijklmnopqrstuvwxyzABC0123456789-_./ ", min_size=1).map(str.strip)
NAMED = sorted(name for name, condition in CONDITIONS.items() if condition.valid == "a name")


def typed(text: str) -> Figure:
    figure = read_expected(text).of({})
    assert figure is not None
    return figure


@given(
    st.decimals(1, 9, places=2),
    st.integers(9, 64),
    st.dictionaries(st.sampled_from(NAMED), NAMES.filter(bool)),
)
def test_what_was_typed_is_what_is_read(value: object, k: int, names: dict[str, str]) -> None:
    told = {"k": str(k), **names}
    text = ",".join([str(value), *(f" {name} = {each}" for name, each in told.items())])
    figure = typed(text)
    assert figure.mean.value == float(str(value))
    assert figure.mean.k == k
    assert figure.conditions == {name: (each,) for name, each in told.items()}
    assert figure.source == text


@given(st.text(max_size=40))
def test_anything_else_is_one_line_and_never_a_stack_trace(text: str) -> None:
    with suppress(InvalidSetting):
        assert typed(text).mean.value >= 1


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("5.5", 5.45, 5.55), ("5.50", 5.495, 5.505), ("5", 5, 5), ("2e0", 2, 2)],
)
def test_a_figure_is_as_exact_as_its_decimals(text: str, low: float, high: float) -> None:
    mean = typed(text).mean
    assert [mean.low, mean.high] == pytest.approx([low, high])


def test_conditions_take_the_form_that_records_have() -> None:
    figure = typed("5.5,temperature=0.7,prompt-length=300,num_speculative_tokens=7,version=0.33")
    assert figure.conditions == {
        "temperature": ("0.5–1",),
        "prompt_length": ("128–511",),
        "k": ("7",),
        "engine_version": ("0.33",),
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("abc", "no such file"),
        ("", "is a directory"),
        ("0.5", "an acceptance rate is another figure"),
        ("nan", "at least 1"),
        ("inf", "at least 1"),
        ("-3", "at least 1"),
        ("5,k=-1", "k to be a whole number of at least 1"),
        ("5,k=0", "k to be a whole number of at least 1"),
        ("5,k=2.5", "k to be a whole number"),
        ("5,temperature=-1", "a number of at least 0"),
        ("5,temperature=nan", "a number of at least 0"),
        ("5,top_p=1.5", "up to 1"),
        ("5,engine=", "engine to be a name"),
        ("5,", "NAME=VALUE with one of template, quantisation"),
        ("5,vllm", "NAME=VALUE"),
        ("5,colour=red", "one of template"),
        ("5,k=7,k=8", "each condition once"),
        ("5.5,k=3", "no step at K = 3 gives more than 4 tokens"),
    ],
)
def test_what_cannot_be_expected_is_refused_with_the_valid_choices(text: str, told: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        read_expected(text)
    assert told in str(caught.value)


def test_a_file_that_is_no_report_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text("{}")
    with pytest.raises(InvalidSetting, match="not a report of schema"):
        read_expected(str(path))


def stored(path: Path, *records: AcceptanceRecord, by: tuple[str, ...] = ()) -> str:
    made = build_acceptance_report(collected(records, by), sources=["a"], by=by)
    path.write_text(json.dumps(report_to_json(made)), encoding="utf-8")
    return str(path)


def test_a_stored_report_tells_the_same_segment(tmp_path: Path) -> None:
    name = stored(
        tmp_path / "a.json",
        record([1, 2, 3], kind="copy", temperature=0),
        record([3, 2, 1], kind="write", temperature=0),
        by=("kind", "temperature"),
    )
    values: dict[str, str | int | None] = {
        "scope": "request",
        "engine": "vllm",
        "k": 2,
        "kind": "write",
        "temperature": "0",
    }
    figure = read_expected(name).of(values)
    assert figure is not None
    assert figure.mean.value == pytest.approx(1 + 4 / 6)
    assert figure.mean.survival == pytest.approx((3 / 6, 1 / 6))
    assert figure.conditions["temperature"] == ("0",)
    assert read_expected(name).of({**values, "kind": "prose"}) is None


def test_a_segment_of_another_engine_and_k_stands_in_where_there_is_one(tmp_path: Path) -> None:
    name = stored(tmp_path / "a.json", record([1, 2, 3], engine="sglang"))
    here: dict[str, str | int | None] = {"scope": "request", "engine": "vllm", "k": 7}
    figure = read_expected(name).of(here)
    assert figure is not None
    assert figure.conditions["engine"] == ("sglang",)
    several = stored(
        tmp_path / "b.json", record([1, 2, 3], engine="a"), record([1, 2, 3], engine="b")
    )
    assert read_expected(several).of(here) is None
