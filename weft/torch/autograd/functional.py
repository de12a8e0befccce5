"""torch.autograd.functional: Jacobians, Hessians and products with them."""

from __future__ import annotations

from typing import Any

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
    given = (inputs,) if isinstance(inputs, core.Tensor) else tuple(inputs)
    outputs, pull_back = gradient.vjp(_call(func), *given)
    seed = core.wrap(outputs._value * 0 + 1) if v is None else v
    found = pull_back(seed)
    return adopt(outputs), adopt(found[0] if isinstance(inputs, core.Tensor) else found)
