"""What has a size that values decide: how many elements a mask selects, steps a loop takes.

Such values have no place in memory that is planned: they are arrays of their own, made by reference
kernels while the program runs. All else of the program is compiled as usual.
"""

from __future__ import annotations

from ..core.dim import Dim, is_told
from ..graph.node import Node, Value, attr_items
from .storage import Buffer, View

OBJECT = "object"  # the kind of buffers that are arrays of their own


def is_dynamic(node: Node) -> bool:
    """Tell whether a node needs, takes or gives a size that depends on values."""
    values = (*node.outputs, *(x for x in node.inputs if x is not None))
    if not all(is_told(value.shape) for value in values):
        return True
    return any(item.__class__ is Dim and not is_told([item]) for item in attr_items(node.attrs))


def array_of_its_own(value: Value) -> View:
    """Return the view of a value whose shape is not known yet."""
    return View(Buffer(OBJECT, value.shape, value.dtype, value.name), value.shape, ())
