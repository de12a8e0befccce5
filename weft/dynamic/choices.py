"""The choices of examples that read values, and whether those of a batch came out the same.

What code asked of values (reads.py) becomes columns of a plan: which elements it compared, and what
was found. A batch is looked at after it has run: a few loops of NumPy for all questions of one form
and of all examples. Who finds other answers than its plan says has another path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.dtype import Array, is_float
from .agenda import Ints
from .reads import (
    COMPARISONS,
    EXACT,
    TRUTH,
    ComparedNumbers,
    ComputedNumber,
    EarlierNumber,
    ExampleReads,
    QuestionForm,
    ReadElement,
    bits_of,
)

ALL = 1 << 62
MOST_ELEMENTS = 1 << 12  # whose content an example knows: choices by more are not kept


class PathChoices:
    """What the code of one example found on its path.

    columns      for questions of each form five lines: the value, its element, the other value (or
                 the bits of a number), its element, the answer
    computed     questions about numbers that Python computed
    arithmetic   what it computed, in order
    """

    __slots__ = ("arithmetic", "columns", "computed")

    def __init__(
        self,
        columns: dict[QuestionForm, Ints],
        computed: list[ComparedNumbers],
        arithmetic: list[ComputedNumber],
    ) -> None:
        self.columns = columns
        self.computed = computed
        self.arithmetic = arithmetic if computed else []

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PathChoices)
            and self.computed == other.computed
            and self.arithmetic == other.arithmetic
            and self.columns.keys() == other.columns.keys()
            and all(np.array_equal(x, other.columns[form]) for form, x in self.columns.items())
        )

    def values(self) -> Ints:
        """Return the numbers of all values that are asked about."""
        found = [x[0] for x in self.columns.values()]
        found += [x[2] for form, x in self.columns.items() if form.right is not None]
        sources = [x for number in self.arithmetic for x in number.operands]
        sources += [x for question in self.computed for x in (question.left, question.right)]
        elements = [x.value.number for x in sources if type(x) is ReadElement]
        return np.concatenate([*found, np.array(elements, np.int64)])

    __hash__ = None  # type: ignore[assignment]  # nobody looks choices up


def choices_of(reads: ExampleReads, own: OwnNumbers) -> PathChoices | None:
    """Return what an example found, by its own numbers of values; None if a plan cannot hold it."""
    columns = {
        QuestionForm(*key): np.array(line, np.int64).reshape(-1, 5).T.copy()
        for key, line in reads.lines.items()
    }
    size = sum(array.size for array in reads.exact.values())
    if reads.is_mixed or max(size, len(reads.arithmetic)) > MOST_ELEMENTS:
        return None
    for (number, kind), array in reads.exact.items():
        if array.dtype.kind == "c":
            return None
        bits, form = _bits(array.ravel()), QuestionForm(EXACT, kind, None)
        lines = np.zeros((5, array.size), np.int64)
        lines[0], lines[1], lines[2], lines[4] = number, np.arange(array.size), bits, 1
        columns[form] = np.concatenate([columns.get(form, lines[:, :0]), lines], axis=1)
    try:
        for form, lines in columns.items():
            lines[0] = own.all(lines[0])
            if form.right is not None:
                lines[2] = own.all(lines[2])
        arithmetic = [
            x._replace(operands=tuple([_renumbered(y, own) for y in x.operands]))
            for x in reads.arithmetic
        ]
        computed = [
            x._replace(left=_renumbered(x.left, own), right=_renumbered(x.right, own))
            for x in reads.computed
        ]
    except ForeignValueError:
        return None
    return PathChoices(columns, computed, arithmetic)


class ForeignValueError(Exception):
    """Says that a value is not one of an example's own."""


class OwnNumbers(NamedTuple):
    """The numbers of values of a run, as one example counts its own.

    numbers      of each value of the run, example by example
    begin, end   those of this example
    """

    numbers: Ints
    begin: int
    end: int

    def all(self, numbers: Ints) -> Ints:
        """Return an example's own numbers; raise if some are of other values."""
        found = self.numbers[numbers]
        if bool(((found < self.begin) | (found >= self.end)).any()):
            raise ForeignValueError
        return found - self.begin

    def one(self, number: int) -> int:
        """Return an example's own number; raise if it is of another's value."""
        return int(self.all(np.array([number]))[0])


def _renumbered(source: Any, own: OwnNumbers) -> Any:
    """Return where a number comes from, by an example's own numbers of values."""
    if type(source) is ReadElement:
        return source._replace(value=source.value._replace(number=own.one(source.value.number)))
    return source


