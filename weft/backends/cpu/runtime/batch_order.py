"""In which order put-off operations run, and where their operands lie: by native loops.

    order = batch_order(columns)
    places = batch_places(columns, order, results, rows)
    levels = batch_depths(refs, arity, outs, firsts, numbers)

Of ten thousand operations NumPy takes some fifty microseconds for each question that is asked of
all, and Python two for each that runs; the whole of it takes as long here as a few such questions.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from ....core.dtype import Array
from ..codegen.target import host
from .calls import Entry, make_entry
from .linking import Library, link
from .native.batch_order import DEPTHS, EXPORTS, ORDER, PLACES, SIZES, batch_order_text
from .objects import runtime_code


class OperationColumns(NamedTuple):
    """Operations by columns, of whole numbers.

    signature   the number of the signature of each
    level       how deep it lies
    refs        the values that operations read, one after another
    arity       how many of these each has
    outs        how many results each has
    firsts      the number of its first result
    first       the least number of a result
    numbers     how many numbers there are from there on
    """

    signature: Array
    level: Array
    refs: Array
    arity: Array
    outs: Array
    firsts: Array
    first: int
    numbers: int


class FoundOrder(NamedTuple):
    """The rows of operations in the order in which they run, and how many each batch has."""

    rows: Array
    sizes: Array


class ResultColumns(NamedTuple):
    """The types of results: of the signature i, from `begins[i]` to `begins[i + 1]` in `kinds`."""

    kinds: Array
    begins: Array


class FoundPlaces(NamedTuple):
    """The operands of all batches, one after another: for each, its members side by side.

    rows       where they lie
    starts     where in `rows` each operand begins, and where all end
    apart      whether the rows of an operand do not lie side by side
    distinct   whether it is known that no row of an operand is there twice
    last       whether each of its values is read here for the last time, and once
    """

    rows: Array
    starts: Array
    apart: Array
    distinct: Array
    last: Array


def batch_order(given: OperationColumns) -> FoundOrder | None:
    """Return which operations run as one, and in which order; None if they wait for one another.

    Those of one signature at one level are a bucket. Until all have run: of the signatures that
    have buckets ready, the one whose operations lie least deep on average goes first, of equals the
    one whose first bucket most operations wait for, and then by number. All its ready buckets are
    one batch, in the order in which they became ready.
    """
    rows, reads = len(given.signature), len(given.refs)
    depth = int(given.level.max(initial=0)) + 1
    kinds = int(given.signature.max(initial=0)) + 1
    given_sizes = [rows, reads, depth, kinds, given.numbers, given.first]
    sizes = np.array([*given_sizes, *[0] * (len(SIZES) - len(given_sizes))], np.int64)
    columns = dict(zip(given._fields[:6], map(_words, given[:6]), strict=True))
    room = {
        **dict.fromkeys(("maker",), given.numbers),
        **dict.fromkeys(("made", "reader", "after"), reads),
        **dict.fromkeys(("starts",), max(rows, depth) + 1),
        **dict.fromkeys(("behind",), rows + 1),
        **dict.fromkeys(("count", "mean", "waiting", "head", "tail", "heap"), kinds),
    }
    columns |= {
        name: np.empty(room.get(name, rows), np.int64) for name in ORDER[len(columns) + 1 :]
    }
    _check_lengths(columns)
    _entries()[0](sizes, *[columns[name] for name in ORDER[1:]])
    left, batches = sizes[_LEFT], sizes[SIZES.index("batches")]
    assert left >= 0, _WRONG
    return None if left else FoundOrder(columns["order"], columns["found"][:batches])


def batch_places(
    given: OperationColumns,
    order: FoundOrder,
    results: ResultColumns,
    ragged: Array,
    ends: Array,
    rows: Array,
    start: int,
) -> FoundPlaces:
    """Write down the rows of all results, and return where operands lie.

    ragged   of each signature whether its operations have any number of operands: those of all
             members, one after another, are one operand of the batch
    ends     how many values of each type there are: what is found is behind them, and counted
    rows     for each value, numbered from `start` on, its row within its type
    """
    count = len(order.rows)
    reads = len(given.refs)
    sizes = np.zeros(len(SIZES), np.int64)
    signature, _, refs, arity, _, firsts = map(_words, given[:6])
    columns = signature, refs, arity, firsts, order.rows, order.sizes
    of_each = order.rows[np.cumsum(order.sizes) - 1]
    operands = int(np.where(ragged[signature[of_each]] != 0, 1, arity[of_each]).sum())
    for name, size in (
        ("rows", count),
        ("reads", reads),
        ("kinds", len(results.begins) - 1),
        ("numbers", len(rows)),
        ("first", start),
        ("batches", len(order.sizes)),
        ("types", len(ends)),
        ("listed", len(results.kinds)),
        ("operands", operands),
    ):
        sizes[SIZES.index(name)] = size
    found = FoundPlaces(
        np.empty(reads, np.int64),
        np.empty(operands + 1, np.int64),
        *[np.empty(operands, np.bool_) for _ in range(3)],
    )
    work = [np.empty(n, np.int64) for n in (count, reads, len(rows))]
    assert len(ragged) >= len(results.begins) - 1, _WRONG
    _entries()[1](sizes, *columns, *results, ragged, ends, rows, *work, *found)
    assert sizes[_LEFT] >= 0, _WRONG
    return found


_LEFT = SIZES.index("left")
_WRONG = "columns of put-off operations lead outside of one another"


def _check_lengths(columns: dict[str, Array]) -> None:
    """Raise unless columns of operations have a word for each."""
    lengths = {len(columns[name]) for name in ("signature", "level", "arity", "outs", "firsts")}
    assert len(lengths) == 1, _WRONG


def batch_depths(refs: Array, arity: Array, outs: Array, firsts: Array, numbers: int) -> Array:
    """Return how deep operations lie, each of which stands behind those whose results it reads.

    Values are numbered from 0 up to `numbers`; what nothing makes lies at the top.
    """
    sizes = np.zeros(len(SIZES), np.int64)
    sizes[SIZES.index("rows")] = len(arity)
    level, deep = np.empty(len(arity), np.int64), np.full(numbers, -1, np.int64)
    assert len(refs) == arity.sum(), _WRONG
    assert not len(refs) or (refs.min() >= 0 and refs.max() < numbers), _WRONG
    assert not len(firsts) or (firsts.min() >= 0 and (firsts + outs).max() <= numbers), _WRONG
    _entries()[2](sizes, *map(_words, (refs, arity, outs, firsts)), level, deep)
    return level


def _words(column: Array) -> Array:
    """Return a column as native loops take it: words side by side."""
    return np.ascontiguousarray(column, np.int64)


@cache
def _entries() -> list[Entry]:
    library = _library()
    counts = zip(EXPORTS, (len(ORDER), len(PLACES), len(DEPTHS)), strict=True)
    return [make_entry(library.address(name), n, keep=library) for name, n in counts]


@cache
def _library() -> Library:
    return link([runtime_code(batch_order_text(host()), host())], list(EXPORTS))
