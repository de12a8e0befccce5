"""Arguments of the public random functions: sizes, parameters, and the finishing of a draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import may_equal
from ...core.dtype import default_float, is_float, promote
from ...core.errors import ArgumentTypeError, DTypeError, ShapeError, user_site
from ...core.op import F
from ...core.operands import tensor_from
from ...core.placing import made_on
from ...core.shape import as_shape, broadcast
from ...core.tensor import PLAIN, Tensor, constant


def made(tensor: Any, requires_grad: bool, device: Any) -> Tensor:
    """Return a draw as the tensor the user made: with the line that made it, a leaf if asked."""
    if tensor.__class__ in PLAIN:  # a symbol knows its line already
        tensor._site = user_site()
    return made_on(tensor.requires_grad_() if requires_grad else tensor, device)


def as_sizes(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """Return sizes given one by one or as a single sequence."""
    return as_shape(shape[0] if len(shape) == 1 else shape)


def shape_or_scalar(shape: Any) -> Any:
    """Return a shape argument, () if none is given."""
    return () if shape is None else shape


def plain(*parameters: Any) -> bool:
    """Tell whether all parameters are numbers."""
    return all(isinstance(p, (int, float, np.integer, np.floating)) for p in parameters)


def read_parameters(
    fn: str, shape: Any, dtype: Any, **named: Any
) -> tuple[list[Any], tuple[int, ...], Any]:
    """Return parameters as numbers or float tensors, the shape and the dtype of the draw."""
    values = [p if plain(p) else read_floats(fn, name, p) for name, p in named.items()]
    tensors = [p for p in values if isinstance(p, Tensor)]
    own = broadcast(*(t.shape for t in tensors))
    shape = own if shape is None else as_shape(shape, f"{fn}: shape")
    if not may_equal(broadcast(own, shape), shape):
        raise ShapeError(
            f"{fn}: parameters of shape {own} do not broadcast to shape {shape}; "
            "leave shape out to use theirs"
        )
    return values, shape, _parameter_dtype(tensors) if dtype is None else dtype


def _parameter_dtype(tensors: list[Tensor]) -> Any:
    if not tensors:
        return default_float()
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = promote(dtype, tensor.dtype)
    return dtype


def read_tensor(fn: str, name: str, x: Any) -> Tensor:
    """Return an argument as a tensor."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, (int, float, list, tuple, np.ndarray, np.generic)):
        return tensor_from(x, f"{fn}: {name}")
    raise ArgumentTypeError(
        f"{fn}: {name} must be a number or a tensor. Received: {type(x).__name__} {x!r:.60}"
    )


def read_floats(fn: str, name: str, x: Any) -> Tensor:
    """Return an argument as a tensor of floating-point numbers."""
    tensor = read_tensor(fn, name, x)
    if not is_float(tensor.dtype):
        raise DTypeError(
            f"{fn}: {name} must be floating-point; cast it with x.to(wf.float32). "
            f"Received: {tensor.dtype}"
        )
    return tensor


def as_tensor(parameter: Any, dtype: Any) -> Tensor:
    """Return a parameter as a tensor of a dtype."""
    if not isinstance(parameter, Tensor):
        return constant(np.asarray(parameter, dtype))
    return parameter if parameter.dtype == dtype else F.cast(parameter, dtype)


def like_dtype(x: Any) -> Any:
    """Return the dtype of a draw like x: its own if floating, else the default."""
    return x.dtype if is_float(x.dtype) else None
