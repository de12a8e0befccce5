"""Matrix products: matmul, and the fused affine map of a dense layer."""

from __future__ import annotations

import numpy as np

from ...core.batching import repeat, with_rank
from ...core.dim import may_equal
from ...core.dispatch import sum_to
from ...core.division import Division, stretched
from ...core.dtype import float32, is_half
from ...core.errors import ShapeError
from ...core.op import F, general, op
from ...core.products import SMALL, SMALL_VECTORS, product, products
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, broadcast, size_of
from ...core.tensor import Tensor
from ._matrices import batch_shape, column, row


@op(
    general,
    promote="common",
    multilinear=("x", "y"),
    aliases=("mm",),
    operator="__matmul__",
    public={"wf": ("matmul", "mm"), "linalg": ("matmul",)},
)
def matmul(x: Tensor, y: Tensor) -> Tensor:
    """Return the matrix product of x and y; batch dimensions broadcast.

    A 1-D operand is a row on the left and a column on the right, and that dimension is dropped
    from the result. 16-bit floats are accumulated in float32.

    Shapes: (..., m, k) @ (..., k, n) -> (..., m, n); (k,) @ (k,) -> ().

    >>> import weft as wf
    >>> wf.matmul(wf.tensor([[1.0, 2.0], [3.0, 4.0]]), wf.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """


@matmul.product
def _(x, y):
    return x, y, None


@matmul.multiplications
def _(x, y):
    rows, columns = (x[-2] if len(x) > 1 else 1), (y[-1] if len(y) > 1 else 1)
    return size_of(broadcast(x[:-2], y[:-2])) * rows * x[-1] * columns


@matmul.division
def _(x, y):
    batch = batch_shape(x, y)
    rows, columns = ("m",) * (x.ndim > 1), ("n",) * (y.ndim > 1)
    left = (*stretched(x.shape[:-2], batch), *rows, "k")
    right = (*stretched(y.shape[:-2], batch), "k", *columns)
    return Division([left, right], (*range(len(batch)), *rows, *columns), {"k": "sum"})


@matmul.eval
def _(x, y):
    if x.itemsize == 2 and is_half(x.dtype):
        return products(x.astype(float32), y.astype(float32)).astype(x.dtype)
    if y.ndim == 2:
        if x.ndim == 2:  # as `product` does, whose call would show on small matrices
            work = len(x) * y.size
            if work <= SMALL and (work <= SMALL_VECTORS or x.size | y.size < SMALL_VECTORS):
                return x.dot(y)
            return products(x, y)
        if x.ndim > 2 and x.flags.c_contiguous:  # one product, not a stack
            return product(_rows(x), y).reshape(*x.shape[:-1], y.shape[-1])
    return products(x, y)


@matmul.expand  # kernels of products are for floats
def _(x, y):
    if x.dtype.kind not in "biu":
        return None
    left = column(row(x) if x.ndim == 1 else x)
    right = F.unsqueeze(column(y) if y.ndim == 1 else y, -3)
    if x.dtype.kind == "b":
        found = F.any(F.logical_and(left, right), -2)
    else:
        found = F.cast(F.sum(left * right, -2), x.dtype)
    alone = [axis for axis, vector in ((-2, x), (-1, y)) if vector.ndim == 1]
    return F.squeeze(found, tuple(alone)) if alone else found


@matmul.infer
def _(x, y):
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError(
            f"operands need at least one dimension; got {x.shape} @ {y.shape}: "
            "use * to multiply by a number"
        )
    inner = y.shape[0] if y.ndim == 1 else y.shape[-2]
    if x.shape[-1] != inner:
        raise ShapeError(f"inner dimensions must match; got {x.shape} @ {y.shape}")
    rows = () if x.ndim == 1 else (x.shape[-2],)
    columns = () if y.ndim == 1 else (y.shape[-1],)
    return TensorType((*batch_shape(x, y), *rows, *columns), x.dtype)


@matmul.vjp("x")
def _(g, y, x_shape):
    if g.ndim == 2 and y.ndim == 2:  # then x is a matrix too
        return F.matmul(g, y.T)
    if y.ndim == 1:
        return column(g) * y
    if len(x_shape) == 1:
        if y.ndim == 2:
            return F.matmul(y, g)
        return sum_to(F.matmul(y, column(g))[..., 0], x_shape)
    return sum_to(F.matmul(g, F.swapaxes(y, -1, -2)), x_shape)


