import pytest
from tests.report.acceptance.builders import collected, record

from outrider.records.reading import Scope
from outrider.report.acceptance.grouping import Grouping, pooling_refused


def test_cells_of_one_k_and_engine_are_added() -> None:
    collection = collected([record([3, 1], kind="a"), record([1, 1], kind="b")])
    [(segment, totals)] = Grouping(collection).by(()).items()
    assert dict(segment) == {"scope": "request", "engine": "vllm", "k": 1}
    assert totals.counts("histogram") == (4, 2)


def test_a_key_splits_them_and_unknown_comes_last() -> None:
    collection = collected([record([3, 1], kind="b"), record([1, 1]), record([2, 0], kind="a")])
    groups = Grouping(collection).by(["kind"])
    assert [dict(segment)["kind"] for segment in groups] == ["a", "b", None]


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        (record([1, 1]), record([1, 1, 1]), "K = 1, 2"),
        (record([1, 1]), record([1, 1], scope=Scope.SERVER), "the same steps"),
        (record([1, 1]), record([1, 1], engine="sglang"), "engines differ"),
        (record([1, 1], model="m"), record([1, 1], model="n"), "model m, n"),
        (record([1, 1], method="ngram"), record([1, 1], method="eagle"), "method eagle, ngram"),
    ],
)
def test_what_must_not_be_added_stays_apart_and_pooling_is_refused_with_the_reason(
    one: object, other: object, reason: str
) -> None:
    collection = collected([one, other])  # type: ignore[list-item]
    segments = list(Grouping(collection).by(()))
    assert len(segments) == 2
    refused = pooling_refused(segments)
    assert refused is not None
    assert reason in refused


def test_lengths_are_in_the_order_of_their_numbers() -> None:
    collection = collected(
        record([1, 1], completion_tokens=tokens) for tokens in (3000, 10, 200, 600)
    )
    groups = Grouping(collection).by(["output_length"])
    assert [dict(segment)["output_length"] for segment in groups] == [
        "0–127",
        "128–511",
        "512–2047",
        "2048–8191",
    ]


def test_shared_values_are_those_that_all_of_a_segment_has() -> None:
    collection = collected(
        [record([1, 1], kind="a", language="en"), record([1, 1], kind="b", language="en")]
    )
    grouping = Grouping(collection)
    [segment] = grouping.by(())
    assert grouping.shared(segment) == {"language": "en"}
