"""Turn einsum subscripts into a program of matrix products and changes of shape.

Enters: subscripts and shapes. Leaves: a Program, which names the operators to run and all their
arguments, so that running it is a short loop. Programs are cached: a repeated einsum is planned
once. Operands are contracted two at a time, in a greedy order.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

from ...core.dim import typical
from ...core.shape import Shape, size_of
from ._subscripts import Label, Labels, Reading, read

Step = tuple[str, tuple[Any, ...]]  # the name of an operator and its arguments after the tensor
Steps = tuple[Step, ...]


class PairProduct(NamedTuple):
    """The product of the values at two positions; both leave the list and the result joins it."""

    left: int
    right: int
    operator: str
    after: Steps


class Contraction(NamedTuple):
    """What to do to each operand, and the products to form from them in order."""

    before: tuple[Steps, ...]
    products: tuple[PairProduct, ...]


@lru_cache(maxsize=1024)
def plan(subscripts: str, shapes: tuple[Shape, ...]) -> Contraction:
    """Return the program for subscripts applied to operands of these shapes."""
    reading = read(subscripts, shapes)
    pairs = list(zip(reading.terms, shapes, strict=True))
    values = [PlannedOperand(labels, shape) for labels, shape in pairs]
    operands = tuple(values)
    for value in values:
        value.simplify(reading.sizes)
    products = []
    while len(values) > 1:
        i, j = _cheapest_pair(values, reading)
        x, y = values[i], values[j]
        values = [value for value in values if value not in (x, y)]
        wanted = _wanted(reading.output, values)
        swap = y.first_place(x, wanted) < x.first_place(y, wanted)  # keeps the wanted order
        operator, result = multiply(y, x, wanted) if swap else multiply(x, y, wanted)
        values.append(result)
        products.append((j, i, operator, result) if swap else (i, j, operator, result))
    values[0].arrange(reading.output)
    done = (PairProduct(i, j, operator, tuple(out.steps)) for i, j, operator, out in products)
    return Contraction(tuple(tuple(value.steps) for value in operands), tuple(done))


def _wanted(output: Labels, values: Iterable[PlannedOperand]) -> Labels:
    """Return the output's labels in order, then those that other operands still need."""
    others = {label for value in values for label in value.labels}
    return (*output, *sorted(others.difference(output), key=str))


class PlannedOperand:
    """An operand or intermediate result as planned so far: labels, shape and pending steps."""

    def __init__(self, labels: Labels, shape: Shape) -> None:
        self.labels = labels
        self.shape = shape
        self.steps: list[Step] = []

    def size(self, label: Label) -> Any:
        """Return the size of the axis with a label."""
        return self.shape[self.labels.index(label)]

    def simplify(self, sizes: dict[Label, int]) -> None:
        """Take the diagonals of repeated labels and drop the axes that only broadcast."""
        while len(set(self.labels)) < len(self.labels):
            self._take_diagonal(next(k for k in self.labels if self.labels.count(k) > 1))
        spread = [k for k in self.labels if not (sizes[k] == 1)]  # noqa: SIM201  (or may be)
        ones = [k for k in spread if self.size(k) == 1]
        self._drop("squeeze", ones)

    def _take_diagonal(self, label: Label) -> None:
        first = self.labels.index(label)
        second = self.labels.index(label, first + 1)
        self.steps.append(("diagonal", (0, first, second)))
        keep = [i for i in range(len(self.labels)) if i not in (first, second)]
        self.shape = (*(self.shape[i] for i in keep), self.shape[first])
        self.labels = (*(self.labels[i] for i in keep), label)

    def sum_over(self, labels: Iterable[Label]) -> None:
        """Sum over the axes with these labels."""
        self._drop("sum", labels)

    def _drop(self, operator: str, labels: Iterable[Label]) -> None:
        axes = tuple(self.labels.index(k) for k in labels)
        if axes:
            self.steps.append((operator, (axes,)))
            self.shape = tuple(n for i, n in enumerate(self.shape) if i not in axes)
            self.labels = tuple(k for i, k in enumerate(self.labels) if i not in axes)

    def permute(self, labels: Labels) -> None:
        """Bring the axes into the order of these labels, which must be all of them."""
        if labels != self.labels:
            order = tuple(self.labels.index(k) for k in labels)
            self.steps.append(("permute", (order,)))
            self.shape = tuple(self.shape[i] for i in order)
            self.labels = labels

    def reshape(self, shape: Shape) -> None:
        """Change the shape; the labels stand for it no more."""
        if shape != self.shape:
            self.steps.append(("reshape", (shape,)))
            self.shape = shape

    def arrange(self, output: Labels) -> None:
        """Sum over labels that the output lacks and bring the others into its order."""
        self.sum_over([k for k in self.labels if k not in output])
        self.permute(output)

    def first_place(self, other: PlannedOperand, wanted: Labels) -> int:
        """Return the first place in the result that this operand fills and the other does not."""
        mine = (i for i, k in enumerate(wanted) if k in self.labels and k not in other.labels)
        return next(mine, len(wanted))