@matmul.vjp("y")
def _(g, x, y_shape):
    if g.ndim == 2 and x.ndim == 2:  # then y is a matrix too
        return F.matmul(x.T, g)
    if x.ndim == 1:
        return g * x if len(y_shape) == 1 else column(x) * (g if g.ndim == 1 else row(g))
    if len(y_shape) == 1:
        return F.matmul(F.reshape(g, (g.size,)), _rows(x))
    if len(y_shape) == 2:
        return F.matmul(_rows(x).T, _rows(g))  # one product sums over the batch
    return sum_to(F.matmul(F.swapaxes(x, -1, -2), g), y_shape)


@matmul.sums_rows(1)
def _(g, x, y_shape):
    return (_rows(x), _rows(g)) if len(y_shape) == 2 and x.ndim > 1 else None


def _rows(x):
    """Return x, (..., k), as one matrix with all leading dimensions as rows."""
    return x.reshape(size_of(x.shape[:-1]), x.shape[-1])


MATMUL_SHAPES = (
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((2, 2, 3), (3, 2)),
    ((2, 3), (2, 3, 2)),
    ((2, 2, 3), (2, 3, 2)),
    ((2, 1, 2, 2), (3, 2, 1)),
    ((3,), (2, 3, 2)),
    ((2, 2, 3), (3,)),
    ((1, 1), (1, 1)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((2, 0, 3), (3, 2)),
    ((2, 3, 0), (0, 2)),
)


@matmul.batch
def _(x, y, batched):
    return batched_product(x, y, *batched)


def batched_product(x, y, x_batched, y_batched):
    """Return the products of all examples, of which either operand may be shared."""
    if not y_batched and y.ndim <= 2:
        return F.matmul(x, y)
    if not x_batched and x.ndim <= 2 and y.ndim == 2:  # a vector in each example
        return F.matmul(y, x.T if x.ndim == 2 else x)
    rows, columns = x.ndim == 1 + x_batched, y.ndim == 1 + y_batched
    left, right = row(x) if rows else x, column(y) if columns else y
    ndim = max(left.ndim - x_batched, right.ndim - y_batched)
    left = with_rank(left, ndim) if x_batched else left
    right = with_rank(right, ndim) if y_batched else right
    product = F.matmul(left, right)
    dropped = (-2,) * rows + (-1,) * columns
    return F.squeeze(product, dropped) if dropped else product


@matmul.samples
def _(s):
    for x, y in MATMUL_SHAPES:
        yield Sample(s.real(*x), s.real(*y))
    yield Sample(s.strided(2, 3), s.strided(3, 2), label="non-contiguous")
    yield Sample(s.strided(2, 2, 3), s.strided(3, 2), label="non-contiguous batch")
    yield Sample(s.integers(2, 3), s.integers(3, 2), label="integers")
    yield Sample(s.booleans(2, 3), s.booleans(3, 2), label="booleans")


@matmul.error_samples
def _(s):
    sizes = r"inner dimensions must match; got \(32, 784\) @ \(512, 10\)"
    yield ErrorSample(np.ones((32, 784)), np.ones((512, 10)), error=ValueError, match=sizes)
    yield ErrorSample(s.real(2, 3), s.real(2), error=ValueError, match=r"\(2, 3\) @ \(2,\)")
    yield ErrorSample(s.real(), s.real(2), error=ValueError, match=r"got \(\) @ \(2,\)")
    batches = r"\(2,\) and \(3,\)"
    yield ErrorSample(s.real(2, 2, 2), s.real(3, 2, 2), error=ValueError, match=batches)
    yield ErrorSample(s.real(2, 2), "text", error=TypeError, match="y must be a tensor")


@op(general, promote="common", method=False, public=("wf", "nn.functional"))
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x @ weight.T + bias, the affine map of a dense layer.

    Shapes: x (..., in), weight (out, in), bias (out,) -> (..., out).

    >>> import weft as wf
    >>> weight = wf.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> wf.linear(wf.tensor([2.0, 3.0]), weight, wf.tensor([0.0, 0.0, 1.0]))
    tensor([2., 3., 6.])
    """


@linear.product
def _(x, weight, bias):
    return x, weight.permuted((1, 0)), bias


@linear.multiplications
def _(x, weight, bias):
    return size_of(x) * weight[0]


@linear.division
def _(x, weight, bias):
    lead = tuple(range(x.ndim - 1))
    inputs = [(*lead, "k"), ("n", "k"), None if bias is None else ("n",)]

    def part(at, x, weight, bias):
        # Of parts that are added up, one has the bias.
        return F.linear(x, weight, None if at.label == "k" and at.rank else bias)

    return Division(inputs, (*lead, "n"), {"k": "sum"}, part)


@linear.eval
def _(x, weight, bias):
    if weight.ndim != 2 or x.ndim == 0 or (bias is not None and bias.shape != weight.shape[:1]):
        _check_linear(x, weight, bias)
    if x.itemsize == 2 and is_half(x.dtype):
        wide = [None if v is None else v.astype(float32) for v in (x, weight, bias)]
        return _affine(*wide).astype(x.dtype)
    return _affine(x, weight, bias)


def _affine(x, weight, bias):
    if x.ndim == 2:
        out = product(x, weight.T)
    elif x.ndim == 1:
        out = products(x, weight.T)
    else:
        out = product(_rows(x), weight.T).reshape(*x.shape[:-1], weight.shape[0])
    if bias is not None:
        out += bias  # the product is fresh, so nobody else sees it change
    return out


@linear.expand
def _(x, weight, bias):
    if x.dtype.kind not in "biu":
        return None
    out = F.matmul(x, F.permute(weight, (1, 0)))
    return out if bias is None else out + bias


@linear.infer
def _(x, weight, bias):
    _check_linear(x, weight, bias)
    return TensorType((*x.shape[:-1], weight.shape[0]), x.dtype)


def _check_linear(x, weight, bias):
    if weight.ndim != 2:
        raise ShapeError(f"weight must be a matrix, (out, in). Received: shape {weight.shape}")
    if x.ndim == 0:
        raise ShapeError("x must have at least one dimension, (..., in). Received: a 0-d tensor")
    if x.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"the last dimension of x must match the input size of weight; got x of shape "
            f"{x.shape} and weight (out, in) = {weight.shape}: {x.shape[-1]} and {weight.shape[1]}"
        )
    if bias is not None and not may_equal(tuple(bias.shape), (weight.shape[0],)):
        raise ShapeError(
            f"bias must have shape ({weight.shape[0]},) to go with weight of shape {weight.shape}. "
            f"Received: {bias.shape}"
        )


@linear.vjp("x")
def _(g, weight):
    return F.matmul(g, weight)


@linear.vjp("weight")
def _(g, x):
    if x.ndim == 2:
        return F.matmul(g.T, x)
    if x.ndim == 1:
        return column(g) * x
    return F.matmul(_rows(g).T, _rows(x))


@linear.sums_rows(1)
def _(g, x):
    return (_rows(g), _rows(x)) if x.ndim > 1 else None


@linear.vjp("bias")
def _(g, bias_shape):
    return sum_to(g, bias_shape)


@linear.batch
def _(x, weight, bias, batched):
    shared_bias = bias if not batched[2] else None
    if not batched[1] and (batched[0] or bias is None):
        product = F.linear(x, weight, shared_bias)
    elif not batched[1]:
        product = repeat(F.linear(x, weight), bias.shape[0])
    else:
        product = batched_product(x, F.swapaxes(weight, -1, -2), *batched[:2])
        product = product if shared_bias is None else product + bias
    return product + with_rank(bias, product.ndim - 1) if batched[2] else product


@linear.samples
def _(s):
    for lead in ((), (4,), (2, 3), (0,), (1,)):
        yield Sample(s.real(*lead, 3), s.real(2, 3), s.real(2))
    yield Sample(s.real(4, 3), s.real(2, 3), label="no bias")
    yield Sample(s.strided(4, 3), s.strided(2, 3), s.strided(2), label="non-contiguous")
    yield Sample(s.real(2, 0), s.real(2, 0), s.real(2), label="no features")
    yield Sample(s.integers(2, 3), s.integers(2, 3), s.integers(2), label="integers")


@linear.error_samples
def _(s):
    x, weight = s.real(4, 3), s.real(2, 3)
    yield ErrorSample(s.real(4, 5), weight, error=ValueError, match=r"\(4, 5\).*5 and 3")
    yield ErrorSample(x, s.real(3), error=ValueError, match=r"weight must be a matrix.*\(3,\)")
    yield ErrorSample(x, weight, s.real(1), error=ValueError, match=r"bias must have shape \(2,\)")
    yield ErrorSample(x, weight, s.real(4, 2), error=ValueError, match=r"Received: \(4, 2\)")
    yield ErrorSample(s.real(), weight, error=ValueError, match="0-d tensor")
