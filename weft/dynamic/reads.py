"""What code read of put-off values, and what it made of them: the choices behind its path.

A parser reads scores, floats that no two steps of training share; what it makes of them, which
step is best, is the same most of the time. So code is given numbers that know where they come from,
and what it asks of them is noted: `a > b`. A truth value is noted as it is, and so are integers.
Whoever wants the very number (`math.exp(x)`, `f"{x}"`) has it, and that it was this one is noted.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.dtype import Array, is_float

if TYPE_CHECKING:
    from .deferred import DeferredTensor


class ReadValue(NamedTuple):
    """A value that was read: its number in the run, and that of its type."""

    number: int
    kind: int


class ReadElement(NamedTuple):
    """One element of a value."""

    value: ReadValue
    place: int


class EarlierNumber(NamedTuple):
    """A number that was computed: its place among those of its example, in their order."""

    place: int


class ComputedNumber(NamedTuple):
    """A number that Python computed of elements, of earlier ones and of plain numbers."""

    operation: Callable[..., Any]
    operands: tuple[Any, ...]


class ComparedNumbers(NamedTuple):
    """Two numbers (elements, computed, plain), how they were compared, and what was found."""

    name: str
    left: Any
    right: Any
    found: bool


class QuestionForm(NamedTuple):
    """What questions have in common: the comparison, and the types of values on both sides.

    right   None for plain numbers, and where there is no other side
    """

    name: str
    left: int
    right: int | None


EXACT, TRUTH = "exact", "truth"


class ExampleReads:
    """What one example read.

    lines        questions about elements, by form, of five numbers each: the value, its element,
                 the other value (or the bits of a plain number), its element, and the answer
    exact        values of which code knows the content, and this
    computed     questions about numbers that Python computed
    arithmetic   what it computed, in order
    is_mixed     whether code has taken numbers of other examples, or of other calls
    """

    __slots__ = (
        *("arithmetic", "computed", "exact", "gave_numbers", "gives_numbers"),
        *("is_mixed", "lines"),
    )

    def __init__(self, *, gives_numbers: bool) -> None:
        self.gives_numbers = gives_numbers
        self.lines: dict[tuple[str, int, int | None], list[int]] = {}
        self.exact: dict[ReadValue, Array] = {}
        self.arithmetic: list[ComputedNumber] = []
        self.computed: list[ComparedNumbers] = []
        self.is_mixed = False
        self.gave_numbers = False

    def __bool__(self) -> bool:
        return bool(self.lines or self.exact or self.computed or self.gave_numbers)

    def know(self, x: DeferredTensor, array: Array) -> None:
        """Note that code knows a value itself."""
        self.exact[ReadValue(x.index, x.kind)] = array.copy()

    def truth(self, x: DeferredTensor, array: Array) -> bool:
        """Return the truth of a value, which code goes by."""
        found = bool(array.item())
        self._add(TRUTH, x.kind, None, (x.index, 0, 0, 0, found))
        return found

    def numbers(self, x: DeferredTensor, array: Array) -> Any:
        """Return a value as nested lists of Python's numbers."""
        if not (self.gives_numbers and is_float(array.dtype)):
            self.know(x, array)
            return array.tolist()
        if not array.size:
            return array.tolist()
        found = self._elements(x, array.ravel().tolist())
        for size in array.shape[:0:-1]:  # NumPy would ask for the numbers themselves
            found = [found[i : i + size] for i in range(0, len(found), size)]
        return found

    def number(self, x: DeferredTensor, array: Array) -> Any:
        """Return the only element of a value as a Python number."""
        if not (self.gives_numbers and is_float(array.dtype)):
            self.know(x, array)
            return array.item()
        return self._elements(x, [array.item()])[0]

    def _elements(self, x: DeferredTensor, numbers: list[float]) -> list[Any]:
        self.gave_numbers = True
        value, found = ReadValue(x.index, x.kind), []
        for place, number in enumerate(numbers):
            made: Any = _new_number()
            made._number, made._reads, made._of, made._place = number, self, value, place
            found.append(made)
        return found

    def settle(self, x: ReadNumber) -> None:
        """Note that code knows a number itself."""
        if x._place < 0:
            self.computed.append(ComparedNumbers(EXACT, x._source(), x._number, found=True))
        else:
            value, kind = x._of
            self._add(EXACT, kind, None, (value, x._place, bits_of(x._number), 0, 1))

    def compare(self, name: str, x: ReadNumber, other: Any, *, found: bool) -> None:
        """Note what code found when it compared numbers."""
        is_read = type(other) is ReadNumber
        if x._place >= 0 and (other._place >= 0 if is_read else _is_a_double(other)):
            value, kind = x._of
            right, its_kind = other._of if is_read else (bits_of(float(other)), None)
            line = value, x._place, right, other._place if is_read else 0, found
            self._add(name, kind, its_kind, line)
        else:
            question = ComparedNumbers(name, self.source_of(x), self.source_of(other), found)
            self.computed.append(question)
        self.is_mixed |= is_read and other._reads is not self

    def source_of(self, x: Any) -> Any:
        """Return where a number comes from; a plain one is what it is."""
        if type(x) is not ReadNumber:
            return x
        self.is_mixed |= x._reads is not self
        return x._source()

    def compute(self, operation: Callable[..., Any], operands: tuple[Any, ...]) -> int:
        """Note a number that Python computes; return its place."""
        sources = tuple([self.source_of(x) for x in operands])
        self.arithmetic.append(ComputedNumber(operation, sources))
        return len(self.arithmetic) - 1

    def _add(self, name: str, left: int, right: int | None, line: tuple[int, ...]) -> None:
        key = name, left, right
        lines = self.lines.get(key)
        if lines is None:
            self.lines[key] = [*line]
        else:
            lines += line


