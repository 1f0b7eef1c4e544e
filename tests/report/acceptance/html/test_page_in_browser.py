"""The page as a browser shows it: drawn without errors, readable on a phone and in the dark."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from io import StringIO
from itertools import combinations
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FloatRect, Locator, Page, sync_playwright
from rich.console import Console
from tests.report.acceptance.samples import SAMPLES, hostile, split_report

from outrider.report.acceptance.definitions import DEFINITIONS
from outrider.report.acceptance.document import AcceptanceReport
from outrider.report.acceptance.html.page import write_html

PHONE, DESKTOP, A4 = (375, 812), (1280, 900), (700, 1000)
CHROMIUM = shutil.which("chromium")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH")


@dataclass
class Opened:
    """A page with all that went wrong in it, and what it asked for besides itself."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture
def opened(browser: Browser, folder: Path) -> Iterator[Open]:
    """Opens a report; all is closed after the test."""
    contexts = []

    def open_report(
        report: AcceptanceReport,
        size: tuple[int, int] = DESKTOP,
        *,
        dark: bool = False,
        scripts: bool = True,
        touch: bool = False,
    ) -> Opened:
        file = folder / f"{len(list(folder.iterdir()))}.html"
        text = StringIO()
        write_html(report, Console(file=text))
        file.write_text(text.getvalue(), encoding="utf-8")
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            has_touch=touch,
            is_mobile=touch,
            offline=True,
        )
        contexts.append(context)
        page = context.new_page()
        found = Opened(page)
        page.on("console", lambda message: found.complaints.append(message.text))
        page.on("pageerror", lambda error: found.complaints.append(str(error)))
        page.on("request", lambda request: found.requests.append(request.url))
        page.goto(file.as_uri())
        found.requests.remove(file.as_uri())
        if scripts:
            for plot in page.locator(".plot").all():
                plot.locator("svg").wait_for()
        return found

    yield open_report
    for context in contexts:
        context.close()


def box(locator: Locator) -> FloatRect:
    found = locator.bounding_box()
    assert found is not None
    return found


def covered(page: Page) -> list[tuple[str, str]]:
    """The texts of headings, tables, charts and flags that lie on top of each other."""
    blocks = page.evaluate(
        """[...document.querySelectorAll("h1, h2, h3, .scroll, figure, summary, .flag, .notes")]
        .filter((each) => each.checkVisibility() && !each.parentElement.closest(".flag"))
        .map((each) => [each.textContent.slice(0, 60), each.getBoundingClientRect()])
        .map(([text, at]) => ({
            text, left: at.left, top: at.top, right: at.right, end: at.bottom
        }))"""
    )
    assert len(blocks) > 10
    return [
        (one["text"], other["text"])
        for one, other in combinations(blocks, 2)
        if min(one["right"], other["right"]) - max(one["left"], other["left"]) > 0.5
        and min(one["end"], other["end"]) - max(one["top"], other["top"]) > 0.5
    ]


def colour(locator: Locator, property_name: str) -> str:
    script = "(element, name) => getComputedStyle(element)[name]"
    return str(locator.evaluate(script, property_name))


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("name", SAMPLES)
def test_every_report_opens_without_a_complaint_and_fits(
    name: str, size: tuple[int, int], opened: Open
) -> None:
    found = opened(SAMPLES[name](), size)
    page = found.page
    assert found.complaints == []
    assert found.requests == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    for plot in page.locator(".plot").all():
        shown = box(plot)
        assert shown["width"] > 200
        assert shown["height"] > 60
        assert shown["x"] >= 0
        assert shown["x"] + shown["width"] <= size[0]
        assert plot.locator("svg [class*='mark-'] path").count() > 0
        drawn = box(plot.locator("svg"))
        assert drawn["width"] <= shown["width"] + 1
    assert covered(page) == []


def test_wide_tables_scroll_in_their_own_box_and_keep_their_row_headings(opened: Open) -> None:
    page = opened(split_report(), PHONE).page
    scrolling = page.locator("#segments .scroll").first
    heading = scrolling.locator("tbody th").first
    before = box(heading)["x"]
    assert scrolling.evaluate("box => { box.scrollLeft = 500; return box.scrollLeft; }") > 100
    assert box(heading)["x"] == pytest.approx(before, abs=1)


def test_all_that_is_promised_is_drawn(opened: Open) -> None:
    page = opened(split_report()).page
    titles = page.locator("figure .title").all_inner_texts()
    assert titles == [
        "Mean acceptance length M with 95 % intervals",
        "K = 4",
        "kind=copy",
        "kind=chat",
        "M by output position",
        "kind=copy",
        "kind=chat",
    ]
    survival = page.locator("#positions figure").first
    assert survival.locator(".mark-area path").count() == 2
    dashes = survival.locator(".mark-line path").evaluate_all(
        "curves => curves.map((curve) => curve.getAttribute('stroke-dasharray'))"
    )
    assert sorted(dashes) == ["1,0", "1,0", "5,4", "5,4"]
    assert page.locator("#positions .small .mark-rect path").count() == 10
    assert page.locator("#draft-length svg").first.get_by_text("best: K = 4").count() == 1