def multiply(x: PlannedOperand, y: PlannedOperand, wanted: Labels) -> tuple[str, PlannedOperand]:
    """Plan a product summed over the labels that x and y share and nobody wants.

    Return the operator that forms it and the result.
    """
    x.sum_over([k for k in x.labels if k not in y.labels and k not in wanted])
    y.sum_over([k for k in y.labels if k not in x.labels and k not in wanted])
    batch = tuple(k for k in wanted if k in x.labels and k in y.labels)
    rows = tuple(k for k in wanted if k in x.labels and k not in y.labels)
    columns = tuple(k for k in wanted if k in y.labels and k not in x.labels)
    inner = tuple(k for k in x.labels if k in y.labels and k not in wanted)
    x.permute((*batch, *rows, *inner))
    y.permute((*batch, *inner, *columns))
    sizes = Sizes(
        tuple(map(x.size, batch)),
        tuple(map(x.size, rows)),
        tuple(map(x.size, inner)),
        tuple(map(y.size, columns)),
    )
    form = _matrix_product if inner else _broadcast_product
    return form(x, y, sizes, (*batch, *rows, *columns))


class Sizes(NamedTuple):
    """The sizes of the labels of a product, by role."""

    batch: Shape  # in both operands and in the result
    rows: Shape  # only in the left operand
    inner: Shape  # in both operands, summed
    columns: Shape  # only in the right operand


def _broadcast_product(
    x: PlannedOperand, y: PlannedOperand, sizes: Sizes, labels: Labels
) -> tuple[str, PlannedOperand]:
    batch, rows, _, columns = sizes
    x.reshape((*batch, *rows, *[1] * len(columns)))
    y.reshape((*batch, *[1] * len(rows), *columns))
    return "mul", PlannedOperand(labels, (*batch, *rows, *columns))


def _matrix_product(
    x: PlannedOperand, y: PlannedOperand, sizes: Sizes, labels: Labels
) -> tuple[str, PlannedOperand]:
    """Make each group of labels one axis; the batch stays as it is."""
    batch, rows, inner, columns = sizes
    m, k, n = size_of(rows), size_of(inner), size_of(columns)
    x.reshape((*batch, m, k))
    y.reshape((*batch, k, n))
    result = PlannedOperand(labels, (*batch, m, n))
    result.reshape((*batch, *rows, *columns))
    return "matmul", result


def _cheapest_pair(values: list[PlannedOperand], reading: Reading) -> tuple[int, int]:
    """Return the pair whose product frees most memory, and among those takes fewest products."""
    terms = [frozenset(value.labels) for value in values]

    def growth(pair: tuple[int, int]) -> tuple[int, int]:
        x, y = terms[pair[0]], terms[pair[1]]
        others = (labels for k, labels in enumerate(terms) if k not in pair)
        left = (x | y) & frozenset(reading.output).union(*others)
        grown = volume(left) - volume(x) - volume(y)
        return typical(grown), typical(volume(x | y))

    def volume(labels: frozenset[Label]) -> int:
        return size_of(reading.sizes[k] for k in labels)

    return min(combinations(range(len(values)), 2), key=growth)
