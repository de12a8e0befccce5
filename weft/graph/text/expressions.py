"""What stands in a node, as Python expressions: sizes, types, attributes, arrays, names."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...core.dim import Atom, Dim, SizeCall, SizeVar
from ...core.dtype import is_float
from ...core.errors import GraphError
from ...core.shape import TensorType
from ..builder import ELEMENT_NAMES
from ..debug.effects import PythonCallback
from ..node import is_graph

Array = np.ndarray[Any, Any]
INLINE = 16  # elements up to which a constant is written down

_CALLS = {"min": "F.size_min", "max": "F.size_max", "broadcast": "F.size_broadcast"}


class Names:
    """Names of variables: identifiers, each given once."""

    def __init__(self, reserved: set[str]) -> None:
        self.taken = set(reserved)
        self._next: dict[str, int] = {}

    def give(self, wanted: str) -> str:
        """Return a free identifier close to a wanted name."""
        base = _identifier(wanted)
        name = base
        while name in self.taken:
            self._next[base] = self._next.get(base, 0) + 1
            name = f"{base}_{self._next[base]}"
        self.taken.add(name)
        return name


def _identifier(text: str) -> str:
    plain = re.sub(r"[^0-9A-Za-z_]+", "_", text.rpartition("/")[2] or text)
    if not plain or plain[0].isdigit() or plain.strip("_") == "":
        plain = f"v{plain}"
    # Two underscores in front mean something else in a class, and to readers.
    plain = plain if not plain.startswith("__") else f"v{plain}"
    return f"{plain}_" if keyword.iskeyword(plain) or keyword.issoftkeyword(plain) else plain


class Expressions:
    """Writes what stands in nodes; notes which names of the builder the text needs.

    sizes    the variables that hold unknown sizes
    bodies   the functions that stand for subgraphs, by the id of the graph
    """

    def __init__(self, sizes: Mapping[SizeVar, str]) -> None:
        self.sizes = sizes
        self.bodies: dict[int, str] = {}
        self.imports: set[str] = set()

    def type(self, type: TensorType) -> str:
        """Return a type, e.g. `float32[n, 3]`."""
        sizes = ", ".join(map(self.attr, type.shape))
        return f"{self.dtype(type.dtype)}[{sizes or '()'}]"

    def dtype(self, dtype: Any) -> str:
        """Return an element type."""
        name = ELEMENT_NAMES[dtype.name]
        self.imports.add(name)
        return name

    def attr(self, item: Any) -> str:
        """Return an attribute."""
        if item is None or item is Ellipsis:
            return "..." if item is Ellipsis else "None"
        for kind, write in _WRITERS:
            if isinstance(item, kind):
                return write(self, item)
        if is_graph(item):
            return self.bodies[id(item)]
        raise GraphError(f"cannot print an attribute of type {type(item).__name__}: {item!r:.60}")

    def _tuple(self, items: tuple[Any, ...]) -> str:
        inside = ", ".join(map(self.attr, items))
        return f"({inside},)" if len(items) == 1 else f"({inside})"

    def array(self, array: Array) -> str | None:
        """Return a small array as numbers or bits, and its type; None for a large one."""
        if array.size > INLINE:
            return None
        numbers = self._numbers(array)
        content = quoted(array.tobytes().hex()) if numbers is None else numbers
        return f"{content}, {self.type(TensorType(array.shape, array.dtype))}"

    def _numbers(self, array: Array) -> str | None:
        """Return the numbers of an array if they make the same bits again."""
        flat = array.reshape(-1)
        texts = [self._number(x) for x in flat]
        values = [_value(text) for text in texts]
        if np.array(values, array.dtype).tobytes() != flat.tobytes():
            return None
        return _nested(texts, array.shape)

    def _number(self, x: Any) -> str:
        if not is_float(x.dtype):
            return repr(x.item())
        short = str if x.dtype.kind == "f" else (lambda value: repr(float(value)))
        return self._float(x, short)

    def _float(self, x: Any, finite: Callable[[Any], str]) -> str:
        value = float(x)
        if math.isfinite(value):
            return finite(x)
        name = "nan" if math.isnan(value) else "inf"
        self.imports.add(name)
        return f"-{name}" if value < 0 else name

    def _size(self, size: Any) -> str:
        if not isinstance(size, Dim):
            return str(size)
        text = " + ".join(self._term(*term) for term in size.terms)
        return text.replace("+ -", "- ")

    def _term(self, monomial: tuple[Atom, ...], factor: int) -> str:
        atoms = "*".join(map(self._atom, monomial))
        if not atoms:
            return str(factor)
        return atoms if factor == 1 else f"-{atoms}" if factor == -1 else f"{factor}*{atoms}"

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, SizeVar):
            return self.sizes[atom]
        assert isinstance(atom, SizeCall)
        a, b = self._size(atom.a), self._size(atom.b)
        if atom.fn == "floordiv":
            return f"(({a}) // ({b}))" if " " in a + b else f"({a} // {b})"
        return f"{_CALLS[atom.fn]}({a}, {b})"


_WRITERS: tuple[tuple[Any, Callable[[Expressions, Any], str]], ...] = (
    (tuple, Expressions._tuple),
    (np.generic, lambda self, item: self.attr(item.item())),
    ((bool, int), lambda _, item: repr(item)),
    (float, lambda self, item: self._float(item, repr)),
    (str, lambda _, item: quoted(item)),
    (Dim, Expressions._size),
    (np.dtype, Expressions.dtype),
    (PythonCallback, lambda _, item: quoted(repr(item))),
)


def quoted(text: str) -> str:
    """Return a string in double quotes, where that needs no escapes."""
    return repr(text) if '"' in text or "'" in text else f'"{repr(text)[1:-1]}"'


def _value(text: str) -> bool | int | float:
    if text in ("True", "False"):
        return text == "True"
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _nested(texts: list[str], shape: tuple[int, ...]) -> str:
    """Return numbers in brackets as a shape nests them; flat if there are none."""
    if not shape:
        return texts[0]
    if not texts:
        return "[]"
    step = len(texts) // shape[0]
    rows = [texts[i : i + step] for i in range(0, len(texts), step)]
    return f"[{', '.join(_nested(row, shape[1:]) for row in rows)}]"
