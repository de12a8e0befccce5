"""Writing by index: `x[...] = value`, and the same as a function.

Tensors are values, so a write makes a new one, and `x[i] = v` rebinds x to it: no earlier result
and no saved activation can change. Where nobody else holds the buffer it is written in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.batching import repeat, with_rank
from ...core.dim import may_equal
from ...core.dispatch import ERRORS
from ...core.dtype import DType, is_float
from ...core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ...core.masked import check_unmasked
from ...core.modes import current_interpreter, is_grad_enabled
from ...core.op import F, composite, composite_methods, general, op
from ...core.operands import holds_tensors, scalar_array, tensor_from
from ...core.samples import ErrorSample, Sample
from ...core.shape import Shape, TensorType, size_of
from ...core.tensor import Tensor, constant
from ._batching import BatchIndex, MaskedWrite, written
from ._checks import operands
from ._placing import part_places, within_part
from ._spec import (
    ARRAY,
    Spec,
    explain_bad_index,
    indexed_shape,
    native_basic,
    native_index,
    repeats_possible,
    split_index,
)
from ._text import replaced, whole_index
from .scatter_add import flat_positions

ALL = (None, None, None)


@composite()
def index_set(x: Tensor, index: Any, value: Any) -> Tensor:
    """Return x with `value`, broadcast and cast to its dtype, written at x[index].

    Any index that can be read can be written. Where an index array names an element several times
    the last value stays, and only that one receives a gradient.

    >>> import weft as wf
    >>> wf.index_set(wf.tensor([1.0, 2.0, 3.0]), slice(1, None), 0.0)
    tensor([1., 0., 0.])
    """
    (x,) = operands(x)
    spec, arrays = split_index(index)
    return _write(x, spec, arrays, as_value(value, x.dtype))


def _assign(self: Tensor, index: Any, value: Any) -> None:
    """Write `value` into this tensor at an index; every other tensor keeps its value."""
    spec, arrays = split_index(index)
    value = as_value(value, self.dtype)
    if not _write_in_place(self, spec, arrays, value):
        self._rebind(_write(self, spec, arrays, value))


def copy_(self: Tensor, source: Any) -> Tensor:
    """Replace the value by `source`, broadcast to this shape and cast to this dtype."""
    value = as_value(source, self.dtype)
    value = value if value.dtype == self.dtype else F.cast(value, self.dtype)
    try:
        filled = value if value.shape == self.shape else F.broadcast_to(value, self.shape)
    except ShapeError:
        raise ShapeError(f"copy_: shape {value.shape} does not fill {self.shape}") from None
    return self._rebind(F.positive(filled))


def fill_(self: Tensor, value: Any) -> Tensor:
    """Set every element to `value`."""
    return copy_(self, value)


def zero_(self: Tensor) -> Tensor:
    """Set every element to zero."""
    return copy_(self, 0)


composite_methods |= {"__setitem__": _assign, "copy_": copy_, "fill_": fill_, "zero_": zero_}


def _write(x: Tensor, spec: Spec, arrays: Sequence[Tensor], value: Any) -> Tensor:
    return F.setitem_arrays(x, value, arrays, spec) if arrays else F.setitem(x, value, spec)


def _write_in_place(x: Tensor, spec: Spec, arrays: Sequence[Tensor], value: Tensor) -> bool:
    """Write into the buffer itself if nothing records it and nobody shares it; tell if done."""
    if current_interpreter() is not None:  # which need not have run what makes x: nothing is asked
        return False
    recorded = x._node is not None or value._node is not None
    if not x.is_leaf or (recorded and is_grad_enabled()):
        return False
    buffer = x._exclusive()
    if buffer is None:
        return False
    try:
        values = [t._value for t in arrays]
        buffer[native_index(spec, values) if values else native_basic(spec)] = value._value
    except ERRORS:  # NumPy checks before it writes; the operator explains what is wrong
        return False
    return True


def as_value(value: Any, dtype: DType) -> Tensor:
    """Return something to be written into a tensor of a dtype, as a tensor.

    Numbers and lists take the dtype at once, so that 0.1 enters a float64 tensor unrounded.
    """
    if isinstance(value, Tensor):
        return value
    if holds_tensors(value):
        return tensor_from(value, "the value written", dtype)
    check_unmasked(value, "the value written")
    try:
        if isinstance(value, (bool, int, float)):
            return constant(scalar_array(value, dtype))
        array = np.array(value)
        if array.dtype.kind in "biuf" or is_float(array.dtype):
            return constant(array.astype(dtype))
    except (ValueError, OverflowError) as error:
        raise ArgumentError(f"cannot write {value!r:.60} into {dtype}: {error}") from None
    raise ArgumentTypeError(
        f"the value written must be a number, an array or a tensor. "
        f"Received: {type(value).__name__} {value!r:.60}"
    )


# -- basic indices ------------------------------------------------------------------------------


@op(general, result="any", linear=("x", "value"), method=False)
def setitem(x: Tensor, value: Tensor, spec: Spec) -> Tensor:
    """Return x with `value` written where a basic index points."""


@setitem.spelling
def _(types, spec):
    return f"{{replaced}}({{x}}, {whole_index(spec)}, {{value}})", {"replaced": replaced}


@setitem.eval
def _(x, value, spec):
    out = np.array(x)
    out[native_basic(spec)] = value
    return out


@setitem.infer
def _(x, value, spec):
    _check_value(value.shape, indexed_shape(x.shape, spec))
    return TensorType(x.shape, x.dtype)


@setitem.vjp("x")
def _(g, spec):
    return F.setitem(g, _zero(g), spec)


@setitem.vjp("value")
def _(g, value_shape, value_dtype, spec):
    return _to_value(F.getitem(g, spec), value_shape, value_dtype)


@setitem.place
def _(b, x, value, spec):
    places, where = within_part(b, x.shape, spec)
    if 0 in value.shape or 0 in indexed_shape(x.shape, spec):
        return x.here()
    own = [*[0] * value.ndim, *places][len(places) :]
    fit = [0 if n == 1 else place for n, place in zip(value.shape, own, strict=True)]
    found = b.widened(b.cast(value.at(*fit, where=where), x.dtype))
    return found if where is None else b.select(where, found, x.here())


@setitem.batch
def _(x, value, spec, batched, examples):
    x = x if batched[0] else repeat(x, examples)
    if batched[1]:
        value = with_rank(value, len(indexed_shape(x.shape[1:], spec)))
    return F.setitem(x, value, (ALL, *spec))


@setitem.samples
def _(s):
    yield Sample(s.real(2, 3), s.real(3), (0,))
    yield Sample(s.real(2, 3), s.real(), (1, 2))
    yield Sample(s.real(2, 3), s.real(2, 1), (ALL, (None, None, -2)), label="broadcast")
    yield Sample(s.real(2, 3), s.real(1, 1, 3), (0,), label="leading ones")
    yield Sample(s.strided(2, 3), s.real(2), (..., 0), label="non-contiguous")
    yield Sample(s.real(2, 3), s.real(1), ((2, None, None),), label="nothing written")
    yield Sample(s.real(), s.real(), (), label="0-d")
    yield Sample(s.integers(2, 3), s.real(3), (0,), grad=0, label="cast to integers")


@setitem.error_samples
def _(s):
    x = s.real(2, 3)
    yield ErrorSample(x, s.real(2), (0,), error=ValueError, match=r"\(3,\).*Received: .*\(2,\)")
    yield ErrorSample(x, s.real(), (5,), error=IndexError, match="index 5 .* axis 0 of size 2")


# -- index arrays and masks ---------------------------------------------------------------------


@op(general, result="any", linear=("x", "value"), method=False)
def setitem_arrays(x: Tensor, value: Tensor, arrays: Sequence[Tensor], spec: Spec) -> Tensor:
    """Return x with `value` written where an index with arrays points; the last write stays."""


@setitem_arrays.spelling
def _(types, spec):
    return f"{{replaced}}({{x}}, {whole_index(spec)}, {{value}})", {"replaced": replaced}


@setitem_arrays.eval
def _(x, value, arrays, spec):
    out = np.array(x)
    try:
        out[native_index(spec, arrays)] = value
    except IndexError:
        explain_bad_index(x.shape, spec, arrays)
        raise
    return out


@setitem_arrays.scatter
def _(b, x, value, arrays, spec):
    if any(array.dtype.kind == "b" for array in arrays):
        return None
    part = indexed_shape(x.shape, spec, arrays)
    b.over(part)
    places = part_places(b, x.shape, spec, arrays)
    if places is None or 0 in value.shape:
        return None
    own = [*[0] * value.ndim, *b.coordinates][len(part) :]
    fit = [0 if n == 1 else place for n, place in zip(value.shape, own, strict=True)]
    return b.put(places, value.at(*fit), "set", base=x)


@setitem_arrays.expand  # one value where a mask holds: x[x < 0] = 0
def _(x, value, arrays, spec):
    mask = arrays[0]
    if tuple(spec) != (ARRAY,) or mask.dtype.kind != "b" or value.ndim:
        return None
    chosen = F.reshape(mask, (*mask.shape, *[1] * (x.ndim - mask.ndim)))
    return F.where(chosen, F.cast(value, x.dtype), x)


@setitem_arrays.infer
def _(x, value, arrays, spec):
    _check_value(value.shape, indexed_shape(x.shape, spec, arrays))
    return TensorType(x.shape, x.dtype)


@setitem_arrays.vjp("x")
def _(g, arrays, spec):
    return F.setitem_arrays(g, _zero(g), arrays, spec)


@setitem_arrays.vjp("value")
def _(g, arrays, x_shape, value_shape, value_dtype, spec):
    written = F.getitem_arrays(g, arrays, spec)
    if repeats_possible(arrays):
        stays = F.last_writes(arrays, x_shape, spec)
        written = F.where(stays, written, F.zeros_like(written))
    return _to_value(written, value_shape, value_dtype)


@setitem_arrays.batch
def _(x, value, arrays, spec, batched, examples):
    x = x if batched[0] else repeat(x, examples)
    if spec == (ARRAY,) and batched[2] and arrays[0].dtype.kind == "b":
        return MaskedWrite(arrays[0], value, batched[1]).write(x)
    index = BatchIndex(x.shape[1:], arrays, batched[2:], spec, examples)
    ndim = len(indexed_shape(x.shape[1:], index.spec, index.types))
    return written(x, value if batched[1] else repeat(value, 1), index, ndim)


@setitem_arrays.samples
def _(s):
    i, j = np.array([0, 1, 0]), np.array([[2], [-1]])
    mask = np.array([[True, False, True], [False, False, True]])
    yield Sample(s.real(2, 3), s.real(3, 3), [i], (ARRAY,), label="repeated")
    yield Sample(s.real(2, 3), s.real(2, 3), [i, j], (ARRAY, ARRAY), label="broadcast index")
    yield Sample(s.real(2, 3), s.real(3), [i], (ARRAY,), label="broadcast value")
    yield Sample(s.real(2, 3, 2), s.real(3, 3), [i, i], (ARRAY, ALL, ARRAY), label="apart")
    yield Sample(s.real(2, 3), s.real(3), [mask], (ARRAY,), label="mask")
    yield Sample(s.real(2, 3), s.real(), [mask], (ARRAY,), label="mask, one value")
    yield Sample(s.real(2, 3), s.real(3), [np.array(1)], (ARRAY,), label="0-d index")
    yield Sample(s.real(2, 3), s.real(0, 3), [i[:0]], (ARRAY,), label="empty index")


@setitem_arrays.error_samples
def _(s):
    x, i = s.real(2, 3), np.array([0, 2])
    yield ErrorSample(
        x, s.real(), [i], (ARRAY,), error=IndexError, match=r"index\[1\] = 2 .* axis 0 of size 2"
    )
    yield ErrorSample(
        x, s.real(4), [i], (ALL, ARRAY), error=ValueError, match=r"\(2, 2\).*Received: .*\(4,\)"
    )


@op(general, method=False)
def last_writes(arrays: Sequence[Tensor], shape: Shape, spec: Spec) -> Tensor:
    """Tell which of the values written by an index stay: those that no later one overwrites."""


@last_writes.eval
def _(arrays, shape, spec):
    positions = flat_positions(shape, native_index(spec, arrays))
    order = np.arange(positions.size).reshape(positions.shape)
    writer = np.empty(int(np.prod(shape)), np.intp)
    writer[positions] = order
    return writer[positions] == order


@last_writes.expand
def _(arrays, shape, spec):
    if any(x.dtype.kind == "b" for x in arrays):
        return None
    part = indexed_shape(shape, spec, arrays)
    order = F.reshape(F.iota(size_of(part)), part)
    nobody = F.broadcast_to(np.zeros((), np.int64), shape)
    writer = F.setitem_arrays(nobody, order, arrays, spec)
    return F.getitem_arrays(writer, arrays, spec) == order


@last_writes.infer
def _(arrays, shape, spec):
    return TensorType(indexed_shape(shape, spec, arrays), np.dtype(bool))


@last_writes.batch
def _(arrays, shape, spec, batched, examples):
    index = BatchIndex(shape, arrays, batched, spec, examples)
    places, whole_spec = index.whole()
    return index.from_native(F.last_writes(places, (examples, *shape), whole_spec))


@last_writes.samples
def _(s):
    yield Sample([np.array([0, 1, 0])], (2, 3), (ARRAY,))
    yield Sample([np.array([0, -1, 2]), np.array([1])], (3, 2), (ARRAY, ARRAY))
    yield Sample([np.array([2, 2])], (2, 3, 1), (ALL, ARRAY))


# -- helpers ------------------------------------------------------------------------------------


def _zero(g: Any) -> Any:
    """Return a 0-d zero of the gradient's kind and dtype."""
    return np.zeros((), g.dtype)


def _to_value(written: Any, shape: Shape, dtype: DType) -> Any:
    """Return the gradient of the written elements as that of the value broadcast into them."""
    inner = shape[max(0, len(shape) - written.ndim) :]  # NumPy lets a value lead with ones
    summed = F.sum_to(written, inner)
    summed = summed if inner == shape else F.reshape(summed, shape)
    return summed if summed.dtype == dtype else F.cast(summed, dtype)


def _check_value(shape: Shape, target: Any) -> None:
    """Raise unless a value of this shape broadcasts into the selected elements."""
    extra = max(0, len(shape) - len(target))
    pairs = zip(reversed(shape), reversed(target), strict=False)
    fits = all(a == 1 or b is None or may_equal(a, b) or may_equal(a, 1) for a, b in pairs)
    if any(dim != 1 for dim in shape[:extra]) or not fits:
        raise ShapeError(
            f"the value must broadcast to the selected elements, shape {tuple(target)}. "
            f"Received: a value of shape {tuple(shape)}",
            selected=tuple(target),
        )
