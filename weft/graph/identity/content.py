"""Types and attributes as bytes: the same bytes for the same content, in every process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dim import Atom, Dim, SizeCall, SizeVar, is_known
from ...core.errors import GraphError
from ...core.shape import TensorType
from ..node import attr_items
from ..special import Literal


def _write_text(item: str) -> bytes:
    text = item.encode("utf-8", "surrogatepass")
    return b"s%d:%b" % (len(text), text)


PLAIN_WRITERS: dict[type, Callable[[Any], bytes]] = {
    int: lambda item: b"%d" % item,
    bool: lambda item: b"T" if item else b"F",
    str: _write_text,
    type(None): lambda _: b"N",
    type(Ellipsis): lambda _: b"...",
}
_WRITERS: dict[type, Callable[[Any], bytes]] = {
    **PLAIN_WRITERS,
    float: lambda item: item.hex().encode(),
    Literal: lambda item: item.digest.encode(),
}


class Encoder:
    """Writes types and attributes as bytes, unknown sizes by their colours.

    A size without a colour is `?`: while states are told apart, sizes are not known yet.

    writers   how attributes are written, by their classes
    """

    writers: Mapping[type, Callable[[Any], bytes]] = _WRITERS

    def __init__(self, colours: Mapping[SizeVar, bytes] | None = None) -> None:
        self._colours = {} if colours is None else colours
        self._types: dict[TensorType, bytes] = {}

    def type(self, type: TensorType) -> bytes:
        """Return a type as bytes."""
        known = self._types.get(type)
        if known is None:
            sizes = b",".join(map(self.attr, type.shape))
            known = self._types[type] = b"%b[%b]" % (type.dtype.name.encode(), sizes)
        return known

    def attr(self, item: Any) -> bytes:
        """Return an attribute as bytes."""
        kind = item.__class__
        if kind is tuple:
            return b"(%b)" % b",".join(map(self.attr, item))
        write = self.writers.get(kind)
        return self.unusual(item) if write is None else write(item)

    def unusual(self, item: Any) -> bytes:
        """Return what no writer of its class writes."""
        return self._size(item) if item.__class__ is Dim else _unusual(item)

    def has_sizes(self, types: Sequence[TensorType], attrs: tuple[Any, ...]) -> bool:
        """Tell whether there are unknown sizes in types or attributes."""
        return any(map(_has_dim, types)) or any(i.__class__ is Dim for i in attr_items(attrs))

    def _size(self, size: Any) -> bytes:
        """Return a size; its terms are sorted by content, since their own order is by name."""
        if not isinstance(size, Dim):
            return b"%d" % size
        terms = [
            b"%d*%b" % (factor, b"*".join(sorted(map(self._atom, monomial))))
            for monomial, factor in size.terms
        ]
        return b"{%b}" % b"+".join(sorted(terms))

    def _atom(self, atom: Atom) -> bytes:
        if isinstance(atom, SizeVar):
            return self._colours.get(atom, b"?")
        assert isinstance(atom, SizeCall)
        operands = [self._size(atom.a), self._size(atom.b)]
        if atom.fn != "floordiv":  # the others are symmetric, and ordered by name
            operands.sort()
        return b"%b(%b)" % (atom.fn.encode(), b",".join(operands))


def same_content(a: Any, b: Any) -> bool:
    """Tell whether two attributes are the same in type and value: 1, 1.0 and True are not."""
    if a.__class__ is not b.__class__:
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same_content, a, b))
    if isinstance(a, float):
        return a.hex() == float(b).hex()  # 0.0 is not -0.0, but nan is nan
    return bool(a == b)


def _has_dim(type: TensorType) -> bool:
    return not is_known(type.shape)


def _unusual(item: Any) -> bytes:
    if isinstance(item, np.dtype):
        return b"d" + item.name.encode()
    if isinstance(item, np.generic):  # a NumPy number where a Python one is meant
        return _WRITERS[type(item.item())](item.item())
    raise GraphError(
        f"an attribute of type {type(item).__name__} cannot be part of a graph: {item!r:.60}"
    )
