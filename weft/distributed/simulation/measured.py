"""A training step as it was measured: times of kernels, and when gradients are complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...capture.jitted import Jitted
from ...core.errors import ArgumentError, ArgumentTypeError
from ...core.tensor import Tensor
from ...lower.kernels import written_buffers


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


@dataclass(frozen=True)
class MeasuredStep:
    """What is known of a step on one rank.

    seconds      of the whole step
    computing    of forward and backward
    gradients    in the order in which they are complete
    parameters, slots, activations   bytes: of the parameters, of what the optimizer keeps, and of
                 everything that lives within a step but gradients
    """

    seconds: float
    computing: float
    gradients: tuple[Gradient, ...]
    parameters: int
    slots: int
    activations: int

    @property
    def gradient_bytes(self) -> int:
        """Return the bytes of all gradients."""
        return sum(g.size for g in self.gradients)


def measure(step: Any, inputs: Sequence[Any], runs: int = 10) -> MeasuredStep:
    """Measure the kernels of a training step; nothing is changed by it."""
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
    return _with_memory(executable, seconds, now, sorted(gradients, key=lambda g: g.ready))


def _with_memory(
    executable: Any, seconds: float, computing: float, gradients: list[Gradient]
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
        seconds, computing, tuple(gradients), own, sum(kept.values()) - own, activations
    )


def _completed(buffer: Any, kernels: Sequence[Any], writers: dict[Any, int]) -> int:
    """Return which kernel completes the gradient of a parameter, whose new value is in a buffer.

    That is the last one, before its update, that computed something of its size; or, where the
    update is a part of the kernel that computes the gradient, that kernel.
    """
    last = writers[buffer]
    size = int(np.prod(buffer.shape))
    read = {view.buffer for view in kernels[last].views}
    found = [
        writers[b]
        for b in read
        if b in writers and writers[b] < last and int(np.prod(b.shape)) == size
    ]
    return max(found, default=last)


def _is_parameter(state: Any) -> bool:
    return isinstance(state.owner, Tensor) and bool(state.owner.requires_grad)


def _bytes(slot: Any) -> int:
    return int(np.prod(slot.shape)) * int(slot.dtype.itemsize)
