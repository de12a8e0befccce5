"""Products of matrices and vectors as one kind of kernel.

    matmul   (..., m, k) (..., k, n)   batch axes broadcast; a vector stands for one row or column
    linear   (..., k) (n, k) (n)       the batch axes have one matrix in common

Operands may lie in any way: transposed and sliced ones are read by their strides. Batch axes are
given as they are; where they go on evenly the code generator takes them as rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.node import Node
from .kernels import GemmKernel, Origins
from .storage import View

DTYPES = ("float32", "float64")


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
