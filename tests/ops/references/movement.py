"""References of the movements: NumPy's functions, or plain loops over elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import integrate, linalg

from weft.core.samples import ErrorSample, Sample, Sampler

NUMPY_MODES = {"replicate": "edge", "circular": "wrap"}


def flat_args(args):
    return args[0] if len(args) == 1 else args


# -- shapes and axes ------------------------------------------------------------------------------


def expand(x, *sizes):
    sizes = np.atleast_1d(flat_args(sizes))
    lead = len(sizes) - x.ndim
    shape = [x.shape[i - lead] if dim == -1 else dim for i, dim in enumerate(sizes)]
    return np.broadcast_to(x, shape)


def flatten(x, start_dim=0, end_dim=-1):
    if x.ndim == 0:
        return x.reshape(1)
    start, end = start_dim % x.ndim, end_dim % x.ndim
    merged = int(np.prod(x.shape[start : end + 1]))
    return x.reshape(*x.shape[:start], merged, *x.shape[end + 1 :])


def unflatten(x, dim, sizes):
    dim %= x.ndim
    rest = -(x.shape[dim] // int(np.prod(sizes))) if -1 in sizes else None
    sizes = [rest if size == -1 else size for size in sizes]
    return x.reshape(*x.shape[:dim], *sizes, *x.shape[dim + 1 :])


def transpose(x, dim0=None, dim1=None):
    return x.transpose(dim0) if dim1 is None else np.swapaxes(x, dim0, dim1)


# -- joining and splitting ------------------------------------------------------------------------


def promoted(tensors):
    dtypes = [t.dtype for t in tensors]
    floats = [d for d in dtypes if d.kind == "f"]
    return [t.astype(max(floats or dtypes)) for t in tensors]


def split(x, sizes, axis=0):
    if isinstance(sizes, int):
        sizes = [
            len(part) for part in np.array_split(np.arange(x.shape[axis]), _cuts(x, sizes, axis))
        ]
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _cuts(x, size, axis):
    return list(range(size, x.shape[axis], size))


def unbind(x, axis=0):
    return [np.take(x, i, axis) for i in range(x.shape[axis])]


def chunk(x, chunks, axis=0):
    size = -(-x.shape[axis] // chunks)
    return split(x, size, axis) if size else [x] * chunks


def meshgrid(*tensors, indexing="xy"):
    return np.meshgrid(*tensors, indexing=indexing)


# -- padding and windows --------------------------------------------------------------------------


def pad(x, pad_width, mode="constant", value=0):
    if x.ndim == 0:
        return x
    how: Any = NUMPY_MODES.get(mode, mode)
    options = {"constant_values": value} if mode == "constant" else {}
    return np.pad(x, pad_width, how, **options)


def transposed(forward, shape, y):
    """Return the adjoint of a linear function applied to y, from its matrix."""
    size = int(np.prod(shape))
    columns = [forward(unit.reshape(shape)).ravel() for unit in np.eye(size)]
    return (np.array(columns) @ y.ravel()).reshape(shape)


def pad_adjoint(x, pad_width, mode):
    sizes = zip(x.shape, pad_width, strict=True)
    shape = tuple(dim - before - after for dim, (before, after) in sizes)
    return transposed(lambda unit: pad(unit, pad_width, mode), shape, x)


def pad_torch(x, pad_pairs, mode="constant", value=None):
    pairs = [(0, 0)] * (x.ndim - len(pad_pairs) // 2)
    pairs += list(zip(pad_pairs[::2], pad_pairs[1::2], strict=True))[::-1]
    if mode == "replicate":  # the nearest element there is
        for axis, (before, after) in enumerate(pairs):
            size = x.shape[axis]
            x = np.take(x, np.arange(-before, size + after).clip(0, size - 1), axis)
        return x
    for axis, (before, after) in enumerate(pairs):
        kept = range(max(-before, 0), x.shape[axis] - max(-after, 0))
        x = np.take(x, kept, axis)
    return pad(x, [(max(a, 0), max(b, 0)) for a, b in pairs], mode, value or 0)


def sliding_windows(x, dimension, size, step=1):
    dimension %= x.ndim
    windows = sliding_window_view(x, size, dimension)
    return np.take(windows, range(0, windows.shape[dimension], step), dimension)


def fold_windows(x, dimension, size, step, length):
    shape = (*x.shape[:dimension], length, *x.shape[dimension + 1 : -1])
    return transposed(lambda unit: sliding_windows(unit, dimension, size, step), shape, x)


# -- diagonals ------------------------------------------------------------------------------------


def embed_diagonal(x, shape, offset=0, axis1=0, axis2=1):
    return transposed(lambda unit: np.diagonal(unit, offset, axis1, axis2), shape, x)


def diag_embed(x, offset=0, dim1=-2, dim2=-1):
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n), x.dtype)
    for i in range(x.shape[-1]):
        out[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


def diag(x, k=0, *, diagonal=None):
    return np.diag(x, k if diagonal is None else diagonal)


def triangle(keep):
    def reference(x, k=0, *, diagonal=None):
        k = k if diagonal is None else diagonal
        rows, columns = np.indices(x.shape[-2:])
        return np.where(keep(columns - rows, k), x, np.zeros_like(x))

    return reference


def roll(x, shifts, axis=None):
    if axis is None:
        return np.roll(x.ravel(), shifts).reshape(x.shape)
    axes = axis if isinstance(axis, tuple) else (axis,)
    for step, a in zip(np.broadcast_to(shifts, len(axes)), axes, strict=True):
        n = x.shape[a]
        x = np.take(x, (np.arange(n) - step) % n, a) if n else x
    return x


def trapezoid(y, x=None, dx=1.0, axis=-1):
    return np.trapezoid(y, x, dx, axis)


def cumulative_trapezoid(y, x=None, dx=1.0, axis=-1):
    return integrate.cumulative_trapezoid(y, x, dx, axis)


def diff(x, n=1, axis=-1, prepend=None, append=None):
    ends = {"prepend": prepend, "append": append}
    return np.diff(x, n, axis, **{k: v for k, v in ends.items() if v is not None})


REFERENCES: dict[str, Callable[..., Any]] = {
    "reshape": np.reshape,
    "view": lambda x, *shape: np.reshape(x, flat_args(shape)),
    "reshape_as": lambda x, other: x.reshape(other.shape),
    "ravel": np.ravel,
    "flatten": flatten,
    "unflatten": unflatten,
    "squeeze": lambda x, axis=None: x[
        tuple(0 if _goes(x, i, axis) else slice(None) for i in range(x.ndim))
    ],
    "unsqueeze": np.expand_dims,
    "atleast_1d": np.atleast_1d,
    "atleast_2d": np.atleast_2d,
    "atleast_3d": np.atleast_3d,
    "transfer": lambda x, target, source="cpu": x.copy(),
    "permute": lambda x, axes: np.einsum(x, range(x.ndim), [a % x.ndim for a in axes]),
    "swapaxes": np.swapaxes,
    "transpose": transpose,
    "moveaxis": np.moveaxis,
    "matrix_transpose": lambda x: np.einsum("...ij->...ji", x),
    "broadcast_to": lambda x, shape: x + np.zeros(shape, x.dtype),
    "expand": expand,
    "expand_as": lambda x, other: np.broadcast_to(x, other.shape),
    "broadcast_tensors": np.broadcast_arrays,
    "tile": lambda x, *repeats: np.tile(x, flat_args(repeats)),
    "repeat": lambda x, repeats, axis=None: np.repeat(x, repeats, axis),
    "repeat_interleave": lambda x, repeats, axis=None: np.repeat(x, repeats, axis),
    "concat": lambda tensors, axis=0: np.concatenate(promoted(tensors), axis),
    "stack": lambda tensors, axis=0: np.stack(promoted(tensors), axis),
    "vstack": np.vstack,
    "hstack": np.hstack,
    "dstack": np.dstack,
    "column_stack": np.column_stack,
    "meshgrid": meshgrid,
    "block_diag": linalg.block_diag,
    "split": split,
    "unbind": unbind,
    "chunk": chunk,
    "tensor_split": np.array_split,
    "flip": np.flip,
    "fliplr": np.fliplr,
    "flipud": np.flipud,
    "roll": roll,
    "rot90": np.rot90,
    "pad": pad,
    "pad_adjoint": pad_adjoint,
    "pad_torch": pad_torch,
    "tril": triangle(lambda offset, k: offset <= k),
    "triu": triangle(lambda offset, k: offset >= k),
    "diagonal": np.diagonal,
    "embed_diagonal": embed_diagonal,
    "diag": diag,
    "diag_embed": diag_embed,
    "sliding_windows": sliding_windows,
    "fold_windows": fold_windows,
    "diff": diff,
    "trapezoid": trapezoid,
    "cumulative_trapezoid": cumulative_trapezoid,
}


def _goes(x, i, axis):
    if axis is None:
        return x.shape[i] == 1
    axes = axis if isinstance(axis, tuple) else (axis,)
    return i in [a % x.ndim for a in axes]


# -- samples of the composites --------------------------------------------------------------------


def samples(*rows: Any) -> Callable[[Sampler], Iterable[Sample]]:
    """Return a rule from rows (shape, arguments ..., {options}), each with one tensor."""

    def rule(s):
        for shape, *rest in rows:
            options = rest.pop() if rest and isinstance(rest[-1], dict) else {}
            yield Sample(s.real(*shape), *rest, **options)

    return rule


def lists(*rows: Any) -> Callable[[Sampler], Iterable[Sample]]:
    """Return a rule from rows of shapes, each giving one list of tensors."""
    return lambda s: (Sample([s.real(*shape) for shape in row]) for row in rows)


def several(*rows: Any, **options: Any) -> Callable[[Sampler], Iterable[Sample]]:
    """Return a rule from rows of shapes, each giving as many tensors."""
    return lambda s: (Sample(*(s.real(*shape) for shape in row), **options) for row in rows)


def repeat_samples(s):
    yield Sample(s.real(3), 2)
    yield Sample(s.real(2, 3), 2)
    yield Sample(s.real(2, 3), 3, axis=1)
    yield Sample(s.real(2, 3), 0, axis=-1)
    yield Sample(s.real(2, 3), [1, 0, 2], axis=1)
    yield Sample(s.real(3), (2, 0, 1))
    yield Sample(s.real(2, 3), [2], axis=1)
    yield Sample(s.real(3), [2])
    yield Sample(s.real(0, 3), [2], axis=0, label="empty, one in a list")
    yield Sample(s.real(0, 3), 2, axis=0, label="empty")


def meshgrid_samples(s):
    for indexing in ("xy", "ij"):
        yield Sample(s.real(2), s.real(3), indexing=indexing)
        yield Sample(s.real(2), s.real(1), s.real(3), indexing=indexing)
        yield Sample(s.real(3), indexing=indexing)
    yield Sample(s.real(2), s.real(3))


def diff_samples(s):
    yield from samples(((4,),), ((2, 3), 1, 0), ((2, 5), 2), ((3,), 0), ((1,),), ((3,), 4))(s)
    yield Sample(s.real(3), prepend=s.real(1), append=s.real(2))
    yield Sample(s.real(3), 0, prepend=s.real(1), grad=0, label="no difference")
    yield Sample(s.real(2, 3), prepend=0, append=s.real(), label="numbers")
    yield Sample(s.real(2, 3), axis=0, append=2.5, label="a number")
    yield Sample(s.booleans(5), label="truth values")
    yield Sample(s.integers(5), 2, label="integers")


def trapezoid_samples(s):
    yield from samples(((4,),), ((2, 3), None, 0.5), ((2, 3), None, 2.0, 0))(s)
    yield Sample(s.real(4), s.real(4))
    yield Sample(s.real(2, 3), s.real(3))
    yield Sample(s.real(2, 3), s.real(2), axis=0)
    yield Sample(s.real(2, 3), s.real(2, 3), axis=1)


def pad_torch_samples(s):
    yield from samples(((3,), (1, 2)), ((2, 3), (1, 0)), ((2, 3), (0, 1, 2, 0)), ((2, 3), ()))(s)
    yield Sample(s.real(3, 4), (-1, 2, 1, -2), label="cut")
    yield Sample(s.real(2, 3), (1, 1), value=0.5)
    for mode in ("reflect", "replicate", "circular"):
        yield Sample(s.real(2, 3), (1, 2), mode=mode)
    yield Sample(s.real(2, 3), (-3, 4), mode="replicate", label="cut whole")
    yield Sample(s.real(2, 3), (4, -5), mode="replicate", label="cut beyond the end")
    yield Sample(s.real(2, 3), (4, -1), mode="replicate", label="cut")


STACKED = (((2,), (2,)), ((1, 3), (1, 3)), ((2, 3, 1), (2, 3, 1)))
PARTS = samples(((5,), 2), ((5,), 3), ((2, 4), 2, 1), ((2, 3), 5, {"axis": -1}), ((0,), 2))

COMPOSITE_SAMPLES: dict[str, Callable[[Sampler], Iterable[Sample]]] = {
    "view": samples(((6,), 2, 3), ((6,), (3, -1)), ((2, 3), -1)),
    "reshape_as": several(((6,), (2, 3)), ((), (1, 1))),
    "ravel": samples(((),), ((2, 3),), ((0, 2),)),
    "flatten": samples(((),), ((2, 3),), ((2, 1, 3), 1), ((2, 1, 3), 0, -2), ((0, 3),)),
    "unflatten": samples(((6,), 0, (2, 3)), ((2, 6), -1, (3, -1)), ((2, 6), 1, [6])),
    "atleast_1d": several(((),), ((2,),), ((), (2, 3))),
    "atleast_2d": several(((),), ((2,),), ((2, 3),), ((), (2,))),
    "atleast_3d": several(((),), ((2,),), ((2, 3),), ((2, 1, 3),)),
    "swapaxes": samples(((2, 3), 0, 1), ((2, 1, 3), -1, 0), ((2, 3), 1, 1)),
    "transpose": samples(
        ((2, 3), 0, 1), ((2, 1, 3), 0, -1), ((2, 1, 3),), ((2, 1, 3), (1, 2, 0)), ((2,),)
    ),
    "moveaxis": samples(((2, 1, 3), 0, -1), ((2, 1, 3), (0, 1), (-1, 0)), ((2, 3), 1, 1)),
    "matrix_transpose": samples(((2, 3),), ((2, 1, 3),), ((0, 3),)),
    "expand": samples(((2, 1), -1, 3), ((3,), (2, 3)), ((), 2), ((1,), (2, -1)), ((1, 3), 0, 3)),
    "expand_as": several(((2, 1), (2, 3)), ((), (2,))),
    "broadcast_tensors": several(((2, 1), (3,)), ((2,),), ((), (1, 2), (2, 1))),
    "tile": samples(
        ((3,), 2), ((2, 3), (2, 1)), ((3,), 2, 2), ((2, 3), 2), ((2,), (0,)), ((), (2,))
    ),
    "repeat": repeat_samples,
    "repeat_interleave": repeat_samples,
    "vstack": lists(*STACKED, ((2,), (3, 2))),
    "hstack": lists(*STACKED, ((2,), (3,))),
    "dstack": lists(*STACKED, ((1, 2, 1), (1, 2, 2))),
    "column_stack": lists(*STACKED, ((2,), (2, 3))),
    "meshgrid": meshgrid_samples,
    "block_diag": several(((2, 2), (1, 3)), ((2,), ()), ((2, 1),)),
    "chunk": PARTS,
    "tensor_split": lambda s: [
        *PARTS(s),
        Sample(s.real(5), (1, 3)),
        Sample(s.real(2, 5), [2, -1], axis=1),
        Sample(s.real(5), (2, 9)),
        Sample(s.real(5), (3, 1), label="overlap"),
    ],
    "fliplr": samples(((2, 3),), ((2, 3, 1),)),
    "flipud": samples(((2, 3),), ((3,),)),
    "rot90": samples(
        *(((2, 3), k) for k in (0, 1, 2, 3, -1)), ((2, 1, 3), 1, (0, 2)), ((2, 1, 3), 1, (2, 0))
    ),
    "pad_torch": pad_torch_samples,
    "diag": samples(((3,),), ((3,), 1), ((3, 2),), ((3, 2), -1), ((3, 2), {"diagonal": 1})),
    "diag_embed": samples(((2,),), ((2, 3),), ((2, 2), 1), ((2, 2), -1, 0, 2)),
    "diff": diff_samples,
    "trapezoid": trapezoid_samples,
    "cumulative_trapezoid": trapezoid_samples,
}


def errors(*rows: Any) -> Callable[[Sampler], Iterable[ErrorSample]]:
    """Return a rule from rows (shape, arguments ..., error, pattern)."""

    def rule(s):
        for shape, *args, error, match in rows:
            yield ErrorSample(s.real(*shape), *args, error=error, match=match)

    return rule


def meshgrid_errors(s):
    yield ErrorSample(s.real(2), indexing="yx", error=ValueError, match="Received: 'yx'")
    yield ErrorSample(s.real(2), s.real(2, 3), error=ValueError, match=r"\(2, 3\)")


COMPOSITE_ERROR_SAMPLES: dict[str, Callable[[Sampler], Iterable[ErrorSample]]] = {
    "flatten": errors(
        ((2, 3), 1, 0, ValueError, "Received: 1, 0"),
        ((2, 3), 2, IndexError, "start_dim 2 is out of range"),
    ),
    "unflatten": errors(
        ((2, 6), 1, (4, 2), ValueError, r"\(4, 2\) .*6"),
        ((2, 6), 2, (3, 2), IndexError, "dim 2 is out of range"),
    ),
    "swapaxes": errors(((2, 3), 0, 2, IndexError, "axis 2 is out of range")),
    "transpose": errors(((2, 3), 1, TypeError, "Received: 1")),
    "moveaxis": errors(
        ((2, 3), (0, 1), 0, ValueError, r"\(0, 1\) and 0"),
        ((2, 3), (0, 0), (0, 1), ValueError, r"more than once.*\(0, 0\)"),
    ),
    "matrix_transpose": errors(((3,), ValueError, r"\(3,\)")),
    "expand": errors(
        ((2, 3), (3,), ValueError, r"\(2, 3\).*\(3,\)"), ((3,), (-1, 3), ValueError, r"\(-1, 3\)")
    ),
    "tile": errors(((3,), -1, ValueError, r"\(-1,\)"), ((3,), 1.5, TypeError, "Received: 1.5")),
    "repeat": errors(
        ((3,), -1, ValueError, "Received: -1"),
        ((3,), [1, 2], ValueError, r"3 integers.*\[1, 2\]"),
        ((3,), 2, 1, IndexError, "axis 1 is out of range"),
    ),
    "meshgrid": meshgrid_errors,
    "broadcast_tensors": lambda s: [
        ErrorSample(s.real(2), s.real(3), error=ValueError, match=r"\(2,\) and \(3,\)")
    ],
    "block_diag": errors(((2, 2, 2), ValueError, r"\(2, 2, 2\)")),
    "chunk": errors(
        ((3,), 0, ValueError, "Received: 0"), ((3,), 2, 1, IndexError, "axis 1 is out")
    ),
    "tensor_split": errors(((3,), 0, ValueError, "Received: 0")),
    "fliplr": errors(((3,), ValueError, r"\(3,\)")),
    "rot90": errors(
        ((2, 3), 1, (0, 0), ValueError, r"\(0, 0\)"), ((2, 3), 1.5, TypeError, "Received: 1.5")
    ),
    "diag": errors(((2, 2, 2), ValueError, r"\(2, 2, 2\)")),
    "diag_embed": errors(((), ValueError, "0-d")),
    "diff": errors(((3,), -1, ValueError, "Received: -1"), ((3,), 1, 1, IndexError, "axis 1")),
}
