"""What all segments share is told once, not in every name."""

from dataclasses import replace

from tests.report.acceptance.samples import one_segment, split_report

from outrider.report.acceptance.document import AcceptanceReport
from outrider.report.acceptance.short_names import with_short_names


def named(*names: str, whole: str) -> AcceptanceReport:
    report = split_report()
    segments = tuple(
        replace(each, name=name) for each, name in zip(report.segments, names, strict=True)
    )
    [undivided] = (replace(each, name=whole) for each in report.whole)
    return replace(report, segments=segments, whole=(undivided,), pooled=undivided)


def test_shared_values_leave_the_names() -> None:
    report = named("kind chat, model x, K = 4", "kind copy, model x, K = 4", whole="model x, K = 4")

    short, shared = with_short_names(report)

    assert shared == "model x, K = 4"
    assert [each.name for each in short.segments] == ["kind chat", "kind copy"]
    assert [each.name for each in short.whole] == ["all"]
    assert short.pooled in short.whole


def test_names_that_differ_in_all_stay() -> None:
    report = named("K = 1", "K = 8", whole="K unknown")

    assert with_short_names(report) == (report, "")


def test_a_single_name_stays() -> None:
    assert with_short_names(one_segment()) == (one_segment(), "")
