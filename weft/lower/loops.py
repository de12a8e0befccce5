"""Join the axes of a loop nest that lie behind one another in every operand."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.shape import Shape

Strides = tuple[int, ...]


def collapse(
    domain: Shape, strides: Sequence[Strides], split: int | None
) -> tuple[Shape, list[Strides]]:
    """Return fewer, longer loops over the same elements, and the operands' strides for them.

    Loops before and after `split` (the axes of rows and those within a row) are not joined; the
    last loop is then the row. Without a split, the last loop is as long as possible, and the loop
    before it is the one along which operands lie in sequence that do not along the last.
    """
    axes = [a for a, size in enumerate(domain) if size != 1]
    rows = [a for a in axes if split is not None and a < split]
    inner = [a for a in axes if split is None or a >= split]
    joined_rows = _join(rows, domain, strides)
    joined_inner = _join(inner, domain, strides)
    if split is not None and len(joined_inner) > 1:
        raise ValueError("the axes of a row must lie behind one another")
    loops = [*joined_rows, *joined_inner]
    if split is not None and not joined_inner:
        loops.append([])
    if split is not None and not joined_rows:
        loops.insert(0, [])
    if not loops:  # a single element
        return (1,), [(1,)] * len(strides)
    if split is None:
        loops = _transposed_loop_inward(loops, strides)
    sizes = tuple(_size(domain, group) for group in loops)
    return sizes, [tuple(s[group[-1]] if group else 0 for group in loops) for s in strides]


def _join(axes: list[int], domain: Shape, strides: Sequence[Strides]) -> list[list[int]]:
    groups: list[list[int]] = []
    for axis in axes:
        last = groups[-1][-1] if groups else None
        if last is not None and all(s[last] == s[axis] * domain[axis] for s in strides):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def _transposed_loop_inward(groups: list[list[int]], strides: Sequence[Strides]) -> list[list[int]]:
    """Return groups of axes with one before the last along which operands lie transposed."""
    *outer, last = groups
    transposed = [s for s in strides if abs(s[last[-1]]) > 1]
    wanted = [group for group in outer if any(s[group[-1]] == 1 for s in transposed)]
    if not wanted or wanted[-1] is outer[-1]:
        return groups
    return [*(group for group in outer if group is not wanted[-1]), wanted[-1], last]


def _size(domain: Shape, group: list[int]) -> int:
    size = 1
    for axis in group:
        size *= domain[axis]
    return size
