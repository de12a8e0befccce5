"""A training step as it was measured: times of kernels, and when gradients are complete."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, NamedTuple

import numpy as np

from ...capture.jitted import Jitted
from ...core.errors import ArgumentError, ArgumentTypeError
from ...core.tensor import Tensor
from ...graph.communication import START, WAIT
from ...lower.kernels import written_buffers

HANDING: Final = 30e-6  # seconds from the end of an exchange until who waits goes on


@dataclass(frozen=True)
class Gradient:
    """A parameter's gradient.

    size    bytes
    ready   seconds from the start of the step until it is complete
    update  seconds that updating the parameter takes afterwards
    """

    name: str
    size: int
    ready: float
    update: float


class StepEvent(NamedTuple):
    """What a rank does next in a step.

    seconds    of computing, of beginning an exchange or of taking its result, without waiting
    how        of an exchange that begins: what becomes of the tensors of all ranks
    exchange   which one it begins or waits for; None: it computes
    size       bytes of what is exchanged
    """

    seconds: float
    exchange: int | None = None
    how: str | None = None
    size: int = 0


@dataclass(frozen=True)
class MeasuredStep:
    """What is known of a step on one rank.

    seconds      of the whole step
    computing    of forward and backward
    gradients    in the order in which they are complete
    parameters, slots, activations   bytes: of the parameters, of what the optimizer keeps, and of
                 everything that lives within a step but gradients
    events       of a step that exchanges gradients itself, in a group of one: all of it in order
    """

    seconds: float
    computing: float
    gradients: tuple[Gradient, ...]
    parameters: int
    slots: int
    activations: int
    events: tuple[StepEvent, ...] = ()

    @property
    def alone(self) -> float:
        """Return the seconds of a step that exchanges nothing."""
        own = sum(event.seconds for event in self.events if event.exchange is None)
        return own if self.events else self.seconds

    @property
    def gradient_bytes(self) -> int:
        """Return the bytes of all gradients."""
        return sum(g.size for g in self.gradients)


def measure(step: Any, inputs: Sequence[Any], runs: int = 10) -> MeasuredStep:
    """Measure the kernels of a training step; nothing is changed by it.

    A step whose model is `parallel`, in a group of this process alone, is measured with all that it
    does for exchanges: copies into buckets and out of them, updates that wait for them.
    """
    if not isinstance(step, Jitted):
        raise ArgumentTypeError(
            "simulate takes a training step that wf.jit made: forward, backward and the step of an "
            f"optimizer. Received: {type(step).__name__}"
        )
    executable, arrays = step.code_of(tuple(inputs))
    profile = executable.profile(arrays, runs=runs)
    kernels = executable.ordered_kernels()
    times = [kernel.minimum for kernel in profile.kernels]
    # What the host does between kernels, spread over them.
    scale = profile.seconds / sum(times) if sum(times) else 1.0
    return _analysed(executable, kernels, [t * scale for t in times], profile.seconds)


def _analysed(
    executable: Any, kernels: Sequence[Any], times: Sequence[float], seconds: float
) -> MeasuredStep:
    program, states = executable.program, executable.plan.sources.states
    events = _events(kernels, times)
    commits = {view.buffer: number for number, view in program.commits}
    writers = {buffer: i for i, kernel in enumerate(kernels) for buffer in written_buffers(kernel)}
    parameters = {b: n for b, n in commits.items() if _is_parameter(states[n])}
    if not parameters:
        raise ArgumentError(
            "simulate: the step changes no parameters that have gradients; it must be a training "
            "step, with backward and the step of an optimizer"
        )
    updates = {writers[b] for b in parameters if b in writers}
    completed = {b: _completed(b, kernels, writers) for b in parameters}
    pure = updates - set(completed.values())  # kernels that only update
    clock, now = [], 0.0
    for i, took in enumerate(times):
        now += 0.0 if i in pure else took
        clock.append(now)
    gradients = [
        Gradient(
            states[n].name,
            _bytes(program.states[n]),
            clock[completed[b]],
            times[writers[b]] if writers[b] in pure else 0.0,
        )
        for b, n in parameters.items()
    ]
    ordered = sorted(gradients, key=lambda g: g.ready)
    return _with_memory(executable, seconds, now, ordered, events)


def _events(kernels: Sequence[Any], times: Sequence[float]) -> tuple[StepEvent, ...]:
    """Return what a rank does, exchange by exchange; nothing if there are none."""
    begun: dict[Any, int] = {}
    events: list[StepEvent] = []
    rate = 0.0
    for kernel, took in zip(kernels, times, strict=True):
        op = _op(kernel)
        if op is START:
            begun[kernel.outputs[1].buffer] = number = len(begun)
            size = _bytes(kernel.inputs[1])
            events.append(StepEvent(took, number, kernel.attrs[0], size))
        elif op is WAIT:
            # Alone too it waits for the thread; what remains is to copy the result.
            rate = rate or _copy_rate()
            own = HANDING + _bytes(kernel.outputs[0]) / rate
            events.append(StepEvent(min(took, own), begun[kernel.inputs[0].buffer]))
        elif events and events[-1].exchange is None:
            events[-1] = StepEvent(events[-1].seconds + took)
        else:
            events.append(StepEvent(took))
    return tuple(events) if begun else ()


def _copy_rate() -> float:
    """Return how many bytes this machine copies in a second."""
    source = np.ones(2**20, np.float32)
    target = np.empty_like(source)
    best = math.inf
    for _ in range(8):
        began = perf_counter()
        np.copyto(target, source)
        best = min(best, perf_counter() - began)
    return float(source.nbytes / best)


def _with_memory(
    executable: Any,
    seconds: float,
    computing: float,
    gradients: list[Gradient],
    events: tuple[StepEvent, ...],
) -> MeasuredStep:
    states = executable.plan.sources.states
    kept = {n: _bytes(slot) for n, slot in enumerate(executable.program.states)}
    own = sum(size for n, size in kept.items() if isinstance(states[n].owner, Tensor))
    grads = sum(g.size for g in gradients)
    memory = executable.plan.memory
    handed_out = sum(b.nbytes for b in memory.fresh)  # gradients that stay, in `.grad`
    inside = max(0, grads - handed_out)
    activations = max(0, int(memory.arena_bytes) - inside)
    return MeasuredStep(
        seconds, computing, tuple(gradients), own, sum(kept.values()) - own, activations, events
    )


def _completed(buffer: Any, kernels: Sequence[Any], writers: dict[Any, int]) -> int:
    """Return which kernel completes the gradient of a parameter, whose new value is in a buffer.

    That is the last one, before its update, that computed something of its size; or, where the
    update is a part of the kernel that computes the gradient, that kernel.
    """
    last = writers[buffer]
    size = int(np.prod(buffer.shape))
    read = {view.buffer for view in kernels[last].views}
    exchanged = [b for b in read if b in writers and _op(kernels[writers[b]]) is WAIT]
    if exchanged:  # then it was complete when it began to travel
        ticket = kernels[writers[exchanged[0]]].inputs[0].buffer
        return writers[ticket]
    found = [
        writers[b]
        for b in read
        if b in writers and writers[b] < last and int(np.prod(b.shape)) == size
    ]
    return max(found, default=last)


def _op(kernel: Any) -> Any:
    return getattr(kernel, "op", None)


def _is_parameter(state: Any) -> bool:
    return isinstance(state.owner, Tensor) and bool(state.owner.requires_grad)


def _bytes(slot: Any) -> int:
    return int(np.prod(slot.shape)) * int(slot.dtype.itemsize)
