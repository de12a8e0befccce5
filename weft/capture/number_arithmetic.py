"""Arithmetic of Python numbers that a program is to do: where it could differ, Python does it.

A number of a recording is an int64 or a float64 in its program. Python's integers have no limits,
its divisions by zero raise, and a power may be complex. So it is known of each integer how large
it may be, and divisors are looked at. Where the program could not do the same, the operation
is done on the very numbers, and the recording holds for these alone.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from typing import Any

from ..core.errors import PACKAGE_DIR
from ..core.op import F
from ..graph.special import STATE

SMALL = 1 << 31  # what ordinary integers do not exceed
MOST = (1 << 63) - 1  # and what those of a program cannot
_PLAIN = (int, float, bool)
_FLOAT_BITS = 1000  # exponents of two that are far from the end of what floats take

Operation = Callable[[Any, Any], Any]


def limit_of(number: Any) -> int:
    """Return how large an integer that is fed may be, by one that was."""
    return SMALL if abs(number) <= SMALL else MOST


def is_internal_call(depth: int) -> bool:
    """Tell whether an operation is part of a layer or optimizer, which knows what it does."""
    return sys._getframe(depth + 1).f_code.co_filename.startswith(PACKAGE_DIR)


def is_number(value: Any) -> bool:
    """Tell whether a value is a Python number, or stands for one."""
    return type(value) in _PLAIN or getattr(value, "weak", False) is True


def plain(value: Any) -> Any:
    """Return a number as Python has it, which is read by that."""
    return value if type(value) in _PLAIN else value.plain()


def can_be_done(name: str, a: Any, b: Any) -> bool:
    """Tell whether a program gives what Python does, for all numbers of a path; note its size."""
    if name in _DIVISIONS:
        return bool(b) and _fits(name, a, b)
    if name == "pow":
        return _can_be_raised(a, b) and _fits(name, a, b)
    return _fits(name, a, b)


def _can_be_raised(base: Any, exponent: Any) -> bool:
    """Tell whether a power is a number of the same kind: neither complex nor out of range."""
    if type(exponent) is int and exponent >= 0 and _is_whole(base):
        return True
    if type(base) is float and 0 < base < math.inf and type(exponent) not in _PLAIN:
        return bool(exponent * math.log2(base) < _FLOAT_BITS)
    if type(exponent) not in (int, float) or not abs(exponent) <= 4:
        return False
    if not bool(base > 0) and (type(exponent) is float or exponent < 0):
        return False
    return bool(abs(base) < 2.0**200) and bool(abs(base) > 2.0**-200)


def _fits(name: str, a: Any, b: Any) -> bool:
    if not (_is_whole(a) and _is_whole(b)) or name == "truediv":
        return True
    rule = _BOUNDS.get(name)
    return rule is not None and rule(bound_of(a), bound_of(b), b) <= MOST


def note_bound(name: str, a: Any, b: Any, result: Any) -> None:
    """Remember how large the result of an operation on integers may be."""
    if name in _BOUNDS and _is_whole(a) and _is_whole(b) and _is_whole(result):
        result.graph.tracer.bounds[result.value] = _BOUNDS[name](bound_of(a), bound_of(b), b)


def bound_of(number: Any) -> int:
    """Return how large an integer may be; one that nothing is known of is looked at."""
    if type(number) in _PLAIN:
        return abs(int(number))
    known: dict[Any, int] = number.graph.tracer.bounds
    if number.value not in known:
        known[number.value] = SMALL if _is_small(number) else MOST + 1
    return known[number.value]


def _is_small(number: Any) -> bool:
    if number.value.node.op is STATE:  # a counter
        return True
    return bool(F.logical_and(F.less(number, SMALL), F.greater(number, -SMALL)))


def _is_whole(number: Any) -> bool:
    return type(number) in (int, bool) or getattr(getattr(number, "dtype", None), "kind", "") == "i"


def _power(base: int, _: int, by: Any) -> int:
    return max(base, 1) ** by if _is_few(by) else MOST + 1


def _shifted(number: int, _: int, by: Any) -> int:
    return number << by if _is_few(by) else MOST + 1


def _is_few(number: Any) -> bool:
    return type(number) is int and 0 <= number < 64


_DIVISIONS = frozenset(("truediv", "floordiv", "mod"))
_BOUNDS: dict[str, Callable[[int, int, Any], int]] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a + b,
    "mul": lambda a, b, _: a * b,
    "floordiv": lambda a, b, _: a,
    "mod": lambda a, b, _: b,
    "pow": _power,
    "lshift": _shifted,
    "rshift": lambda a, _, by: a if _is_few(by) else MOST + 1,
}
OPERATIONS: dict[str, Operation] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
}
