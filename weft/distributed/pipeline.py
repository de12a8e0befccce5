"""Pipelines: a model in stages, one for each process, through which parts of a batch flow.

A process has the layers of its stage. It receives activations from the process before it and sends
its own to the next; gradients come the other way. Small batches keep all of them busy: "gpipe" runs
all forward parts, then all backward parts (Huang et al. 2019); "1f1b" runs a backward part as soon
as it can, so that a stage keeps no more activations than there are stages (Narayanan et al. 2019).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.dtype import as_dtype, is_float
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.tensor import Tensor, wrap
from .collectives import broadcast
from .transport import Array, Transport
from .world import ProcessGroup, world

SCHEDULES = ("gpipe", "1f1b")
_NAMES = (
    *("float16", "bfloat16", "float32", "float64", "bool"),
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
)
_HEADER = 66  # dtype, number of dimensions, and as many sizes as an array may have


class Pipeline:
    """Trains the stages of a model, each on its own process.

    stage      the layers of this process
    loss       `loss(output, target)`, on the last one
    parts      small batches of a batch
    schedule   "gpipe" or "1f1b"

    >>> import weft as wf
    >>> stage = wf.nn.Linear(3, 1)
    >>> pipeline = wf.distributed.Pipeline(stage, wf.nn.functional.mse_loss, parts=2)
    >>> loss = pipeline.backward(wf.ones(4, 3), wf.ones(4, 1))
    >>> stage.weight.grad.shape
    (1, 3)
    """

    def __init__(
        self,
        stage: Any,
        loss: Any,
        *,
        parts: Any = 4,
        schedule: str = "1f1b",
        group: ProcessGroup | None = None,
    ) -> None:
        if schedule not in SCHEDULES:
            raise ArgumentError(f"schedule must be one of {SCHEDULES}. Received: {schedule!r}")
        if not isinstance(parts, int) or parts < 1:
            raise ArgumentError(f"parts must be a positive number. Received: {parts!r}")
        if not callable(stage) or not callable(loss):
            raise ArgumentTypeError("Pipeline takes a module and a loss of output and target")
        self.stage, self.loss, self.parts, self.schedule = stage, loss, parts, schedule
        self.group = world() if group is None else group
        assert self.group.rank is not None
        self.place, self.last = self.group.rank, self.group.size - 1

    def backward(self, x: Tensor | None, target: Tensor | None) -> Tensor:
        """Leave the gradients of the mean loss in this stage's parameters; return that loss.

        x is needed on the first process, the target on the last.
        """
        run = _PipelineRun(self, self._divided(x, 0), self._divided(target, self.last))
        for act, number in self.order():
            run.forward(number) if act == "forward" else run.backward(number)
        total = sum(run.losses, wrap(np.zeros((), np.float32))) / self.parts
        return broadcast(wrap(np.asarray(total.numpy(), np.float64)), self.last, group=self.group)

    def order(self) -> Iterator[tuple[str, int]]:
        """Yield what this stage does: forward and backward parts, by their numbers."""
        ahead = self.parts if self.schedule == "gpipe" else min(self.last - self.place, self.parts)
        for number in range(ahead):
            yield "forward", number
        for number in range(self.parts - ahead):
            yield "forward", number + ahead
            yield "backward", number
        for number in range(self.parts - ahead, self.parts):
            yield "backward", number

    def _divided(self, x: Tensor | None, needed_by: int) -> Sequence[Tensor]:
        if self.place != needed_by:
            return ()
        if x is None or not x.shape or x.shape[0] % self.parts:
            received = "None" if x is None else f"shape {tuple(x.shape)}"
            raise ArgumentError(
                f"Pipeline: process {needed_by} needs a batch whose rows {self.parts} parts "
                f"divide. Received: {received}"
            )
        size = x.shape[0] // self.parts
        return [x[i * size : (i + 1) * size] for i in range(self.parts)]


class _PipelineRun:
    """One batch on its way through a stage."""

    def __init__(self, owner: Pipeline, xs: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
        self.owner, self.xs, self.targets = owner, xs, targets
        self.losses: list[Tensor] = []
        self._kept: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def _transport(self) -> Transport:
        return self.owner.group.exchanges.transport

    def forward(self, number: int) -> None:
        """Compute the stage for one part, and send it on."""
        owner = self.owner
        first, last = owner.place == 0, owner.place == owner.last
        x = self.xs[number] if first else self._received(owner.place - 1)
        if not first and is_float(x.dtype):
            x.requires_grad_()
        y = owner.stage(x)
        if last:
            loss = owner.loss(y, self.targets[number])
            self.losses.append(loss.detach())
            y = loss / owner.parts
        else:
            self._send(y.detach().numpy(), owner.place + 1)
        self._kept[number] = x, y

    def backward(self, number: int) -> None:
        """Go back through the stage for one part, and send the gradient back."""
        owner = self.owner
        x, y = self._kept.pop(number)
        if owner.place == owner.last:
            y.backward()
        elif is_float(y.dtype):
            grad = self._received(owner.place + 1)
            if y.requires_grad:  # else there is nothing to train from here on
                y.backward(grad)
        if owner.place > 0 and is_float(x.dtype):
            left = x.grad
            self._send(
                np.zeros(x.shape, x.dtype) if left is None else left.numpy(), owner.place - 1
            )

    def _send(self, array: Array, target: int) -> None:
        header = np.zeros(_HEADER, np.int64)
        header[: 2 + array.ndim] = (_NAMES.index(array.dtype.name), array.ndim, *array.shape)
        own = np.array(array, order="C")
        self.owner.group.exchanges.run(lambda: self._give(header, own, target))

    def _give(self, header: Array, own: Array, target: int) -> None:
        self._transport.send(header, target, 1)
        self._transport.send(own, target, 2)

    def _received(self, source: int) -> Tensor:
        found: Array = self.owner.group.exchanges.run(lambda: self._taken(source))
        return wrap(found)

    def _taken(self, source: int) -> Array:
        header = np.zeros(_HEADER, np.int64)
        self._transport.receive(header, source, 1)
        kind, ndim, *sizes = header.tolist()
        array = np.empty(sizes[:ndim], as_dtype(_NAMES[kind]))
        self._transport.receive(array, source, 2)
        return array
