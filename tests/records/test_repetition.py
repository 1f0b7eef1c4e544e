import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.repetition import FEWEST_CHARACTERS, LONGEST_UNIT, is_repetitive

CAPTURED = Path(__file__).parent / "cases" / "vllm" / "bodies.jsonl"


@given(
    st.text(min_size=1, max_size=LONGEST_UNIT),
    st.integers(4, 40),
    st.integers(0, LONGEST_UNIT - 1),
)
def test_a_unit_over_and_over_is_repetitive(unit: str, times: int, more: int) -> None:
    text = unit * times + unit[: more % len(unit)]
    assert is_repetitive(text) == (len(text) >= FEWEST_CHARACTERS)


@given(
    st.text("abcde ", min_size=1, max_size=30),
    st.lists(st.integers(0, 10**6), max_size=8),
)
def test_a_few_wrong_characters_change_nothing(unit: str, wrong: list[int]) -> None:
    text = list(unit * (400 // len(unit)))
    for place in wrong:
        text[place % len(text)] = "#"
    assert is_repetitive("".join(text))


@given(st.permutations([chr(code) for code in range(0x4E00, 0x4E00 + 300)]), st.integers(0, 300))
def test_text_without_a_repeated_character_is_not_repetitive(text: list[str], length: int) -> None:
    assert not is_repetitive("".join(text[:length]))


@given(st.text(max_size=400), st.integers(1, 5))
def test_text_is_judged_by_its_end(text: str, times: int) -> None:
    end = "a lighthouse keeper wrote it down in ink " * 60
    assert is_repetitive(text * times + end)


def test_words_and_numbers_in_order_are_not_repetitive() -> None:
    assert not is_repetitive(", ".join(map(str, range(1, 200))))
    assert not is_repetitive("The clockmaker opened the old clock and found a note in its case.")
    assert not is_repetitive(
        "\n".join(json.dumps({"id": n, "name": chr(97 + n % 26)}) for n in range(3))
    )


def _answers() -> dict[str, str]:
    texts = {}
    for line in CAPTURED.read_text("utf-8").splitlines():
        case = json.loads(line)
        for choice in case["body"].get("choices", ()):
            texts[case["case"]] = choice.get("text") or choice["message"]["content"]
    return texts


@pytest.mark.parametrize(("case", "text"), _answers().items())
def test_captured_answers_of_sound_runs_are_not_repetitive(case: str, text: str) -> None:
    assert is_repetitive(text) is False, case
