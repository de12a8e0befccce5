"""Functions that PyTorch has under several names, or that are a line in others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import dtype as dt
from ...core import tensor as core
from ...core.device_array import held_like
from ...core.op import F
from .. import return_types
from .. import view_functions as views
from ..adoption import adopt
from ..calls import write_out
from ..deferred import weft_function
from ..names import names
from .table import FUNCTIONS as SAME
from .table import functions_named

# Activations that are methods in place too.
ACTIVATIONS = functions_named(
    names("celu elu selu leaky_relu hardtanh threshold relu6"), "nn.functional"
)


def is_floating_point(input: Any) -> bool:
    """Tell whether the elements of a tensor are floats."""
    return dt.is_float(input.dtype)


def is_complex(input: Any) -> bool:
    """Tell whether the elements of a tensor are complex: they never are."""
    return False


def is_nonzero(input: Any) -> bool:
    """Tell whether the only element of a tensor is not zero."""
    return bool(input)


def is_same_size(input: Any, other: Any) -> bool:
    """Tell whether two tensors have the same sizes."""
    return tuple(input.shape) == tuple(other.shape)


def isreal(input: Any) -> Any:
    """Tell of each element whether it is real: all are."""
    return adopt(F.ones_like(input, dtype=dt.bool_))


def _same(input: Any) -> Any:
    """Return the tensor itself: it is real."""
    return input


def sgn(input: Any, *, out: Any = None) -> Any:
    """Return the sign of each element."""
    found = adopt(F.sign(input))
    return found if out is None else write_out(found, out)


def angle(input: Any, *, out: Any = None) -> Any:
    """Return the angle of each element: 0, or pi where it is negative."""
    x = input if dt.is_float(input.dtype) else F.cast(input, dt.default_float())
    turned = F.where(x < 0, core.constant(np.asarray(math.pi, x.dtype)), F.zeros_like(x))
    found = adopt(F.where(F.isnan(x), x, turned))
    return found if out is None else write_out(found, out)


def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Return the tensor with values written, or added, at places of the flat tensor."""
    made: Any = weft_function("put")
    return adopt(made(input, index, source, accumulate=accumulate))


def dropout(input: Any, p: float = 0.5, train: bool = True) -> Any:
    """Return the tensor with elements zeroed at random, others scaled."""
    made: Any = weft_function("dropout", "nn.functional")
    return adopt(made(input, p, train))


def as_strided_scatter(
    input: Any, src: Any, size: Any, stride: Any, storage_offset: int | None = None
) -> Any:
    """Return the tensor with another one written at places of its memory by strides."""
    first = storage_offset or 0
    places = np.full(tuple(size), first, np.int64)
    for axis, (n, step) in enumerate(zip(size, stride, strict=True)):
        shape = [1] * len(size)
        shape[axis] = n
        places = places + (np.arange(n) * step).reshape(shape)
    flat = F.reshape(input, (-1,))
    where = core.constant(places.ravel())
    written = F.index_set(flat, where, F.reshape(src, (-1,)))
    return adopt(F.reshape(written, tuple(input.shape)))


def constant_pad_nd(input: Any, pad: Any, value: Any = 0) -> Any:
    """Return the tensor with a constant around it."""
    made: Any = weft_function("pad", "nn.functional")
    return adopt(made(input, tuple(pad), value=value))


def gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    """Return estimates of the derivative along each dimension, by differences."""
    made: Any = weft_function("gradient")
    if made is None:
        raise NotImplementedError("gradient is not there yet; use torch.diff")
    step = 1 if spacing is None else spacing
    return adopt(made(input, spacing=step, dim=dim, edge_order=edge_order))


def frexp(input: Any, *, out: Any = None) -> Any:
    """Return mantissas and exponents of base 2."""
    made: Any = weft_function("frexp")
    found = made(input)
    return return_types.frexp(*map(adopt, found))


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Return how often each whole number occurs, or the sum of weights there."""
    made: Any = weft_function("bincount")
    return adopt(made(input, weights, minlength))


def isclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    """Tell of each element whether it is close to that of another tensor."""
    made: Any = weft_function("isclose")
    return adopt(made(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan))


def allclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Tell whether all elements are close to those of another tensor."""
    return bool(F.all(isclose(input, other, rtol, atol, equal_nan)))


def pdist(input: Any, p: float = 2) -> Any:
    """Return the distances between all pairs of rows."""
    made: Any = weft_function("pdist", "nn.functional")
    return adopt(made(input, p))


def resize_(self: Any, *sizes: Any, memory_format: Any = None) -> Any:
    """Give the tensor other sizes; elements that are added are zero."""
    from ..sizes import sizes_of  # noqa: PLC0415  (beside the functions that need it)

    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    wanted = sizes_of(sizes)
    flat = self._read().reshape(-1)
    count = int(np.prod(wanted, dtype=np.int64))
    made = np.zeros(count, self.dtype)
    made[: min(count, flat.size)] = flat[:count]
    self._value = held_like(self._value, made.reshape(wanted))
    return self


def resize_as_(self: Any, the_template: Any, memory_format: Any = None) -> Any:
    """Give the tensor the sizes of another."""
    return resize_(self, tuple(the_template.shape))


def _turned(view: Any) -> Any:
    """Return a method that turns the shape of a tensor in place."""

    def turn(self: Any, *args: Any, **kwargs: Any) -> Any:
        if hasattr(self, "_window") or self.symbolic:
            raise RuntimeError(
                f"{view.__name__}_ changes the shape of a view in place; use "
                f"x = x.{view.__name__}(...)"
            )
        found = view(self, *args, **kwargs).derived()
        self._value, self._node = found._value, found._node if self._node is not None else None
        return self

    turn.__name__ = f"{view.__name__}_"
    return turn


FUNCTIONS: dict[str, Any] = {
    "resize_as_": resize_as_,
    "is_floating_point": is_floating_point,
    "is_complex": is_complex,
    "is_nonzero": is_nonzero,
    "is_same_size": is_same_size,
    "isreal": isreal,
    "conj": _same,
    "conj_physical": _same,
    "resolve_conj": _same,
    "resolve_neg": _same,
    "real": _same,
    "sgn": sgn,
    "angle": angle,
    "put": put,
    "dropout": dropout,
    "as_strided_scatter": as_strided_scatter,
    "constant_pad_nd": constant_pad_nd,
    "fix": SAME["trunc"],
    "gradient": gradient,
    "frexp": frexp,
    "bincount": bincount,
    "isclose": isclose,
    "allclose": allclose,
    "pdist": pdist,
    "row_stack": SAME["vstack"],
    "ger": SAME["outer"],
}
METHODS: dict[str, Any] = {
    "resize_": resize_,
    "resize_as_": resize_as_,
    "squeeze_": _turned(views.squeeze),
    "unsqueeze_": _turned(views.unsqueeze),
    "transpose_": _turned(views.transpose),
    "t_": _turned(views.t),
    "swapaxes_": _turned(views.swapaxes),
    "swapdims_": _turned(views.swapdims),
}
for _name, _needed in (("gradient", "gradient"), ("frexp", "frexp")):
    if weft_function(_needed) is None:
        FUNCTIONS.pop(_name)
