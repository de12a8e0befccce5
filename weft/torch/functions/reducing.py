"""Reductions with PyTorch's results: values with indices, unbiased deviations, norms by p."""

from __future__ import annotations

from typing import Any

from ...core import dtype as dt
from ...core import tensor as core
from ...core.op import F
from .. import return_types
from ..adoption import adopt
from ..calls import write_out
from ..deferred import weft_function
from ..types import aligned, type_name
from ..view_functions import wrapped_dim
from .without_dims import axis_of

MISSING: Any = object()


def _pair(name: str, result: Any) -> Any:
    values, indices = result
    return return_types.PAIRS[name](adopt(values), adopt(indices))


def _extreme(name: str, together: str) -> Any:
    """Return `max` or `min`: of all elements, along a dimension, or of two tensors."""
    reduce: Any = weft_function(name)
    paired: Any = weft_function(together)

    def extreme(
        input: Any, dim: Any = MISSING, keepdim: bool = False, *, out: Any = None, **names: Any
    ) -> Any:
        dim = names.get("axis", names.get("other", dim))
        if dim is MISSING or dim is None:
            found = adopt(reduce(input))
            return found if out is None else write_out(found, out)
        if isinstance(dim, core.Tensor):
            found = adopt(paired(*aligned(input, dim)))
            return found if out is None else write_out(found, out)
        if not input.ndim:
            return _of_one(name, input)
        found = _pair(name, reduce(input, dim=dim, keepdim=names.get("keepdims", keepdim)))
        return found if out is None else write_out(found, out)

    extreme.__name__ = name
    return extreme


def _of_one(name: str, input: Any) -> Any:
    """Return the pair of a tensor without dimensions."""
    where = F.zeros_like(input, dtype=dt.int64)
    return _pair(name, (F.positive(input), where))


def _along(name: str, *, default: int | None = -1) -> Any:
    """Return a function whose values and indices are along one dimension."""
    reduce: Any = weft_function(name)

    def along(input: Any, dim: Any = default, keepdim: bool = False, *, out: Any = None) -> Any:
        if not input.ndim:
            return _of_one(name, input)
        found = _pair(name, reduce(input, dim=dim, keepdim=keepdim))
        return found if out is None else write_out(found, out)

    along.__name__ = name
    return along


mode = _along("mode")


def _running(name: str) -> Any:
    reduce: Any = weft_function(name)

    def running(input: Any, dim: int, *, out: Any = None) -> Any:
        found = _of_one(name, input) if not input.ndim else _pair(name, reduce(input, dim=dim))
        return found if out is None else write_out(found, out)

    running.__name__ = name
    return running


