"""Where operands and results lie, before anything runs."""

from __future__ import annotations

import numpy as np

from weft.core.dtype import float32
from weft.core.shape import TensorType
from weft.dynamic.agenda import PutOffOperations
from weft.dynamic.schedule import scheduled
from weft.dynamic.signatures import SignatureTable


class Work:
    """Stands for what runs a signature."""

    many, name = False, "work"

    def __init__(self, outs):
        self.outs = outs

    def types(self, types, inputs):
        return self.outs


def table_of(arities):
    """Return a table with data, and signatures of so many operands, all of one type."""
    table, kind = SignatureTable(), TensorType((2,), float32)
    number = table.kind(kind)
    table.data(number)
    for arity in arities:
        table.new(arity, Work([kind]), (number,) * arity, (), False)
    return table


def test_places_of_all_batches():
    # Three rows of data; x = f(a), y = f(c), z = f(b) run as one; g(y, x) and g(z, z) as another.
    table = table_of([1, 2])
    signature = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    refs = np.array([0, 2, 1, 4, 3, 5, 5])
    operations = PutOffOperations(
        signature,
        np.array([0, 0, 0, 1, 1, 1, 2, 2]),
        refs,
        table.arity[signature],
        table.results[signature],
        np.arange(8),
        0,
        8,
    )
    rows = np.full(8, -1)
    found = scheduled(operations, table, rows, 0, lambda kind: 10)
    assert rows.tolist() == [10, 11, 12, 13, 14, 15, 16, 17]
    assert found.counts == {0: 8}
    data, first, second = found.batches
    assert (data.size, data.places) == (3, [])
    assert [place.tolist() for place in first.places] == [[10, 12, 11]]
    assert (first.distinct, first.last) == ([True], [True])
    assert second.places[0] == slice(14, 16)
    assert second.places[1].tolist() == [13, 15]
    assert second.last == [False, True]  # z is read again, by the other operand
