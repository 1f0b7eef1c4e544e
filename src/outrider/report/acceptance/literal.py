"""Words from a source made safe to show: nothing in them acts on a terminal or a page."""

import unicodedata

LONGEST = 200
_ACTING = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}


def literal(text: str, longest: int | None = LONGEST) -> str:
    r"""Return the text on one line, what would act written as an escape, cut beyond `longest`.

    >>> literal("red \x1b[31m\nalert")
    'red \\x1b[31m\\nalert'
    """
    shown = text if longest is None or len(text) <= longest else f"{text[: longest - 1]}…"
    if shown.isascii() and shown.isprintable():
        return shown
    return "".join(map(_visible, shown))


def _visible(character: str) -> str:
    if unicodedata.category(character) in _ACTING:
        return character.encode("unicode_escape").decode("ascii")
    return character
