"""Updater: one iteration of training, from a batch to new weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..core.device import check_device
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..core.tree import tree_map
from ..distributed import Parallel
from ..distributed.sharded import is_shard, is_spread
from ..distributed.sharded_state import sharded_state, take_sharded_state
from ..nn import Module
from ..optim import Optimizer, clip_grad_norm_, clip_grad_value_
from .captured import Captures, Compile, checked_compile
from .checks import checked_int, optional_positive
from .feed import Feed, FeedMark
from .objective import Objective, Outcome, detached
from .parallel import (
    OwnPace,
    as_own_pace,
    as_parallel,
    exchanging_last,
    joined_outcome,
    mean_of_processes,
)


class Updater:
    """Draw a batch, compute the loss and its gradients, and let the optimizer make a step.

    model          called with the inputs of a batch
    optimizer      of the model's parameters
    loss           `loss(output, target)`; see Objective for dictionaries and models with their own
    loader         anything that can be iterated again and again and yields batches
    target         which part of a batch is the target (default: the last)
    prepare        a function applied to each batch first
    accumulate     batches whose mean gradient makes one step; at the end of an epoch, what is left
    clip_norm      largest joint norm of the gradients
    clip_value     largest size of an element of the gradients
    epoch_length   batches in an epoch, for loaders without end (default: one pass)
    compile        whether steps run as compiled programs: "auto", True or False (captured.py)
    parallel       whether all processes of `wf.distributed` take steps together: True, or options
                   of `wf.distributed.parallel`; the loader gives each its rows (shard=True). With
                   mode="async" or "local" each takes steps at its own pace, with its own batches

    For other kinds of training, subclass it and override `compute`, the loss of a batch, or
    `take_step`, all that is done with some batches (two networks, two optimizers ...). Both are
    compiled, so they should be functions of their batches. What is none goes into `update_core`,
    which runs in Python around them. After an iteration `outcomes` holds the losses, outputs and
    targets of its batches.

    >>> import weft as wf
    >>> w = wf.nn.Parameter(wf.tensor([0.0]))
    >>> optimizer = wf.optim.SGD([w], lr=0.5)
    >>> loss = lambda output, target: ((output - target) ** 2).sum()
    >>> updater = Updater(lambda x: x * w, optimizer, loss, [(wf.tensor([1.0]), wf.tensor([3.0]))])
    >>> updater.update()
    {'train/loss': 9.0}
    >>> w.detach(), updater.iteration, updater.epoch
    (tensor([3.]), 1, 1)
    """

    prefix = "train/"

    def __init__(  # noqa: PLR0913  (independent options)
        self,
        model: Any,
        optimizer: Optimizer,
        loss: Callable[..., Any] | None,
        loader: Iterable[Any],
        *,
        target: int | str | None = -1,
        prepare: Callable[[Any], Any] | None = None,
        accumulate: int = 1,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        epoch_length: int | None = None,
        compile: Compile = "auto",
        parallel: Any = None,
    ) -> None:
        self.objective = Objective(model, loss, target=target, prepare=prepare)
        self.optimizer = _checked_optimizer(optimizer)
        self.feed = Feed(loader, epoch_length)
        self.accumulate = checked_int("accumulate", accumulate, 1)
        self.clip_norm = optional_positive("clip_norm", clip_norm)
        self.clip_value = optional_positive("clip_value", clip_value)
        self.compile = checked_compile(compile)
        self.own_pace = as_own_pace(parallel, self.optimizer)
        self.parallel = as_parallel(parallel, model)
        self._check_spread()
        self._captures = Captures()
        self._clipping = self.optimizer.register_step_pre_hook(self._clip)
        self._clipping.remove()  # there only during this updater's own steps
        self.iteration = 0
        self._before = 0, 0  # epochs, and batches of the next one, before the latest iteration
        self._resumed: Fraction | None = None  # the same, after what is not an iteration
        self.outcomes: list[Outcome] = []

    def _check_spread(self) -> None:
        """Refuse an optimizer of parameters that have been spread over processes since."""
        if self.is_spread and not any(is_shard(p) for p in self.optimizer.parameters()):
            raise ArgumentError(
                "the parameters of the model are spread over processes (zero=...), and the "
                "optimizer was made before: call wf.distributed.parallel(model, zero=...) first, "
                "make the optimizer, and pass what parallel returned as parallel="
            )

    def place(self, device: Any) -> None:
        """Put the model on a device; batches go where it is."""
        if not isinstance(self.model, Module):
            raise ArgumentTypeError(
                "device= moves a Module; move the parameters of a function yourself, x.to(device). "
                f"Received: {type(self.model).__name__}"
            )
        self.model.to(device=check_device(device))

    # -- where training stands -----------------------------------------------------------------

    @property
    def model(self) -> Any:
        """Return the model that is trained."""
        return self.objective.model

    @property
    def loader(self) -> Iterable[Any]:
        """Return where the batches come from."""
        return self.feed.loader

    @property
    def epoch(self) -> int:
        """Return the number of completed epochs."""
        return self.feed.epoch

    @property
    def position(self) -> Fraction:
        """Return the number of epochs as an exact fraction."""
        return self.feed.position

    @property
    def previous_epoch(self) -> int:
        """Return the number of epochs that were complete before the latest iteration."""
        return self._before[0]

    @property
    def previous_position(self) -> Fraction:
        """Return the number of epochs before the latest iteration as an exact fraction."""
        if self._resumed is not None:
            return self._resumed
        return FeedMark(*self._before, self.feed.length).position  # in the same pass, or at its end

    @previous_position.setter
    def previous_position(self, position: Fraction) -> None:
        self._resumed = Fraction(position)
        self._before = FeedMark.at(self._resumed)[:2]

    @property
    def epoch_detail(self) -> float:
        """Return the number of epochs with its fraction."""
        return float(self.position)

    @property
    def is_new_epoch(self) -> bool:
        """Tell whether the latest iteration completed an epoch."""
        return self.feed.epoch != self._before[0]

    @property
    def epoch_iterations(self) -> int | None:
        """Return the number of iterations in an epoch, or None if nobody knows."""
        batches = self.feed.length
        return None if batches is None else -(-batches // self.accumulate)

    # -- one iteration ----------------------------------------------------------------------------

    def start(self) -> None:
        """Prepare for a run: a model left in evaluation mode goes to training mode.

        Only the model itself is looked at, so that submodules frozen by `eval()` stay so.
        """
        if isinstance(self.model, Module) and not self.model.training:
            self.model.train()
        if self.own_pace is not None:
            self.own_pace.steps  # noqa: B018  (begins them: all processes come here)

    def conclude(self) -> None:
        """End the steps of a run that went well: processes at their own pace wait for the others.

        On a parameter server this is all there is to do.
        """
        if self.own_pace is not None:
            self.own_pace.finish()

    def finish(self) -> None:
        """End a run, however it ended: no process of the loader outlives it."""
        self.feed.pause()

    @property
    def serves(self) -> bool:
        """Tell whether this process is a parameter server, which takes no steps."""
        return self.own_pace is not None and self.own_pace.serves

    @property
    def writes(self) -> bool:
        """Tell whether this process writes checkpoints: of those at their own pace, the first."""
        return self.own_pace is None or self.own_pace.is_first

    def update(self) -> dict[str, Any]:
        """Make one iteration and return what was observed."""
        feed = self.feed
        self._before, self._resumed = (feed.epoch, feed.index), None
        observation = self.update_core(self._draw())
        self.iteration += 1
        return observation

    def update_core(self, batches: list[Any]) -> dict[str, Any]:
        """Make one step with some batches and return what was observed."""
        prepared = list(map(self.objective.prepared, batches))
        if self.own_pace is not None:
            return self._step_at_own_pace(prepared, self.own_pace)
        name = "take_step", id(self.optimizer), self.clip_norm, self.clip_value
        take_step = self._captures.get(name, self.take_step, self.compile)
        if self.clip_norm is None and self.clip_value is None:
            self.outcomes = take_step(prepared)
            return self._observed()
        self._clipping.restore()
        try:
            self.outcomes = take_step(prepared)
        finally:
            self._clipping.remove()
        return self._observed()

    def _step_at_own_pace(self, batches: list[Any], pace: OwnPace) -> dict[str, Any]:
        """Compute gradients as a compiled program, and let others make the step with them."""
        backward = self._captures.get(
            ("backward", id(self.optimizer)), self._backward, self.compile
        )
        self.outcomes = backward(batches)
        self._clip(self.optimizer)
        pace.steps.step()
        return self._observed()

    def take_step(self, batches: list[Any]) -> list[Outcome]:
        """Make one step of the optimizer with the mean gradient of some prepared batches."""
        found: list[Outcome] = []

        def evaluate() -> Tensor:
            outcomes = self._backward(batches)
            # A line search evaluates again; what is reported is the model before the step.
            found[:] = found or outcomes
            return mean_loss(outcomes)

        self.optimizer.step(evaluate)
        return found

    def compute(self, batch: Any) -> Outcome:
        """Return the outcome of one prepared batch."""
        return self.objective.outcome(batch)

    def _draw(self) -> list[Any]:
        feed, batches = self.feed, [self.feed.draw()]
        while len(batches) < self.accumulate and feed.index:
            batches.append(feed.draw())
        return batches

    def _backward(self, batches: list[Any]) -> list[Outcome]:
        """Leave the mean gradient of the batches in the parameters; return their outcomes."""
        self.optimizer.zero_grad()
        outcomes = []
        for batch, context in exchanging_last(self.parallel, batches):
            with context:
                outcomes.append(self._backward_of(batch))
        if len(batches) > 1:
            self._divide_gradients(len(batches))
        return outcomes

    def _backward_of(self, batch: Any) -> Outcome:
        if self.parallel is not None and self.parallel.shards is not None:
            return self._backward_by_shards(batch, self.parallel)
        outcome = self.compute(batch)
        self._scaled(outcome.loss).backward()
        return _without_history(outcome)

    def _backward_by_shards(self, batch: Any, handle: Parallel) -> Outcome:
        """Compute a batch as virtual shards, each by itself."""
        found: list[Outcome] = []

        def loss(part: Any) -> Tensor:
            outcome = self.compute(part)
            found.append(_without_history(outcome))
            return self._scaled(outcome.loss)

        handle.backward(loss, batch)
        return joined_outcome(mean_loss(found), found)

    def _scaled(self, loss: Tensor) -> Tensor:
        scaling = self.optimizer.loss_scaling
        return loss if scaling is None else scaling.scale(loss)

    def _divide_gradients(self, count: int) -> None:
        with no_grad():
            for p in self.optimizer.parameters():
                if p.grad is not None:
                    p.grad = p.grad / count

    def _clip(self, optimizer: Optimizer) -> None:
        parameters = list(optimizer.parameters())
        if self.clip_value is not None:
            clip_grad_value_(parameters, self.clip_value)
        if self.clip_norm is not None:
            clip_grad_norm_(parameters, self.clip_norm)

    def _observed(self) -> dict[str, Any]:
        outcomes, prefix = self.outcomes, self.prefix
        if len(outcomes) == 1:
            means = {prefix + "loss": float(outcomes[0].loss.item())}
            for name, value in outcomes[0].values.items():
                means[prefix + name] = float(value)
        else:
            rows = [{"loss": outcome.loss, **outcome.values} for outcome in outcomes]
            means = {
                prefix + name: sum(float(row[name]) for row in rows) / len(rows) for name in rows[0]
            }
        return means if self.parallel is None else mean_of_processes(self.parallel, means)

    # -- state ---------------------------------------------------------------------------------

    @property
    def is_spread(self) -> bool:
        """Tell whether the model's parameters are spread over processes (ZeRO)."""
        return isinstance(self.model, Module) and is_spread(self.model)

    def state_dict(self) -> dict[str, Any]:
        """Return the model, the optimizer and the exact position in the data."""
        if self.own_pace is not None:
            self.own_pace.fetch_state()
        state: dict[str, Any] = {
            "iteration": self.iteration,
            "previous_position": str(self.previous_position),
            "feed": self.feed.state_dict(),
        }
        if isinstance(self.model, Module):  # with parts, where parameters are spread
            state |= sharded_state(self.model, self.optimizer)
        else:
            state["optimizer"] = self.optimizer.state_dict()
        scaling: Any = self.optimizer.loss_scaling
        if hasattr(scaling, "state_dict"):
            state["loss_scaling"] = scaling.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where `state_dict` was taken."""
        if "model" in state:
            take_sharded_state(state, self.model, self.optimizer)
        else:
            self.optimizer.load_state_dict(state["optimizer"])
        scaling: Any = self.optimizer.loss_scaling
        if "loss_scaling" in state and hasattr(scaling, "load_state_dict"):
            scaling.load_state_dict(state["loss_scaling"])
        self.feed.load_state_dict(state["feed"])
        self.iteration = int(state["iteration"])
        self.previous_position = Fraction(state["previous_position"])


def _without_history(outcome: Outcome) -> Outcome:
    return outcome._replace(loss=outcome.loss.detach(), output=tree_map(detached, outcome.output))


def mean_loss(outcomes: Sequence[Outcome]) -> Tensor:
    """Return the mean of the losses of some batches, in float64."""
    total: Tensor = sum(outcome.loss.to(np.float64) for outcome in outcomes)
    return total / len(outcomes)


def _checked_optimizer(optimizer: Any) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise ArgumentTypeError(
            f"optimizer must be a weft.optim.Optimizer. Received: {optimizer!r:.60}"
        )
    return optimizer
