"""How pictures look: colours by kind, fonts, and how wide a text is."""

from __future__ import annotations

from typing import NamedTuple
from unicodedata import east_asian_width

FONT = "DejaVu Sans, Verdana, Geneva, sans-serif"
TITLE, SMALL = 12.0, 10.0  # sizes of fonts
LINE = 1.35  # distance of lines, in sizes of the font
INK, FAINT = "#1f2430", "#5d6675"
EDGE, FAINT_EDGE = "#7b8494", "#b9c0cb"
PAPER = "#ffffff"


class Look(NamedTuple):
    """The colours and the corners of a box."""

    fill: str
    border: str
    radius: float = 4.0


LOOKS = {
    "placeholder": Look("#d7ecff", "#2f7fc1", 14.0),
    "constant": Look("#eeeeee", "#8d8d8d", 2.0),
    "state": Look("#fff0c9", "#c79a1e", 2.0),
    "assign": Look("#ffd9b8", "#cf7420", 2.0),
    "elementwise": Look("#e3f4e1", "#5d9e57"),
    "reduction": Look("#e6e2fa", "#7566c7"),
    "contraction": Look("#ffdede", "#c65353"),
    "movement": Look("#f3f4f6", "#98a1ae"),
    "random": Look("#fbe0f4", "#b952a0"),
    "control": Look("#d9f3f1", "#2f958c"),
    "effect": Look("#fff3c4", "#b58900"),
    "general": Look("#f6ead9", "#a98352"),
    "output": Look("#d7ecff", "#2f7fc1", 14.0),
    "reference": Look("#ffffff", "#b9c0cb", 9.0),
    "scope": Look("#e9edf3", "#6d7b90", 8.0),
}
GROUPS = {
    "scope": Look("#f7f8fa", "#b4bdca", 8.0),
    "control": Look("#eefaf9", "#2f958c", 8.0),
    "subgraph": Look("#ffffff", "#8fc7c2", 6.0),
}
SOURCES = frozenset({"state", "constant"})  # their edges are drawn faintly

# Widths of the characters from " " to "~" in hundredths of the size, of DejaVu Sans and its bold
# face, which are about the widest of those that FONT can stand for.
_PLAIN = (
    *(32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64),
    *(64, 64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86),
    *(75, 79, 60, 79, 69, 63, 61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63),
    *(62, 35, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64),
    *(34, 64, 84),
)
_BOLD = (
    *(35, 46, 52, 84, 70, 100, 87, 31, 46, 46, 52, 84, 38, 42, 38, 37, 70, 70, 70, 70, 70, 70, 70),
    *(70, 70, 70, 40, 40, 84, 84, 84, 58, 100, 77, 76, 73, 83, 68, 68, 82, 84, 37, 37, 77, 64),
    *(100, 84, 85, 73, 85, 77, 72, 68, 81, 77, 110, 77, 72, 73, 46, 37, 46, 84, 50, 50, 67, 72),
    *(59, 72, 68, 44, 72, 71, 34, 34, 67, 34, 104, 71, 69, 72, 72, 49, 60, 48, 71, 65, 92, 65, 65),
    *(58, 71, 37, 71, 84),
)
_OTHER, _WIDE = 90, 110


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return how wide a text is at most."""
    table = _BOLD if bold else _PLAIN
    return size / 100 * sum(_character_width(character, table) for character in text)


def _character_width(character: str, table: tuple[int, ...]) -> int:
    code = ord(character) - 32
    if 0 <= code < len(table):
        return table[code]
    return _WIDE if east_asian_width(character) in "WF" else _OTHER


def shortened(text: str, limit: int) -> str:
    """Return a text of at most so many characters, with an ellipsis where it was cut.

    >>> shortened("a_very_long_name", 8)
    'a_very_…'
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


def box_size(title: str, details: tuple[str, ...]) -> tuple[float, float]:
    """Return the width and height of a box around a title and smaller lines."""
    widths = [text_width(title, TITLE, bold=True)]
    widths += [text_width(line, SMALL) for line in details]
    return max(widths) + 20, TITLE * LINE + SMALL * LINE * len(details) + 9
