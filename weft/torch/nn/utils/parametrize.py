"""Weights that modules compute: register_parametrization."""

from __future__ import annotations

from typing import Any

from .... import nn as core_nn
from ..module import Module


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Any:
    """Let a parameter of a module be computed from another one, by a module, in each call."""
    original = module.__dict__[tensor_name]
    holder = _Parametrized(original, parametrization)
    module.__delattr__(tensor_name)
    known = module.__dict__.get("parametrizations")
    if known is None:
        from ..layers import CLASSES  # noqa: PLC0415  (which stands above)

        known = CLASSES["ModuleDict"]()
        module.parametrizations = known
    known[tensor_name] = holder
    module.register_forward_pre_hook(_Computed(tensor_name, holder))
    module.__dict__[tensor_name] = holder()
    return module


class _Parametrized(Module):
    """A parameter, and the module that a weight is computed by."""

    def __init__(self, original: Any, parametrization: Any) -> None:
        super().__init__()
        self.original = core_nn.Parameter(original.detach())
        self.register_module("0", parametrization)

    def forward(self) -> Any:
        """Return the weight."""
        return self.__dict__["0"](self.original)


class _Computed:
    """The hook that computes a weight before each call."""

    def __init__(self, name: str, holder: Any) -> None:
        self.name, self.holder = name, holder

    def __call__(self, module: Any, args: Any) -> None:
        module.__dict__[self.name] = self.holder()


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Tell whether a module computes a weight, or any."""
    known = module.__dict__.get("parametrizations")
    return known is not None and (tensor_name is None or tensor_name in known)
