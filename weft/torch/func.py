"""torch.func: functions of functions, over Weft's transforms."""

from __future__ import annotations

from functools import wraps
from typing import Any

from .. import autodiff
from ..autodiff import gradient
from ..autodiff import jacobian as jacobians
from ..autodiff.batching import vmap as core_vmap
from ..core.errors import WeftError
from ..core.op import F
from .absent import absent
from .adoption import adopt
from .nn.utils.stateless import functional_call
from .phrasing import phrase

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "stack_module_state",
    "vjp",
    "vmap",
]


def _inside(func: Any) -> Any:
    """Return a function that is given tensors of this face."""

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        return func(*adopt(args), **adopt(kwargs))

    return call


def _outside(transformed: Any, name: str, **given: Any) -> Any:
    """Return a function whose results are tensors of this face, and its errors PyTorch's.

    given   what the transform of that name was given
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return adopt(transformed(*args, **kwargs))
        except WeftError as error:
            raise phrase(error, f"func.{name}", {"args": args, **given}) from None

    return call


def grad(func: Any, argnums: Any = 0, has_aux: bool = False) -> Any:
    """Return the function that computes the gradient of one."""
    return _outside(gradient.grad(_inside(func), argnums, has_aux), "grad")


def grad_and_value(func: Any, argnums: Any = 0, has_aux: bool = False) -> Any:
    """Return the function that computes the gradient of one, and its value."""
    both = gradient.value_and_grad(_inside(func), argnums, has_aux)

    def call(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return found, value

    return _outside(call, "grad")


def vmap(
    func: Any,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    chunk_size: Any = None,
) -> Any:
    """Return a function of examples as one of batches."""
    return _outside(core_vmap(_inside(func), in_dims, out_dims), "vmap", func=func, in_dims=in_dims)


def jacrev(func: Any, argnums: Any = 0, *, has_aux: bool = False, **_: Any) -> Any:
    """Return the function that computes the Jacobian of one, in reverse mode."""
    return _outside(jacobians.jacrev(_inside(func), argnums, has_aux=has_aux), "jacrev")


def jacfwd(func: Any, argnums: Any = 0, has_aux: bool = False, **_: Any) -> Any:
    """Return the function that computes the Jacobian of one, in forward mode."""
    return _outside(jacobians.jacfwd(_inside(func), argnums, has_aux=has_aux), "jacfwd")


def hessian(func: Any, argnums: Any = 0) -> Any:
    """Return the function that computes second derivatives."""
    return _outside(jacobians.hessian(_inside(func), argnums), "hessian")


def vjp(func: Any, *primals: Any, has_aux: bool = False) -> Any:
    """Return the value of a function, and what pulls gradients back through it."""
    found = gradient.vjp(_inside(func), *primals, has_aux=has_aux)
    value, pull_back, *aux = found

    def pull(cotangents: Any) -> Any:
        return adopt(tuple(pull_back(cotangents)))

    return (adopt(value), pull, *adopt(tuple(aux)))


def jvp(func: Any, primals: Any, tangents: Any, **_: Any) -> Any:
    """Return the value of a function, and its derivative in a direction."""
    return adopt(autodiff.jvp(_inside(func), primals, tangents))


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the buffers of modules of one class, each stacked, by names."""
    if not len(models):
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return (
        _stacked([dict(model.named_parameters()) for model in models]),
        _stacked([dict(model.named_buffers()) for model in models]),
    )


def _stacked(states: list[dict[str, Any]]) -> dict[str, Any]:
    """Return leaves that hold the tensors of each name."""
    found: dict[str, Any] = {}
    for name, first in states[0].items():
        made = adopt(F.stack([state[name].detach() for state in states], 0))
        found[name] = made.requires_grad_(first.requires_grad)
    return found


__getattr__ = absent(globals(), {})