def _median(name: str, method: Any) -> Any:
    reduce: Any = weft_function(name)

    def median(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
        if dim is None:
            flat = F.reshape(input, (-1,))
            if not flat.numel():
                return adopt(_nan(input))
            return adopt(reduce(flat, dim=0)[0])
        if not input.ndim:
            return _of_one(name, input)
        found = _pair(name, reduce(input, dim=dim, keepdim=keepdim))
        return found if out is None else write_out(found, out)

    median.__name__ = name
    return median


def _nan(input: Any) -> Any:
    return F.full((), float("nan"), dtype=input.dtype)


def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """Return the k-th smallest elements along a dimension, and where they stand."""
    if not input.ndim:
        return _of_one("kthvalue", input)
    made: Any = weft_function("kthvalue")
    found = _pair("kthvalue", made(input, k, dim=dim, keepdim=keepdim))
    return found if out is None else write_out(found, out)


def sort(
    input: Any, dim: int = -1, descending: bool = False, stable: Any = False, *, out: Any = None
) -> Any:
    """Return the elements along a dimension in order, and where they stood."""
    if not input.ndim:
        return _of_one("sort", input)
    made: Any = weft_function("sort")
    found = _pair("sort", made(input, dim=dim, descending=descending, stable=True))
    return found if out is None else write_out(found, out)


def msort(input: Any, *, out: Any = None) -> Any:
    """Return the elements along the first dimension in order."""
    found = sort(input, 0).values
    return found if out is None else write_out(found, out)


def topk(
    input: Any,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: Any = None,
) -> Any:
    """Return the k largest elements along a dimension, and where they stand."""
    if not input.ndim:
        return _of_one("topk", input)
    made: Any = weft_function("topk")
    found = _pair("topk", made(input, int(k), dim, largest=largest))
    return found if out is None else write_out(found, out)


def _moments(name: str) -> Any:
    """Return `std` or `var`, or one with the mean, which divide by n - 1 unless told otherwise."""
    reduce: Any = weft_function(name)

    def moment(
        input: Any,
        dim: Any = None,
        unbiased: Any = None,
        keepdim: bool = False,
        *,
        correction: Any = None,
        out: Any = None,
        **names: Any,
    ) -> Any:
        dim, keepdim = names.get("axis", dim), names.get("keepdims", keepdim)
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if correction is None:
            correction = 1 if unbiased is None or unbiased else 0
        found = reduce(input, axis_of(input, dim), correction=correction, keepdims=keepdim)
        found = adopt(found)
        return found if out is None else write_out(found, out)

    moment.__name__ = name
    return moment


def norm(
    input: Any,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    out: Any = None,
    dtype: Any = None,
) -> Any:
    """Return the p-norm of all elements, or along dimensions; "fro" and "nuc" of matrices."""
    x = input if dtype is None else F.cast(input, dt.as_dtype(dtype))
    axis = axis_of(input, dim)
    if p == "nuc":
        made: Any = weft_function("matrix_norm", "linalg")
        found = made(x, "nuc", dim=(-2, -1) if axis is None else axis, keepdim=keepdim)
    else:
        order = 2 if p in ("fro", None) else p
        vector: Any = weft_function("vector_norm", "linalg")
        found = vector(x, order, dim=axis, keepdim=keepdim)
    found = adopt(found)
    return found if out is None else write_out(found, out)


def _truths(name: str) -> Any:
    """Return `all` or `any`: booleans, but for bytes, which stay such."""
    reduce: Any = weft_function(name)

    def truth(
        input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None, **names: Any
    ) -> Any:
        dim, keepdim = names.get("axis", dim), names.get("keepdims", keepdim)
        found = reduce(input, axis_of(input, dim), keepdims=keepdim)
        found = adopt(F.cast(found, dt.uint8) if input.dtype == dt.uint8 else found)
        return found if out is None else write_out(found, out)

    truth.__name__ = name
    return truth


def _summing(name: str) -> Any:
    """Return `sum`, `prod` or `mean`, of which a list of dimensions may be empty: all of them."""
    reduce: Any = weft_function(name)

    def total(
        input: Any,
        dim: Any = None,
        keepdim: bool = False,
        *,
        dtype: Any = None,
        out: Any = None,
        **names: Any,
    ) -> Any:
        dim, keepdim = names.get("axis", dim), names.get("keepdims", keepdim)
        axis = axis_of(input, dim)
        x = input
        if dtype is not None:
            x = F.cast(input, dt.as_dtype(dtype))
        elif name == "mean" and not dt.is_float(input.dtype):
            raise RuntimeError(
                "mean(): could not infer output dtype. Input dtype must be either a floating "
                "point or complex dtype. Got: " + type_name(input.dtype)
            )
        found = adopt(reduce(x, axis, keepdims=keepdim))
        if dtype is not None and found.dtype != x.dtype:
            found = adopt(F.cast(found, x.dtype))
        return found if out is None else write_out(found, out)

    total.__name__ = name
    return total


def logsumexp(input: Any, dim: Any, keepdim: bool = False, *, out: Any = None) -> Any:
    """Return the logarithm of the sum of exponentials along dimensions."""
    made: Any = weft_function("logsumexp")
    axis = axis_of(input, dim)
    found = adopt(made(input, axis, keepdims=keepdim) if input.ndim else F.positive(input))
    return found if out is None else write_out(found, out)


def aminmax(input: Any, *, dim: Any = None, keepdim: bool = False, out: Any = None) -> Any:
    """Return the smallest and the largest element."""
    low: Any = weft_function("amin")
    high: Any = weft_function("amax")
    axis = None if dim is None or not input.ndim else wrapped_dim(dim, input.ndim)
    found = return_types.aminmax(
        adopt(low(input, axis, keepdims=keepdim)), adopt(high(input, axis, keepdims=keepdim))
    )
    return found if out is None else write_out(found, out)


def _extremes(name: str) -> Any:
    reduce: Any = weft_function(name)

    def extremes(
        input: Any, dim: Any = (), keepdim: bool = False, *, out: Any = None, **names: Any
    ) -> Any:
        dim, keepdim = names.get("axis", dim), names.get("keepdims", keepdim)
        found = adopt(reduce(input, axis_of(input, dim), keepdims=keepdim))
        return found if out is None else write_out(found, out)

    extremes.__name__ = name
    return extremes


def _arg(name: str) -> Any:
    reduce: Any = weft_function(name)

    def arg(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
        if not input.ndim:
            return adopt(F.zeros_like(input, dtype=dt.int64))
        found = adopt(reduce(input, dim, keepdims=keepdim))
        return found if out is None else write_out(found, out)

    arg.__name__ = name
    return arg


def equal(input: Any, other: Any) -> bool:
    """Tell whether two tensors have one shape and equal elements."""
    return tuple(input.shape) == tuple(other.shape) and bool(F.all(F.equal(input, other)))


def count_nonzero(input: Any, dim: Any = None) -> Any:
    """Return how many elements are not zero."""
    made: Any = weft_function("count_nonzero")
    return adopt(made(input, axis_of(input, dim)))


def sum_to_size(input: Any, *size: Any) -> Any:
    """Return the tensor summed to a shape that it could be expanded from."""
    sizes = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    return adopt(F.sum_to(input, tuple(sizes)))


FUNCTIONS: dict[str, Any] = {
    "max": _extreme("max", "maximum"),
    "min": _extreme("min", "minimum"),
    "mode": mode,
    "median": _median("median", "lower"),
    "nanmedian": _median("nanmedian", "lower"),
    "kthvalue": kthvalue,
    "sort": sort,
    "msort": msort,
    "topk": topk,
    "cummax": _running("cummax"),
    "cummin": _running("cummin"),
    "std": _moments("std"),
    "var": _moments("var"),
    "std_mean": _moments("std_mean"),
    "var_mean": _moments("var_mean"),
    "norm": norm,
    "all": _truths("all"),
    "any": _truths("any"),
    "sum": _summing("sum"),
    "prod": _summing("prod"),
    "mean": _summing("mean"),
    "nansum": _summing("nansum"),
    "nanmean": _summing("nanmean"),
    "logsumexp": logsumexp,
    "aminmax": aminmax,
    "amax": _extremes("amax"),
    "amin": _extremes("amin"),
    "argmax": _arg("argmax"),
    "argmin": _arg("argmin"),
    "equal": equal,
    "count_nonzero": count_nonzero,
    "sum_to_size": sum_to_size,
}
