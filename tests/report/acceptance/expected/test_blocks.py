from tests.report.acceptance.builders import collected, record, two_kinds
from tests.report.acceptance.samples import split_report

from outrider.records.collecting import Collection
from outrider.report.acceptance.blocks import Heading, Items, Paragraph, Table
from outrider.report.acceptance.building import build_acceptance_report
from outrider.report.acceptance.document import AcceptanceReport
from outrider.report.acceptance.expected.asked import read_expected
from outrider.report.acceptance.expected.blocks import TITLE, expected_blocks
from outrider.report.acceptance.expected.holding import held_against


def held(collection: Collection, wanted: str) -> AcceptanceReport:
    return held_against(build_acceptance_report(collection, sources=["a"]), read_expected(wanted))


def test_nothing_is_shown_where_nothing_was_expected() -> None:
    assert list(expected_blocks(split_report())) == []


def test_one_segment_needs_no_table() -> None:
    found = list(expected_blocks(held(collected([record([4, 3, 2, 1])] * 6), "3.9")))
    assert found[0] == Heading(TITLE, 2)
    assert not any(isinstance(each, Table) for each in found)
    [items] = [each for each in found if isinstance(each, Items)]
    assert items.entries[0].lead == "chat template: not told"
    assert any(line.startswith("Check: ") for line in items.entries[0].lines)


def test_parts_on_both_sides_of_a_figure_that_the_whole_meets_need_no_checklist() -> None:
    found = list(expected_blocks(held(two_kinds(), "3.0")))
    [table] = [each for each in found if isinstance(each, Table)]
    [(_, rows)] = table.groups
    assert {str(row[0]).partition(",")[0]: row[1] for row in rows} == {
        "K = 4": "as expected",
        "kind copy": "above",
        "kind write": "below",
    }
    assert not any(isinstance(each, Items) for each in found)
    assert [each.tone for each in found if isinstance(each, Paragraph)] == ["plain", "plain"]


def test_the_checklist_is_that_of_the_segment_with_the_most_steps_that_differs() -> None:
    small = [record([40, 5, 3, 2], engine="vllm")] * 6
    large = [record([400, 50, 30, 20], engine="sglang")] * 6
    met = [record([30, 1, 1, 900, 0, 0, 0], engine="vllm")] * 6
    found = list(expected_blocks(held(collected([*small, *large, *met]), "3.9")))
    titles = [each.text for each in found if isinstance(each, Heading)]
    assert titles == [TITLE, "What may cause it, engine sglang, K = 3"]
    told = [each for each in found if isinstance(each, Paragraph)][1:]
    assert [each.text.partition(":")[0] for each in told] == [
        "engine sglang, K = 3",
        "engine vllm, K = 3",
        "engine vllm, K = 6",
    ]
