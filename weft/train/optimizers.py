"""Optimizers by name: the class's own name in lower case, with the class's own defaults."""

from __future__ import annotations

from typing import Any

from .. import optim
from ..core.errors import ArgumentTypeError
from ..nn import Module
from .registry import Registry

OPTIMIZERS = Registry("optimizer", given=frozenset({"params"}))
for _name in optim.__all__:
    _make: Any = getattr(optim, _name)
    _is_base = _make in (optim.Optimizer, optim.TransformOptimizer)
    if isinstance(_make, type) and issubclass(_make, optim.Optimizer) and not _is_base:
        OPTIMIZERS.add(_name.lower(), _make)


def check_optimizer(optimizer: Any) -> None:
    """Raise unless `get_optimizer` will know what to do."""
    if isinstance(optimizer, str):
        _ = OPTIMIZERS[optimizer.lower()]
    elif not isinstance(optimizer, optim.Optimizer) and not callable(optimizer):
        raise ArgumentTypeError(
            "an optimizer is a name, an Optimizer, or a function of the parameters that returns "
            f"one. Received: {optimizer!r:.60}"
        )


def get_optimizer(optimizer: Any, model: Module, **options: Any) -> optim.Optimizer:
    """Return an optimizer of a model's parameters from its name, an instance, or a function."""
    check_optimizer(optimizer)
    if isinstance(optimizer, optim.Optimizer):
        return optimizer
    make = OPTIMIZERS[optimizer.lower()] if isinstance(optimizer, str) else optimizer
    made = make(model.parameters(), **options)
    if not isinstance(made, optim.Optimizer):
        raise ArgumentTypeError(
            f"{optimizer!r:.60} must return an Optimizer. Received: {type(made).__name__}"
        )
    return made
