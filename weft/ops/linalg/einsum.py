"""Einstein summation, by diagonals, sums and permutations around matrix products.

It is a composite: graphs hold its matmuls and permutations, which the compiler knows, and its
gradients are theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.errors import ArgumentTypeError, WeftError
from ...core.op import F, composite
from .._halves import rounded_once
from ._contraction import Contraction, Steps, plan
from ._matrices import operand


@composite(public=("wf",))
def einsum(subscripts: str, *operands: Any) -> Any:
    """Return a sum of products of the operands, each axis named by a letter.

    Letters that the output leaves out are summed; a letter twice in one operand takes the
    diagonal; `...` stands for broadcast dimensions; without `->` the output holds the letters that
    occur once, alphabetically. Dimensions of size one broadcast. Several operands are contracted
    two at a time in a greedy order. The operands may also be given as one list.

    >>> import weft as wf
    >>> a, b = wf.ones(2, 3), wf.ones(4, 3)
    >>> wf.einsum("ik, jk -> ij", a, b).shape
    (2, 4)
    >>> wf.einsum("ii", wf.eye(3))
    tensor(3.)
    """
    return _contracted(subscripts, *map(operand, _listed(subscripts, operands)))


@rounded_once
def _contracted(subscripts: str, *tensors: Any) -> Any:
    return _run(_program(subscripts, tensors), tensors)


def _listed(subscripts: Any, operands: tuple[Any, ...]) -> tuple[Any, ...] | list[Any]:
    if not isinstance(subscripts, str):
        raise ArgumentTypeError(
            f"einsum: subscripts must be a string such as 'ij,jk->ik'. Received: {subscripts!r:.60}"
        )
    first = operands[0] if len(operands) == 1 else None
    if not isinstance(first, (list, tuple)) or not all(hasattr(t, "ndim") for t in first):
        return operands
    # A list where one operand is due is that operand, unless it holds just that.
    return list(first) if "," in subscripts or len(first) == 1 else operands


def _program(subscripts: str, tensors: Sequence[Any]) -> Contraction:
    try:
        return plan(subscripts, tuple([t.shape for t in tensors]))
    except WeftError as error:
        raise type(error)(f"einsum: {error}", **error.facts) from None


def _run(program: Contraction, tensors: Sequence[Any]) -> Any:
    values = [_take(steps, x) for steps, x in zip(program.before, tensors, strict=True)]
    for left, right, operator, after in program.products:
        product = getattr(F, operator)(values[left], values[right])
        values = [x for i, x in enumerate(values) if i not in (left, right)]
        values.append(_take(after, product))
    return values[0]


def _take(steps: Steps, x: Any) -> Any:
    for operator, arguments in steps:
        x = getattr(F, operator)(x, *arguments)
    return x