def _bits(array: Array) -> Ints:
    """Return elements as words that tell them apart: also zeros by sign, and NaNs."""
    if is_float(array.dtype):
        found: Ints = np.ascontiguousarray(array, np.float64).view(np.int64)
        return found
    return array.astype(np.int64)


# -- a batch that has run --------------------------------------------------------------------------


class RanValues(NamedTuple):
    """The values of a batch: for each type an array by row, and for each number its row.

    start   the number that the first of these rows is of
    """

    arrays: Mapping[int, Array]
    rows: Ints
    start: int

    def elements(self, kind: int, numbers: Ints, places: Ints) -> Array:
        """Return some elements of values of one type."""
        array = self.arrays[kind]
        found: Array = array.reshape(len(array), -1)[self.rows[numbers - self.start], places]
        return found

    def element(self, x: ReadElement, shift: int) -> float:
        """Return one element, by an example's own number of its value."""
        (number, kind), place = x
        array = self.arrays[kind][self.rows[number + shift - self.start]]
        return float(array.reshape(-1)[place])


def other_paths(
    choices: Sequence[PathChoices | None], firsts: Sequence[int], values: RanValues
) -> dict[int, int]:
    """Return which examples find other answers than their choices say.

    With each comes a number: its own values up to that are what its code computes all the same,
    since nobody can ask about a value before it is computed.

    firsts   the number of the first value of each
    """
    shifts = np.array(firsts)
    known = np.full(len(choices), ALL, np.int64)
    forms = {form for own in choices if own is not None for form in own.columns}
    for form in forms:
        members = [i for i, own in enumerate(choices) if own is not None and form in own.columns]
        parts = [choices[i].columns[form] for i in members]  # type: ignore[union-attr]  # chosen so
        owner = np.repeat(members, [part.shape[1] for part in parts])
        lines = np.concatenate(parts, axis=1)
        wrong = ~_answers(form, lines, shifts[owner], values)
        asked = lines[0] if form.right is None else np.maximum(lines[0], lines[2])
        np.minimum.at(known, owner[wrong], asked[wrong])
    for i, own in enumerate(choices):
        if own is not None and not _are_answered(own, firsts[i], values):
            known[i] = -1
    return {i: int(known[i]) for i in np.flatnonzero(known != ALL).tolist()}


class KnownAhead(NamedTuple):
    """Values of an example that were computed before it was found that it goes another way.

    first    the number of its first one there
    last     its own number of the last one that its code computes all the same
    places   in how many places numbers were data when these were counted: where one became data
             since, its code counts otherwise
    """

    values: RanValues
    first: int
    last: int
    places: int

    def value(self, number: int, kind: int) -> Array | None:
        """Return a value by its own number, if it is known."""
        if not 0 <= number <= self.last:
            return None
        row = self.values.rows[self.first + number - self.values.start]
        found: Array = self.values.arrays[kind][row]
        return found if row >= 0 else None  # it was only on the way to others, in a cluster


def _answers(form: QuestionForm, questions: Ints, shift: Ints, values: RanValues) -> Any:
    """Tell of questions of one form whether their answers are what they were."""
    number, place, other, its_place, answer = questions
    left = values.elements(form.left, number + shift, place)
    if form.name == TRUTH:
        return left.astype(np.bool_) == answer
    if form.name == EXACT:
        return _bits(left) == other
    right: Array = other.view(np.float64)
    if form.right is not None:
        right = values.elements(form.right, other + shift, its_place)
    left, right = left.astype(np.float64), right.astype(np.float64)
    return COMPARISONS[form.name](left, right) == answer


def _are_answered(own: PathChoices, shift: int, values: RanValues) -> bool:
    """Tell whether questions about what Python computes have the answers that they had."""
    numbers: list[Any] = []

    def number(source: Any) -> Any:
        if type(source) is ReadElement:
            return values.element(source, shift)
        return numbers[source.place] if type(source) is EarlierNumber else source

    for operation, operands in own.arithmetic:
        numbers.append(operation(*map(number, operands)))
    return all(_is_answered(x, number(x.left), number(x.right)) for x in own.computed)


def _is_answered(question: ComparedNumbers, left: Any, right: Any) -> bool:
    if question.name == EXACT:
        return bits_of(left) == bits_of(right)
    return bool(COMPARISONS[question.name](left, right)) == question.found
