"""`grad`, `value_and_grad` and `vjp`: reverse mode of functions, by value.

The arguments that are differentiated enter the function as fresh values: `.grad` of no tensor
changes, and tensors that the function uses from outside are constants to it, though derivatives
around the call still see them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import Any

from ..core.dtype import is_float
from ..core.errors import ArgumentTypeError, DTypeError, GradientError
from ..core.op import F
from ..core.tensor import Tensor
from ..core.tree import Structure, flatten
from .arguments import (
    Argnums,
    Chosen,
    as_value,
    check_callable,
    flat_outputs,
    matching_cotangents,
    name_of,
    split_aux,
)
from .pullback import or_zeros, pull_back_of


def grad(fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return the function that computes the gradient of fn, whose result is one number.

    argnums   the argument to differentiate, any tree of floats; several give a tuple of gradients
    has_aux   whether fn returns (number, anything else); the gradient function then returns
              (gradient, anything else)

    >>> import weft as wf
    >>> wf.grad(lambda x: x**3)(wf.tensor(2.0))
    tensor(12.)
    >>> wf.grad(wf.grad(lambda x: x**3))(wf.tensor(2.0))
    tensor(12.)
    """
    check_callable(fn, "grad")

    def gradient(*args: Any, **kwargs: Any) -> Any:
        (_, aux), found = _value_and_grad(fn, argnums, has_aux, args, kwargs)
        return (found, aux) if has_aux else found

    return named_after(gradient, fn)


def value_and_grad(
    fn: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that computes fn's result together with its gradient.

    The arguments are those of `grad`. With has_aux it returns ((result, aux), gradient).

    >>> import weft as wf
    >>> wf.value_and_grad(lambda p: p["a"] * p["b"])({"a": wf.tensor(2.0), "b": wf.tensor(5.0)})
    (tensor(10.), {'a': tensor(5.), 'b': tensor(2.)})
    """
    check_callable(fn, "value_and_grad")

    def both(*args: Any, **kwargs: Any) -> Any:
        (y, aux), found = _value_and_grad(fn, argnums, has_aux, args, kwargs)
        return ((y, aux) if has_aux else y), found

    return named_after(both, fn)


def _value_and_grad(
    fn: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, Any], Any]:
    call = Chosen(fn, args, kwargs, argnums)
    beside = Beside(call, has_aux)
    (y, *others), pull, _ = pull_back_of(
        beside.one_number, call.primals, once=True, what=beside.name
    )
    grads = pull([F.ones_like(y), *[None] * len(others)])
    return (y, beside.restored(others)), call.structure.unflatten(
        map(or_zeros, grads, call.primals)
    )


class Beside:
    """Takes what a function returns beside its result through differentiation, unchanged."""

    def __init__(self, call: Callable[[Sequence[Any]], Any], has_aux: bool) -> None:
        self.call = call
        self.has_aux = has_aux
        self.name = name_of(getattr(call, "fn", call))
        self.aux: Any = None
        self.structure: Structure
        self.count = 0  # the leaves of the result

    def split(self, primals: Sequence[Any]) -> tuple[Any, list[Tensor]]:
        """Return the result, and the tensors of what stands beside it."""
        y, aux = split_aux(self.call(primals), self.has_aux, self.name)
        self.leaves, self.aux = flatten(aux)
        return y, [x for x in self.leaves if isinstance(x, Tensor)]

    def flat(self, primals: Sequence[Any], what: str) -> list[Any]:
        """Return the leaves of the result, then the tensors of what stands beside it."""
        y, others = self.split(primals)
        ys, self.structure = flat_outputs(y, what)
        self.count = len(ys)
        return [*ys, *others]

    def one_number(self, primals: list[Any]) -> list[Any]:
        """Return the result, which must be one number, before the tensors beside it."""
        y, others = self.split(primals)
        if not isinstance(y, (Tensor, bool, int, float)) and not hasattr(y, "dtype"):
            raise ArgumentTypeError(
                f"{self.name} must return one floating-point number to have a gradient. "
                f"Received: {y!r:.60}{_HINT if isinstance(y, tuple) else ''}"
            )
        value = as_value(y, f"{self.name}: the result")
        if value.shape != ():
            raise GradientError(
                f"{self.name} must return one number to have a gradient. Received: shape "
                f"{tuple(value.shape)}; reduce it, e.g. with .sum(), or use wf.jacrev or wf.vjp",
                result=value,
            )
        if not is_float(value.dtype):
            raise DTypeError(
                f"{self.name} returned {value.dtype}, which has no gradient; return a float"
            )
        return [value, *others]

    def restored(self, others: Sequence[Tensor]) -> Any:
        """Return what stood beside the result, with tensors as seen from outside."""
        given = iter(others)
        return self.aux.unflatten(next(given) if isinstance(x, Tensor) else x for x in self.leaves)


_HINT = "; pass has_aux=True if it returns (number, more)"


def vjp(fn: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return fn(*primals), and the function that pulls gradients of the result back.

    That function takes a tree like the result, with None where a gradient is zero, and returns a
    tuple with one tree for each primal; integers in it have None. It can be called many times. With
    has_aux, fn returns (result, aux), and vjp returns (result, function, aux).

    >>> import weft as wf
    >>> y, pull = wf.vjp(lambda x, w: x * w, wf.tensor([1.0, 2.0]), wf.tensor(3.0))
    >>> pull(wf.tensor([1.0, 10.0]))
    (tensor([ 3., 30.]), tensor(21.))
    """
    check_callable(fn, "vjp")
    leaves, structure = flatten(primals)
    what = name_of(fn)
    values = [as_value(x, f"vjp of {what}: a primal") for x in leaves]
    beside = Beside(lambda xs: fn(*structure.unflatten(xs)), has_aux)
    flat = partial(beside.flat, what=f"vjp: the result of {what}")
    outputs, pull, _ = pull_back_of(flat, values, what=what)
    ys, others = outputs[: beside.count], outputs[beside.count :]

    def pull_back(cotangents: Any) -> tuple[Any, ...]:
        gs = matching_cotangents(cotangents, ys, beside.structure, f"vjp of {what}")
        grads = pull([*gs, *[None] * len(others)])
        found: tuple[Any, ...] = structure.unflatten(map(or_zeros, grads, values))
        return found

    y = beside.structure.unflatten(ys)
    return (y, pull_back, beside.restored(others)) if has_aux else (y, pull_back)


def named_after(wrapper: Callable[..., Any], fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a transformed function under the name and signature of the original."""
    return update_wrapper(wrapper, fn, updated=())
