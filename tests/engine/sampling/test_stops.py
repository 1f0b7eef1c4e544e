"""Outputs cut into runs anyhow against the same outputs token by token, and by hand."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models

from outrider.engine.detokenizer import Detokenizer
from outrider.engine.sampling import SamplingParameters
from outrider.engine.sampling.stops import Delivered, Stops
from outrider.errors import InvalidSetting
from outrider.records.request import FinishReason

PIECES = ("a", "b", "ab", "ba", "aab", "<end>", "<stop>")
END, STOP = 5, 6


def tokenizer() -> Tokenizer:
    made = Tokenizer(models.WordLevel({piece: i for i, piece in enumerate(PIECES)}))
    made.decoder = decoders.Fuse()
    return made


TOKENIZER = tokenizer()


def stops(max_tokens: int = 100, **asked: Any) -> Stops:
    return Stops(
        SamplingParameters(**asked),
        end_token_ids=(END,),
        max_tokens=max_tokens,
        detokenizer=Detokenizer(TOKENIZER),
    )


@dataclass(frozen=True)
class Outcome:
    """The output's tokens and text, and why it ended."""

    tokens: tuple[int, ...]
    text: str
    reason: FinishReason | None
    stopped_by: int | str | None


def outcome(runs: list[list[int]], following: Stops) -> Outcome:
    tokens, text, last = list[int](), "", Delivered(0)
    for run in runs:
        last = following.deliver(run)
        tokens += run[: last.tokens]
        text += last.text
        if last.reason is not None:
            break
        assert last.tokens == len(run)
    return Outcome(tuple(tokens), text, last.reason, last.stopped_by)


def by_hand(tokens: list[int], max_tokens: int, asked: dict[str, Any]) -> Outcome:
    """What the same settings make of the whole output, its prefixes looked at one by one."""
    include = asked["include_stop_str_in_output"]
    ends = () if asked["ignore_eos"] else (END,)
    for count in range(1, len(tokens) + 1):
        before, token = tokens[: count - 1], tokens[count - 1]
        done = tuple(tokens[:count])
        start, text = ("".join(PIECES[each] for each in some) for some in (before, done))
        if count > asked["min_tokens"]:
            if token in (*ends, *asked["stop_token_ids"]):
                by = None if token in ends else token
                return Outcome(done, text if include else start, FinishReason.STOP, by)
            for end in range(len(start) + 1, len(text) + 1):
                found = [stop for stop in asked["stop"] if text[:end].endswith(stop)]
                if found:
                    stop = max(found, key=len)
                    shown = text[: end if include else end - len(stop)]
                    return Outcome(done, shown, FinishReason.STOP, stop)
        if count == max_tokens:
            return Outcome(done, text, FinishReason.LENGTH, None)
    raise AssertionError


@given(
    runs=st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=5), min_size=10, max_size=10),
    max_tokens=st.integers(3, 10),
    asked=st.fixed_dictionaries(
        {
            "stop": st.lists(st.text("ab", min_size=1, max_size=4), max_size=3).map(tuple),
            "include_stop_str_in_output": st.booleans(),
            "stop_token_ids": st.sampled_from([(), (STOP,), (STOP, 3)]),
            "ignore_eos": st.booleans(),
            "min_tokens": st.integers(0, 3),
        }
    ),
)
def test_an_output_ends_in_the_same_place_however_it_is_cut_into_runs(
    runs: list[list[int]], max_tokens: int, asked: dict[str, Any]
) -> None:
    tokens = [token for run in runs for token in run]
    expected = by_hand(tokens, max_tokens, asked)
    assert outcome(runs, stops(max_tokens, **asked)) == expected
    assert outcome([[token] for token in tokens], stops(max_tokens, **asked)) == expected


def test_a_stop_string_complete_in_the_middle_of_a_run_drops_the_tokens_after_it() -> None:
    following = stops(stop=("bb",))
    assert following.deliver([0, 1]) == Delivered(2, "a")  # the b is held back
    assert following.deliver([3, 0, 0]) == Delivered(1, "", FinishReason.STOP, "bb")


def test_a_stop_string_may_begin_and_end_within_tokens() -> None:
    delivered = stops(stop=("ba",)).deliver([0, 2, 4, 0])  # a, ab, aab, a
    assert delivered == Delivered(3, "aa", FinishReason.STOP, "ba")


def test_what_was_held_back_is_shown_once_the_output_ends_otherwise() -> None:
    following = stops(stop=("bb",), max_tokens=2)
    assert following.deliver([0, 1]) == Delivered(2, "ab", FinishReason.LENGTH)
    assert stops(stop=("bb",)).deliver([1, END]) == Delivered(2, "b", FinishReason.STOP)


def test_an_end_token_is_part_of_the_output_and_its_text_only_where_wanted() -> None:
    assert stops().deliver([0, END, 1]) == Delivered(2, "a", FinishReason.STOP)
    included = stops(include_stop_str_in_output=True, stop_token_ids=(STOP,))
    assert included.deliver([0, STOP, 1]) == Delivered(2, "a<stop>", FinishReason.STOP, STOP)


def test_a_model_without_an_end_token_goes_on_to_the_most_tokens() -> None:
    following = Stops(SamplingParameters(), end_token_ids=(), max_tokens=3)
    assert following.deliver([END, END]) == Delivered(2)
    assert following.deliver([END, END]) == Delivered(1, "", FinishReason.LENGTH)


def test_any_of_several_end_tokens_ends_the_output() -> None:
    for token in (3, 5):
        following = Stops(SamplingParameters(), end_token_ids=(3, 5), max_tokens=9)
        assert following.deliver([token]).reason is FinishReason.STOP


def test_the_last_token_allowed_may_still_be_a_stop() -> None:
    assert stops(max_tokens=1).deliver([END]).reason is FinishReason.STOP


def test_stop_strings_need_text() -> None:
    with pytest.raises(InvalidSetting, match="stop strings 'x' without any text"):
        Stops(SamplingParameters(stop=("x",)), end_token_ids=(), max_tokens=1)
