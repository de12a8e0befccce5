"""Functions whose results are views: they share the memory of what they are given."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..core import tensor as core
from ..core.errors import WeftError
from ..core.modes import is_transformed
from ..core.op import F
from ..core.shape import broadcast
from ..ops.index import split_index
from .adoption import adopt
from .geometry import geometry_of
from .phrasing import phrase
from .sentences import dimension_out_of_range, expanded_size
from .sizes import sizes_of
from .views import view_of
from .windows import (
    AxesWindow,
    DiagonalWindow,
    ExpandedWindow,
    IndexWindow,
    ShapeWindow,
    SlidingWindow,
)

FULL = (None, None, None)


def wrapped_dim(dim: Any, count: int) -> int:
    """Return a dimension counted from the front; raise in PyTorch's words."""
    most = max(count, 1)
    number = int(dim)
    if not -most <= number < most:
        raise dimension_out_of_range(number, count)
    return number % most


# -- indexing -------------------------------------------------------------------------------------


def getitem(input: Any, index: Any) -> Any:
    """Return what an index selects: a view where it is basic, else a copy."""
    try:
        spec, arrays = split_index(with_arrays(index))
    except WeftError as error:
        raise phrase(error, "getitem", {"x": input, "index": index}) from None
    if arrays:
        return adopt(F.getitem_arrays(input, arrays, spec))
    return indexed(input, spec)


def is_basic(index: Any) -> bool:
    """Tell whether an index selects a view: it holds numbers and slices alone."""
    items = index if isinstance(index, tuple) else (index,)
    return all(i is None or i is ... or isinstance(i, (int, slice)) for i in items)


def with_arrays(index: Any) -> Any:
    """Return an index with lists as arrays, or with a list of items as a tuple of them."""
    if index.__class__ is not list and index.__class__ is not tuple:
        return index
    if isinstance(index, tuple):
        return tuple(np.asarray(i) if type(i) is list and i else i for i in index)
    if any(i is None or isinstance(i, slice) or i is ... for i in index):
        return tuple(index)
    if any(isinstance(i, core.Tensor) and i.ndim for i in index):
        return tuple(index)
    return index


def indexed(input: Any, spec: tuple[Any, ...]) -> Any:
    """Return the view that a basic index selects."""
    for item in spec:
        if isinstance(item, tuple) and item[2] is not None and item[2] <= 0:
            raise ValueError("step must be greater than zero")
    window = IndexWindow(spec)
    if not (is_transformed() or input.symbolic):
        try:
            window.array(np.broadcast_to(False, input.shape))
        except IndexError:
            raise IndexError(_bad_index(spec, input.shape)) from None
    return view_of(input, window)


def _bad_index(spec: tuple[Any, ...], sizes: Sequence[int]) -> str:
    """Return what is wrong with an index, in PyTorch's words."""
    axis = 0
    count = sum(item is not None and item is not ... for item in spec)
    if not sizes:
        return (
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
            "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
        )
    if count > len(sizes):
        return f"too many indices for tensor of dimension {len(sizes)}"
    for item in spec:
        if item is ...:
            axis += len(sizes) - count
        elif item is not None:
            if isinstance(item, int) and not -sizes[axis] <= item < sizes[axis]:
                return f"index {item} is out of bounds for dimension {axis} with size {sizes[axis]}"
            axis += 1
    return f"index {spec} does not fit a tensor of shape {list(sizes)}"


def _part(dim: int, item: Any) -> tuple[Any, ...]:
    """Return the index of a part along one dimension."""
    return (*(FULL,) * dim, item)


def select(input: Any, dim: int, index: int) -> Any:
    """Return the part of a tensor at one place of a dimension, without that dimension."""
    dim = wrapped_dim(dim, input.ndim)
    size = input.shape[dim]
    number = index.__index__()
    if not -size <= number < size:
        raise IndexError(
            f"select(): index {number} out of range for tensor of size {list(input.shape)} at "
            f"dimension {dim}"
        )
    return view_of(input, IndexWindow(_part(dim, number)))


def narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    """Return a part of a tensor along a dimension, by its first place and its length."""
    dim = wrapped_dim(dim, input.ndim)
    first, size = int(start), input.shape[dim]
    first = first + size if first < 0 else first
    if first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return view_of(input, IndexWindow(_part(dim, (first, first + length, None))))


