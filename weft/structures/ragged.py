"""Ragged tensors: the class, how it is made, and its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..core import tree
from ..core.cached_property import cached_property
from ..core.dispatch import apply
from ..core.dtype import Array
from ..core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ..core.op import F, Op, elementwise, registry
from ..core.tensor import Tensor, constant
from ..dynamic import batched
from ..ops.creation import tensor
from .alignment import aligned, refused
from .splits import as_integers, as_splits, known, positions, splits_of_ids, splits_of_lengths

PRODUCT = "__matmul__"


class Ragged:
    """Rows of different lengths: `values` one after another, and `row_splits` between them.

    Row i is values[row_splits[i] : row_splits[i + 1]]. Operators that work element by element
    take it, with numbers, tensors and other ragged tensors of the same splits; so does `@` with a
    matrix. Rows are reduced by methods. It is made by `wf.ragged`.
    """

    def __init__(self, values: Tensor, row_splits: Tensor) -> None:
        self.values = values
        self.row_splits = row_splits

    # -- what it is -----------------------------------------------------------------------------

    @property
    def num_rows(self) -> int:
        """Return how many rows there are."""
        count: int = self.row_splits.shape[0] - 1
        return count

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Return the sizes: None stands for that of rows, which differ."""
        return (self.num_rows, None, *self.values.shape[1:])

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return self.values.ndim + 1

    @property
    def dtype(self) -> Any:
        """Return the dtype of the values."""
        return self.values.dtype

    @cached_property
    def lengths(self) -> Tensor:
        """Return how many values each row has."""
        lengths: Tensor = self.row_splits[1:] - self.row_splits[:-1]
        return lengths

    @cached_property
    def row_ids(self) -> Tensor:
        """Return the row of each value."""
        ids: Tensor = F.sorted_search(self.row_splits, F.iota(self.values.shape[0]), True) - 1
        return ids

    def __len__(self) -> int:
        return self.num_rows

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.rows())

    def __repr__(self) -> str:
        if known(self.values) is None or known(self.row_splits) is None:
            return f"ragged(values {self.values!r}, row_splits {self.row_splits!r})"
        rows = [repr(row.numpy().tolist()) for row in self[:8].rows()]
        more = ", ..." if self.num_rows > 8 else ""
        return f"ragged([{', '.join(rows)}{more}])"

    # -- rows -------------------------------------------------------------------------------------

    def rows(self) -> list[Tensor]:
        """Return the rows as tensors."""
        splits = self._read_splits().tolist()
        return [self.values[a:b] for a, b in pairwise(splits)]

    def to_list(self) -> list[Any]:
        """Return the rows as lists of numbers."""
        return [row.tolist() for row in self.rows()]

    def __getitem__(self, index: Any) -> Any:
        """Return a row for an integer; some rows for a slice, integers or truth values."""
        if isinstance(index, int | np.integer) and not isinstance(index, bool):
            return self._row(int(index))
        splits = self._read_splits()
        chosen = np.arange(self.num_rows)[_as_index(index)]
        if chosen.ndim != 1:
            raise ShapeError(
                f"ragged: rows are chosen by a slice or a vector. Received: {index!r:.60}"
            )
        lengths = np.diff(splits)[chosen]
        places = positions(splits[:-1][chosen], lengths)
        values = F.take(self.values, constant(places), 0)
        return Ragged(values, constant(np.concatenate([[0], np.cumsum(lengths)])))

    def _row(self, index: int) -> Tensor:
        count = self.num_rows
        if not -count <= index < count:
            raise IndexError(f"ragged: row {index} is out of range for {count} rows")
        splits = self._read_splits().tolist()
        row: Tensor = self.values[splits[index % count] : splits[index % count + 1]]
        return row

    def _read_splits(self) -> Array:
        """Return the splits as an array; sizes will depend on it, which a capture takes note of."""
        splits: Array = self.row_splits.numpy()
        return splits

    def to_padded(self, fill: float = 0.0, *, length: int | None = None) -> Tensor:
        """Return the rows side by side, each filled up to the longest, or to a length.

        >>> import weft as wf
        >>> wf.ragged([[1.0, 2.0], [3.0]]).to_padded()
        tensor([[1., 2.],
                [3., 0.]])
        """
        if length is None:
            length = int(F.max(self.lengths)) if self.num_rows else 0
        if self.values.shape[0] == 0 or length == 0:
            empty = np.full((self.num_rows, length, *self.values.shape[1:]), fill, self.dtype)
            return constant(empty)
        column = F.reshape(F.iota(length), (1, length))
        inside = column < F.reshape(self.lengths, (-1, 1))
        place = F.reshape(self.row_splits[:-1], (-1, 1)) + column
        taken = F.take(self.values, F.where(inside, place, 0), 0)
        inside = F.reshape(inside, (*inside.shape, *(1,) * (self.values.ndim - 1)))
        padded: Tensor = F.where(inside, taken, np.asarray(fill, self.dtype))
        return padded

    # -- functions --------------------------------------------------------------------------------

    def apply(self, function: Callable[[Tensor], Tensor]) -> Ragged:
        """Return the rows with a function applied to all values at once: a layer, a lookup."""
        made = function(self.values)
        if not made.ndim or made.shape[0] != self.values.shape[0]:
            raise ShapeError(
                f"ragged: the function must return a row for each of {self.values.shape[0]} "
                f"values. Received: shape {tuple(made.shape)}"
            )
        return Ragged(made, self.row_splits)

    def map(self, function: Callable[[Tensor], Any], *, reduce: str | None = None) -> Any:
        """Return what a function of one row returns for each; rows run together (`wf.batched`).

        reduce   "stack", "mean" or "sum" of the results in place of their list

        >>> import weft as wf
        >>> wf.ragged([[1.0, 2.0], [3.0]]).map(lambda row: (row * row).sum(), reduce="stack")
        tensor([5., 9.])
        """
        return batched(function, reduce=reduce)(self.rows())

    def spread(self, per_row: Any) -> Ragged:
        """Return a value for each row as one for each of its elements."""
        given = per_row if isinstance(per_row, Tensor) else constant(np.asarray(per_row))
        if not given.ndim or given.shape[0] != self.num_rows:
            raise ShapeError(
                f"ragged: expected a value for each of {self.num_rows} rows. "
                f"Received: shape {tuple(given.shape)}"
            )
        return Ragged(F.take(given, self.row_ids, 0), self.row_splits)

    def sum(self) -> Tensor:
        """Return the sum of each row."""
        return self._reduced(F.segment_sum)

    def mean(self) -> Tensor:
        """Return the mean of each row; zeros for rows without values."""
        return self._reduced(F.segment_mean)

    def max(self) -> Tensor:
        """Return the largest value of each row; -inf for rows without values."""
        return self._reduced(F.segment_max)

    def min(self) -> Tensor:
        """Return the smallest value of each row; inf for rows without values."""
        return self._reduced(F.segment_min)

    def prod(self) -> Tensor:
        """Return the product of each row; 1 for rows without values."""
        return self._reduced(F.segment_prod)

    def logsumexp(self) -> Tensor:
        """Return log(sum(exp(row))) of each row; -inf for rows without values."""
        largest = F.stop_gradient(self.max())
        shift = F.where(F.isfinite(largest), largest, F.zeros_like(largest))
        e = F.exp(self.values - F.take(shift, self.row_ids, 0))
        result: Tensor = F.log(Ragged(e, self.row_splits).sum()) + shift
        return result

    def softmax(self) -> Ragged:
        """Return exp(values) divided by its sum over each row."""
        return Ragged(self._reduced(F.segment_softmax), self.row_splits)

    def log_softmax(self) -> Ragged:
        """Return the logarithm of softmax over each row, without underflow."""
        shifted = self.values - F.take(F.stop_gradient(self.max()), self.row_ids, 0)
        total = Ragged(F.exp(shifted), self.row_splits).sum()
        return Ragged(shifted - F.take(F.log(total), self.row_ids, 0), self.row_splits)

    def _reduced(self, reduce: Any) -> Tensor:
        reduced: Tensor = reduce(self.values, self.row_ids, self.num_rows)
        return reduced

    @staticmethod
    def concat(parts: Sequence[Ragged], axis: int = 0) -> Ragged:
        """Return the rows of several ragged tensors below each other (axis 0), or end to end (1).

        >>> import weft as wf
        >>> a, b = wf.ragged([[1], [2, 3]]), wf.ragged([[4, 5], []], dtype="int64")
        >>> wf.Ragged.concat([a, b], axis=1)
        ragged([[1, 4, 5], [2, 3]])
        """
        if not parts or not all(isinstance(part, Ragged) for part in parts):
            raise ArgumentTypeError(
                f"concat: expected at least one ragged tensor. Received: {parts!r:.60}"
            )
        if axis not in (0, 1):
            raise ArgumentError(f"concat: axis must be 0 or 1. Received: {axis!r}")
        return _below(parts) if axis == 0 else _end_to_end(parts)

    # -- operators --------------------------------------------------------------------------------

    def __weft_apply__(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Apply an operator to operands of which this one is ragged."""
        if op.kind == elementwise and not op.variadic:
            like = next(x for x in inputs if isinstance(x, Ragged))
            made = apply(op, tuple([aligned(op, like, x) for x in inputs]), attrs)
            return Ragged(made, like.row_splits)
        if op.operator == PRODUCT and not isinstance(inputs[1], Ragged):
            return Ragged(apply(op, (self.values, inputs[1]), attrs), self.row_splits)
        raise refused(op)

    def __getattr__(self, name: str) -> Any:
        record = registry.get(name)
        if record is None or record.kind != elementwise:
            raise AttributeError(
                f"a ragged tensor has no attribute {name!r}; r.values is a tensor, r.apply(f) "
                "applies a function to it"
            )
        return lambda *args, **kwargs: record.function(self, *args, **kwargs)


def _attach_operators() -> None:
    """Give the class Python's operators, as operators declare them."""
    for record in registry.values():
        name = record.operator
        if name is None or (name != PRODUCT and record.kind != elementwise):
            continue
        setattr(Ragged, name, _method(record))
        if len(record.inputs) == 2:
            setattr(Ragged, f"__r{name[2:]}", _reflected(record))


def _method(record: Op) -> Callable[..., Any]:
    def method(self: Ragged, *others: Any) -> Any:
        return record.function(self, *others)  # which is written when it is first called

    return method


def _reflected(record: Op) -> Callable[..., Any]:
    return lambda self, other: record.function(other, self)


_attach_operators()
Ragged.__hash__ = None  # type: ignore[assignment]  # == compares elements
tree.register(Ragged, lambda r: ((r.values, r.row_splits), None), lambda _, parts: Ragged(*parts))


# -- making them ----------------------------------------------------------------------------------


def ragged(
    values: Any,
    *,
    row_splits: Any = None,
    lengths: Any = None,
    row_ids: Any = None,
    num_rows: int | None = None,
    padded: bool = False,
    dtype: Any = None,
    requires_grad: bool = False,
) -> Ragged:
    """Make a ragged tensor: of a list of rows, or of values and how they are split.

    row_splits  row i is values[row_splits[i] : row_splits[i + 1]]
    lengths     how many values each row has; with `padded`, values hold a row of equal length for
                each, of which the first ones count
    row_ids     the row of each value, in ascending order; num_rows says how many rows there are

    Rows given as tensors keep their history: gradients go back to them.

    >>> import weft as wf
    >>> r = wf.ragged([[1.0, 2.0], [], [3.0]])
    >>> r.sum(), (r * 10).softmax().to_list()[2]
    (tensor([3., 0., 3.]), [1.0])
    >>> wf.ragged(wf.arange(4), lengths=[3, 1])
    ragged([[0, 1, 2], [3]])
    """
    ways = {"row_splits": row_splits, "lengths": lengths, "row_ids": row_ids}
    given = [name for name, way in ways.items() if way is not None]
    if len(given) > 1:
        raise ArgumentError(f"ragged: give one of {', '.join(ways)}. Received: {given}")
    if padded and given != ["lengths"]:
        raise ArgumentError(f"ragged: padded needs lengths. Received: {given or 'none'}")
    if not given:
        return _of_rows(values, dtype, requires_grad)
    flat = _as_values(values, dtype, requires_grad)
    if padded:
        return _of_padded(flat, lengths)
    if row_ids is not None:
        return Ragged(flat, splits_of_ids(row_ids, flat.shape[0], num_rows))
    if lengths is not None:
        return Ragged(flat, splits_of_lengths(lengths, flat.shape[0]))
    return Ragged(flat, as_splits(row_splits, flat.shape[0]))


def _as_values(values: Any, dtype: Any, requires_grad: bool) -> Tensor:
    if isinstance(values, Tensor) and dtype is None and not requires_grad:
        flat = values
    else:
        flat = tensor(values, dtype=dtype, requires_grad=requires_grad)
    if not flat.ndim:
        raise ShapeError("ragged: values must have a first axis. Received: a 0-d tensor")
    return flat


def _of_rows(rows: Any, dtype: Any, requires_grad: bool) -> Ragged:
    if isinstance(rows, Ragged):
        return rows
    if not isinstance(rows, list | tuple):
        raise ArgumentTypeError(
            f"ragged: expected a list of rows, or values with row_splits, lengths or row_ids. "
            f"Received: {type(rows).__name__} {rows!r:.60}"
        )
    made = [row if isinstance(row, Tensor) else tensor(row, dtype=dtype) for row in rows]
    for i, row in enumerate(made):
        if row.ndim == 0:
            raise ShapeError(f"ragged: row {i} must be a sequence. Received: {rows[i]!r:.60}")
    lengths = [row.shape[0] for row in made]
    # An empty list has no dtype of its own.
    filled = [row for row, size in zip(made, lengths, strict=True) if size] or made[:1]
    values = F.concat(filled, axis=0) if filled else tensor([], dtype=dtype)
    if requires_grad:
        values = values.requires_grad_()
    return Ragged(values, constant(np.cumsum([0, *lengths], dtype=np.int64)))


def _of_padded(padded: Tensor, lengths: Any) -> Ragged:
    if padded.ndim < 2:
        raise ShapeError(f"ragged: padded values have rows. Received: shape {tuple(padded.shape)}")
    rows, width = padded.shape[:2]
    sizes = as_integers("lengths", lengths).numpy()
    if len(sizes) != rows or (sizes < 0).any() or (sizes > width).any():
        raise ArgumentError(
            f"ragged: lengths must be {rows} numbers within 0..{width}. Received: {sizes}"
        )
    places = positions(np.arange(rows) * width, sizes)
    flat = F.reshape(padded, (rows * width, *padded.shape[2:]))
    splits = np.concatenate([[0], np.cumsum(sizes)])
    return Ragged(F.take(flat, constant(places), 0), constant(splits))


# -- joining them ---------------------------------------------------------------------------------


def _below(parts: Sequence[Ragged]) -> Ragged:
    splits, start = [parts[0].row_splits[:1]], 0
    for part in parts:
        splits.append(part.row_splits[1:] + start)
        start = start + part.values.shape[0]
    return Ragged(F.concat([p.values for p in parts], axis=0), F.concat(splits, axis=0))


def _end_to_end(parts: Sequence[Ragged]) -> Ragged:
    rows = {part.num_rows for part in parts}
    if len(rows) > 1:
        raise ShapeError(f"concat: expected equally many rows. Received: {sorted(rows)}")
    joined = _below(parts)
    # A stable sort by row brings the parts of each row together, in their order.
    order = F.argsort(F.concat([part.row_ids for part in parts], axis=0))
    splits = parts[0].row_splits
    for part in parts[1:]:
        splits = splits + part.row_splits
    return Ragged(F.take(joined.values, order, 0), splits)


def _as_index(index: Any) -> Any:
    if isinstance(index, Tensor):
        return index.numpy()
    return index if isinstance(index, slice) else np.asarray(index, None if len(index) else int)
