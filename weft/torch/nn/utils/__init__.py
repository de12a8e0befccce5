"""torch.nn.utils: gradients clipped, weights reparametrised, parameters as vectors."""

from __future__ import annotations

from typing import Any

from .... import nn as core_nn
from .... import optim as core_optim
from ....core.op import F
from ...absent import absent
from ...adoption import adopt
from ...parts import serve_parts
from . import parametrizations, parametrize, rnn, stateless

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Any:
    """Scale gradients so that their norm, all together, is at most a number; return the norm."""
    return adopt(
        core_optim.clip_grad_norm_(
            parameters, max_norm, norm_type, error_if_nonfinite=error_if_nonfinite
        )
    )


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Keep all gradients between two bounds."""
    core_optim.clip_grad_value_(parameters, clip_value)


clip_grad_norm = clip_grad_norm_


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Any:
    """Return the norm of tensors, all together."""
    flat = [F.reshape(x, (-1,)) for x in tensors]
    return adopt(F.vector_norm(F.concat(flat, 0), float(norm_type)))


def parameters_to_vector(parameters: Any) -> Any:
    """Return all parameters as one vector."""
    return adopt(F.concat([F.reshape(p, (-1,)) for p in parameters], 0))


def vector_to_parameters(vec: Any, parameters: Any) -> None:
    """Let parameters have the values of a vector, one after the other."""
    start = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data.copy_(vec[start : start + count].reshape(tuple(parameter.shape)))
        start += count


weight_norm, remove_weight_norm = core_nn.weight_norm, core_nn.remove_weight_norm
spectral_norm, remove_spectral_norm = core_nn.spectral_norm, core_nn.remove_spectral_norm
_CLIPPING = {f.__name__: f for f in (clip_grad_norm_, clip_grad_value_, get_total_norm)}
_CONVERTING = {f.__name__: f for f in (parameters_to_vector, vector_to_parameters)}
serve_parts(__name__, {"clip_grad": _CLIPPING, "convert_parameters": _CONVERTING})
__getattr__ = absent(
    globals(), {"prune": "multiply weights by masks in a parametrization: nn.utils.parametrize"}
)
