"""Calls of operators by the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...core import facts
from ...core.dim import Dim, is_told
from ...core.shape import Shape
from ...graph.node import attr_items
from ..storage import Buffer, View
from .base import Kernel, Origins, maybe_within

if TYPE_CHECKING:
    from ..checks import Verifier
    from ..text import Text


@dataclass(frozen=True, slots=True)
class CallKernel(Kernel):
    """A call of an operator's own kernel on arrays, by the host.

    attrs   the operator's attributes; those of control flow hold functions
    """

    kind = "library"

    name: str
    op: Any
    inputs: tuple[View | None, ...]
    outputs: tuple[View, ...]
    attrs: tuple[Any, ...] = ()
    origins: Origins = ()

    @property
    def views(self) -> list[View]:
        """Return what is read and written."""
        return [view for view in (*self.inputs, *self.outputs) if view is not None]

    @property
    def written(self) -> frozenset[int]:
        """Return the results."""
        views = len(self.views)
        return frozenset(range(views - len(self.outputs), views))

    @property
    def shape(self) -> Shape:
        """Return the shape of what it gives first."""
        return self.outputs[0].shape if self.outputs else ()

    @property
    def is_dynamic(self) -> bool:
        """Tell whether it needs, takes or gives a size that only a run can tell."""
        told = all(is_told(view.shape) for view in self.views)
        items = (item for item in attr_items(self.attrs) if item.__class__ is Dim)
        return not told or not is_told(items)

    @property
    def operations(self) -> int:
        """Count as the operator says."""
        if self.is_dynamic:
            return 0
        shapes = [None if view is None else view.shape for view in self.inputs]
        return facts.operations(self.op, shapes, self.attrs, self.outputs[0].shape)

    def within(self, buffers: Mapping[Buffer, Buffer]) -> CallKernel:
        """Return the same call over other buffers."""
        inputs = tuple(maybe_within(view, buffers) for view in self.inputs)
        outputs = tuple(view.within(buffers) for view in self.outputs)
        return replace(self, inputs=inputs, outputs=outputs)

    def verify(self, v: Verifier) -> None:
        """Check how many operands and results there are, and where they lie."""
        op, given = self.op, len(self.inputs)
        least = len(op.inputs) - 1 if op.variadic else 0
        if not least <= given or (not op.variadic and given > len(op.inputs)):
            v.fail(f"{op.name} takes {len(op.inputs)} operands. Received: {given}")
        if len(self.attrs) != len(op.attrs):
            v.fail(f"{op.name} has {len(op.attrs)} attributes. Received: {len(self.attrs)}")
        for view in self.views:
            v.view(view, "an operand")

    def lines(self, text: Text) -> list[str]:
        """Return the call."""
        given = ["None" if view is None else text.view(view) for view in self.inputs]
        shown = [f"{value!r:.40}" for value in self.attrs]
        results = ", ".join(map(text.view, self.outputs))
        return [text.head(self), f"{results} = {self.op.name}({', '.join((*given, *shown))})"]
