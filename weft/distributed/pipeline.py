"""Pipelines: a model in stages, one for each process, through which parts of a batch flow.

A process has the layers of its stage. It receives activations from the process before it and sends
its own to the next; gradients come the other way. Small batches keep all of them busy: "gpipe" runs
all forward parts, then all backward parts (Huang et al. 2019); "1f1b" runs a backward part as soon
as it can, so that a stage keeps no more activations than there are stages (Narayanan et al. 2019).

Random numbers are those that one process draws for the whole batch: each part draws its rows of
them, and with activations travels where the stage has drawn to, so that the next one begins there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..core.draw_rows import DrawRows, drawing_rows
from ..core.dtype import as_dtype, is_float
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.modes import refuse_recording
from ..core.rng import default_generator, make_state
from ..core.tensor import Tensor, wrap
from ..ops.random.state import read_state
from .collectives import broadcast
from .transport import Array, Transport
from .world import ProcessGroup, world

SCHEDULES = ("gpipe", "1f1b")
_NAMES = (
    *("float16", "bfloat16", "float32", "float64", "bool"),
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
)
_HEADER = 70  # dtype, dimensions, rows, three words of a random state, sizes of up to 64 axes


class _Parcel(NamedTuple):
    """What travels from stage to stage.

    array   activations, or their gradients
    rows    of each part of the batch: what is drawn for a part is known by their number
    draws   the random state behind all that the stages so far draw for the batch
    """

    array: Array
    rows: int
    draws: Array

    def header(self) -> Array:
        """Return what is to be known before the array comes."""
        array, header = self.array, np.zeros(_HEADER, np.int64)
        header[:3] = _NAMES.index(array.dtype.name), array.ndim, self.rows
        header[3:6] = self.draws.view(np.int64)
        header[6 : 6 + array.ndim] = array.shape
        return header

    @classmethod
    def announced(cls, header: Array) -> _Parcel:
        """Return a parcel whose array is still to come."""
        kind, ndim, rows = header[:3].tolist()
        array = np.empty(header[6 : 6 + ndim].tolist(), as_dtype(_NAMES[kind]))
        return cls(array, rows, header[3:6].view(np.uint64))


def _drawn_so_far() -> Array:
    """Return the random state at which the next draw begins."""
    return make_state(*default_generator.position())


def _draw_from(state: Array) -> None:
    """Let the next draw begin at a random state."""
    key, counter = read_state(state)
    default_generator.move_to(counter, key)


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

        x is needed on the first process, the target on the last. All of them draw on from the first
        one's random state, and have the same one afterwards.
        """
        refuse_recording("the parts of a batch go through a pipeline one by one")
        run = _PipelineRun(self, self._divided(x, 0), self._divided(target, self.last))
        for act, number in self.order():
            run.forward(number) if act == "forward" else run.backward(number)
        return self._ended(run)

    def _ended(self, run: _PipelineRun) -> Tensor:
        """Return the loss to all, and let all draw on where the last stage has come to."""
        total = sum(run.losses, wrap(np.zeros((), np.float32))) / self.parts
        mean = np.asarray(total.numpy(), np.float64).reshape(1)
        own = np.concatenate([mean.view(np.uint64), run.draws])
        found = broadcast(wrap(own), self.last, group=self.group).numpy()
        _draw_from(found[1:])
        return wrap(found[:1].view(np.float64).reshape(()))

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
    """One batch on its way through a stage.

    losses   of the parts, on the last stage
    draws    the random state behind all that the stages up to this one draw for the batch
    """

    def __init__(self, owner: Pipeline, xs: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
        self.owner, self.xs, self.targets = owner, xs, targets
        self.losses: list[Tensor] = []
        self.draws = self._start = _drawn_so_far()
        self._rows = xs[0].shape[0] if xs else 0
        self._kept: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def _transport(self) -> Transport:
        return self.owner.group.exchanges.transport

    def forward(self, number: int) -> None:
        """Compute the stage for one part, and send it on."""
        owner, x = self.owner, self._input(number)
        with self._drawing(number):
            y = owner.stage(x)
            if owner.place == owner.last:
                loss = owner.loss(y, self.targets[number])
                self.losses.append(loss.detach())
                y = loss / owner.parts
        if owner.place < owner.last:
            self._send(y.detach().numpy(), owner.place + 1)
        self._kept[number] = x, y

    def _input(self, number: int) -> Tensor:
        """Return what the stage computes with, and know where its draws begin."""
        if self.owner.place == 0:
            return self.xs[number]
        array, self._rows, self._start = self._received(self.owner.place - 1)
        x = wrap(array)
        return x.requires_grad_() if is_float(x.dtype) else x

    @contextmanager
    def _drawing(self, number: int) -> Iterator[None]:
        """Draw a part's rows of what one process draws for the batch: all parts begin alike."""
        _draw_from(self._start)
        with drawing_rows(DrawRows(number, self.owner.parts, self._rows)):
            yield
        self.draws = _drawn_so_far()

    def backward(self, number: int) -> None:
        """Go back through the stage for one part, and send the gradient back."""
        owner = self.owner
        x, y = self._kept.pop(number)
        if owner.place == owner.last:
            y.backward()
        elif is_float(y.dtype):
            grad = wrap(self._received(owner.place + 1).array)
            if y.requires_grad:  # else there is nothing to train from here on
                y.backward(grad)
        if owner.place > 0 and is_float(x.dtype):
            left = x.grad
            self._send(
                np.zeros(x.shape, x.dtype) if left is None else left.numpy(), owner.place - 1
            )

    def _send(self, array: Array, target: int) -> None:
        parcel = _Parcel(np.array(array, order="C"), self._rows, self.draws)
        self.owner.group.exchanges.run(lambda: self._give(parcel, target))

    def _give(self, parcel: _Parcel, target: int) -> None:
        self._transport.send(parcel.header(), target, 1)
        self._transport.send(parcel.array, target, 2)

    def _received(self, source: int) -> _Parcel:
        parcel: _Parcel = self.owner.group.exchanges.run(lambda: self._taken(source))
        return parcel

    def _taken(self, source: int) -> _Parcel:
        header = np.zeros(_HEADER, np.int64)
        self._transport.receive(header, source, 1)
        parcel = _Parcel.announced(header)
        self._transport.receive(parcel.array, source, 2)
        return parcel
