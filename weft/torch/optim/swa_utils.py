"""torch.optim.swa_utils: averages of weights, and the schedule that goes with them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from ...core.modes import no_grad
from ...optim import update_bn
from ...optim.lr import SWALR
from ..functions.creating import tensor
from ..nn.module import Module

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Any, Any, Any], Any]


class AveragedModel(Module):
    """A copy of a model that holds the average of its weights at the calls of `update_parameters`.

    avg_fn         the new average, of the old one, the newest value and how many went before
    multi_avg_fn   the same for lists, which writes into the first
    use_buffers    also average buffers, instead of copying them

    >>> from weft import torch
    >>> model = torch.nn.Linear(1, 1)
    >>> average = AveragedModel(model)
    >>> average.update_parameters(model)
    >>> int(average.n_averaged)
    1
    """

    n_averaged: Any

    def __init__(
        self,
        model: Any,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Average | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        self.register_buffer("n_averaged", tensor(0))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Any) -> None:
        """Take the weights of a model into the average; the first ones are copied."""
        with no_grad():
            average, copied = self._pairs(self.module), self._pairs(model)
            self._take(average[0], copied[0])
            for old, new in zip(average[1], copied[1], strict=True):
                old.copy_(new)
            self.n_averaged += 1

    def _pairs(self, model: Any) -> tuple[list[Any], list[Any]]:
        """Return what is averaged of a model, and what is copied."""
        parameters, buffers = list(model.parameters()), list(model.buffers())
        return (parameters + buffers, []) if self.use_buffers else (parameters, buffers)

    def _take(self, average: list[Any], newest: list[Any]) -> None:
        count = int(self.n_averaged)
        if self.multi_avg_fn is not None and count:
            self.multi_avg_fn(average, newest, self.n_averaged)
            return
        mean = self.avg_fn or get_swa_avg_fn()
        for old, new in zip(average, newest, strict=True):
            old.copy_(mean(old, new, self.n_averaged) if count else new)


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return an exponential moving average."""
    return lambda old, new, _count: decay * old + (1 - decay) * new


def get_swa_avg_fn() -> Average:
    """Return an equal average."""
    return lambda old, new, count: old + (new - old) / (count + 1)


def get_ema_multi_avg_fn(decay: float = 0.999) -> Average:
    """Return an exponential moving average of lists."""
    return _of_lists(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Average:
    """Return an equal average of lists."""
    return _of_lists(get_swa_avg_fn())


def _of_lists(mean: Average) -> Average:
    def update(average: Iterable[Any], newest: Iterable[Any], count: Any) -> None:
        for old, new in zip(average, newest, strict=True):
            old.copy_(mean(old, new, count))

    return update
