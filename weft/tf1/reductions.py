"""Functions over axes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..core.op import F
from .dtypes import as_dtype
from .dtypes import bool as boolean
from .math_ops import Function, cast, late
from .recording import Tensor, convert_to_tensor, known_int, record


def axes_of(axis: Any, old: Any, what: str) -> Any:
    """Return axes that are known: None, a number, or a tuple."""
    if axis is not None and old is not None:
        raise ValueError(f"Cannot specify both 'axis' and '{what}'")
    axis = old if axis is None else axis
    if axis is None:
        return None
    if isinstance(axis, Tensor) and axis.shape.ndims:
        axis = axis.shadow
    if isinstance(axis, (list, tuple, np.ndarray, range)):
        return tuple(known_int(a, "axis") for a in axis)
    return known_int(axis, "axis")


def _reduction(public: str, type: str, compute: Callable[..., Any], **options: Any) -> Function:
    def called(
        input_tensor: Any,
        axis: Any = None,
        keepdims: Any = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: Any = None,
    ) -> Tensor:
        axes = axes_of(axis, reduction_indices, "reduction_indices")
        if keepdims is not None and keep_dims is not None:
            raise ValueError("Cannot specify both 'keep_dims' and 'keepdims'")
        keep = bool(keepdims if keep_dims is None else keep_dims)
        if axes == ():  # no axis at all
            return convert_to_tensor(input_tensor)
        run = partial(compute, axis=axes, keepdims=keep)
        if type in _FOLDS:
            fold = partial(_FOLDS[type], axis=axes, keepdims=keep)
            return record(type, run, [input_tensor], name=name, fold=fold, **options)
        return record(type, run, [input_tensor], name=name, **options)

    called.__name__ = called.__qualname__ = public
    called.__doc__ = f"Return the {public.removeprefix('reduce_')} over axes."
    return called


def _sized_sum(x: Any, *, axis: Any, keepdims: bool) -> Any:
    return np.asarray(np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype))


def _sized_prod(x: Any, *, axis: Any, keepdims: bool) -> Any:
    return np.asarray(np.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype))


def _sized_max(x: Any, *, axis: Any, keepdims: bool) -> Any:
    return np.asarray(np.max(x, axis=axis, keepdims=keepdims))


_FOLDS: dict[str, Callable[..., Any]] = {"Sum": _sized_sum, "Prod": _sized_prod, "Max": _sized_max}


def _same_type(operator: str) -> Callable[..., Any]:
    return lambda x, **settings: getattr(F, operator)(x, dtype=x.dtype, **settings)


def _mean(x: Any, **settings: Any) -> Any:
    if x.dtype.kind in "iu":  # the mean of whole numbers is rounded down
        whole = F.sum(x, dtype=x.dtype, **settings)
        return F.cast(F.floor_divide(whole, x.numel() // whole.numel()), x.dtype)
    return F.mean(x, **settings)


reduce_sum = _reduction("reduce_sum", "Sum", _same_type("sum"))
reduce_prod = _reduction("reduce_prod", "Prod", _same_type("prod"))
reduce_mean = _reduction("reduce_mean", "Mean", _mean)
reduce_max = _reduction("reduce_max", "Max", late("max"))
reduce_min = _reduction("reduce_min", "Min", late("min"))
reduce_all = _reduction("reduce_all", "All", late("all"), dtype=boolean, differentiable=False)
reduce_any = _reduction("reduce_any", "Any", late("any"), dtype=boolean, differentiable=False)
reduce_logsumexp = _reduction("reduce_logsumexp", "LogSumExp", late("logsumexp"))
reduce_variance = _reduction("reduce_variance", "Variance", late("var"))
reduce_std = _reduction("reduce_std", "Std", lambda x, **s: F.sqrt(F.var(x, **s)))
reduce_euclidean_norm = _reduction(
    "reduce_euclidean_norm", "EuclideanNorm", lambda x, **s: F.sqrt(F.sum(F.square(x), **s))
)


def count_nonzero(
    input_tensor: Any,
    axis: Any = None,
    keepdims: Any = None,
    dtype: Any = "int64",
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: Any = None,
) -> Tensor:
    """Return how many elements are not zero."""
    x = convert_to_tensor(input_tensor)
    kind = as_dtype(dtype)
    flags = record("NotEqual", lambda x: F.cast(x != 0, kind.dtype), [x], dtype=kind)
    return reduce_sum(flags, axis, keepdims, name, reduction_indices, keep_dims)


def _position(public: str, type: str, operator: str) -> Function:
    def called(
        input: Any,
        axis: Any = None,
        name: str | None = None,
        dimension: Any = None,
        output_type: Any = "int64",
    ) -> Tensor:
        found = axes_of(axis, dimension, "dimension")
        kind = as_dtype(output_type)
        compute = partial(_positions, operator=operator, axis=found or 0, dtype=kind.dtype)
        return record(type, compute, [input], name=name, dtype=kind, differentiable=False)

    called.__name__ = called.__qualname__ = public
    called.__doc__ = f"Return the position of the {public.removeprefix('arg')}imum along an axis."
    return called


def _positions(x: Any, *, operator: str, axis: int, dtype: Any) -> Any:
    return F.cast(getattr(F, operator)(x, axis), dtype)


argmax, argmin = _position("argmax", "ArgMax", "argmax"), _position("argmin", "ArgMin", "argmin")
arg_max, arg_min = argmax, argmin


def _running(public: str, type: str, operator: str) -> Function:
    def called(
        x: Any,
        axis: Any = 0,
        exclusive: bool = False,
        reverse: bool = False,
        name: str | None = None,
    ) -> Tensor:
        place = known_int(axis, "axis")

        def compute(x: Any) -> Any:
            made = getattr(F, operator)(x, place, exclusive=exclusive, reverse=reverse)
            return F.cast(made, x.dtype)

        return record(type, compute, [x], name=name)

    called.__name__ = called.__qualname__ = public
    called.__doc__ = f"Return the running {public.removeprefix('cum')} along an axis."
    return called


cumsum, cumprod = _running("cumsum", "Cumsum", "cumsum"), _running("cumprod", "Cumprod", "cumprod")


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: Any = None,
    name: str | None = None,
    keep_dims: Any = None,
) -> Tensor:
    """Return the norm of vectors."""
    axes = axes_of(axis, None, "axis")
    keep = bool(keepdims if keep_dims is None else keep_dims)
    order = {"euclidean": 2, "fro": 2}.get(ord, ord)
    if isinstance(axes, tuple) and len(axes) == 2 and order != 2:
        raise ValueError(f"'ord' must be a supported vector norm, got {ord!r} for matrices")

    def compute(x: Any) -> Any:
        if order == 2:
            return F.sqrt(F.sum(F.square(x), axis=axes, keepdims=keep))
        if order == np.inf:
            return F.max(F.abs(x), axis=axes, keepdims=keep)
        return F.pow(F.sum(F.pow(F.abs(x), order), axis=axes, keepdims=keep), 1.0 / order)

    return record("Norm", compute, [tensor], name=name or "norm")


def global_norm(t_list: Any, name: str | None = None) -> Tensor:
    """Return the norm of all elements of several tensors together."""
    tensors = [convert_to_tensor(t) for t in t_list if t is not None]
    return record(
        "GlobalNorm",
        lambda *xs: F.sqrt(sum(F.sum(F.square(x)) for x in xs)),
        tensors,
        name=name or "global_norm",
    )


def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = "int32",
) -> Tensor:
    """Return how often each number occurs."""
    x = cast(arr, "int32")
    made = record(
        "Bincount", lambda x: F.bincount(F.reshape(x, (-1,)), minlength=minlength or 0), [x]
    )
    return cast(made, dtype)
