"""Tell equal kernels apart from others before their code is written.

Two kernels with one key have the same code: all that a writer can see of a kernel goes into it,
except where its buffers lie, its name and its origins. Writing text costs far more than
making a key.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from ....core.dim import Dim
from ....core.scalar.builder import Expr
from ....lower.kernels import Kernel
from ....lower.storage import Buffer, View

UNSEEN = frozenset(("name", "origins"))  # fields of kernels that do not enter their code
_PLAIN = (bool, int, str, bytes, type(None))


def kernel_key(kernel: Kernel) -> Hashable | None:
    """Return what decides about the code of a kernel, or None if it holds something unknown."""
    try:
        return (type(kernel).__name__, *_Keys().fields(kernel))
    except TypeError:
        return None


class _Keys:
    """Makes one key; buffers and expressions are numbered in the order in which they appear."""

    def __init__(self) -> None:
        self.buffers: dict[int, int] = {}
        self.exprs: dict[int, int] = {}

    def fields(self, record: Any) -> Iterator[Hashable]:
        for field in fields(record):
            if field.name not in UNSEEN:
                yield self.of(getattr(record, field.name))

    def of(self, part: Any) -> Hashable:
        if isinstance(part, _PLAIN):
            return (type(part), part)
        if isinstance(part, Dim):
            return (Dim, part)
        if isinstance(part, float):
            return part.hex()  # tells -0.0 from 0.0, and finds NaN equal to itself
        if isinstance(part, Expr):
            return self._expression(part)
        if isinstance(part, View):
            return (self._buffer(part.buffer), part.shape, part.strides, part.offset)
        if isinstance(part, (tuple, list)):
            return (type(part), *map(self.of, part))
        if is_dataclass(part):
            return (type(part), *self.fields(part))
        raise TypeError(f"{type(part).__name__} is not known to decide about code")

    def _buffer(self, buffer: Buffer) -> Hashable:
        number = self.buffers.setdefault(id(buffer), len(self.buffers))
        return (number, buffer.kind, buffer.shape, buffer.dtype.str)

    def _expression(self, root: Expr) -> Hashable:
        """Return the new part of an expression graph, one entry for each expression."""
        found: list[Hashable] = []
        stack = [root]
        while stack:
            expr = stack[-1]
            missing = [arg for arg in expr.args if id(arg) not in self.exprs]
            if id(expr) in self.exprs:
                stack.pop()
            elif missing:
                stack.extend(missing)
            else:
                stack.pop()
                self.exprs[id(expr)] = len(self.exprs)
                args = tuple(self.exprs[id(arg)] for arg in expr.args)
                found.append((expr.kind, args, expr.dtype.str, self.of(expr.data)))
        return (self.exprs[id(root)], tuple(found))
