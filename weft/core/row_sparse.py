"""Row-sparse gradients: of a large table, the rows that were read and what goes to each.

A table of a million rows of which a batch reads a thousand has a gradient of a thousand rows. The
derivative rule of an operator with the attribute `sparse` gives it in this form, and the reverse
walk carries it to a leaf; whatever else meets it makes it dense, by the one scatter operator.

The parts are arrays in a raw walk, tensors in `.grad`, and symbols in a graph. Values of one row
may stand in several places: they add up, in the order in which they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .dtype import Array, DType, as_dtype, is_half
from .errors import ArgumentTypeError, ShapeError
from .op import F
from .shape import Shape, size_of
from .tensor import Tensor, wrap


class RowSparse:
    """A gradient that is zero but for some rows; `.to_dense()` is the same as a tensor.

    rows     which rows, as a vector of integers; one may stand there several times
    values   what goes to each, of shape (number of rows, *shape[1:])
    shape    that of the whole

    >>> import weft as wf
    >>> table = wf.nn.Embedding(1000, 2, sparse=True)
    >>> table(wf.tensor([7, 3, 7])).sum().backward()
    >>> table.weight.grad
    RowSparse(shape=(1000, 2), rows=tensor([7, 3, 7]), values=tensor([[1., 1.],
            [1., 1.],
            [1., 1.]]))
    >>> table.weight.grad.coalesce().rows
    tensor([3, 7])
    """

    __slots__ = ("is_coalesced", "rows", "shape", "values")

    is_sparse = True
    symbolic = False
    _node = None

    def __init__(self, rows: Any, values: Any, shape: Shape, *, is_coalesced: bool = False) -> None:
        shape = tuple(shape)
        if not hasattr(rows, "dtype") or not hasattr(values, "dtype"):
            raise ArgumentTypeError(
                "RowSparse takes rows and values as tensors. "
                f"Received: {type(rows).__name__} and {type(values).__name__}"
            )
        if len(rows.shape) != 1 or rows.dtype.kind not in "iu":
            raise ShapeError(
                "rows must be a vector of integers. "
                f"Received: shape {tuple(rows.shape)}, dtype {rows.dtype}"
            )
        if not shape or tuple(values.shape) != (*rows.shape, *shape[1:]):
            raise ShapeError(
                f"values of some rows of {shape} must have the shape "
                f"{(*rows.shape, *shape[1:])}. Received: {tuple(values.shape)}"
            )
        self.rows, self.values, self.shape = rows, values, shape
        self.is_coalesced = is_coalesced

    # -- what it is --------------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """Return the element type of the values."""
        dtype: DType = self.values.dtype
        return dtype

    @property
    def ndim(self) -> int:
        """Return the number of dimensions of the whole."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Return the number of elements that are kept."""
        return int(size_of(self.values.shape))

    @property
    def nbytes(self) -> int:
        """Return the number of bytes that are kept."""
        parts = (self.rows, self.values)
        return sum(int(size_of(part.shape)) * int(part.dtype.itemsize) for part in parts)

    @property
    def device(self) -> Any:
        """Return the device that holds the values."""
        return self.values.device

    def __repr__(self) -> str:
        return f"RowSparse(shape={self.shape}, rows={self.rows!r}, values={self.values!r})"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"a row-sparse gradient has no {name!r}: look at its .rows and .values, or make it a "
            "tensor by .to_dense()"
        )

    # -- other forms -------------------------------------------------------------------------------

    def to_dense(self) -> Any:
        """Return the whole as a tensor, zeros included."""
        return F.take_adjoint(self.values, self.rows, self.shape, 0)

    def coalesce(self) -> RowSparse:
        """Return the same with each row once, in ascending order.

        In a graph, whose sizes are fixed, there are as many places as before: those that are not
        needed come first, stand for the lowest row and hold zeros.
        """
        if self.is_coalesced:
            return self
        if getattr(self.values, "symbolic", False):
            slots, rows = F.row_slots(self.rows)
            values = F.take_adjoint(self.values, slots, tuple(self.values.shape), 0)
            return RowSparse(rows, values, self.shape, is_coalesced=True)
        parts = summed_rows(as_array(self.rows), as_array(self.values))
        made = RowSparse(*parts, self.shape, is_coalesced=True)
        return made.on_tensors() if isinstance(self.values, Tensor) else made

    def trimmed(self) -> RowSparse:
        """Return one with each row once without the places that a graph did not need."""
        rows = as_array(self.rows)
        unneeded = int(np.searchsorted(rows, rows[0], "right")) - 1 if rows.size else 0
        return self.map_parts(lambda part: part[unneeded:]) if unneeded else self

    def map(self, function: Callable[[Any], Any]) -> RowSparse:
        """Return the rows with a function of zero value at zero applied to their total values."""
        once = self.coalesce()
        return RowSparse(once.rows, function(once.values), self.shape, is_coalesced=True)

    def to(self, dtype: Any) -> RowSparse:
        """Return the same in another dtype."""
        wanted = as_dtype(dtype)
        if wanted == self.dtype:
            return self
        return self._with_values(F.cast(self.coalesce().values, wanted), self.coalesce())

    def detach(self) -> RowSparse:
        """Return the same, cut off from what it was computed of."""
        return self.map_parts(lambda part: part.detach() if isinstance(part, Tensor) else part)

    def clone(self) -> RowSparse:
        """Return the same: its parts are values, which nobody changes."""
        return self

    def numpy(self) -> Array:
        """Return the whole as a NumPy array, zeros included."""
        return np.asarray(self.to_dense())

    def on_arrays(self) -> RowSparse:
        """Return the same with arrays as its parts."""
        return self.map_parts(as_array)

    def on_tensors(self) -> RowSparse:
        """Return the same with tensors as its parts."""
        return self.map_parts(lambda part: part if isinstance(part, Tensor) else wrap(part))

    def map_parts(self, function: Callable[[Any], Any]) -> RowSparse:
        """Return the same with a function of one tensor applied to the rows and to the values."""
        return RowSparse(
            function(self.rows), function(self.values), self.shape, is_coalesced=self.is_coalesced
        )

    def _with_values(self, values: Any, like: RowSparse | None = None) -> RowSparse:
        like = self if like is None else like
        return RowSparse(like.rows, values, self.shape, is_coalesced=like.is_coalesced)

    # -- arithmetic --------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        """Add rows to rows, or to a tensor of the whole shape, which gives a tensor."""
        if tuple(getattr(other, "shape", ())) != self.shape:
            raise ShapeError(
                f"a row-sparse gradient of shape {self.shape} adds to one of its shape. "
                f"Received: {other!r:.60}"
            )
        if not isinstance(other, RowSparse):
            return other + self.to_dense()
        rows = [F.cast(part.rows, np.dtype(np.int64)) for part in (self, other)]
        values = F.concat([self.values, other.values], 0)
        return RowSparse(F.concat(rows, 0), values, self.shape)

    __radd__ = __add__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Add to an array: the walk adds gradients by `np.add`, whatever they are."""
        if ufunc is not np.add or method != "__call__" or len(inputs) != 2:
            return NotImplemented
        total = add_gradients(*inputs)
        (out,) = options.get("out", (None,))
        if out is None:
            return total
        out[...] = total
        return out

    def __mul__(self, factor: Any) -> RowSparse:
        """Scale all values by one number."""
        _check_number(factor)
        return self._with_values(self.values * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> RowSparse:
        """Divide all values by one number."""
        _check_number(divisor)
        return self._with_values(self.values / divisor)

    def __neg__(self) -> RowSparse:
        return self._with_values(-self.values)


def _check_number(number: Any) -> None:
    if size_of(getattr(number, "shape", ())) != 1:
        raise ShapeError(
            "a row-sparse gradient is scaled by one number; use .to_dense() for more. "
            f"Received: {number!r:.60}"
        )


def as_array(part: Any) -> Array:
    """Return a part, a tensor or an array, as an array."""
    array: Array = part._value if isinstance(part, Tensor) else np.asarray(part)
    return array


class SortedRows(NamedTuple):
    """Rows in ascending order, equal ones in the order in which they stood.

    order       where each stood
    ascending   the rows
    begins      whether each is the first of its kind
    """

    order: Array
    ascending: Array
    begins: Array


def sorted_rows(rows: Array) -> SortedRows:
    """Return rows in ascending order."""
    order = _stable_order(rows)
    ascending = rows.take(order)
    begins = np.empty(rows.size, bool)
    begins[:1] = True
    np.not_equal(ascending[1:], ascending[:-1], out=begins[1:])
    return SortedRows(order, ascending, begins)


def _stable_order(rows: Array) -> Array:
    """Return the places of integers in ascending order, equal ones as they stand.

    NumPy sorts numbers of 16 bits by counting, in time proportional to their number: those of 32
    bits in two passes, a fourth of the time that comparing takes for some thousands.
    """
    if rows.size < FEW or int(rows.min()) < 0 or (most := int(rows.max())) >= 1 << 32:
        return rows.argsort(kind="stable")
    order = rows.astype(np.uint16).argsort(kind="stable")
    if most < 1 << 16:
        return order
    high = (rows >> 16).astype(np.uint16)
    return order.take(high.take(order).argsort(kind="stable"))


FEW = 512  # below, comparing is as fast


FEW_AGAIN = 8  # one row in so many may stand again before it pays to bring equal ones together


@np.errstate(all="ignore")  # infinities are the step's to see
def row_totals(rows: Array, values: Array) -> tuple[Array, Array]:
    """Return rows, and beside each the sum of all values of that row.

    Where few of many rows stand again, nothing is moved: they stay where they are, with the same
    sum at each place. Otherwise each row stands once. Values are added as by `summed_rows`.
    """
    suspects = _suspects(rows)
    if suspects is None:
        return summed_rows(rows, values)
    found = sorted_rows(rows[suspects])
    again = np.flatnonzero(~found.begins)
    if not again.size:
        return rows, values
    if again.size * FEW_AGAIN > rows.size:
        return summed_rows(rows, values)
    firsts = suspects[found.order[np.flatnonzero(found.begins)[_distinct_before(again)]]]
    places = suspects[found.order[again]]
    total = values.astype(_wide(values.dtype), order="C")
    _add_rows(total, firsts, values[places])
    total[places] = total[firsts]
    return rows, total.astype(values.dtype, copy=False)


def _suspects(rows: Array) -> Array | None:
    """Return the places of rows that may stand in several, in ascending order; None for most rows.

    Rows that are equal have equal low bits, by which NumPy sorts in one pass of counting.
    """
    if rows.size < FEW:  # they are moved as quickly
        return None
    low = rows.astype(np.uint16)
    order = low.argsort(kind="stable")
    ascending = low.take(order)
    same = np.flatnonzero(ascending[1:] == ascending[:-1])
    if 2 * same.size > rows.size:
        return None
    suspected = np.zeros(rows.size, bool)
    suspected[order[same]] = suspected[order[same + 1]] = True
    return np.flatnonzero(suspected)


@np.errstate(all="ignore")  # as above
def summed_rows(rows: Array, values: Array) -> tuple[Array, Array]:
    """Return the distinct rows in ascending order, and the sum of the values of each.

    Values are added in the order in which they stand, those of half precision in single.
    """
    order, ascending, begins = sorted_rows(rows)
    total = values.take(order[begins], 0)
    if total.shape == values.shape:
        return ascending, total
    again = np.flatnonzero(~begins)
    wide = total.astype(_wide(total.dtype), copy=False)
    _add_rows(wide, _distinct_before(again), values.take(order[again], 0))
    return ascending[begins], wide.astype(total.dtype, copy=False)


def _distinct_before(again: Array) -> Array:
    """Return which distinct row each is that stands again: as many fewer as were met before it."""
    distinct: Array = again - np.arange(1, len(again) + 1)
    return distinct


def _wide(dtype: DType) -> DType:
    return np.dtype(np.float32) if is_half(dtype) else dtype


def _add_rows(table: Array, rows: Array, values: Array) -> None:
    """Add values to rows of an array in C order, one after another."""
    width = int(size_of(table.shape[1:]))
    flat = (rows * width).reshape(-1, 1) + np.arange(width)
    added = values.astype(table.dtype, copy=False)
    np.add.at(table.reshape(-1), flat.reshape(-1), added.reshape(-1))


def write_rows(table: Array, rows: Array, values: Array) -> None:
    """Write values into rows of an array; of several for one row the last stays.

    NumPy assigns to rows element by element; a row as one item of so many bytes is copied at once.
    """
    width = table.itemsize * int(size_of(table.shape[1:]))
    if not width or not len(rows) or not table.flags.c_contiguous:
        table[rows] = values
        return
    item = np.dtype((np.void, width))
    given = np.ascontiguousarray(values, table.dtype).reshape(len(rows), -1)
    np.put(table.reshape(len(table), -1).view(item), rows, given.view(item))


def add_gradients(a: Any, b: Any) -> Any:
    """Return the sum of two gradients, either of which may be row-sparse."""
    return b + a if isinstance(b, RowSparse) and not isinstance(a, RowSparse) else a + b


def dense(gradient: Any) -> Any:
    """Return a gradient as a tensor, an array or a symbol of the whole shape."""
    return gradient.to_dense() if isinstance(gradient, RowSparse) else gradient


def gradient_parts(gradient: Any) -> list[Any]:
    """Return the tensors of which a gradient is made; None is made of none."""
    if isinstance(gradient, RowSparse):
        return [gradient.rows, gradient.values]
    return [] if gradient is None else [gradient]


def kept_values(gradient: Any) -> Any:
    """Return the elements of a gradient that are kept, each row's in one place."""
    return gradient.coalesce().values if isinstance(gradient, RowSparse) else gradient


def with_kept_values(gradient: Any, function: Callable[[Any], Any]) -> Any:
    """Return a gradient with a function, of zero value at zero, applied to its elements."""
    return gradient.map(function) if isinstance(gradient, RowSparse) else function(gradient)


def asks_for_rows(op: Any, attrs: tuple[Any, ...]) -> bool:
    """Tell whether a call of an operator asks for a row-sparse gradient: by `sparse=True`."""
    names = getattr(op, "attrs", ())
    return "sparse" in names and bool(dict(zip(names, attrs, strict=True))["sparse"])
