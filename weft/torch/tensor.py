"""Tensor: Weft's tensor with PyTorch's methods, and the same over Weft's other tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core import tensor as core
from ..ops.creation import tensor as make_tensor
from ..ops.creation import zeros
from .adoption import FACES, adopt
from .dtypes import MADE
from .sizes import Size
from .tensor_methods import TensorMethods

Array = np.ndarray[Any, Any]


class _TensorClass(type):
    """Every tensor of Weft's is one of this face: they pass through both."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Tensor:
            return isinstance(instance, core.Tensor)
        return super().__instancecheck__(instance)


class Tensor(TensorMethods, core.Tensor, metaclass=_TensorClass):
    """An n-dimensional array that can be differentiated, with PyTorch's methods.

    >>> from weft import torch
    >>> torch.Tensor([1, 2]).max(0)
    torch.return_types.max(
    values=tensor(2.),
    indices=tensor(1))
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a tensor of the default dtype: of data, or uninitialised of given sizes."""
        if len(args) == 1 and isinstance(args[0], core.Tensor) and not kwargs:
            return args[0].detach()
        if len(args) == 1 and not isinstance(args[0], (int, np.integer)):
            return new_tensor_of(args[0], dt.default_float())
        return adopt(zeros(args or (0,), **kwargs))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: `__new__` has."""

    @property
    def dtype(self) -> Any:
        """Return the type of its elements."""
        return MADE[self._value.dtype]


def new_tensor_of(data: Any, dtype: Any) -> Any:
    """Return data as a new tensor of a dtype."""
    if isinstance(data, Size):
        return adopt(zeros(tuple(data), dtype=dtype))
    return adopt(make_tensor(data, dtype=dtype))


def wrap(value: Array) -> Any:
    """Return a tensor of this face around an array."""
    return core.wrap(value, Tensor)


FACES[core.Tensor] = FACES[core.Constant] = Tensor
FACES[Tensor] = None
core.PLAIN.add(Tensor)
