"""Reading by index: `x[...]` with everything NumPy allows between the brackets.

`getitem` takes what basic indices select (a view), `getitem_arrays` what index arrays and masks do.
Both are linear; their transposes put the gradient back into zeros, and adding is part of the
transpose because an index array may name one element many times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.batching import repeat
from ...core.division import Division
from ...core.op import F, composite, general, movement, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import Shape, TensorType, size_of
from ...core.tensor import Tensor
from ._batching import ALL, BatchIndex, batch_taken, put_back
from ._checks import check_gradient
from ._placing import part_places, within_part
from ._spec import (
    ARRAY,
    Spec,
    explain_bad_index,
    explicit,
    indexed_shape,
    leading_array,
    native_basic,
    native_index,
    repeats_possible,
    slice_places,
    split_index,
)
from ._text import added, index_text, placed, whole_index
from .scatter_add import scatter_add_at, scatter_add_rows


@composite(method="__getitem__", public=False)
def index_get(x: Tensor, index: Any) -> Tensor:
    """Return x[index]: what NumPy's basic, advanced or boolean indexing selects.

    Integers, slices, None, `...`, integer tensors (arrays, lists) with broadcasting, boolean masks
    and any mixture of them are allowed. The result is a value of its own; gradients of elements
    that are taken several times add up.

    >>> import weft as wf
    >>> x = wf.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> x[1, ::-1]
    tensor([6., 5., 4.])
    >>> x[[0, 1, 0], [2, 0, 2]]
    tensor([3., 4., 3.])
    >>> x[x > 2.5]
    tensor([3., 4., 5., 6.])
    """
    spec, arrays = split_index(index)
    return F.getitem_arrays(x, arrays, spec) if arrays else F.getitem(x, spec)


# -- integers, slices, new axes -----------------------------------------------------------------


@op(movement, linear=("x",), method=False)
def getitem(x: Tensor, spec: Spec) -> Tensor:
    """Return the elements that a basic index selects; `spec` as described in `_spec`."""


@getitem.eval
def _(x, spec):
    return x[native_basic(spec)]


@getitem.spelling
def _(types, spec):
    return f"{{x}}[{index_text(spec)}]"


@getitem.infer
def _(x, spec):
    return TensorType(indexed_shape(x.shape, spec), x.dtype)


@getitem.view
def _(x, spec):
    shape, strides, start, axis = [], [], 0, 0
    for item in explicit(spec, len(x.shape)):
        if item is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = x.shape[axis], x.strides[axis]
        if isinstance(item, int):
            start += (item + size if item < 0 else item) * stride
        else:
            first, count, step = slice_places(item, size)
            start += first * stride
            shape.append(count)
            strides.append(stride * step)
        axis += 1
    return x.restrided(tuple(shape), tuple(strides), start)


@getitem.division
def _(x, spec):
    labels, kept = _whole_axes(x.shape, spec)
    return Division([labels], kept)


def _whole_axes(shape, spec):
    """Return labels of the axes that an index takes whole, and of those of the result."""
    labels: list[int | None] = []
    kept: list[int | None] = []
    for item in explicit(spec, len(shape)):
        if item is None:
            kept.append(None)
            continue
        axis = len(labels)
        is_slice = not isinstance(item, int)
        whole = is_slice and slice_places(item, shape[axis]) == (0, shape[axis], 1)
        labels.append(axis if whole else None)
        if is_slice:
            kept.append(labels[axis])
    return tuple(labels), tuple(kept)


@getitem.vjp("x")
def _(g, x_shape, spec):
    return F.getitem_adjoint(g, x_shape, spec)


@getitem.batch
def _(x, spec):
    return F.getitem(x, (ALL, *spec))


@getitem.by_data
def _(x, spec):
    # Rows of a table are asked for by many numbers; a matrix among a few is better told by its.
    numbers = [item for item in spec if item.__class__ is int]
    if not numbers or x.ndim - len(numbers) > 1:
        return None
    others = tuple(ARRAY if item.__class__ is int else item for item in spec)
    return [np.array(i) for i in numbers], lambda arrays: F.getitem_arrays(x, arrays, others)


@getitem.samples
def _(s):
    specs = (
        (0,),
        (-1,),
        (1, 2),
        (None,),
        (...,),
        (..., 0),
        (..., None, 1),
        (ALL, (None, None, -1)),
        ((1, None, None), (0, 3, 2)),
        ((5, None, None),),
        ((-1, -4, -2), None, ..., (-2, None, None)),
    )
    for spec in specs:
        yield Sample(s.real(2, 3), spec)
    yield Sample(s.real(), (), label="0-d")
    yield Sample(s.real(), (None, ..., None), label="0-d")
    yield Sample(s.strided(3, 2), (ALL, (None, None, -1)), label="non-contiguous")
    yield Sample(s.real(0, 3), (ALL, 1), label="empty")
    yield Sample(s.real(2, 3, 2), (0, ..., 1))
    yield Sample(s.integers(2, 3), (1, ALL), label="integers")


@getitem.error_samples
def _(s):
    x = s.real(2, 3)
    yield ErrorSample(x, (2,), error=IndexError, match=r"index 2 .* axis 0 of size 2; use -2\.\.1")
    yield ErrorSample(x, (0, -4), error=IndexError, match="index -4 .* axis 1 of size 3")
    yield ErrorSample(x, (0, 0, 0), error=IndexError, match=r"2 dimension\(s\).*Received: 3")
    yield ErrorSample(x, (..., 0, ...), error=IndexError, match="only one ellipsis")
    yield ErrorSample(x, ((0, 2, 0),), error=ValueError, match=r"step .*slice\(0, 2, 0\)")


@op(movement, linear=("g",), method=False)
def getitem_adjoint(g: Tensor, shape: Shape, spec: Spec) -> Tensor:
    """Return zeros of `shape` with g where the basic index `spec` points."""


@getitem_adjoint.eval
def _(g, shape, spec):
    out = np.zeros(shape, g.dtype)
    out[native_basic(spec)] = g
    return out


@getitem_adjoint.spelling
def _(types, shape, spec):
    return f"{{placed}}({{g}}, {shape}, {whole_index(spec)})", {"placed": placed}


@getitem_adjoint.infer
def _(g, shape, spec):
    check_gradient(g, indexed_shape(shape, spec))
    return TensorType(shape, g.dtype)


@getitem_adjoint.division
def _(g, shape, spec):
    labels, kept = _whole_axes(shape, spec)
    return Division([kept], labels, part=lambda at, g: F.getitem_adjoint(g, at.shape, spec))


@getitem_adjoint.vjp("g")
def _(g, spec):
    return F.getitem(g, spec)


@getitem_adjoint.view
def _(g, shape, spec):
    forwards = all(item[2] in (None, 1) for item in spec if isinstance(item, tuple))
    return g.reshaped(shape) if forwards and size_of(shape) == size_of(g.shape) else None


@getitem_adjoint.place
def _(b, g, shape, spec):
    places, where = within_part(b, shape, spec)
    if where is None:
        return None  # the same elements in another shape: a view
    return b.constant(0, g.dtype) if 0 in g.shape else g.at(*places, where=where)


@getitem_adjoint.batch
def _(g, shape, spec, examples):
    return F.getitem_adjoint(g, (examples, *shape), (ALL, *spec))


@getitem_adjoint.samples
def _(s):
    yield Sample(s.real(3), (2, 3), (1,))
    yield Sample(s.real(2, 2), (2, 3), (ALL, (None, None, -2)))
    yield Sample(s.real(1, 2, 3), (2, 3), (None,))
    yield Sample(s.real(), (2, 3), (0, 1))
    yield Sample(s.real(2, 0), (2, 3), (ALL, (3, None, None)))
    yield Sample(s.real(), (), ())


# -- index arrays and masks ---------------------------------------------------------------------


@op(general, linear=("x",), method=False)
def getitem_arrays(x: Tensor, arrays: Sequence[Tensor], spec: Spec) -> Tensor:
    """Return the elements that an index with arrays selects; `spec` as described in `_spec`.

    A mask makes the size of the result depend on its values.
    """


@getitem_arrays.eval
def _(x, arrays, spec):
    try:
        return x[native_index(spec, arrays)]
    except IndexError:
        explain_bad_index(x.shape, spec, arrays)
        raise


@getitem_arrays.spelling
def _(types, spec):
    return f"{{x}}[{index_text(spec)}]"


@getitem_arrays.infer
def _(x, arrays, spec):
    return TensorType(indexed_shape(x.shape, spec, arrays), x.dtype)


@getitem_arrays.vjp("x")
def _(g, arrays, x_shape, spec):
    return F.getitem_arrays_adjoint(g, arrays, x_shape, spec)


@getitem_arrays.place
def _(b, x, arrays, spec):
    places = part_places(b, x.shape, spec, arrays)
    return None if places is None else x.at(*places)


@getitem_arrays.batch
def _(x, arrays, spec, batched, examples):
    shape = x.shape[1:] if batched[0] else x.shape
    return batch_taken(x, batched[0], BatchIndex(shape, arrays, batched[1:], spec, examples))


@getitem_arrays.samples
def _(s):
    i, j = np.array([0, 1, 0]), np.array([[2], [-1]])
    mask = np.array([[True, False, True], [False, False, True]])
    yield Sample(s.real(2, 3), [i], (ARRAY,))
    yield Sample(s.real(2, 3), [i], (ARRAY, ...))
    yield Sample(s.real(2, 3), [i, j], (ARRAY, ARRAY), label="broadcast")
    yield Sample(s.real(2, 3, 2), [i, i], (ARRAY, ALL, ARRAY), label="apart")
    yield Sample(s.real(2, 3, 2), [i], (1, ARRAY), label="integer beside array")
    yield Sample(s.real(2, 3, 2), [i], (0, ALL, ARRAY), label="integer apart")
    yield Sample(s.real(2, 3), [i], (None, ALL, ARRAY, None))
    yield Sample(s.strided(2, 3), [j], ((None, None, -1), ARRAY), label="non-contiguous")
    yield Sample(s.real(2, 3), [np.array(1)], (ARRAY,), label="0-d index")
    yield Sample(s.real(2, 3), [i[:0]], (ARRAY,), label="empty index")
    yield Sample(s.real(2, 3), [i.astype(np.uint8)], (ARRAY,), label="uint8")
    yield Sample(s.real(2, 3), [mask], (ARRAY,), label="mask")
    yield Sample(s.real(2, 3, 2), [mask], (ARRAY, 1), label="mask")
    yield Sample(s.real(2, 3), [mask[0]], (ALL, ARRAY), label="mask of one axis")
    yield Sample(s.real(2, 3), [np.array(True)], (ARRAY,), label="0-d mask")
    yield Sample(s.real(2, 3, 2), [mask[0], np.array([1])], (0, ARRAY, ARRAY), label="mask, array")
    yield Sample(s.integers(2, 3), [i], (ARRAY,), label="integers")


@getitem_arrays.error_samples
def _(s):
    x = s.real(2, 3)
    far = np.array([[0, 1], [5, 0]])
    yield ErrorSample(
        x, [far], (ARRAY,), error=IndexError, match=r"index\[1, 0\] = 5 .* axis 0 of size 2"
    )
    yield ErrorSample(
        x, [far[0], far[0]], (ARRAY, None, ARRAY, 0), error=IndexError, match="Received: 3 indices"
    )
    mask = np.zeros((2, 2), bool)
    yield ErrorSample(x, [mask], (ARRAY,), error=ValueError, match=r"mask .*\(2, 3\).*\(2, 2\)")
    yield ErrorSample(
        x,
        [np.zeros(2, int), np.zeros(3, int)],
        (ARRAY, ARRAY),
        error=ValueError,
        match=r"broadcast.*\(2,\), \(3,\)",
    )


@op(general, linear=("g",), method=False)
def getitem_arrays_adjoint(g: Tensor, arrays: Sequence[Tensor], shape: Shape, spec: Spec) -> Tensor:
    """Return zeros of `shape` with g added wherever the index with arrays points."""


@getitem_arrays_adjoint.eval
def _(g, arrays, shape, spec):
    if leading_array(spec, arrays):
        return scatter_add_rows(shape, arrays[0], g, g.dtype)
    index = native_index(spec, arrays)
    if repeats_possible(arrays):
        return scatter_add_at(shape, index, g, g.dtype)
    out = np.zeros(shape, g.dtype)
    out[index] = g
    return out


@getitem_arrays_adjoint.spelling
def _(types, shape, spec):
    helper = placed if all(t.shape == () for t in types[1:]) else added
    return f"{{put}}({{g}}, {shape}, {whole_index(spec)})", {"put": helper}


@getitem_arrays_adjoint.scatter
def _(b, g, arrays, shape, spec):
    own = b.over(g.shape)
    places = part_places(b, shape, spec, arrays)
    return None if places is None else b.put(places, g.at(*own), "sum")


@getitem_arrays_adjoint.infer
def _(g, arrays, shape, spec):
    check_gradient(g, indexed_shape(shape, spec, arrays))
    return TensorType(shape, g.dtype)


@getitem_arrays_adjoint.vjp("g")
def _(g, arrays, spec):
    return F.getitem_arrays(g, arrays, spec)


@getitem_arrays_adjoint.batch
def _(g, arrays, shape, spec, batched, examples):
    g = g if batched[0] else repeat(g, examples)
    return put_back(g, BatchIndex(shape, arrays, batched[1:], spec, examples))


@getitem_arrays_adjoint.samples
def _(s):
    i = np.array([0, 1, 0])
    yield Sample(s.real(3, 3), [i], (2, 3), (ARRAY,))
    yield Sample(s.real(3), [i, -i], (2, 3), (ARRAY, ARRAY))
    yield Sample(s.real(3, 3), [i, i], (2, 3, 2), (ARRAY, ALL, ARRAY))
    yield Sample(s.real(2), [np.array([True, False, True])], (2, 3), (1, ARRAY), label="mask")
    yield Sample(s.real(3), [np.array(1)], (2, 3), (ARRAY,), label="0-d index")
    yield Sample(s.real(0, 3), [i[:0]], (2, 3), (ARRAY,), label="empty index")
