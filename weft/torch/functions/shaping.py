"""Functions of shapes and places whose names or arguments are PyTorch's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import tensor as core
from ...core.op import F
from .. import return_types
from .. import view_functions as views
from ..adoption import adopt
from ..calls import write_out
from ..deferred import weft_function
from ..geometry import geometry_of
from ..sizes import Size, sizes_of
from ..types import aligned, result_type
from ..writing import detached
from .adapted import nonzero_rows


def repeat(input: Any, *repeats: Any) -> Any:
    """Return the whole tensor laid out several times along each dimension."""
    counts = sizes_of(repeats)
    if len(counts) < input.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor"
        )
    made: Any = weft_function("tile")
    return adopt(made(input, *counts)) if counts else adopt(F.positive(input))


def tile(input: Any, *dims: Any, **names: Any) -> Any:
    """Return the tensor laid out several times; missing counts are 1."""
    counts = sizes_of(dims or (names["dims"],))
    made: Any = weft_function("tile")
    return adopt(made(input, *counts)) if counts else adopt(F.positive(input))


def repeat_interleave(
    input: Any, repeats: Any = None, dim: int | None = None, *, output_size: Any = None
) -> Any:
    """Return each element, or each part along a dimension, repeated."""
    if repeats is None:
        counts = input
        made = np.repeat(np.arange(counts.shape[0]), counts._read())
        return adopt(core.wrap(made))
    repeat_parts: Any = weft_function("repeat_interleave")
    return adopt(repeat_parts(input, repeats, dim))


def meshgrid(*tensors: Any, indexing: str | None = None) -> Any:
    """Return grids of coordinates, by rows first."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    for x in given:
        if x.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {x}"
            )
    flat = [views.reshape(x, -1) for x in given]
    made: Any = weft_function("meshgrid")
    return adopt(tuple(made(*flat, indexing=indexing or "ij")))


def cat(tensors: Any, dim: int = 0, *, out: Any = None, **names: Any) -> Any:
    """Return tensors put together along a dimension."""
    dim = names.get("axis", dim)
    _check_list(tensors, "cat", ValueError("torch.cat(): expected a non-empty list of Tensors"))
    given = [x for x in tensors if tuple(x.shape) != (0,)] or list(tensors)[:1]
    wanted = result_type(*tensors) if len({x.dtype for x in tensors}) > 1 else None
    parts = [x if wanted in (None, x.dtype) else F.cast(x, wanted) for x in given]
    found = adopt(F.concat(parts, dim))
    return found if out is None else write_out(found, out)


def _check_list(tensors: Any, name: str, empty: Exception) -> None:
    """Raise unless tensors are several of them."""
    if isinstance(tensors, core.Tensor):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"
        )
    if not len(tensors):
        raise empty


def stack(tensors: Any, dim: int = 0, *, out: Any = None) -> Any:
    """Return tensors of one shape put together along a new dimension."""
    _check_list(tensors, "stack", RuntimeError("stack expects a non-empty TensorList"))
    found = adopt(F.stack(list(tensors), dim))
    return found if out is None else write_out(found, out)


def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """Return elements of one tensor where a condition holds, else of another."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    choose: Any = weft_function("where")
    if not isinstance(input, core.Tensor) and not isinstance(other, core.Tensor):
        wanted = result_type(input, other)
        found = choose(condition, F.cast(_literal(input), wanted), F.cast(_literal(other), wanted))
    else:
        x, y = aligned(input, other)
        found = choose(condition, x, y)
    found = adopt(found)
    return found if out is None else write_out(found, out)


def _literal(number: Any) -> Any:
    return core.constant(np.asarray(number))


def nonzero(input: Any, *, out: Any = None, as_tuple: bool = False) -> Any:
    """Return the places of elements that are not zero, as rows or one tensor a dimension."""
    if as_tuple:
        found: Any = weft_function("nonzero")
        return adopt(found(input if input.ndim else F.reshape(input, (1,))))
    made = nonzero_rows(input)
    return made if out is None else write_out(made, out)


def unique(
    input: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the different elements in order, and on request where they stand and how often."""
    values, inverse, counts = np.unique(
        input._read(), return_inverse=True, return_counts=True, axis=dim
    )
    shape = () if not input.ndim else input.shape if dim is None else (input.shape[dim],)
    parts = [values]
    parts += [inverse.reshape(shape)] if return_inverse else []
    parts += [counts] if return_counts else []
    made = tuple(adopt(core.wrap(np.array(p, order="C"))) for p in parts)
    return made if len(made) > 1 else made[0]


def split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> Any:
    """Return consecutive parts of given sizes."""
    return views.split(input, list(split_sizes), dim)


def contiguous(input: Any, memory_format: Any = None) -> Any:
    """Return the tensor itself where its elements lie in their order, else a copy."""
    if not _is_plain(input) or geometry_of(input).is_contiguous:
        return input
    return clone(input)


