import re
from pathlib import Path

import pytest

from outrider.report.acceptance.html import page as html

STYLE = Path(html.__file__).with_name("page.css").read_text(encoding="utf-8")


def palette(style: str) -> dict[str, str]:
    return dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", style))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2, 1 to 21."""

    def luminance(colour: str) -> float:
        shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_formula_knows_its_ends() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_curves_stand_out_from_what_is_behind_them(scheme: str) -> None:
    light, dark = STYLE.split("@media screen and (prefers-color-scheme: dark)")
    colours = palette(light) if scheme == "light" else palette(light) | palette(dark)
    for ground in ("page", "panel"):
        for name in ("text", "quiet", "link", "problem", "check", "remark", "best"):
            assert contrast(colours[name], colours[ground]) >= 4.5, name
    assert contrast(colours["text"], colours["best-row"]) >= 4.5
    assert contrast(colours["best"], colours["best-row"]) >= 4.5
    assert contrast(colours["quiet"], colours["best-row"]) >= 4.5
    for number in range(1, 7):
        assert contrast(colours[f"series-{number}"], colours["page"]) >= 3
