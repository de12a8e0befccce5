"""Control flow whose bodies keep unknown sizes, in a graph that has none.

A body in which a size is born (the number of elements that a mask selects) cannot be specialised.
It runs by the interpreter, which must be told the sizes of the program around it.
"""

from __future__ import annotations

from typing import Any

from ..graph.control.ops import ControlOp
from ..graph.run import Sizes


class SizedControl(ControlOp):
    """Control flow that knows the sizes around it."""

    def __init__(self, op: ControlOp, known: Sizes) -> None:
        super().__init__(op.name, tuple(op.attrs))
        self.form = op
        self.known = known
        self.type_rule = op.type_rule  # type: ignore[attr-defined]  # each kind has its own

    def kernel(self, *operands: Any, sizes: Sizes) -> Any:
        """Run the bodies by the interpreter."""
        return self.form.kernel(*operands, sizes={**self.known, **sizes})


def with_sizes(op: ControlOp, known: Sizes) -> SizedControl:
    """Return an operation that runs with sizes given."""
    return SizedControl(op, known)