def _is_plain(input: Any) -> bool:
    return all(type(n) is int for n in input.shape)


def clone(input: Any, *, memory_format: Any = None) -> Any:
    """Return a copy; gradients flow through to the original."""
    return adopt(F.positive(input))


def broadcast_shapes(*shapes: Any) -> Any:
    """Return the shape that tensors of given shapes have together."""
    given = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    together: tuple[Any, ...] = ()
    for number, shape in enumerate(given):
        try:
            together = np.broadcast_shapes(together, shape)
        except ValueError:
            raise _refused_shape(together, number, shape) from None
    return Size(together)


def _refused_shape(together: tuple[Any, ...], number: int, shape: tuple[Any, ...]) -> Exception:
    pairs = zip(reversed(together), reversed(shape), strict=False)
    place, size = next((-i, b) for i, (a, b) in enumerate(pairs, 1) if a != b and 1 not in (a, b))
    return RuntimeError(
        f"Attempting to broadcast a dimension of length {size} at {place}! Mismatching argument at "
        f"index {number} had {shape}; but expected shape should be broadcastable to "
        f"{list(together)}"
    )


def clamp(input: Any, min: Any = None, max: Any = None, *, out: Any = None) -> Any:
    """Return elements, those outside of bounds replaced by the bound."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    made: Any = weft_function("clamp")
    x, low, high = input, min, max
    wanted = result_type(*[v for v in (x, low, high) if v is not None])
    x = x if x.dtype == wanted else F.cast(x, wanted)
    low, high = (
        F.cast(v, wanted) if isinstance(v, core.Tensor) and v.dtype != wanted else v
        for v in (low, high)
    )
    found = adopt(made(x, low, high))
    return found if out is None else write_out(found, out)


def clamp_min(input: Any, min: Any, *, out: Any = None) -> Any:
    """Return elements, those below a bound replaced by it."""
    return clamp(input, min, None, out=out)


def clamp_max(input: Any, max: Any, *, out: Any = None) -> Any:
    """Return elements, those above a bound replaced by it."""
    return clamp(input, None, max, out=out)


def round(input: Any, *, decimals: int = 0, out: Any = None) -> Any:
    """Return elements rounded to a number of decimals, ties to even."""
    if not decimals:
        found = adopt(F.round(input))
    elif decimals > 0:
        scale = 10.0**decimals
        found = adopt(F.round(input * scale) / scale)
    else:
        scale = 10.0**-decimals
        found = adopt(F.round(input / scale) * scale)
    return found if out is None else write_out(found, out)


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return `other - alpha * input`."""
    return adopt(other - input * alpha if alpha != 1 else other - input)


def take(input: Any, index: Any) -> Any:
    """Return elements by their places in the flat tensor."""
    made: Any = weft_function("take")
    return adopt(made(F.reshape(input, (-1,)), index, 0))


def take_along_dim(input: Any, indices: Any, dim: int | None = None, *, out: Any = None) -> Any:
    """Return elements by indices along a dimension, which broadcast."""
    x, i = (
        (input, indices)
        if dim is not None
        else (F.reshape(input, (-1,)), F.reshape(indices, (-1,)))
    )
    axis = 0 if dim is None else views.wrapped_dim(dim, input.ndim)
    sizes = np.broadcast_shapes(
        *[tuple(1 if a == axis else n for a, n in enumerate(v.shape)) for v in (x, i)]
    )
    x, i = (
        F.broadcast_to(v, tuple(v.shape[a] if a == axis else n for a, n in enumerate(sizes)))
        for v in (x, i)
    )
    found = adopt(F.take_along_axis(x, i, axis))
    return found if out is None else write_out(found, out)


def cross(input: Any, other: Any, dim: int | None = None, *, out: Any = None) -> Any:
    """Return the cross product along a dimension of size 3, the first such by default."""
    axis = dim
    if axis is None:
        axis = next((a for a, n in enumerate(input.shape) if n == 3), None)
        if axis is None:
            raise RuntimeError("no dimension of size 3 in input")
    x, y = (
        adopt(F.broadcast_to(v, np.broadcast_shapes(input.shape, other.shape)))
        for v in (input, other)
    )
    made: Any = weft_function("cross", "linalg")
    found = adopt(made(x, y, dim=axis))
    return found if out is None else write_out(found, out)


def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0, *, out: Any = None) -> Any:
    """Return how many elements fall into bins of one width."""
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    values = np.asarray(input._read(), np.float64).ravel()
    low, high = (values.min(), values.max()) if min == max and values.size else (min, max)
    if low == high:
        low, high = low - 1, high + 1
    counts, _ = np.histogram(values, bins, (float(low), float(high)))
    found = adopt(core.wrap(counts.astype(input.dtype)))
    return found if out is None else write_out(found, out)


