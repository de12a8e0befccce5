"""torch.autograd.functional: Jacobians, Hessians and products with them."""

from __future__ import annotations

from typing import Any

from ... import autodiff
from ...autodiff import gradient
from ...autodiff import jacobian as core_jacobian
from ...core import tensor as core
from ..adoption import adopt


def _call(func: Any) -> Any:
    def call(*args: Any) -> Any:
        return func(*map(adopt, args))

    return call


def jacobian(func: Any, inputs: Any, create_graph: bool = False, **_: Any) -> Any:
    """Return the derivatives of all outputs with respect to all inputs."""
    if isinstance(inputs, core.Tensor):
        return adopt(core_jacobian.jacrev(_call(func))(inputs))
    return adopt(core_jacobian.jacrev(_call(func), tuple(range(len(inputs))))(*inputs))


def hessian(func: Any, inputs: Any, create_graph: bool = False, **_: Any) -> Any:
    """Return the second derivatives of a function of one number."""
    if isinstance(inputs, core.Tensor):
        return adopt(core_jacobian.hessian(_call(func))(inputs))
    return adopt(core_jacobian.hessian(_call(func), tuple(range(len(inputs))))(*inputs))


def vjp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False, **_: Any) -> Any:
    """Return the outputs, and the product of a vector with the Jacobian."""
    given = _several(inputs)
    outputs, pull_back = gradient.vjp(_call(func), *given)
    seed = core.wrap(outputs._value * 0 + 1) if v is None else v
    found = pull_back(seed)
    return adopt(outputs), adopt(found[0] if isinstance(inputs, core.Tensor) else found)


def jvp(
    func: Any, inputs: Any, v: Any = None, create_graph: bool = False, **_: Any
) -> tuple[Any, Any]:
    """Return the outputs, and the product of the Jacobian with a vector."""
    given = _several(inputs)
    along = tuple(core.wrap(x._value * 0 + 1) for x in given) if v is None else _several(v)
    outputs, found = autodiff.jvp(_call(func), given, along)
    return adopt(outputs), adopt(found)


def hvp(
    func: Any, inputs: Any, v: Any = None, create_graph: bool = False, **_: Any
) -> tuple[Any, Any]:
    """Return the number that a function gives, and the product of its Hessian with a vector."""
    given = _several(inputs)
    along = tuple(core.wrap(x._value * 0 + 1) for x in given) if v is None else _several(v)
    return adopt(func(*given)), adopt(core_jacobian.hvp(_call(func), given, along))


vhp = hvp  # the Hessian is symmetric


def _several(inputs: Any) -> tuple[Any, ...]:
    return (inputs,) if isinstance(inputs, core.Tensor) else tuple(inputs)
