"""Layers whose input size may be left open until the first input, or a loaded state, tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..core.errors import ArgumentTypeError, ShapeError
from ..core.modes import eagerly, refuse_recording
from ..core.shape import Shape
from ..ops.creation import zeros
from .hooks import BEFORE, drop_hook
from .module import Module
from .parameter import Parameter, UninitializedParameter, new_parameter
from .state import shape_of
from .version import count_change


class OpenInput(Module):
    """Base of layers with one input size, which None leaves open.

    A subclass says in `_shapes` how its tensors depend on the size, in `_size_of` how to read the
    size off a tensor, and in `_size_name` how the size is called. Its tensors are made by
    `_new_parameter`.
    """

    _size_name: ClassVar[str]

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""

    def _shapes(self, size: int) -> dict[str, Shape]:
        """Return the shapes of all tensors that depend on the input size."""
        raise NotImplementedError

    def _size_of(self, name: str, shape: Shape) -> int | None:
        """Return the input size that a tensor of that shape implies."""
        raise NotImplementedError

    def _input_size(self, x: Any) -> int:
        """Return the size of an input."""
        raise NotImplementedError

    def _begin(self, size: int | None) -> None:
        """Draw the parameters, or wait for the input that tells the size."""
        if size is None:
            self._leave_open()
        else:
            self.reset_parameters()

    def _leave_open(self) -> None:
        self.__dict__["_pending"] = True
        setattr(self, self._size_name, 0)
        self.register_forward_pre_hook(settle_by_input)

    def _new_parameter(self, name: str, size: int | None, dtype: Any, device: Any) -> Parameter:
        if size is None:
            return UninitializedParameter(dtype, device=device)
        return new_parameter(self._shapes(size)[name], dtype, device)

    @eagerly
    def _settle(self, size: int, draw: bool) -> None:
        """Take the input size, and become an ordinary layer."""
        refuse_recording("a layer takes its size from its first input", once=True)
        for name, shape in self._shapes(size).items():
            tensor = self.__dict__.get(name)
            if isinstance(tensor, UninitializedParameter):
                tensor.materialize(shape)
            elif tensor is not None:
                self.__dict__[name] = zeros(shape, dtype=tensor.dtype, device=tensor.device)
        setattr(self, self._size_name, size)
        count_change()
        del self.__dict__["_pending"]
        drop_hook(self, BEFORE, settle_by_input)
        if isinstance(self, LazySize):
            plain = next(c for c in type(self).__mro__ if not issubclass(c, LazySize))
            object.__setattr__(self, "__class__", plain)
        if draw:
            self.reset_parameters()

    # -- loading ---------------------------------------------------------------------------------

    def _expected_shape(self, attribute: str, state_dict: Mapping[str, Any], prefix: str) -> Shape:
        if self._pending:
            size = self._size_in(state_dict, prefix)
            if size is not None and attribute in self._shapes(size):
                return self._shapes(size)[attribute]
        return super()._expected_shape(attribute, state_dict, prefix)

    def _settle_for(self, state_dict: Mapping[str, Any], prefix: str) -> None:
        size = self._size_in(state_dict, prefix)
        if size is not None:
            names = [n for n in self._shapes(size) if self.__dict__.get(n) is not None]
            self._settle(size, draw=any(prefix + n not in state_dict for n in names))

    def _size_in(self, state_dict: Mapping[str, Any], prefix: str) -> int | None:
        for name, usual in self._shapes(1).items():
            if prefix + name in state_dict:
                shape = shape_of(state_dict[prefix + name])
                if len(shape) == len(usual):
                    return self._size_of(name, shape)
        return None


class LazySize(OpenInput):
    """Stands before a layer among the bases: leaves its size open, and becomes that layer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        of_the_layer: Any = super().__init__
        of_the_layer(None, *args, **kwargs)


def settle_by_input(module: Any, args: tuple[Any, ...]) -> None:
    """Give an open layer its size from the input it is called with; a forward hook."""
    x = args[0] if args else None
    if not hasattr(x, "shape"):
        raise ArgumentTypeError(
            f"{type(module).__name__} learns its {module._size_name} from its first input, which "
            f"must be a tensor. Received: {type(x).__name__}"
        )
    module._settle(module._input_size(x), draw=True)


def channels_of(module: Module, x: Any, spatial: int) -> int:
    """Return the channels of an input (N, C, *spatial) or (C, *spatial)."""
    if x.ndim not in (spatial + 1, spatial + 2):
        raise ShapeError(
            f"{type(module).__name__}: the input must have {spatial + 2} dimensions, or "
            f"{spatial + 1} without the batch. Received: {tuple(x.shape)}"
        )
    return int(x.shape[x.ndim - spatial - 1])