def test_bars_are_as_high_as_their_shares(opened: Open) -> None:
    page = opened(split_report()).page
    bars = page.locator("#positions .small figure").first.locator(".mark-rect path").all()
    heights = [box(bar)["height"] for bar in bars]
    expected = [51, 30, 27, 21, 207]
    for height, steps in zip(heights, expected, strict=True):
        assert height / sum(heights) == pytest.approx(steps / sum(expected), abs=0.01)


def test_a_bar_tells_count_and_share_under_the_pointer(opened: Open) -> None:
    page = opened(split_report()).page
    bar = page.locator("#positions .small figure").first.locator(".mark-rect path").nth(4)
    bar.hover()
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert tooltip.inner_text().split() == [
        *("accepted", "tokens", "4", "steps", "207", "share", "of", "steps", "61.6%"),
    ]


def test_definitions_and_reasons_show_under_the_pointer_and_the_focus(opened: Open) -> None:
    page = opened(replace(SAMPLES["estimated"](), definitions=DEFINITIONS)).page
    tip = page.locator("#tip")
    assert not tip.is_visible()
    page.locator("#segments .term", has_text="Mean acceptance length").hover()
    tip.wait_for()
    assert "1 + A/S" in tip.inner_text()
    page.locator("#segments tbody td").nth(3).hover()
    tip.get_by_text("draft acceptance rate").wait_for()
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    page.mouse.move(1, 1)
    page.locator("#segments .why").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    tip.wait_for()
    assert "does not tell K" in tip.inner_text()


def test_a_tap_shows_the_definition_and_stays_where_it_is(opened: Open) -> None:
    page = opened(replace(split_report(), definitions=DEFINITIONS), PHONE, touch=True).page
    address = page.url
    page.locator("#segments .term", has_text="Mean acceptance length").first.tap()
    tip = page.locator("#tip")
    tip.wait_for()
    assert "1 + A/S" in tip.inner_text()
    assert page.url == address
    shown = box(tip)
    assert shown["x"] >= 0
    assert shown["x"] + shown["width"] <= PHONE[0]
    page.locator("h1").tap()
    assert not tip.is_visible()


def test_the_dark_page_is_dark_and_its_charts_with_it_but_paper_is_not(opened: Open) -> None:
    page = opened(split_report(), dark=True).page
    chosen = [
        *((page.locator(each).first, "backgroundColor") for each in ("body", ".flag", "thead th")),
        (page.locator("p.verdict"), "color"),
        (page.locator("#positions .mark-rect path").first, "fill"),
        (page.locator("#positions .mark-line path").first, "stroke"),
        (page.locator("#positions .role-axis-label text").first, "fill"),
    ]
    dark = [colour(*each) for each in chosen]
    page.emulate_media(color_scheme="light")
    light = [colour(*each) for each in chosen]
    assert all(each.startswith("rgb(") for each in (*dark, *light))
    assert all(one != other for one, other in zip(dark, light, strict=True))
    page.emulate_media(color_scheme="dark", media="print")
    assert [colour(*each) for each in chosen] == light


def test_charts_keep_to_the_width_when_it_changes(opened: Open) -> None:
    page = opened(split_report()).page
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


def test_print_unfolds_everything_and_fits_the_paper(opened: Open) -> None:
    page = opened(SAMPLES["many_segments"](), A4).page
    folded = page.locator("#positions details").last.locator("table")
    assert not folded.is_visible()
    page.emulate_media(media="print")
    assert folded.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= A4[0]


def test_without_scripts_every_number_is_still_there(opened: Open) -> None:
    page = opened(split_report(), scripts=False).page
    assert not page.locator("figure").first.is_visible()
    shown = page.locator("main").inner_text()
    for number in ("3.90", "3.78–4.03", "61.6", "207", "218.6", "+1,713", "4.11"):
        assert number in shown
    page.locator("#segments .term").first.click()
    assert "#d-" in page.url


@pytest.mark.parametrize(
    "text",
    [
        "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">",
        "x" * 3000,
        "</script><script>document.title='owned'</script>{{ 7 * 7 }}\u202e'\"",
    ],
    ids=["markup", "endless", "mixed"],
)
def test_hostile_words_neither_act_nor_burst_the_page(text: str, opened: Open) -> None:
    found = opened(hostile(text), PHONE)
    assert found.complaints == []
    assert found.requests == []
    assert found.page.title() == "Acceptance report – Outrider"
    assert found.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
