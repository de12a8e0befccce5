"""Put numbers in for the sizes of a kernel program that every run is told."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from operator import is_
from typing import Any, TypeVar

from ..core.dim import Dim, SizeVar, evaluate, is_known, unknown_size
from ..core.scalar.builder import Expr, ScalarBuilder, postorder
from ..graph.node import map_attr
from .kernels import CallKernel, Kernel
from .storage import Buffer

T = TypeVar("T")


class AtSizes:
    """Parts of a program with numbers in the place of sizes; each part is made once.

    `known` are the identities of kernels that have no sizes, which stay as they are.
    """

    def __init__(
        self,
        sizes: Mapping[SizeVar, int],
        buffers: Iterable[Buffer] = (),
        known: Collection[int] = (),
    ) -> None:
        self.sizes = _Sizes(sizes) if sizes.__class__ is dict else sizes
        self._known = known
        self._buffers: dict[Buffer, Buffer] = {}
        self._kernels: dict[int, Kernel] = {}
        self._builder = ScalarBuilder()
        self._exprs: dict[Expr, Expr] = {}
        self.buffers = tuple(map(self.buffer, buffers))

    def buffer(self, buffer: Buffer) -> Buffer:
        """Return a buffer of known size, and what is behind it."""
        if buffer.window is None and is_known(buffer.shape):
            return buffer
        known = self._buffers.get(buffer)
        if known is None:
            known = self._buffers[buffer] = self._record(buffer)
        return known

    def kernel(self, kernel: Kernel) -> Kernel:
        """Return a kernel of known sizes."""
        if id(kernel) in self._known:
            return kernel
        known = self._kernels.get(id(kernel))
        if known is None:
            known = self._kernels[id(kernel)] = self._record(kernel)
        return known

    def part(self, part: T) -> T:
        """Return any part of a program: a view, a tuple of sizes, a kernel."""
        made: Any = part
        if part.__class__ in _PLAIN:
            return part
        if isinstance(part, Dim):
            made = evaluate(part, self.sizes)
        elif isinstance(part, Buffer):
            made = self.buffer(part)
        elif isinstance(part, Kernel):
            made = self.kernel(part)
        elif isinstance(part, Expr):
            made = self._expression(part)
        elif isinstance(part, tuple) and part.__class__ is tuple:
            made = tuple(map(self.part, part))
            made = part if all(map(is_, made, part)) else made
        elif is_dataclass(part):
            made = self._record(part)
        return made  # type: ignore[no-any-return]  # of the same type

    def _record(self, record: Any) -> Any:
        """Return a record with all of its fields at known sizes."""
        changed = {}
        for name in _names(record.__class__):
            old = getattr(record, name)
            attributes = name == "attrs" and isinstance(record, CallKernel)
            new = self._attributes(old) if attributes else self.part(old)
            if new is not old:
                changed[name] = new
        return replace(record, **changed) if changed else record

    def _attributes(self, attrs: Any) -> Any:
        return map_attr(lambda item: evaluate(item, self.sizes), attrs)

    def _expression(self, root: Expr) -> Expr:
        """Return an expression whose constants are numbers."""
        order = postorder([root])
        if not any(_has_size(expr.data) for expr in order):
            return root
        for expr in order:
            if expr not in self._exprs:
                args = tuple(self._exprs[arg] for arg in expr.args)
                data = self.part(expr.data)
                if expr.kind == "const":
                    self._exprs[expr] = self._builder.constant(data, expr.dtype)
                else:
                    self._exprs[expr] = self._builder.make(expr.kind, args, expr.dtype, data)
        return self._exprs[root]


class _Sizes(dict[SizeVar, int]):
    """Sizes; one that depends on values stands for itself."""

    def __missing__(self, variable: SizeVar) -> Any:
        return unknown_size(variable.name)


_PLAIN = frozenset((int, str, bool, float, type(None)))


@cache
def _names(record: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(record))


def _has_size(data: Any) -> bool:
    return isinstance(data, Dim) or (data.__class__ is tuple and any(map(_has_size, data)))


def has_sizes(part: Any) -> bool:
    """Tell whether a kernel, or a part of one, has a size that only a run knows."""
    kind = part.__class__
    if kind in _PLAIN:
        return False
    if kind is tuple:
        return any(map(has_sizes, part))
    if isinstance(part, Dim):
        return True
    if isinstance(part, Expr):
        return any(_has_size(expr.data) for expr in postorder([part]))
    if isinstance(part, CallKernel):
        return any(map(has_sizes, part.views))
    if is_dataclass(kind):
        return any(has_sizes(getattr(part, name)) for name in _names(part.__class__))
    return False
