"""Averages of the weights over training: exponential (EMA) and equal (SWA)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.device_array import held_like, is_placed, to_host
from ..core.dtype import Array, is_float
from ..core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ..core.modes import current_recorder, no_grad, refuse_recording
from ..core.tensor import Tensor, wrap
from ..nn import Module
from .eager_step import working
from .groups import fraction
from .recorded_average import record_average


class WeightAverage(ABC):
    """Base of averages: call `update()` after each step, evaluate inside `with applied():`.

    source        a module, an iterable of tensors or of (name, tensor) pairs
    use_buffers   also average a module's buffers (running statistics); those that hold integers
                  are copied
    """

    def __init__(self, source: Any, *, use_buffers: bool = False) -> None:
        self._tensors = _named_tensors(source, use_buffers)
        self.values: dict[str, Array] = {
            name: working(tensor._value).copy() for name, tensor in self._tensors.items()
        }
        self.count = 0

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """Return what is averaged, by name."""
        return self._tensors

    @abstractmethod
    def weight(self) -> float:
        """Return the weight of the newest value in the next average."""

    def next_weight(self) -> float:
        """Return the weight of the newest value: all of it for the first one."""
        return 1.0 if self.count == 0 else self.weight()

    def update(self) -> None:
        """Take the current weights into the average; the first update copies them."""
        if (recorder := current_recorder()) is not None:
            record_average(recorder, self)
            return
        weight = self.next_weight()
        for name, tensor in self._tensors.items():
            new = working(tensor._value)
            if weight == 1.0 or not is_float(new.dtype):
                self.values[name] = new.copy()
            else:
                self.values[name] = _mixed(held_like(new, self.values[name]), new, weight)
        self.count += 1

    def copy_to_source(self) -> None:
        """Give the averages to the model for good."""
        refuse_recording("averages of weights are given to the model")
        for name, tensor in self._tensors.items():
            tensor._value = _given(tensor, self.values[name])

    def swap(self) -> None:
        """Exchange the model's weights and the averages; a second call undoes it."""
        refuse_recording("averages of weights are given to the model")
        for name, tensor in self._tensors.items():
            mine = self.values[name]
            self.values[name] = working(tensor._value).copy()
            tensor._value = _given(tensor, mine)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Run a block with the averages in the model; its own weights come back afterwards."""
        refuse_recording("averages of weights are given to the model")
        kept = {name: tensor._value for name, tensor in self._tensors.items()}
        self.copy_to_source()
        try:
            yield
        finally:
            for name, tensor in self._tensors.items():
                tensor._value = kept[name]

    def state_dict(self) -> dict[str, Any]:
        """Return the averages (copies) and their count."""
        values = {name: wrap(value.copy()) for name, value in self.values.items()}
        return {"count": self.count, "values": values}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned; if it does not fit, raise and change nothing."""
        saved = {name: _loaded(value) for name, value in state["values"].items()}
        if saved.keys() != self.values.keys():
            differing = sorted(saved.keys() ^ self.values.keys())
            raise ArgumentError(f"the averaged tensors differ from the saved ones: {differing[:5]}")
        for name, value in saved.items():
            if value.shape != self.values[name].shape:
                expected = self.values[name].shape
                raise ShapeError(f"{name} has shape {expected}; the saved average {value.shape}")
        self.values = {n: v.astype(self.values[n].dtype, copy=False) for n, v in saved.items()}
        self.count = int(state["count"])


def _mixed(old: Array, new: Array, weight: float) -> Array:
    """Return an average with a new value in it, where both are."""
    if not is_placed(new):
        return np.asarray(old * (1.0 - weight) + new * weight)
    with no_grad():
        return (wrap(old) * (1.0 - weight) + wrap(new) * weight)._value


def _given(tensor: Tensor, value: Array) -> Array:
    """Return an average as a value of a tensor, of its dtype and where it is."""
    given: Array = held_like(tensor._value, value.astype(tensor.dtype))
    return given


def _loaded(value: Any) -> Array:
    """Return a saved average as an array of the host."""
    held = value._value if isinstance(value, Tensor) else value
    return np.array(to_host(held))


class EMA(WeightAverage):
    """Exponential moving average of weights (Polyak & Juditsky 1992).

    decay     share of the old average that each update keeps
    warmup    begin with a smaller decay, (1 + n) / (10 + n), so that early weights fade faster

    >>> import weft as wf
    >>> w = wf.tensor([1.0], requires_grad=True)
    >>> ema = EMA([w], decay=0.75)
    >>> ema.update()
    >>> with wf.no_grad():
    ...     _ = w.fill_(5.0)
    >>> ema.update()
    >>> with ema.applied():
    ...     print(w.detach())
    tensor([2.])
    """

    def __init__(
        self,
        source: Any,
        decay: float = 0.999,
        *,
        warmup: bool = False,
        use_buffers: bool = False,
    ) -> None:
        self.decay = fraction("decay", decay)
        self.warmup = warmup
        super().__init__(source, use_buffers=use_buffers)

    def weight(self) -> float:
        """Return one minus the decay."""
        n = self.count
        return 1.0 - (min(self.decay, (1.0 + n) / (10.0 + n)) if self.warmup else self.decay)


class SWA(WeightAverage):
    """Equal average of the weights at the moments of `update` (Izmailov et al. 2018).

    Where the model has batch normalisation, call `update_bn` with the averages applied before
    evaluating them.
    """

    def weight(self) -> float:
        """Return 1/n for the n-th value."""
        return 1.0 / (self.count + 1)


def update_bn(batches: Iterable[Any], model: Module) -> None:
    """Recompute the running statistics of batch normalisation by a pass over the data.

    Each batch is an input, or a tuple or list that begins with one.
    """
    layers: list[Any] = [m for m in model.modules() if getattr(m, "running_mean", None) is not None]
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    modes = [(module, module.training) for module in model.modules()]
    try:
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None  # the cumulative average over all batches
        model.train()
        with no_grad():
            for batch in batches:
                model(batch[0] if isinstance(batch, (tuple, list)) else batch)
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        for module, mode in modes:
            module.__dict__["training"] = mode


def _named_tensors(source: Any, use_buffers: bool) -> dict[str, Tensor]:
    if isinstance(source, Module):
        buffers = dict(source.named_buffers()) if use_buffers else {}
        return {**dict(source.named_parameters()), **buffers}
    items = list(source)
    pairs = items if items and isinstance(items[0], tuple) else list(enumerate(items))
    named = {str(name): tensor for name, tensor in pairs}
    for name, tensor in named.items():
        if not isinstance(tensor, Tensor):
            raise ArgumentTypeError(f"{name} is no tensor. Received: {type(tensor).__name__}")
    return named
