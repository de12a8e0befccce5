"""Forward mode inside reverse: a function of few inputs keeps its Jacobian in place of its steps.

Reverse mode stores something of every operation. A function with n input numbers and m results can
push its n unit vectors forward beside the values, and keep n x m numbers however many operations it
has; the gradient is then one product. (Revels et al. 2018, "Dynamic automatic differentiation of
GPU broadcast kernels", do so for each element of a broadcast.)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

from ..core.dtype import is_float
from ..core.errors import ArgumentError
from ..core.modes import current_tracer
from ..core.op import F
from ..core.tree import Structure, flatten
from .arguments import as_value, check_callable
from .custom.vjp import custom_vjp
from .forward import jvp
from .gradient import named_after
from .jacobian import basis, map_rows, total

MOST_INPUTS = 64  # numbers; beyond, reverse mode is nearly always the better one


def local_forward(fn: Callable[..., Any], *, limit: int = MOST_INPUTS) -> Callable[..., Any]:
    """Return fn with a derivative that was computed forward, beside the values.

    Reverse mode keeps of a call only the Jacobian: for each number among the floating-point
    arguments one column, of the size of the result. Gradients of the result, of any order, in
    eager code, graphs, jitted functions and under vmap, are what they were.

    limit   the most numbers that the arguments may have together

    >>> import weft as wf
    >>> def curve(t):
    ...     y = wf.arange(4.0)
    ...     for _ in range(100):
    ...         y = wf.sin(y + t)
    ...     return y
    >>> t = wf.tensor(0.5, requires_grad=True)
    >>> y = wf.autodiff.local_forward(curve)(t)  # keeps 4 numbers, not 400
    >>> y.sum().backward()
    """
    check_callable(fn, "local_forward")

    def called(*args: Any, **kwargs: Any) -> Any:
        call = _ForwardCall(lambda *given: fn(*given, **kwargs), args)
        call.check(limit)
        rule = custom_vjp(call.value)
        rule.defvjp(call.with_columns, call.gradients)
        leaves = rule(*call.primals)
        return call.result.unflatten(leaves)

    return named_after(called, fn)


class _ForwardCall:
    """One call: a function of the floating-point leaves of its arguments, as a flat list."""

    result: Structure

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.fn = fn
        leaves, self.structure = flatten(args)
        self.leaves = [as_value(x, "local_forward: an argument") for x in leaves]
        self.moved = [i for i, x in enumerate(self.leaves) if is_float(x.dtype)]
        self.primals = [self.leaves[i] for i in self.moved]

    def check(self, limit: int) -> None:
        """Raise if there are too many columns for this to be worth while."""
        count = total(self.primals, "local_forward")
        if count > limit:
            raise ArgumentError(
                f"local_forward: the arguments have {count} numbers, more than {limit}; reverse "
                "mode alone is better, or raise limit="
            )

    def value(self, *primals: Any) -> list[Any]:
        """Return the leaves of the result."""
        leaves = list(self.leaves)
        for i, x in zip(self.moved, primals, strict=True):
            leaves[i] = x
        made, self.result = flatten(self.fn(*self.structure.unflatten(leaves)))
        return [as_value(y, "local_forward: a result") for y in made]

    def with_columns(self, *primals: Any) -> tuple[list[Any], list[Any]]:
        """Return the leaves of the result, and for each that is a float its derivatives.

        The first axis of those is that of the numbers of the arguments.
        """
        values: list[Any] = []

        def push(row: list[Any]) -> list[Any]:
            ys, tangents = jvp(self.value, primals, row)
            values[:] = ys
            moving = [t for t in tangents if t is not None]
            return moving if current_tracer() is None else [*moving, *ys]

        found = map_rows(push, basis(primals, "local_forward"))
        count = sum(is_float(y.dtype) for y in values)
        # What is traced inside of vmap is known outside only as one of its results.
        kept = values if current_tracer() is None else [rows[0] for rows in found[count:]]
        return kept, found[:count]

    def gradients(self, columns: list[Any], gs: list[Any]) -> tuple[Any, ...]:
        """Return the gradients of the arguments: products of columns and gradients."""
        given = [g for g in gs if g is not None and is_float(g.dtype)]
        parts = [
            F.matmul(c.reshape((c.shape[0], -1)), g.reshape((-1,)))
            for c, g in zip(columns, given, strict=True)
        ]
        whole = reduce(add, parts)
        sizes = tuple(x.size for x in self.primals)
        split = F.split(whole, sizes) if len(sizes) > 1 else [whole]
        return tuple(g.reshape(x.shape) for g, x in zip(split, self.primals, strict=True))
