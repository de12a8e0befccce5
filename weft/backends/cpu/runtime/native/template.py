"""Native functions written by hand: LLVM IR with names, and with fields of records.

<name>                              a number, or lines
%x = field i64, %record + <place>   what lies so many bytes behind an address, which is %at.x
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...codegen.target import Target


def module_text(target: Target, body: str, names: Mapping[str, object]) -> str:
    """Return a module of hand-written IR with its names put in, those within them too."""
    return f'target triple = "{target.triple}"\n{_filled(_FIELD.sub(_LOADED, body), names)}'


def c_string(text: str) -> str:
    """Return a text as the value of a constant that C can read."""
    return f'[{len(text) + 1} x i8] c"{text}\\00"'


def places(names: tuple[str, ...], prefix: str) -> dict[str, int]:
    """Return where the words of a record lie, in bytes, by their names with a prefix."""
    return {f"{prefix}_{name}": 8 * place for place, name in enumerate(names)}


_FIELD = re.compile(r"%([\w.]+) = field (\w+), (\S+) \+ (<\w+>)")
_LOADED = r"%at.\1 = getelementptr i8, ptr \3, i64 \4\n  %\1 = load \2, ptr %at.\1"


def _filled(text: str, names: Mapping[str, object]) -> str:
    return re.sub(r"<(\w+)>", lambda match: _filled(str(names[match[1]]), names), text)
