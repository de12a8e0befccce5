"""Tensors of modules that other modules compute: register_parametrization.

The tensor is a property of the module (weft/nn/reparametrize.py): whoever reads it gets what
belongs to the present parameters. What it is computed from is part of the state, under PyTorch's
names: parametrizations.weight.original, or original0, original1 ... where there are several.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from .... import nn as core_nn
from ....core import tensor as core
from ....core.modes import no_grad
from ....nn.reparametrize import attach_computed, release_computed
from ..layers import CLASSES
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]

_ModuleList: Any = CLASSES["ModuleList"]


class ParametrizationList(_ModuleList):  # type: ignore[misc]  # made by a function
    """The modules that compute a tensor, one after the other, and what the first is given."""

    def __init__(self, modules: Any, original: Any, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            try:
                found = self._inverted(original)
            except NotImplementedError:  # the tensor is what the first module is given
                found = original
        self.is_tensor = isinstance(found, core.Tensor)
        if self.is_tensor:
            _write(original, found, "right_inverse")
            _register(self, "original", original)
            self.ntensors = 1
            return
        self.ntensors = len(found)
        for place, part in enumerate(found):
            held = Parameter(part) if isinstance(original, core_nn.Parameter) else part
            _register(self, f"original{place}", held)

    def _inverted(self, value: Any) -> Any:
        """Return what the first module has to be given so that the last one returns a value."""
        for module in reversed(list(self)):
            if hasattr(module, "right_inverse"):
                value = module.right_inverse(value)
        return value

    def originals(self) -> list[Any]:
        """Return what the first module is given."""
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{place}") for place in range(self.ntensors)]

    def forward(self) -> Any:
        """Return the tensor."""
        first, *others = self
        found = first(*self.originals())
        for module in others:
            found = module(found)
        return found

    def right_inverse(self, value: Any) -> None:
        """Let the tensor be a value, as far as the modules can be inverted."""
        with no_grad():
            found = self._inverted(value)
            parts = [found] if self.is_tensor else list(found)
            for held, part in zip(self.originals(), parts, strict=True):
                held.data.copy_(part)


def _register(module: Any, name: str, tensor: Any) -> None:
    if isinstance(tensor, core_nn.Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _write(tensor: Any, value: Any, what: str) -> None:
    """Let a tensor hold a value, which must have its sizes and dtype."""
    if value is tensor:
        return
    if tuple(value.shape) != tuple(tensor.shape) or value.dtype != tensor.dtype:
        raise ValueError(
            f"The tensor returned by `{what}` must have the shape and the dtype of the original. "
            f"Received: {tuple(value.shape)}, {value.dtype}; original: {tuple(tensor.shape)}, "
            f"{tensor.dtype}"
        )
    with no_grad():
        tensor.data.copy_(value)


class _Record(NamedTuple):
    """A tensor that the modules of `module.parametrizations` compute."""

    name: str
    sources: tuple[str, ...] = ()

    def compute(self, module: Any) -> Any:
        """Return the tensor; inside of `cached` that which was computed first."""
        compute = module.parametrizations[self.name]
        if not _caches:
            return compute()
        key = id(module), self.name
        known = _caches[-1]
        if key not in known:
            known[key] = compute()
        return known[key]

    def assign(self, module: Any, value: Any) -> None:
        """Let the tensor be a value."""
        module.parametrizations[self.name].right_inverse(value)


_caches: list[dict[tuple[int, str], Any]] = []


@contextmanager
def cached() -> Iterator[None]:
    """Compute each tensor once inside of a `with` block, however often it is read."""
    _caches.append(_caches[-1] if _caches else {})
    try:
        yield
    finally:
        _caches.pop()


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Any:
    """Let a tensor of a module be computed by another module, whenever it is read.

    >>> from weft import torch
    >>> class Symmetric(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).transpose(-1, -2)
    >>> layer = torch.nn.Linear(3, 3)
    >>> _ = register_parametrization(layer, "weight", Symmetric())
    >>> torch.allclose(layer.weight, layer.weight.T)
    True
    >>> list(layer.state_dict())
    ['bias', 'parametrizations.weight.original']
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        known = module.parametrizations[tensor_name]
        if not unsafe:
            _check(getattr(module, tensor_name), parametrization)
        known.append(parametrization)
        known.unsafe |= unsafe
        return module
    original = module._parameters.get(tensor_name, module._buffers.get(tensor_name))
    if original is None:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    held = ParametrizationList([parametrization], original, unsafe)
    if not unsafe:
        _compare(original, held())
    if not is_parametrized(module):
        module.parametrizations = CLASSES["ModuleDict"]()
    module.parametrizations[tensor_name] = held
    attach_computed(module, _Record(tensor_name))
    return module


def _check(tensor: Any, parametrization: Any) -> None:
    with no_grad():
        _compare(tensor, parametrization(tensor))


def _compare(before: Any, after: Any) -> None:
    """Raise if a module makes something else of a tensor, in PyTorch's words."""
    if not isinstance(after, core.Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for what, was, now in (
        ("dtype", before.dtype, after.dtype),
        ("shape", before.shape, after.shape),
    ):
        if was != now:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless "
                f"the `unsafe` flag is enabled.\nTensor {what}: {was}\nOutput {what}: {now}"
            )


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Tell whether a module computes a tensor of its own, or any."""
    known = module.__dict__.get("parametrizations")
    return known is not None and (tensor_name is None or tensor_name in known)


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Let a tensor be one of the module again: of its present value, or of that before."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    known = module.parametrizations[tensor_name]
    if not known.is_tensor and not leave_parametrized:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    original = known.originals()[0]
    if leave_parametrized:
        value = getattr(module, tensor_name).detach()
        trained = original.requires_grad
        if known.is_tensor and value.shape == original.shape:
            _write(original, value.clone(), tensor_name)
        else:
            original = Parameter(value.clone(), trained) if trained else value.clone()
    release_computed(module, tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        delattr(module, "parametrizations")
    _register(module, tensor_name, original)
    return module


def type_before_parametrizations(module: Any) -> type:
    """Return the class that a module had before tensors of it were computed."""
    found: type = getattr(module, "_plain_class", type(module))
    return found
