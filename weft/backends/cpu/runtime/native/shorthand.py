"""Shorthand for native functions that work on columns of whole numbers, on top of template.py.

%x = item %column[%i]           the number in a place
item %column[%i] = %x           puts it there
%x = more %column[%i]           takes what is there, and puts one more there
for %i = %a to %b ... next %i   a loop over numbers, below the last one
when %yes ... end %yes          what is done if a bit is set

Loops and conditions may stand in one another. Their labels are `i.end` and the like, and the number
of the next turn is %i.after.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import count

_WORD = r"%[\w.]+|-?\d+"
_PLACE = rf"(?P<column>%[\w.]+)\[(?P<place>{_WORD})\]"
_FORMS = (
    (rf"(?P<word>%[\w.]+) = item {_PLACE}", ["{word} = load i64, ptr {at}, align 8"]),
    (rf"item {_PLACE} = (?P<word>{_WORD})", ["store i64 {word}, ptr {at}, align 8"]),
    (
        rf"(?P<word>%[\w.]+) = more {_PLACE}",
        [
            "{word} = load i64, ptr {at}, align 8",
            "{at}.more = add i64 {word}, 1",
            "store i64 {at}.more, ptr {at}, align 8",
        ],
    ),
)
_BLOCKS = {
    rf"  for %(\w+) = ({_WORD}) to ({_WORD})": r"""  br label %\1.begin
\1.begin:
  br label %\1.test
\1.test:
  %\1 = phi i64 [ \2, %\1.begin ], [ %\1.after, %\1.next ]
  %\1.is.left = icmp slt i64 %\1, \3
  br i1 %\1.is.left, label %\1.one, label %\1.end
\1.one:""",
    r"  next %(\w+)": r"""  br label %\1.next
\1.next:
  %\1.after = add i64 %\1, 1
  br label %\1.test
\1.end:""",
    r"  when %(\w+)": r"""  br i1 %\1, label %\1.so, label %\1.end
\1.so:""",
    r"  end %(\w+)": r"""  br label %\1.end
\1.end:""",
}


def spelled_out(text: str) -> str:
    """Return functions without shorthand."""
    numbers = count()
    for pattern, lines in _FORMS:
        text = re.sub(pattern, partial(_at_place, lines=lines, numbers=numbers), text)
    for pattern, block in _BLOCKS.items():
        text = re.sub(rf"^ *{pattern}$", block, text, flags=re.MULTILINE)
    return text


def _at_place(found: re.Match[str], lines: list[str], numbers: Iterator[int]) -> str:
    """Return lines that find a place in a column, and do something there."""
    at = f"%place.{next(numbers)}"
    first = f"{at} = getelementptr i64, ptr {found['column']}, i64 {found['place']}"
    return "\n  ".join([first, *[line.format(word=found["word"], at=at) for line in lines]])