def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """Return all parts along a dimension, without it."""
    dim = wrapped_dim(dim, input.ndim)
    return tuple(
        view_of(input, IndexWindow(_part(dim, i), (i, "Unbind"))) for i in range(input.shape[dim])
    )


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Return consecutive parts along a dimension: of one size, or of given sizes."""
    dim = wrapped_dim(dim, tensor.ndim)
    size, function = tensor.shape[dim], "Split"
    if isinstance(split_size_or_sections, (list, tuple)):
        sections, function = [int(n) for n in split_size_or_sections], "SplitWithSizes"
        if sum(sections) != size:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's "
                f"size at dimension {dim}), but got split_sizes={sections}"
            )
    else:
        step = int(split_size_or_sections)
        if step < 0 or (step == 0 and size):
            raise RuntimeError(
                f"split expects split_size be non-negative, but got split_size={step}"
                if step
                else "split_size can only be 0 if dimension size is 0, but got dimension size of "
                f"{size}"
            )
        sections = [min(step, size - first) for first in range(0, size, step or 1)] or [size]
    return _sections(tensor, sections, dim, function)


def _sections(
    input: Any, sizes: Sequence[int], dim: int, function: str | None = None
) -> tuple[Any, ...]:
    """Return consecutive parts; those of a function which PyTorch knows may not be written into."""
    parts, first = [], 0
    for place, size in enumerate(sizes):
        item = (first, first + size, None)
        several = None if function is None else (place, function)
        parts.append(view_of(input, IndexWindow(_part(dim, item), several)))
        first += size
    return tuple(parts)


def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Return a number of parts along a dimension, of one size but for the last."""
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = wrapped_dim(dim, input.ndim)
    size = input.shape[dim]
    if not size:
        return _sections(input, [0] * chunks, dim, "Split")
    return split(input, -(-size // chunks), dim)


def tensor_split(
    input: Any, indices_or_sections: Any = None, dim: int = 0, **names: Any
) -> tuple[Any, ...]:
    """Return parts along a dimension: a number of them, or those between given places."""
    given = names.get("indices", names.get("sections", indices_or_sections))
    dim = wrapped_dim(dim, input.ndim)
    size = input.shape[dim]
    places = given.tolist() if isinstance(given, core.Tensor) else given
    if isinstance(places, (list, tuple)):
        stops = [slice(None, p).indices(size)[1] for p in places]
        ends = [*stops, size]
        firsts = [0, *stops]
        return tuple(
            view_of(input, IndexWindow(_part(dim, (a, max(a, b), None))))
            for a, b in zip(firsts, ends, strict=True)
        )
    count = int(places)
    if count <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {count}")
    most, extra = divmod(size, count)
    return _sections(input, [most + (i < extra) for i in range(count)], dim)


def hsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Return parts along the second dimension, or the only one."""
    return tensor_split(input, indices_or_sections, 0 if input.ndim == 1 else 1)


def vsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Return parts along the first dimension."""
    return tensor_split(input, indices_or_sections, 0)


def dsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Return parts along the third dimension."""
    return tensor_split(input, indices_or_sections, 2)


# -- shapes ---------------------------------------------------------------------------------------


def complete_shape(input: Any, sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return sizes with the one that is -1 filled in."""
    if -1 not in sizes:
        if prod(sizes) != input.numel() or any(size < 0 for size in sizes):
            raise _invalid_shape(input, sizes)
        return sizes
    known = prod(size for size in sizes if size != -1)
    if known <= 0 or input.numel() % known or sizes.count(-1) > 1:
        raise _invalid_shape(input, sizes)
    rest = input.numel() // known
    return tuple(rest if size == -1 else size for size in sizes)


def _invalid_shape(input: Any, sizes: tuple[Any, ...]) -> Exception:
    """Return the error for sizes that do not hold the elements of a tensor."""
    for place, size in enumerate(sizes):
        if size < -1:
            return RuntimeError(
                f"invalid shape dimension {size} at index {place} of shape {list(sizes)}"
            )
    if sizes.count(-1) > 1:
        return RuntimeError("only one dimension can be inferred")
    return RuntimeError(f"shape '{list(sizes)}' is invalid for input of size {input.numel()}")


def view(input: Any, *shape: Any, dtype: Any = None) -> Any:
    """Return a view of another shape, which must fit the memory."""
    if dtype is not None or (len(shape) == 1 and isinstance(shape[0], np.dtype)):
        return _reinterpreted(input, dtype if dtype is not None else shape[0])
    sizes = sizes_of(shape)
    if not _plain_sizes(input, sizes):
        return view_of(input, ShapeWindow(sizes))
    wanted = complete_shape(input, sizes)
    if geometry_of(input).viewed(wanted) is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return view_of(input, ShapeWindow(wanted))


def _reinterpreted(input: Any, dtype: Any) -> Any:
    if dtype == input.dtype:
        return view_of(input, ShapeWindow(input.shape))
    raise RuntimeError(
        f"view(dtype) reads the bytes of a tensor as another type; {input.dtype} as {dtype} is "
        "not supported: use x.to(dtype) for values"
    )


def _plain_sizes(input: Any, sizes: Sequence[Any]) -> bool:
    """Tell whether all sizes are numbers, and not such of a recording for many sizes."""
    return all(type(n) is int for n in (*input.shape, *sizes))


def reshape(input: Any, *shape: Any, **names: Any) -> Any:
    """Return the same elements in another shape: a view where the memory allows it."""
    sizes = sizes_of(shape or (names["shape"],))
    if not _plain_sizes(input, sizes):
        return view_of(input, ShapeWindow(sizes))
    wanted = complete_shape(input, sizes)
    if geometry_of(input).viewed(wanted) is None:
        return adopt(F.reshape(input, wanted))
    return view_of(input, ShapeWindow(wanted))


def view_as(input: Any, other: Any) -> Any:
    """Return a view in the shape of another tensor."""
    return view(input, tuple(other.shape))


def reshape_as(input: Any, other: Any) -> Any:
    """Return the same elements in the shape of another tensor."""
    return reshape(input, tuple(other.shape))


def ravel(input: Any) -> Any:
    """Return all elements in one dimension."""
    return reshape(input, -1)


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Return a tensor with a range of dimensions made one."""
    if input.ndim == 0:
        return reshape(input, 1)
    first, last = wrapped_dim(start_dim, input.ndim), wrapped_dim(end_dim, input.ndim)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last:
        return input
    sizes = tuple(input.shape)
    joined = prod(sizes[first : last + 1])
    return reshape(input, (*sizes[:first], joined, *sizes[last + 1 :]))


def unflatten(input: Any, dim: int, sizes: Any) -> Any:
    """Return a tensor with one dimension made several."""
    dim = wrapped_dim(dim, input.ndim)
    wanted = [int(n) for n in sizes]
    if -1 in wanted:
        known = prod(n for n in wanted if n != -1)
        wanted[wanted.index(-1)] = input.shape[dim] // max(known, 1)
    if prod(wanted) != input.shape[dim]:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} "
            f"({input.shape[dim]}) in the input tensor"
        )
    own = tuple(input.shape)
    return view(input, (*own[:dim], *wanted, *own[dim + 1 :]))


def squeeze(input: Any, dim: Any = None) -> Any:
    """Return a view without dimensions of size 1: all of them, or the given ones."""
    if dim is None:
        dims = [a for a, n in enumerate(input.shape) if n == 1]
    else:
        given = dim if isinstance(dim, (tuple, list)) else (dim,)
        dims = [wrapped_dim(d, input.ndim) for d in given] if input.ndim else []
        dims = [d for d in dims if input.shape[d] == 1]
    return view_of(input, IndexWindow(tuple(0 if a in dims else FULL for a in range(input.ndim))))


def unsqueeze(input: Any, dim: int) -> Any:
    """Return a view with a new dimension of size 1."""
    return view_of(input, IndexWindow(_part(wrapped_dim(dim, input.ndim + 1), None)))


# -- axes -----------------------------------------------------------------------------------------


def permute(input: Any, *dims: Any, **names: Any) -> Any:
    """Return a view with its dimensions in another order."""
    given = sizes_of(dims or (names["dims"],))
    if len(given) != input.ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {input.ndim} is not "
            f"equal to len(dims) = {len(given)}"
        )
    axes = [wrapped_dim(d, input.ndim) for d in given]
    if len(set(axes)) != len(axes):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return view_of(input, AxesWindow(axes))


def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Return a view with two dimensions exchanged."""
    first, second = wrapped_dim(dim0, input.ndim), wrapped_dim(dim1, input.ndim)
    axes = list(range(input.ndim))
    if axes:
        axes[first], axes[second] = axes[second], axes[first]
    return view_of(input, AxesWindow(axes))


def swapaxes(input: Any, axis0: int, axis1: int) -> Any:
    """Return a view with two dimensions exchanged."""
    return transpose(input, axis0, axis1)


def swapdims(input: Any, dim0: int, dim1: int) -> Any:
    """Return a view with two dimensions exchanged."""
    return transpose(input, dim0, dim1)


def t(input: Any) -> Any:
    """Return the transpose of a matrix; what has fewer dimensions as it is."""
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return transpose(input, 0, 1) if input.ndim == 2 else view_of(input, IndexWindow((...,)))


def reversed_axes(input: Any) -> Any:
    """Return `x.T`: the view with all dimensions in the other order."""
    return view_of(input, AxesWindow(range(input.ndim)[::-1]))


def matrix_transpose(input: Any) -> Any:
    """Return `x.mT`: the view with the last two dimensions exchanged."""
    if input.ndim < 2:
        raise RuntimeError(
            "tensor.mT is only supported on matrices or batches of matrices. Got "
            f"{input.ndim}-D tensor."
        )
    return transpose(input, -2, -1)


def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Return a view with dimensions moved to other places."""
    sources = source if isinstance(source, (tuple, list)) else (source,)
    targets = destination if isinstance(destination, (tuple, list)) else (destination,)
    if len(sources) != len(targets):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source "
            f"({list(sources)} dims) should contain the same number of dims as destination "
            f"({list(targets)} dims)"
        )
    taken = [wrapped_dim(d, input.ndim) for d in sources]
    places = [wrapped_dim(d, input.ndim) for d in targets]
    rest = iter(a for a in range(input.ndim) if a not in taken)
    by_place = dict(zip(places, taken, strict=True))
    axes = [by_place[i] if i in by_place else next(rest) for i in range(input.ndim)]
    return view_of(input, AxesWindow(axes))


# -- repeated, diagonals, windows -----------------------------------------------------------------


def expand(input: Any, *sizes: Any, implicit: bool = False, **names: Any) -> Any:
    """Return a view with dimensions of size 1 repeated; -1 keeps a size."""
    given = sizes_of(sizes or (names["size"],))
    added = len(given) - input.ndim
    if added < 0:
        raise RuntimeError(
            f"expand(torch.FloatTensor{{{list(input.shape)}}}, size={list(given)}): the number of "
            f"sizes provided ({len(given)}) must be greater or equal to the number of dimensions "
            f"in the tensor ({input.ndim})"
        )
    wanted: list[Any] = []
    for i, size in enumerate(given):
        own = input.shape[i - added] if i >= added else None
        if size == -1 and own is None:
            raise RuntimeError(
                "The expanded size of the tensor (-1) isn't allowed in a leading, "
                f"non-existing dimension {i}"
            )
        if size != -1 and own is not None and own not in (1, size):
            raise expanded_size(given, input.shape)
        wanted.append(own if size == -1 else size)
    return view_of(input, ExpandedWindow(wanted))


def expand_as(input: Any, other: Any) -> Any:
    """Return a view repeated to the shape of another tensor."""
    return expand(input, tuple(other.shape))


def broadcast_to(input: Any, size: Any) -> Any:
    """Return a view repeated to a shape."""
    return expand(input, tuple(size))


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """Return views of tensors, all repeated to their common shape."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    try:
        sizes = broadcast(*[tuple(x.shape) for x in given])
    except WeftError as error:
        raise phrase(error, "broadcast_tensors", {}) from None
    return tuple(expand(x, sizes) for x in given)


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return a view of a diagonal of two dimensions, which becomes the last one."""
    first, second = wrapped_dim(dim1, input.ndim), wrapped_dim(dim2, input.ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return view_of(input, DiagonalWindow(offset, first, second))


def unfold(input: Any, dimension: int, size: int, step: int) -> Any:
    """Return a view of windows along a dimension; their elements become the last one."""
    if input.ndim == 0:
        return reshape(input, (1,))[:size]
    dim = wrapped_dim(dimension, input.ndim)
    if _plain_sizes(input, (size,)) and size > input.shape[dim]:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dim} is {input.shape[dim]} but size is {size}"
        )
    return view_of(input, SlidingWindow(dim, size, step))


def alias(input: Any) -> Any:
    """Return a view of the whole tensor."""
    return view_of(input, IndexWindow((...,)))
