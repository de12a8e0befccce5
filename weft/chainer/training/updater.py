"""Updaters: one iteration of training, over iterators and optimizers by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from ..dataset import concat_examples


class Updater:
    """Base of updaters."""

    def connect_trainer(self, trainer: Any) -> None:
        """See the trainer that runs it."""

    def finalize(self) -> None:
        """Release what was opened."""

    def get_optimizer(self, name: str) -> Any:
        """Return an optimizer."""
        raise NotImplementedError

    def get_all_optimizers(self) -> dict[str, Any]:
        """Return all optimizers by name."""
        raise NotImplementedError

    def update(self) -> None:
        """Make one iteration."""
        raise NotImplementedError

    def serialize(self, serializer: Any) -> None:
        """Write the state to a serializer, or read it from one."""
        raise NotImplementedError


class StandardUpdater(Updater):
    """Take a batch of the iterator "main", and let the optimizer "main" update with its loss."""

    def __init__(
        self,
        iterator: Any,
        optimizer: Any,
        converter: Callable[..., Any] = concat_examples,
        device: Any = None,
        loss_func: Callable[..., Any] | None = None,
        loss_scale: float | None = None,
        auto_new_epoch: bool = True,
        **_: Any,
    ) -> None:
        self._iterators = iterator if isinstance(iterator, Mapping) else {"main": iterator}
        self._optimizers = optimizer if isinstance(optimizer, Mapping) else {"main": optimizer}
        self.converter, self.device, self.loss_func = converter, device, loss_func
        self.loss_scale, self.auto_new_epoch = loss_scale, auto_new_epoch
        self.iteration = 0
        self.previous_position = Fraction(0)
        for each in self._optimizers.values():
            if loss_scale is not None:
                each._loss_scale = loss_scale

    # -- where training stands -----------------------------------------------------------------

    @property
    def position(self) -> Fraction:
        """The number of epochs, exactly."""
        main = self._iterators["main"]
        exact = getattr(main, "position", None)
        return (
            exact
            if isinstance(exact, Fraction)
            else Fraction(main.epoch_detail).limit_denominator(10**9)
        )

    @property
    def epoch(self) -> int:
        """The number of completed epochs."""
        return int(self._iterators["main"].epoch)

    @property
    def previous_epoch(self) -> int:
        """The number of epochs that were complete before the last iteration."""
        return int(self.previous_position)

    @property
    def epoch_detail(self) -> float:
        """The number of epochs with its fraction."""
        return float(self._iterators["main"].epoch_detail)

    @property
    def previous_epoch_detail(self) -> Any:
        """The number of epochs before the last iteration."""
        return self._iterators["main"].previous_epoch_detail

    @property
    def is_new_epoch(self) -> bool:
        """Whether the last iteration completed an epoch."""
        return bool(self._iterators["main"].is_new_epoch)

    def get_iterator(self, name: str) -> Any:
        """Return an iterator."""
        return self._iterators[name]

    def get_optimizer(self, name: str) -> Any:
        """Return an optimizer."""
        return self._optimizers[name]

    def get_all_optimizers(self) -> dict[str, Any]:
        """Return all optimizers by name."""
        return dict(self._optimizers)

    # -- one iteration -------------------------------------------------------------------------

    serves = False  # no process is a parameter server here

    def start(self) -> None:
        """Begin a run."""

    def conclude(self) -> None:
        """End the steps of a run that went well."""

    def finish(self) -> None:
        """End a run."""
        self.finalize()

    def finalize(self) -> None:
        """End the iterators."""
        for iterator in self._iterators.values():
            iterator.finalize()

    def update(self) -> dict[str, Any]:  # type: ignore[override]  # what Weft's trainer looks for
        """Make one iteration; what links report goes to the reporter."""
        self.previous_position = self.position
        self.update_core()
        self.iteration += 1
        if self.auto_new_epoch and self._iterators["main"].is_new_epoch:
            for optimizer in self._optimizers.values():
                optimizer.new_epoch(auto=True)
        return {}

    def update_core(self) -> None:
        """Make one step; other kinds of training define their own."""
        batch = self._iterators["main"].next()
        arrays = self.converter(batch, self.device)
        optimizer = self._optimizers["main"]
        loss = self.loss_func or optimizer.target
        if isinstance(arrays, tuple):
            optimizer.update(loss, *arrays)
        elif isinstance(arrays, dict):
            optimizer.update(loss, **arrays)
        else:
            optimizer.update(loss, arrays)

    def serialize(self, serializer: Any) -> None:
        """Write iterators, optimizers and their targets to a serializer, or read them."""
        for name, iterator in self._iterators.items():
            iterator.serialize(serializer[f"iterator:{name}"])
        for name, optimizer in self._optimizers.items():
            optimizer.serialize(serializer[f"optimizer:{name}"])
            optimizer.target.serialize(serializer[f"model:{name}"])
        self.iteration = int(serializer("iteration", self.iteration))
        self.previous_position = max(self.position - Fraction(1, 10**9), Fraction(0))


class ParallelUpdater(StandardUpdater):
    """Refused: it divides batches over GPUs."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError(
            "ParallelUpdater needs GPUs: use StandardUpdater, which uses all threads"
        )
