"""Read einsum subscripts.

Enters: the subscripts and the operands' shapes. Leaves: a Reading, in which every axis of every
operand has a label and every label a size.

A label is a letter, or a negative integer for a dimension under an ellipsis: -1 is the last of
them, so ellipses of different lengths align the way broadcasting does.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import NamedTuple

from ...core.dim import broadcast_sizes, may_equal
from ...core.errors import ArgumentError, ShapeError
from ...core.shape import Shape

Label = str | int
Labels = tuple[Label, ...]
ELLIPSIS = "..."


class Reading(NamedTuple):
    """The labels of each operand and of the result, and the size of each label."""

    terms: tuple[Labels, ...]
    output: Labels
    sizes: dict[Label, int]


def read(subscripts: str, shapes: tuple[Shape, ...]) -> Reading:
    """Return what subscripts say of operands of these shapes; raise if they do not fit."""
    inputs, output = _split(subscripts, len(shapes))
    terms = tuple(_label(i, t, len(s)) for i, (t, s) in enumerate(zip(inputs, shapes, strict=True)))
    sizes = _sizes(terms, shapes)
    result = _implicit_output(terms) if output is None else _explicit_output(output, terms)
    return Reading(terms, result, sizes)


def _split(subscripts: str, count: int) -> tuple[list[str], str | None]:
    text = "".join(subscripts.split())
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    for term in (*inputs, right):
        letters = term.replace(ELLIPSIS, "", 1)
        if letters and not (letters.isascii() and letters.isalpha()):
            raise ArgumentError(
                "subscripts may hold letters, one '...' a term, commas and one '->'. "
                f"Received: {subscripts!r}"
            )
    if len(inputs) != count:
        raise ArgumentError(
            f"subscripts {subscripts!r} name {len(inputs)} operand(s). Received: {count}"
        )
    return inputs, right if arrow else None


def _label(position: int, term: str, ndim: int) -> Labels:
    before, dots, after = term.partition(ELLIPSIS)
    hidden = ndim - len(before) - len(after)
    if hidden < 0 or (hidden > 0 and not dots):
        raise ShapeError(
            f"subscripts {term!r} do not fit operand {position}, which has {ndim} dimension(s)",
            term=term,
            operand=position,
            ndim=ndim,
        )
    return (*before, *range(-hidden, 0), *after)


def _sizes(terms: tuple[Labels, ...], shapes: tuple[Shape, ...]) -> dict[Label, int]:
    """Return the size of each label; a size of one broadcasts."""
    sizes: dict[Label, int] = {}
    for position, (labels, shape) in enumerate(zip(terms, shapes, strict=True)):
        _check_diagonals(labels, shape)
        for label, size in zip(labels, shape, strict=True):
            known = sizes.get(label, 1)
            if 1 not in (known, size) and known != size:
                raise ShapeError(
                    f"index {_shown(label)} has sizes {known} and {size}; "
                    f"received operands of shapes {', '.join(str(tuple(s)) for s in shapes)}",
                    label=label,
                    sizes=(known, size),
                    operand=position,
                )
            sizes[label] = broadcast_sizes(known, size)
    return sizes


def _check_diagonals(labels: Labels, shape: Shape) -> None:
    for label in set(labels):
        sizes = {size for other, size in zip(labels, shape, strict=True) if other == label}
        if not all(may_equal(a, b) for a, b in combinations(sizes, 2)):
            shown = sorted(sizes, key=str)
            raise ShapeError(f"the repeated index {_shown(label)} of one operand has sizes {shown}")


def _shown(label: Label) -> str:
    return repr(label) if isinstance(label, str) else f"{label} of the ellipsis"


def _implicit_output(terms: tuple[Labels, ...]) -> Labels:
    """Return ellipsis dimensions, then the letters that occur once, in alphabetical order."""
    counts = Counter(label for labels in terms for label in labels)
    letters = sorted(k for k, n in counts.items() if n == 1 and isinstance(k, str))
    return (*_hidden(terms), *letters)


def _explicit_output(output: str, terms: tuple[Labels, ...]) -> Labels:
    before, dots, after = output.partition(ELLIPSIS)
    letters, hidden = before + after, _hidden(terms)
    known = {label for labels in terms for label in labels}
    if len(set(letters)) != len(letters):
        raise ArgumentError(f"the output subscripts {output!r} repeat an index")
    if not known.issuperset(letters):
        missing = "".join(sorted(set(letters).difference(map(str, known))))
        raise ArgumentError(f"the output index {missing!r} occurs in no operand", label=missing)
    if hidden and not dots:
        raise ArgumentError(
            f"the output subscripts {output!r} must hold '...', because it covers "
            f"{len(hidden)} dimension(s) of the operands"
        )
    return (*before, *hidden, *after)


def _hidden(terms: tuple[Labels, ...]) -> tuple[int, ...]:
    return tuple(sorted({k for labels in terms for k in labels if isinstance(k, int)}))
