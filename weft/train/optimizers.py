"""Optimizers by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from .. import optim
from ..core.errors import ArgumentError, ArgumentTypeError
from ..nn import Module

OPTIMIZERS: dict[str, Callable[..., optim.Optimizer]] = {
    "sgd": lambda params, lr=0.01, **options: optim.SGD(params, lr=lr, **options),
    "momentum": lambda params, lr=0.01, **options: optim.Momentum(params, lr=lr, **options),
    "adagrad": optim.Adagrad,
    "adadelta": optim.Adadelta,
    "rmsprop": lambda params, lr=0.001, **options: optim.RMSprop(params, lr=lr, **options),
    "adam": optim.Adam,
    "adamw": optim.AdamW,
    "amsgrad": optim.Amsgrad,
    "adamax": optim.Adamax,
    "nadam": optim.NAdam,
    "radam": optim.RAdam,
    "lion": optim.Lion,
    "lamb": optim.LAMB,
    "eve": optim.Eve,
    "lbfgs": optim.LBFGS,
}


def check_optimizer(optimizer: Any) -> None:
    """Raise unless `get_optimizer` will know what to do."""
    if isinstance(optimizer, str) and optimizer.lower() not in OPTIMIZERS:
        near = difflib.get_close_matches(optimizer.lower(), OPTIMIZERS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(OPTIMIZERS)}"
        raise ArgumentError(f"there is no optimizer {optimizer!r}; {hint}")
    if not isinstance(optimizer, str | optim.Optimizer) and not callable(optimizer):
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
