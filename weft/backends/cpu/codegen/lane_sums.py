"""Sum the lanes of several vectors at once.

One vector alone needs a shuffle and an addition for each halving. Two share them: one addition puts
the halves of both together, so that a vector of n lanes whose sums are wanted costs about one
addition in place of log2 n, and the sums come out as a vector that is stored at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from .text import FunctionText
from .values import IRValue, lanes_of


def lane_sums(f: FunctionText, vectors: Sequence[IRValue]) -> list[IRValue]:
    """Return the sum of the lanes of each vector, in vectors of as many lanes, in order.

    The last has fewer lanes if need be, but a power of two; those that are left over are of no use.
    Lanes are added in the order of `reduce`, so a sum does not depend on its neighbours.
    """
    lanes = lanes_of(vectors[0].type)
    groups = [list(vectors[i : i + lanes]) for i in range(0, len(vectors), lanes)]
    return [_sums_of_group(f, group) for group in groups]


def lane_sums_cost(count: int, lanes: int) -> int:
    """Return about how many instructions `lane_sums` writes for so many vectors."""
    whole, rest = divmod(count, lanes)
    return whole * _group_cost(lanes, lanes) + (_group_cost(rest, lanes) if rest else 0)


def _group_cost(count: int, lanes: int) -> int:
    meetings = _power_of_two(count) - 1
    return 3 * meetings + 2 * (lanes // (meetings + 1)).bit_length() - 2


def _power_of_two(count: int) -> int:
    """Return the least power of two that is not less."""
    return 1 << (count - 1).bit_length()


def _sums_of_group(f: FunctionText, vectors: list[IRValue]) -> IRValue:
    vectors = vectors + vectors[-1:] * (_power_of_two(len(vectors)) - len(vectors))
    step = lanes_of(vectors[0].type) // 2
    while len(vectors) > 1:
        half = len(vectors) // 2
        pairs = zip(vectors[:half], vectors[half:], strict=True)
        vectors = [_met(f, a, b, step) for a, b in pairs]
        step //= 2
    (total,) = vectors
    while step:
        total = _folded(f, total, step)
        step //= 2
    return total


def _met(f: FunctionText, a: IRValue, b: IRValue, step: int) -> IRValue:
    """Add lanes `step` apart: those of a where that bit of the lane's number is 0, else of b."""
    lanes = lanes_of(a.type)
    own = [lane if lane & step == 0 else lanes + lane for lane in range(lanes)]
    other = [lane ^ step if lane & step == 0 else lanes + (lane ^ step) for lane in range(lanes)]
    return f.fadd(f.shuffle(a, b, own), f.shuffle(a, b, other))


def _folded(f: FunctionText, vector: IRValue, step: int) -> IRValue:
    """Add lanes `step` apart, half as many remaining, without that bit of their numbers."""
    lanes = lanes_of(vector.type)
    if lanes == 2:
        return f.fadd(f.extract(vector, 0), f.extract(vector, 1))
    low = [lane for lane in range(lanes) if lane & step == 0]
    high = [lane + step for lane in low]
    return f.fadd(f.shuffle(vector, vector, low), f.shuffle(vector, vector, high))
