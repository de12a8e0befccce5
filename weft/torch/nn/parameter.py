"""Parameter: a tensor that a module trains."""

from __future__ import annotations

from typing import Any

from ... import nn as core_nn
from ...core import tensor as core
from ..adoption import FACES
from ..phrasing import phrased
from ..tensor import wrap
from ..tensor_methods import TensorMethods


class _ParameterClass(type):
    """Every parameter of Weft's is one of this face."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Parameter:
            return isinstance(instance, core_nn.Parameter)
        return super().__instancecheck__(instance)


class Parameter(TensorMethods, core_nn.Parameter, metaclass=_ParameterClass):
    """A leaf tensor that a module registers when it is assigned to an attribute.

    >>> from weft import torch
    >>> torch.nn.Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()

    @phrased
    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        given = wrap(_empty()) if data is None else data
        value = given.detach() if isinstance(given, core.Tensor) and not given.symbolic else given
        core_nn.Parameter.__init__(self, _plain(value), requires_grad)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{TensorMethods.__repr__(self)}"

    __str__ = __repr__


def _empty() -> Any:
    import numpy as np  # noqa: PLC0415  (for this alone)

    return np.zeros(0, np.float32)


def _plain(value: Any) -> Any:
    """Return a view as a tensor of its own, which a parameter can be made of."""
    return core.wrap(value._value) if hasattr(value, "_window") and not value.symbolic else value


def Buffer(data: Any = None, *, persistent: bool = True) -> Any:  # noqa: N802  (PyTorch's name)
    """Return a tensor to be assigned to a module; register_buffer makes it part of the state."""
    return wrap(_empty()) if data is None else data


FACES[core_nn.Parameter] = Parameter
FACES[Parameter] = None
