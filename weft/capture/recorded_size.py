"""Sizes of a recording that holds for many: integers that know their number.

`x.shape[0]` is such a size where a function is recorded for many batch sizes. Arithmetic on it
gives other sizes, expressions that follow from the sizes of a call. A comparison is decided as for
the call at hand, and noted as a condition under which the recording holds. What needs the very
number (`range(n)`, a key, a text) gets it, and the recording holds for that number only. A division
that is no integer gives a number of the graph.

All of that is noted by what answers questions about sizes: see core/dim/decisions.py.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

import numpy as np

from ..core.dim import Dim
from ..core.dim.number import OPERATIONS, RealDim
from ..core.errors import is_weft_code
from ..core.op import F
from ..core.tensor import Tensor
from ..graph.node import map_attr
from ..graph.symbol import make_number
from .watch.trust import computes


class RecordedSize(Dim):
    """A size that follows from the arguments of a call, and behaves as the int that it is."""

    __slots__ = ()

    @property  # type: ignore[misc]  # for rules of operators it is as good as any other size
    def __class__(self) -> type:
        return Dim

    # -- arithmetic --------------------------------------------------------------------------------

    def _combined(self, fn: str, a: Any, b: Any) -> Any:
        other = b if a is self else a
        if _is_tensor(other):
            return NotImplemented
        follows = type(other) in _PLAIN or isinstance(other, Dim)
        if follows and fn in _DIVIDE:
            follows = type(b) not in _PLAIN or b != 0
        if follows and fn == "pow":  # of two integers it is one: 2 ** n is no polynomial
            follows = type(b) in _PLAIN or type(a) is float
        if follows:
            return recorded_size(OPERATIONS[fn](plain_size(a), plain_size(b)))
        return OPERATIONS[fn](*(int(x) if x is self else x for x in (a, b)))

    def __truediv__(self, other: Any) -> Any:
        return self._combined("truediv", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._combined("truediv", other, self)

    def __pow__(self, other: Any) -> Any:
        return self._combined("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._combined("pow", other, self)

    def __neg__(self) -> Any:
        return recorded_size(-plain_size(self))

    def __abs__(self) -> Any:
        return recorded_size(abs(plain_size(self)))

    # -- questions ---------------------------------------------------------------------------------

    def _answer(self, fn: Callable[[Any, Any], Any], other: Any) -> Any:
        """Compare with another number; what is found out is a condition of the recording."""
        if _is_tensor(other):
            return NotImplemented
        if type(other) in (int, bool) or isinstance(other, Dim):
            return fn(plain_size(self), plain_size(other))
        return fn(int(self), other)

    def __eq__(self, other: object) -> bool:
        if hasattr(other, "shape"):
            return Dim.__eq__(plain_size(self), other)
        return isinstance(other, (Number, Dim)) and not self._answer(operator.ne, other)

    def __ne__(self, other: object) -> bool:
        if hasattr(other, "shape"):
            return Dim.__ne__(plain_size(self), other)
        return not isinstance(other, (Number, Dim)) or bool(self._answer(operator.ne, other))

    def __lt__(self, other: Any) -> bool:
        return self._answer(operator.lt, other)  # type: ignore[no-any-return]  # of Any

    def __gt__(self, other: Any) -> bool:
        return self._answer(operator.gt, other)  # type: ignore[no-any-return]  # of Any

    def __le__(self, other: Any) -> bool:
        return self._answer(operator.le, other)  # type: ignore[no-any-return]  # of Any

    def __ge__(self, other: Any) -> bool:
        return self._answer(operator.ge, other)  # type: ignore[no-any-return]  # of Any

    def __bool__(self) -> bool:
        return bool(plain_size(self))

    # -- the number itself: the recording holds for no other ---------------------------------------

    def __index__(self) -> int:
        return Dim.__index__(plain_size(self))

    __int__ = __trunc__ = __floor__ = __ceil__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __complex__(self) -> complex:
        return complex(self.__index__())

    def __hash__(self) -> int:
        return hash(self.__index__())

    def __repr__(self) -> str:
        return repr(self.__index__())

    def __format__(self, spec: str) -> str:
        return format(self.__index__(), spec)

    def __round__(self, ndigits: int | None = None) -> Any:
        return self if ndigits is None else round(self.__index__(), ndigits)

    def __invert__(self) -> int:
        return ~self.__index__()

    def __getattr__(self, name: str) -> Any:
        if not hasattr(int, name):
            raise AttributeError(f"'int' object has no attribute {name!r}")
        return getattr(self.__index__(), name)

    def among_numbers(self) -> Tensor:
        """Return what it is beside a number of the graph: another one."""
        return self.symbol()

    def renewed(self) -> Any:
        """Return another object for the same size."""
        return recorded_size(plain_size(self))

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (int, (self.__index__(),))

    def symbol(self) -> Tensor:
        """Return it as a number of the graph."""
        return _number(plain_size(self), np.dtype(np.int64))


def _on_bits(fn: Callable[[Any, Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return an operator on the bits of a number, and the same with operands the other way."""

    def forward(self: RecordedSize, other: Any) -> Any:
        return NotImplemented if _is_tensor(other) else fn(self.__index__(), other)

    def backward(self: RecordedSize, other: Any) -> Any:
        return NotImplemented if _is_tensor(other) else fn(other, self.__index__())

    return forward, backward


for _name in ("and", "or", "xor", "lshift", "rshift"):
    _forward, _backward = _on_bits(getattr(operator, f"__{_name}__"))
    setattr(RecordedSize, f"__{_name}__", _forward)
    setattr(RecordedSize, f"__r{_name}__", _backward)

_PLAIN = (int, bool, float)
_DIVIDE = ("truediv", "floordiv", "mod")


def recorded_size(size: Any) -> Any:
    """Return a number that may depend on sizes as the function that is recorded sees it."""
    if isinstance(size, RealDim):
        return _number(size, np.dtype(np.float64))
    if type(size) is not Dim:
        return size
    made: RecordedSize = object.__new__(RecordedSize)
    made.terms = size.terms
    return made


def recorded_shape(shape: Sequence[Any]) -> tuple[Any, ...]:
    """Return a shape as the function that is recorded sees it.

    Packages that are not followed may keep what they are told: they get the numbers.
    """
    if any(type(size) is Dim for size in shape) and _asked_by_a_package():
        return tuple([size.__index__() if type(size) is Dim else size for size in shape])
    return tuple([recorded_size(size) for size in shape])


def _asked_by_a_package() -> bool:
    frame = sys._getframe(2)
    while frame.f_back is not None and is_weft_code(frame.f_code):
        frame = frame.f_back
    return computes(frame.f_code)


def is_recorded_size(thing: Any) -> bool:
    """Tell whether something is a size that knows its number."""
    return type(thing) is RecordedSize


def plain_size(size: Any) -> Any:
    """Return a size as graphs have it: equal if it always is."""
    if type(size) is RecordedSize:
        return Dim(size.terms)
    return int(size) if type(size) is bool else size


def plain_attrs(attrs: Any) -> Any:
    """Return attributes of an operator with sizes as graphs have them."""
    return map_attr(_plain_item, attrs)


def _plain_item(item: Any) -> Any:
    if type(item) is RecordedSize:
        return plain_size(item)
    return RealDim(plain_attrs(item.expression)) if type(item) is RealDim else item


def _number(size: Any, dtype: np.dtype[Any]) -> Tensor:
    symbol = F.size_value(size, dtype)
    number: Tensor = make_number(symbol.graph, symbol.value)
    return number


def _is_tensor(other: Any) -> bool:
    return isinstance(other, Tensor)
