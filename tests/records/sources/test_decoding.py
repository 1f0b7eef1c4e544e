"""Whatever is no JSON is one kind of exception, and objects are found where they stand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.records.sources.decoding import NotJson, decoded, objects_in

objects = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
        max_leaves=5,
    ),
    max_size=3,
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "cut off"),
        (b'{"a": 1', "cut off"),
        (b'{"a": NaN}', "not JSON"),
        (b'{"a": 1e999}', "out of range"),
        (b'{"a": "\\ud800 and more"}', "not JSON"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "out of range"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_has_a_reason(text: bytes, reason: str) -> None:
    with pytest.raises(NotJson, match=reason):
        decoded(text)


def test_a_count_beyond_64_bits_is_read_exactly() -> None:
    assert decoded(b"[1000000000000000000000000000000]") == [10**30]


@given(st.binary())
def test_no_bytes_raise_anything_else(text: bytes) -> None:
    try:
        value = decoded(text)
    except NotJson:
        return
    assert json.loads(text) == value


@given(st.lists(objects, min_size=1), st.booleans(), st.sampled_from(["", "\n", " ", "\r\n"]))
def test_objects_are_found_in_a_list_and_side_by_side(
    values: list[dict[str, object]], as_list: bool, gap: str
) -> None:
    parts = [json.dumps(value, indent=2) for value in values]
    text = f"[{gap}{(',' + gap).join(parts)}{gap}]" if as_list else gap.join(parts)
    found = [*objects_in(text.encode())]
    assert [json.loads(one) for _, one in found] == values
    assert all(text.encode()[start : start + len(one)] == one for start, one in found)


@given(st.lists(objects, min_size=1, max_size=4), st.data())
def test_objects_before_the_cut_are_found(
    values: list[dict[str, object]], data: st.DataObject
) -> None:
    text = json.dumps(values).encode()
    cut = data.draw(st.integers(1, len(text) - 1))
    whole: list[object] = []
    position = 1
    for value in values:
        position = text.index(json.dumps(value).encode(), position) + len(json.dumps(value))
        whole += [value] if position <= cut else []
    assert [json.loads(one) for one in _until_the_end(text[:cut])] == whole


def _until_the_end(text: bytes) -> list[bytes]:
    found = []
    try:
        for _, one in objects_in(text):
            found.append(one)
    except NotJson:
        pass
    return found


def test_what_stands_between_objects_is_told() -> None:
    with pytest.raises(NotJson, match="something else"):
        [*objects_in(b'[{"a": 1}, garbage, {"a": 2}]')]


def test_a_string_that_never_ends_takes_linear_time() -> None:
    with pytest.raises(NotJson):
        [*objects_in(b'{"a": "' + b'\\"' * 300_000)]
