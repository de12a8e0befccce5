"""Objective: what a model makes of a batch, and the loss of it.

Training and evaluation share it, so that both split a batch in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ..core.modes import no_grad
from ..core.rng import default_generator
from ..core.tensor import Tensor
from ..core.tree import tree_leaves, tree_map
from ..nn import Module
from ..nn.places import beside
from ..nn.summary import evaluation_mode
from ..ops.creation import tensor
from .captured import Captures, Compile


class Outcome(NamedTuple):
    """The loss of a batch (None without a loss), what else the loss reported, and its parts."""

    loss: Any
    values: dict[str, Any]
    output: Any
    target: Any


class Objective:
    """Apply a model to the inputs of a batch and a loss to its output and target.

    model     called with the inputs
    loss      `loss(output, target)` returns a scalar, or a dictionary with "loss" and other values
              to observe; None: the model itself returns the loss
    target    which element of a batch is the target: a position in a tuple, a key of a dictionary,
              or None if there is none and `loss(output)` is called
    prepare   a function that is applied to each batch first

    A call has two parts: `prepared` brings a batch into its form, in ordinary Python, and `outcome`
    computes, as a function of tensors that can be compiled.
    """

    def __init__(
        self,
        model: Module,
        loss: Callable[..., Any] | None,
        *,
        target: int | str | None = -1,
        prepare: Callable[[Any], Any] | None = None,
    ) -> None:
        _check_callable("model", model)
        for name, function in (("loss", loss), ("prepare", prepare)):
            if function is not None:
                _check_callable(name, function)
        self.model = model
        self.loss = loss
        self.target = target
        self.prepare = prepare
        self._captures = Captures()

    def __call__(self, batch: Any) -> Outcome:
        """Return the outcome of a batch."""
        return self.outcome(self.prepared(batch))

    def compiled(self, choice: Compile) -> Callable[[Any], Outcome]:
        """Return this function of a batch, its computation compiled as `choice` says."""
        if type(self).__call__ is not Objective.__call__:
            return self  # a subclass does something else in a call
        run = self._captures.get("outcome", self.outcome, choice)
        return lambda batch: run(self.prepared(batch))

    def prepared(self, batch: Any) -> Any:
        """Return a batch in the form that is computed with: as tensors, where the model is."""
        if self.prepare is not None:
            batch = self.prepare(batch)
        return beside(self.model, as_tensors(batch))

    def outcome(self, batch: Any) -> Outcome:
        """Return the outcome of a prepared batch."""
        if self.loss is None:
            return self._from_model(batch)
        args, kwargs, target = split_batch(batch, self.target)
        output = self.model(*args, **kwargs)
        result = self.loss(output) if self.target is None else self.loss(output, target)
        loss, values = split_loss(result)
        return Outcome(loss, values, output, target)

    def _from_model(self, batch: Any) -> Outcome:
        args, kwargs, _ = split_batch(batch, None)
        loss, values = split_loss(self.model(*args, **kwargs))
        return Outcome(loss, values, loss, None)


def split_batch(
    batch: Any, target: int | str | None
) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """Return the positional inputs, the named inputs and the target of a batch."""
    if isinstance(batch, Mapping):
        named = dict(batch)
        return (), named, None if target is None else _taken(named, target, sorted(named))
    if isinstance(batch, tuple | list):
        inputs = list(batch)
        found = None if target is None else _taken(inputs, target, len(inputs))
        return tuple(inputs), {}, found
    if target is None:
        return (batch,), {}, None
    raise ArgumentTypeError(
        f"a batch must be a tuple or dictionary with inputs and the target {target!r}. Received: "
        f"{type(batch).__name__}; pass target=None if the loss needs no target"
    )


def _taken(parts: Any, target: int | str, available: Any) -> Any:
    """Take the target out of the parts of a batch."""
    try:
        return parts.pop(target)
    except (KeyError, IndexError, TypeError):
        known = f"{available} parts" if isinstance(available, int) else f"the keys {available}"
        raise ArgumentError(
            f"a batch has no target {target!r}; it has {known}: say which is the target by "
            "target=..., a position in a tuple or a key of a dictionary"
        ) from None


def size_of(batch: Any) -> int:
    """Return the number of samples in a batch: the first size of its first tensor."""
    for leaf in [batch] if isinstance(batch, Tensor) else tree_leaves(batch):
        shape = getattr(leaf, "shape", None)
        if shape:
            return int(shape[0])
    return 1


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Run a block in evaluation mode without gradients, leaving no trace in training.

    The mode of every submodule comes back, and so does the state of the random numbers: how often
    one evaluates does not change what is trained.
    """
    random_state = default_generator.get_state()
    try:
        with evaluation_mode(model) if isinstance(model, Module) else nullcontext(), no_grad():
            yield
    finally:
        default_generator.set_state(random_state)


def as_tensors(batch: Any) -> Any:
    """Return a batch with arrays of numbers as tensors."""
    if type(batch) is not tuple:
        return tree_map(_as_tensor, batch)
    for part in batch:
        if not isinstance(part, Tensor):
            return tree_map(_as_tensor, batch)
    return batch  # what most loaders give


def _as_tensor(value: Any) -> Any:
    return tensor(value) if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" else value


def split_loss(result: Any) -> tuple[Any, dict[str, Any]]:
    """Return the loss, and what else a loss that returns a dictionary reports."""
    if isinstance(result, Mapping):
        if "loss" not in result:
            raise ArgumentError(
                f"a loss that returns a dictionary must have 'loss' in it. Received: {list(result)}"
            )
        values = {name: detached(value) for name, value in result.items() if name != "loss"}
        return _checked_loss(result["loss"]), values
    return _checked_loss(result), {}


def _checked_loss(loss: Any) -> Any:
    if not isinstance(loss, Tensor):
        raise ArgumentTypeError(f"the loss must be a tensor. Received: {type(loss).__name__}")
    if loss.size != 1:
        raise ShapeError(
            f"the loss must be one number. Received: shape {loss.shape}; take its mean or sum"
        )
    return loss


def detached(value: Any) -> Any:
    """Return a tensor without its history, and anything else as it is."""
    return value.detach() if isinstance(value, Tensor) else value


def _check_callable(name: str, value: Any) -> None:
    if not callable(value) or isinstance(value, type):
        raise ArgumentTypeError(f"{name} must be a function or a module. Received: {value!r:.60}")
