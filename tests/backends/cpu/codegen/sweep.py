"""Measure the error of functions of one float32 at every one of the 2^32 numbers there are.

    python -m tests.backends.cpu.codegen.sweep exp log     # or no name: all functions

Blocks stay in the second-level cache. Most results are the rounded reference to the bit, so that
they are off by half a unit at most, and only the others are measured.
"""

import sys
import time
from typing import NamedTuple

import numpy as np

from tests.backends.cpu.codegen.functions import FUNCTIONS, UNARY, last_places, limit, reference
from tests.backends.cpu.codegen.jit import Native, map_text
from weft.backends.cpu.codegen import host

NUMBERS = 2**32
BLOCK = 2**15


class Worst(NamedTuple):
    """The largest error in last places, above a half, and where it is."""

    error: float
    argument: float
    got: float
    exact: float


def worst_error(name: str, first: int = 0, last: int = NUMBERS) -> Worst:
    """Return the largest error of a function over the numbers with bits from first to last."""
    native = Native(map_text(FUNCTIONS[name], ["float32"], "float32", host()), host())
    got = np.empty(BLOCK, np.float32)
    offsets = np.arange(BLOCK, dtype=np.uint32)
    worst = Worst(0.0, 0.0, 0.0, 0.0)
    for start in range(first, last, BLOCK):
        x = (offsets + np.uint32(start)).view(np.float32)
        native("kernel", x, got, BLOCK)
        worst = max(worst, _worst_of_block(x, got, reference(name, x)))
    return worst


def _worst_of_block(x: np.ndarray, got: np.ndarray, exact: np.ndarray) -> Worst:
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
    (off,) = np.nonzero(got.view(np.uint32) != rounded.view(np.uint32))
    if not off.size:
        return Worst(0.0, 0.0, 0.0, 0.0)
    errors = last_places(got[off], exact[off])
    at = int(errors.argmax())
    place = off[at]
    return Worst(*map(float, (errors[at], x[place], got[place], exact[place])))


def main(names: list[str]) -> None:
    """Print the largest error of each function beside what is allowed."""
    for name in names or sorted(UNARY):
        start = time.perf_counter()
        found = worst_error(name)
        seconds = time.perf_counter() - start
        allowed = limit(name, "float32")
        print(f"{name:<10} {found.error:8.3f} ulp of {allowed:5.3f} at {found.argument!r}", end="")
        print(f"  ({seconds:.0f} s)", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