def histogram(
    input: Any,
    bins: Any = 100,
    *,
    range: Any = None,
    weight: Any = None,
    density: bool = False,
    out: Any = None,
) -> Any:
    """Return how many elements fall into bins, and the edges of these."""
    edges = bins._read() if isinstance(bins, core.Tensor) else bins
    weights = None if weight is None else weight._read().ravel()
    counts, found = np.histogram(input._read().ravel(), edges, range, density, weights)
    made = [adopt(core.wrap(np.asarray(x).astype(input.dtype))) for x in (counts, found)]
    return return_types.histogram(*made)


def trapz(y: Any, x: Any = None, *, dx: float = 1, dim: int = -1) -> Any:
    """Return the integral along a dimension by the trapezoidal rule."""
    made: Any = weft_function("trapezoid")
    return adopt(made(y, dim=dim, dx=dx) if x is None else made(y, x, dim=dim))


def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Return the tensor with values written, or added, at places that index tensors name."""
    made: Any = weft_function("index_put")
    return adopt(made(input, tuple(indices), values, accumulate=accumulate))


def unravel_index(indices: Any, shape: Any) -> Any:
    """Return the coordinates of places in a flat tensor."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    found = np.unravel_index(indices._read(), sizes)
    return tuple(adopt(core.wrap(np.asarray(x))) for x in found)


def is_tensor(obj: Any) -> bool:
    """Tell whether an object is a tensor."""
    return isinstance(obj, core.Tensor)


def numel(input: Any) -> Any:
    """Return the number of elements of a tensor."""
    return input.numel()


def as_strided(input: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """Return elements of the tensor's memory by strides, as a copy: it is not written through."""
    base, window = input, geometry_of(input)
    while getattr(base, "is_view_of", None) is not None:
        base = base.is_view_of
    first = window.offset if storage_offset is None else storage_offset
    places = np.full(tuple(size), first, np.int64)
    for axis, (n, step) in enumerate(zip(size, stride, strict=True)):
        shape = [1] * len(size)
        shape[axis] = n
        places = places + (np.arange(n) * step).reshape(shape)
    if places.size and places.max() >= base.numel():
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {first} are "
            f"out of bounds for storage of {base.numel()} elements"
        )
    found = F.take(F.reshape(base, (-1,)), core.constant(places), 0)
    return adopt(found)


def detach(input: Any) -> Any:
    """Return a tensor of the same memory without history."""
    return detached(input)


def _copied(view: Any) -> Any:
    def copied(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        found = view(*args, **kwargs)
        made = tuple(map(clone, found)) if isinstance(found, tuple) else clone(found)
        return made if out is None else write_out(made, out)

    copied.__name__ = f"{view.__name__}_copy"
    return copied


VIEWS: dict[str, Any] = {
    name: getattr(views, name)
    for name in (
        *("broadcast_tensors", "broadcast_to", "chunk", "diagonal", "dsplit", "expand"),
        *("expand_as", "flatten", "hsplit", "movedim", "narrow", "permute", "ravel", "reshape"),
        *("reshape_as", "select", "split", "squeeze", "swapaxes", "swapdims", "t", "tensor_split"),
        *("transpose", "unbind", "unflatten", "unfold", "unsqueeze", "view", "view_as", "vsplit"),
    )
}
COPIES = ("alias", "diagonal", "expand", "narrow", "permute", "squeeze", "t", "transpose")
FUNCTIONS: dict[str, Any] = {
    **VIEWS,
    "moveaxis": views.movedim,
    "adjoint": views.matrix_transpose,
    "unsafe_chunk": views.chunk,
    "unsafe_split": views.split,
    "repeat": repeat,
    "tile": tile,
    "repeat_interleave": repeat_interleave,
    "meshgrid": meshgrid,
    "cat": cat,
    "concat": cat,
    "concatenate": cat,
    "stack": stack,
    "where": where,
    "nonzero": nonzero,
    "unique": unique,
    "split_with_sizes": split_with_sizes,
    "contiguous": contiguous,
    "clone": clone,
    "broadcast_shapes": broadcast_shapes,
    "clamp": clamp,
    "clip": clamp,
    "clamp_min": clamp_min,
    "clamp_max": clamp_max,
    "round": round,
    "rsub": rsub,
    "take": take,
    "take_along_dim": take_along_dim,
    "cross": cross,
    "histc": histc,
    "histogram": histogram,
    "trapz": trapz,
    "index_put": index_put,
    "unravel_index": unravel_index,
    "is_tensor": is_tensor,
    "numel": numel,
    "as_strided": as_strided,
    "detach": detach,
    **{f"{name}_copy": _copied(getattr(views, name)) for name in (*COPIES, "unbind", "unfold")},
    "unsqueeze_copy": _copied(views.unsqueeze),
    "view_copy": _copied(views.view),
    "split_with_sizes_copy": _copied(split_with_sizes),
    "as_strided_copy": as_strided,
}
