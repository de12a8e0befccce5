"""Functions whose arguments PyTorch orders, names or limits in another way than Weft."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtype as dt
from ...core import tensor as core
from ...core.op import F
from ...ops.creation import full
from .. import return_types
from ..adoption import adopt
from ..calls import OPERANDS, write_out
from ..deferred import weft_function
from ..legacy import by_place
from ..names import names
from .reducing import FUNCTIONS as REDUCING
from .table import FUNCTIONS as SAME
from .without_dims import axis_of, with_one_dim


def _weft(name: str) -> Any:
    found = weft_function(name)
    assert found is not None, name
    return found


def _given(found: Any, out: Any) -> Any:
    return found if out is None else write_out(found, out)


def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    """Return the distance of every row of x1 from every row of x2."""
    return adopt(_weft("cdist")(x1, x2, p))


def mm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    """Return the product of two matrices."""
    for name, x in (("self", input), ("mat2", mat2)):
        if x.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    return _given(SAME["mm"](input, mat2), out)


def outer(input: Any, vec2: Any, *, out: Any = None) -> Any:
    """Return the product of every element of a vector with every one of another."""
    for name, x in (("self", input), ("vec2", vec2)):
        if x.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {x.ndim}-D")
    return _given(SAME["outer"](input, vec2), out)


def _whole(found: Any, out_int32: bool) -> Any:
    return adopt(F.cast(found, dt.int32) if out_int32 else found)


def searchsorted(
    sorted_sequence: Any,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: Any = None,
    sorter: Any = None,
    out: Any = None,
) -> Any:
    """Return the index at which each value would be inserted into a sorted sequence."""
    options = {} if sorter is None else {"sorter": sorter}
    if side is not None:
        options["side"] = side
    else:
        options["right"] = right
    values = input if isinstance(input, core.Tensor) else core.constant(np.asarray(input))
    found = _weft("searchsorted")(sorted_sequence, values, **options)
    return _given(_whole(found, out_int32), out)


def bucketize(
    input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False, out: Any = None
) -> Any:
    """Return the bucket of each element between boundaries."""
    values = input if isinstance(input, core.Tensor) else core.constant(np.asarray(input))
    return _given(_whole(_weft("bucketize")(values, boundaries, right=right), out_int32), out)


def _quantiles(name: str) -> Any:
    compute = _weft(name)

    def quantile(
        input: Any,
        q: Any,
        dim: Any = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
        out: Any = None,
    ) -> Any:
        axis = axis_of(input, dim)
        levels = q.tolist() if isinstance(q, core.Tensor) and not q.requires_grad else q
        found = compute(input, levels, axis, keepdim, method=interpolation)
        return _given(adopt(found), out)

    quantile.__name__ = name
    return quantile


def nanmedian(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """Return the lower of the middle elements of those that are not NaN."""
    if not dt.is_float(input.dtype):  # among which there is no NaN
        found = REDUCING["median"](input, dim, keepdim)
        return _given(found if dim is None else return_types.PAIRS["nanmedian"](*found), out)
    axis = axis_of(input, dim)
    values = _weft("nanquantile")(input, 0.5, axis, keepdim, method="lower")
    if dim is None:
        return _given(adopt(values), out)
    if not input.ndim:
        return return_types.PAIRS["nanmedian"](
            adopt(values), adopt(F.zeros_like(values, dtype=dt.int64))
        )
    kept = values if keepdim else F.unsqueeze(values, axis)
    same = F.logical_or(F.equal(input, kept), F.logical_and(F.isnan(input), F.isnan(kept)))
    where = F.argmax(F.cast(same, dt.int64), axis, keepdim)
    return _given(return_types.PAIRS["nanmedian"](adopt(values), adopt(where)), out)


def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """Return the covariances of the rows."""
    found = _weft("cov")(input, correction=correction, fweights=fweights, aweights=aweights)
    return adopt(F.squeeze(found))


def corrcoef(input: Any) -> Any:
    """Return the correlations of the rows."""
    return adopt(F.squeeze(_weft("corrcoef")(input)))


def nonzero_rows(input: Any) -> Any:
    """Return the places of elements that are not zero, as rows."""
    if input.ndim:
        return adopt(_weft("argwhere")(input))
    return adopt(core.wrap(np.zeros((int(bool(input._read() != 0)), 0), np.int64)))


def _several(name: str) -> Any:
    compute = _weft(name)

    def apply(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
            return tuple(adopt(compute(x)) for x in tensors[0])
        return adopt(compute(*tensors))

    apply.__name__ = name
    return apply


def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False, out: Any = None) -> Any:
    """Return elements by indices along a dimension; of no indices, nothing."""
    if not index.numel():
        nothing = F.zeros_like(F.cast(index, input.dtype))
        return adopt(nothing + F.sum(input) * 0)  # through which gradients of zero go
    if not input.ndim:
        return _given(adopt(F.broadcast_to(input, tuple(index.shape))), out)
    i = F.reshape(index, (1,)) if not index.ndim else index
    found = _weft("gather")(input, dim, i)
    return _given(adopt(found if index.ndim else F.reshape(found, ())), out)


def fill(input: Any, value: Any) -> Any:
    """Return a tensor of the same sizes in which all elements are one number."""
    number = (
        value if isinstance(value, core.Tensor) else core.constant(np.asarray(value, input.dtype))
    )
    return adopt(F.setitem(input, F.cast(number, input.dtype), (...,)))


def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """Return the tensor with elements of another where a mask is true, one after the other."""
    sizes = np.broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    x, where = (F.broadcast_to(v, sizes) for v in (input, mask))
    return adopt(_weft("masked_scatter")(x, where, source))


def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """Return sums of products over dimensions of two tensors."""
    given = dims.tolist() if isinstance(dims, core.Tensor) else dims
    if isinstance(given, int):
        axes: Any = given
    else:
        left, right = ([v] if isinstance(v, int) else list(v) for v in given)
        a, b = _summed_where_one(a, b, left, right)
        axes = (tuple(left), tuple(right))
    return _given(adopt(_weft("tensordot")(a, b, axes)), out)


def _summed_where_one(a: Any, b: Any, left: list[int], right: list[int]) -> tuple[Any, Any]:
    """Return operands whose paired dimensions have one size: where one of them is 1, it repeats."""
    for i, j in zip(left, right, strict=True):
        if a.shape[i] == 1 and b.shape[j] != 1:
            b = F.sum(b, j, keepdims=True)
        elif b.shape[j] == 1 and a.shape[i] != 1:
            a = F.sum(a, i, keepdims=True)
    return a, b


def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """Return the tensor with one number at indices along a dimension."""
    if input.ndim:
        return SAME["index_fill"](input, dim, index, value)
    i = F.reshape(index, (-1,))
    return adopt(F.reshape(SAME["index_fill"](F.reshape(input, (1,)), dim, i, value), ()))


def einsum(*args: Any) -> Any:
    """Return a sum of products, each dimension named by a letter; `...` may be summed too."""
    equation = args[0]
    if not isinstance(equation, str) or "->" not in equation:
        return SAME["einsum"](*args)
    left, right = equation.split("->")
    if "..." not in left or "..." in right:
        return SAME["einsum"](*args)
    found = SAME["einsum"](f"{left}->...{right.strip()}", *args[1:])
    extra = found.ndim - len(right.replace(" ", ""))
    return adopt(F.sum(found, tuple(range(extra)))) if extra else found


def scatter(
    input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Any:
    """Return the tensor with values written, added or multiplied where indices point."""
    given = value if src is None else src
    if reduce is None:
        return SAME["scatter"](input, dim, index, given)
    if reduce not in _REDUCTIONS:
        raise RuntimeError("reduce argument must be either add or multiply.")
    if not isinstance(given, core.Tensor):
        given = full(tuple(index.shape), input.dtype.type(given), dtype=input.dtype)
    return SAME["scatter_reduce"](input, dim, index, given, _REDUCTIONS[reduce])


_REDUCTIONS = {"add": "sum", "multiply": "prod"}


def _with_whole_factors(name: str) -> Any:
    """Return a product that is added: of whole numbers, by factors without their fractions."""
    compute, operands = SAME[name], OPERANDS[name]

    def add(*args: Any, beta: Any = 1, alpha: Any = 1, out: Any = None, **named: Any) -> Any:
        args = by_place(operands, args, named)
        if not dt.is_float(args[0].dtype):
            beta, alpha = int(beta), int(alpha)
        return _given(compute(*args, beta=beta, alpha=alpha, **named), out)

    add.__name__ = name
    add.__doc__ = compute.__doc__
    return add


ONE_DIM = names("""
    cumsum cumprod logcumsumexp argsort index_copy index_select index_add
    scatter_add scatter_reduce index_reduce
""")
FUNCTIONS: dict[str, Any] = {
    **{name: with_one_dim(SAME[name]) for name in ONE_DIM if name in SAME},
    "cdist": cdist,
    "mm": mm,
    "outer": outer,
    "ger": outer,
    "masked_scatter": masked_scatter,
    "tensordot": tensordot,
    "searchsorted": searchsorted,
    "bucketize": bucketize,
    "quantile": _quantiles("quantile"),
    "nanquantile": _quantiles("nanquantile"),
    "nanmedian": nanmedian,
    "cov": cov,
    "corrcoef": corrcoef,
    "argwhere": nonzero_rows,
    "gather": gather,
    "fill": fill,
    "index_fill": index_fill,
    "scatter": with_one_dim(scatter),
    **{name: _with_whole_factors(name) for name in names("addmv addmm addbmm baddbmm")},
    "einsum": einsum,
    **{name: _several(name) for name in names("atleast_1d atleast_2d atleast_3d")},
}
