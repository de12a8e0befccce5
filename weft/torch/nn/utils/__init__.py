"""torch.nn.utils: gradients clipped, weights reparametrised, parameters as vectors."""

from __future__ import annotations

from typing import Any

from .... import nn as core_nn
from .... import optim as core_optim
from ....core import tensor as core
from ....core.errors import GradientError
from ....core.modes import no_grad
from ....core.op import F
from ....ops.creation import zeros
from ...absent import absent
from ...adoption import adopt
from ...parts import serve_parts
from . import fusion, init, parametrizations, parametrize, prune, rnn, stateless
from .fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from .init import skip_init

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "fusion",
    "get_total_norm",
    "init",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
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
    try:
        total = core_optim.clip_grad_norm_(
            parameters, max_norm, norm_type, error_if_nonfinite=error_if_nonfinite
        )
    except GradientError:
        raise _not_finite(norm_type) from None
    return adopt(total)


def _not_finite(norm_type: float) -> RuntimeError:
    return RuntimeError(
        f"The total norm of order {float(norm_type)} for gradients from `parameters` is "
        "non-finite, so it cannot be clipped. To disable this error and scale the gradients by "
        "the non-finite norm anyway, set `error_if_nonfinite=False`"
    )


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Keep all gradients between two bounds."""
    core_optim.clip_grad_value_(parameters, clip_value)


clip_grad_norm = clip_grad_norm_


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Any:
    """Return the norm of tensors, all together."""
    given = [tensors] if isinstance(tensors, core.Tensor) else list(tensors)
    if not given:
        return adopt(zeros(()))
    with no_grad():
        total = F.vector_norm(F.concat([F.reshape(x, (-1,)) for x in given], 0), float(norm_type))
        if error_if_nonfinite and not F.isfinite(total):
            raise _not_finite(norm_type)
    return adopt(total)


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Any, foreach: Any = None
) -> None:
    """Scale gradients whose norm, all together, is known so that it is at most a number."""
    given = [parameters] if isinstance(parameters, core.Tensor) else list(parameters)
    with no_grad():
        factor = F.minimum(float(max_norm) / (total_norm + 1e-6), 1.0)
        for parameter in given:
            if parameter.grad is not None:
                parameter.grad.mul_(factor)


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


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Return the module: convolutions here choose the layout of their weights themselves."""
    return module


convert_conv3d_weight_memory_format = convert_conv2d_weight_memory_format
weight_norm, remove_weight_norm = core_nn.weight_norm, core_nn.remove_weight_norm
spectral_norm, remove_spectral_norm = core_nn.spectral_norm, core_nn.remove_spectral_norm
_CLIPPING = {
    f.__name__: f
    for f in (clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm)
}
_CONVERTING = {f.__name__: f for f in (parameters_to_vector, vector_to_parameters)}
serve_parts(__name__, {"clip_grad": _CLIPPING, "convert_parameters": _CONVERTING})
__getattr__ = absent(globals(), {})