def bits_of(number: float) -> int:
    """Return the bits of a number as a word: it tells zeros apart by sign, and NaNs."""
    found: int = _WORD.unpack(_DOUBLE.pack(number))[0]
    return found


_WORD, _DOUBLE = Struct("q"), Struct("d")


def _is_a_double(number: float) -> bool:
    """Tell whether a number is one of those that a float can be: no NaN, and no larger integer."""
    try:
        return float(number) == number
    except OverflowError:
        return False


class ReadNumber:
    """A float that was read: it notes what is asked of it.

    It passes for a float (`isinstance`), and a library that takes no less is given one: what raises
    an error because it is none is run again with plain numbers (many_calls.py).

    _of, _place   the value that it is an element of, and which; or its place among the numbers that
                  were computed, and -1
    """

    __slots__ = ("_number", "_of", "_place", "_reads")

    _number: float
    _reads: ExampleReads
    _of: Any
    _place: int

    @property  # type: ignore[misc]  # what isinstance asks for; nobody sets it
    def __class__(self) -> type:
        return float

    def __float__(self) -> float:
        self._reads.settle(self)
        return self._number

    def _source(self) -> ReadElement | EarlierNumber:
        """Return where it comes from."""
        return EarlierNumber(self._of) if self._place < 0 else ReadElement(self._of, self._place)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(float(self), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        # As an array it would decide the dtype of the result, which a Python float does not.
        return getattr(ufunc, method)(*_with_plain_numbers(args), **_with_plain_numbers(kwargs))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*_with_plain_numbers(args), **_with_plain_numbers(kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(float(self), name)

    def __reduce__(self) -> Any:
        return float, (float(self),)

    def __copy__(self) -> float:
        return float(self)

    def __deepcopy__(self, memo: Any) -> float:
        return float(self)

    # -- comparisons: what code goes by ------------------------------------------------------------

    def __lt__(self, other: Any) -> Any:
        return _compared("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return _compared("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return _compared("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return _compared("ge", self, other)

    def __eq__(self, other: object) -> Any:
        return _compared("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return _compared("ne", self, other)

    def __bool__(self) -> bool:
        return bool(_compared("ne", self, 0.0))

    def __hash__(self) -> int:
        return hash(float(self))

    # -- arithmetic that cannot fail: a number that knows what it was computed of ------------------

    def __add__(self, other: Any) -> Any:
        return _computed(operator.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _computed(operator.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return _computed(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _computed(operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return _computed(operator.mul, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _computed(operator.mul, other, self)

    def __truediv__(self, other: Any) -> Any:
        if type(other) in PLAIN and other:
            return _computed(operator.truediv, self, other)
        return float(self) / plain_number(other)  # which may be zero, and raise

    def __neg__(self) -> Any:
        return _computed(operator.neg, self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return _computed(operator.abs, self)


PLAIN = (int, float, bool)
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")
}
_new_number: Any = partial(object.__new__, ReadNumber)


def _compared(name: str, x: ReadNumber, other: Any) -> Any:
    kind = type(other)
    if kind is ReadNumber:
        found = COMPARISONS[name](x._number, other._number)
    elif kind in PLAIN:
        found = COMPARISONS[name](x._number, other)
    else:
        return COMPARISONS[name](float(x), other)
    x._reads.compare(name, x, other, found=found)
    return found


def _computed(operation: Callable[..., Any], *operands: Any) -> Any:
    """Return what Python computes; of plain numbers it is a number that was read, too."""
    plain = [x._number if type(x) is ReadNumber else x for x in operands]
    if not all([type(x) in PLAIN for x in plain]):  # noqa: C419  (a list is quicker)
        return operation(*map(plain_number, operands))
    made: Any = _new_number()
    made._number, made._place = operation(*plain), -1
    made._reads = next(x._reads for x in operands if type(x) is ReadNumber)
    made._of = made._reads.compute(operation, operands)
    return made


def plain_number(x: Any) -> Any:
    """Return a number as Python has it, which is noted of one that was read."""
    return float(x) if type(x) is ReadNumber else x


def _with_plain_numbers(nest: Any) -> Any:
    """Return arguments with numbers as Python has them."""
    if type(nest) in (list, tuple):
        return type(nest)([_with_plain_numbers(x) for x in nest])
    if type(nest) is dict:
        return {key: _with_plain_numbers(x) for key, x in nest.items()}
    return plain_number(nest)


def _asking(name: str) -> Callable[..., Any]:
    """Return a method that does what a float does with the number itself."""
    method = getattr(float, name)

    def ask(self: ReadNumber, *args: Any) -> Any:
        return method(float(self), *map(plain_number, args))

    ask.__name__ = name
    return ask


for _name in (
    *("__int__", "__trunc__", "__floor__", "__ceil__", "__round__", "__repr__", "__str__"),
    *("__format__", "__divmod__", "__rdivmod__", "__floordiv__", "__rfloordiv__", "__mod__"),
    *("__rmod__", "__pow__", "__rpow__", "__rtruediv__"),
):
    setattr(ReadNumber, _name, _asking(_name))
