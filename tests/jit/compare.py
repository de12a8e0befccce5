"""Compare what two runs of a program left behind, in words that name what differs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .observe import Facts, Printed

# Machine code sums in another order and contracts products; the size of the whole array counts,
# because an element that is nearly zero is a difference of numbers of that size.
_TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-5}
_TINY = 1e-6  # errors of values that should be zero
NOTHING = type("Nothing", (), {"__repr__": lambda self: "nothing"})()  # where a path is missing
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?")


def differences(expected: Facts, found: Facts) -> list[str]:
    """Return a line for each fact that is not the same in both tables."""
    lines = []
    for path in expected | found:  # in the order of the walk: errors and results first
        line = _difference(expected.get(path, NOTHING), found.get(path, NOTHING))
        if line is not None:
            lines.append(f"{path}: {line}")
    return lines


def _difference(expected: Any, found: Any) -> str | None:
    if type(expected) is not type(found):
        return f"eager gives {_typed(expected)}, jit {_typed(found)}"
    if isinstance(expected, np.ndarray):
        return _array_difference(expected, found)
    if isinstance(expected, Printed):
        same = _same_text(expected.text, found.text)
    elif isinstance(expected, float | np.floating):
        same = _close(np.asarray(expected), np.asarray(found)).item()
    else:
        same = expected == found
    return None if same else f"eager gives {_shown(expected)}, jit {_shown(found)}"


def _array_difference(expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> str | None:
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return f"eager gives {_typed(expected)}, jit {_typed(found)}"
    wrong = np.argwhere(~_close(expected, found))
    if not len(wrong):
        return None
    first = tuple(map(int, wrong[0]))
    return (
        f"{len(wrong)} of {expected.size} elements differ; at {first} eager gives "
        f"{expected[first]!r}, jit {found[first]!r}"
    )


def _close(expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Tell for each element whether it is the same, within the rounding of its dtype."""
    tolerance = _TOLERANCE.get(expected.dtype.name)
    if tolerance is None:
        return np.asarray(expected == found)
    a, b = expected.astype(np.float64), found.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    scale = np.max(np.abs(a), where=finite, initial=0.0)
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= tolerance * scale + _TINY
    return np.where(finite, near, (a == b) | (np.isnan(a) & np.isnan(b)))


def _same_text(expected: str, found: str) -> bool:
    """Compare printed text: words exactly, numbers within rounding, blanks not at all."""
    if _words(expected) != _words(found):
        return False
    numbers = [np.array([float(n) for n in _NUMBER.findall(t)]) for t in (expected, found)]
    return len(numbers[0]) == len(numbers[1]) and bool(np.all(_close(*numbers)))


def _words(text: str) -> list[str]:
    return _NUMBER.sub(" # ", text).split()


def _typed(value: Any) -> str:
    if value is NOTHING:
        return "nothing"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return f"{_shown(value)} ({type(value).__name__})"


def _shown(value: Any) -> str:
    return f"{value!r:.200}"
