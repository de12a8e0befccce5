"""Products of matrices and vectors as one kind of kernel.

    matmul   (..., m, k) (..., k, n)   batch axes broadcast; a vector stands for one row or column
    linear   (..., k) (n, k) (n)       the batch axes have one matrix in common

Operands may lie in any way: transposed and sliced ones are read by their strides. Batch axes are
given as they are; where they go on evenly the code generator takes them as rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.graph import Graph
from ..graph.node import Node, Value
from .kernels import GemmKernel, Origins
from .storage import View

DTYPES = ("float32", "float64")
TURNED = (1, 0)


def product_kernel(
    node: Node, operands: Sequence[View | None], out: View, origins: Origins
) -> GemmKernel:
    """Return the kernel of a product; `out` is where its result lies."""
    x, y, bias = node.op.product_rule(*operands, *node.attrs)
    x = x if len(x.shape) > 1 else _with_axis(x, 0)
    y = y if len(y.shape) > 1 else _with_axis(y, 1)
    (m, k), n = x.shape[-2:], y.shape[-1]
    batch = _batch_of(node)
    lying = out.reshaped((*batch, m, n))
    assert lying is not None
    return GemmKernel(
        node.name,
        batch,
        m,
        n,
        k,
        x.broadcast((*batch, m, k)),
        y.broadcast((*batch, k, n)),
        lying,
        bias,
        origins,
    )


def is_product(node: Node) -> bool:
    """Tell whether a node is a product that has a kernel."""
    return node.op.product_rule is not None and node.outputs[0].dtype.name in DTYPES


def is_turned_matrix(body: Graph, value: Value, view: View) -> bool:
    """Tell whether a body takes a value for nothing but right factors, whose columns lie in memory.

    The view is where the value lies.
    """
    uses = [node for node in body.nodes if value in node.inputs]
    plain = value not in body.outputs and len(view.shape) == 2
    return plain and bool(uses) and all(_takes_turned(node, value, view) for node in uses)


def _takes_turned(node: Node, value: Value, view: View) -> bool:
    if not is_product(node) or [i for i, x in enumerate(node.inputs) if x is value] != [1]:
        return False
    operands = [view if x is value else None for x in node.inputs]
    _, y, _ = node.op.product_rule(*operands, *node.attrs)
    down, along = y.strides
    return bool(down == 1 and along != 1)


def _batch_of(node: Node) -> tuple[int, ...]:
    """Return the batch axes: those of the result without the axes of matrices that are there."""
    vectors = sum(len(x.shape) == 1 for x in node.inputs[:2] if x is not None)
    shape = node.outputs[0].shape
    return shape[: len(shape) - 2 + vectors]


def _with_axis(vector: View, axis: int) -> View:
    """Return a vector as a matrix of one row (0) or one column (1)."""
    shape, strides = list(vector.shape), list(vector.strides)
    shape.insert(axis, 1)
    strides.insert(axis, 0)
    return View(vector.buffer, tuple(shape), tuple(strides), vector.offset)
