"""A stretch of an eager program as a list of steps, to be run again.

While the function of a checkpoint runs, an interpreter writes down the operations on tensors, but
keeps no results. What the steps take from outside are the region's inputs: arguments, and whatever
else the function uses. Running the steps again needs no Python of the user's: a region draws the
same random numbers (a draw takes the generator's state as an operand) and has no side effects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from ..core.dispatch import run
from ..core.modes import current_transform, interpret_with, is_grad_enabled, modes, no_grad
from ..core.op import Op, random
from ..core.shape import TensorType
from ..core.tensor import Tensor, placed_like, wrap, wrap_with_node
from .layered import Layered, Running, TransformLevel, make_layer
from .policies import Policy, nothing

CHECKPOINT = "checkpoint"  # the kind of operation that a region is to regions around it
Ref = int  # a value of a region: results of steps count from 0 up, inputs from -1 down


class RegionStep(NamedTuple):
    """One operation of a region.

    inputs     the operands, None for one left out
    outputs    the first of the results, which are numbered one after another
    types      of the results; None for `many` says that there is one, and no tuple of them
    recorded   whether gradients were enabled
    """

    op: Any
    attrs: tuple[Any, ...]
    inputs: tuple[Ref | None, ...]
    outputs: Ref
    types: tuple[TensorType, ...]
    many: bool
    recorded: bool

    def results(self) -> range:
        """Return the numbers of the results."""
        return range(self.outputs, self.outputs + len(self.types))


class Inside(Layered):
    """A result of a step, by its number in a region."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"checkpointed({self.primal!r})"

    def _move_into(self, target: Tensor) -> None:
        if is_grad_enabled():
            super()._move_into(target)
        else:  # a statistic that the function leaves behind is a value
            self.primal._move_into(target)


class CheckpointRegion:
    """Runs operations unrecorded, and writes them down as steps."""

    def __init__(self, around: Any, policy: Policy) -> None:
        self.around = around  # the region of a checkpoint that this one is inside of, or None
        self.below = around
        self.policy = policy
        self.level = TransformLevel("checkpoint")
        self.steps: list[RegionStep] = []
        self.inputs: list[Tensor] = []
        self.kept: dict[Ref, Any] = {}
        self.count = 0
        self._known: dict[tuple[int, int], Ref] = {}

    def run(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call a function and write down what it does."""
        with Running(self):
            return fn(*args, **kwargs)

    def is_inside(self, x: Any) -> bool:
        """Tell whether a value is a result of a step."""
        return isinstance(x, Inside) and x.level is self.level

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run one operation; it is a step unless it works on constants alone."""
        values, is_step = [], op.kind == random
        for x in inputs:
            value = plain(x)
            linked = value is not None and value._node is not None
            values.append(placed_like(value, wrap(value._value)) if linked else value)
            is_step = is_step or linked or value is not x
        if isinstance(op, Op):  # without a node among the operands, nothing is recorded
            base = modes.base
            execute = op.specialized.execute if base is None else partial(base.apply, op)
            out = execute(tuple(values), attrs)
        else:
            with interpret_with(None), no_grad():
                out = run(op, tuple(values), attrs)
        return self.add(op, inputs, attrs, out, is_grad_enabled()) if is_step else out

    def add(
        self, op: Any, inputs: Sequence[Any], attrs: tuple[Any, ...], out: Any, recorded: bool
    ) -> Any:
        """Append a step whose results are known."""
        many = isinstance(out, tuple)
        outputs = out if many else (out,)
        refs = tuple([None if x is None else self.ref(x) for x in inputs])
        types = tuple([TensorType(y.shape, y.dtype) for y in outputs])
        first = self.count
        self.steps.append(RegionStep(op, attrs, refs, first, types, many, recorded))
        if self.policy is not nothing and _saves(self.policy, op, inputs, attrs):
            self.kept.update((first + i, y._value) for i, y in enumerate(outputs))
        self.count += len(outputs)
        if not many:
            return make_layer(Inside, out, first, self.level)
        return tuple([make_layer(Inside, y, first + i, self.level) for i, y in enumerate(outputs)])

    def ref(self, x: Tensor) -> Ref:
        """Return the number of a value; what comes from outside becomes an input."""
        if self.is_inside(x):
            number: Ref = x.extra
            return number
        inside = isinstance(x, Inside)
        held = x if inside else placed_like(x, wrap_with_node(x._value, x._node))
        parts = (held.primal, held.extra) if isinstance(held, Inside) else (x._value, x._node)
        key = (id(parts[0]), id(parts[1]))
        if key not in self._known:
            self.inputs.append(held)  # which keeps the parts, and so their ids, alive
            self._known[key] = -len(self.inputs)
        return self._known[key]


def plain(x: Any) -> Any:
    """Return the plain tensor inside regions."""
    while isinstance(x, Inside):
        x = x.primal
    return x


def _saves(policy: Policy, op: Any, inputs: Iterable[Any], attrs: tuple[Any, ...]) -> bool:
    types = [None if x is None else TensorType(x.shape, x.dtype) for x in inputs]
    return bool(policy(op, *types, **dict(zip(op.attrs, attrs, strict=True))))


class RegionPlan:
    """The steps of a region that make given outputs, and what is known of them beforehand.

    last      for each value the last step that needs it
    drops     for each step the values that no later step needs
    replays   how to run again, by the inputs that are differentiated (replay.py)
    """

    def __init__(self, steps: Sequence[RegionStep], outputs: Sequence[Ref]) -> None:
        self.outputs = tuple(outputs)
        self.steps = _needed(steps, self.outputs)
        self.types = {
            n: kind
            for step in self.steps
            for n, kind in zip(step.results(), step.types, strict=True)
        }
        self.last: dict[Ref, int] = {}
        for i, step in enumerate(self.steps):
            self.last.update((n, i) for n in (*step.results(), *step.inputs) if n is not None)
        self.last.update((n, len(self.steps)) for n in self.outputs)
        self.drops: list[list[Ref]] = [[] for _ in range(len(self.steps) + 1)]
        for n, i in self.last.items():
            self.drops[i].append(n)
        self.replays: dict[tuple[Ref, ...], Any] = {}

    def forward(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return the outputs for other inputs."""
        values: dict[Ref, Any] = {-1 - i: x for i, x in enumerate(inputs)}
        for i, step in enumerate(self.steps):
            take(step, values)
            self.drop(i, values)
        return [values[n] for n in self.outputs]

    def drop(self, i: int, values: dict[Ref, Any]) -> None:
        """Forget what no step after this one needs."""
        for n in self.drops[i]:
            values.pop(n, None)


def plan_of(steps: Sequence[RegionStep], outputs: Sequence[Ref]) -> RegionPlan:
    """Return a plan: the same one for regions that do the same, as the blocks of a network do."""
    if not all(isinstance(step.op, Op) for step in steps):
        return RegionPlan(
            steps, outputs
        )  # other operations may hold arrays, which must not live on
    texts = tuple([repr(step.attrs) for step in steps if step.attrs])  # 1, 1.0 and True are equal
    try:
        return _shared_plan(tuple(steps), tuple(outputs), texts)
    except TypeError:  # attributes that cannot be hashed
        return RegionPlan(steps, outputs)


@lru_cache(maxsize=64)
def _shared_plan(
    steps: tuple[RegionStep, ...], outputs: tuple[Ref, ...], texts: tuple[str, ...]
) -> RegionPlan:
    return RegionPlan(steps, outputs)


def take(step: RegionStep, values: dict[Ref, Any]) -> None:
    """Run a step."""
    operands = tuple([None if n is None else values[n] for n in step.inputs])
    if step.recorded:
        out = _run(step, operands)
    else:
        with no_grad():
            out = _run(step, operands)
    if step.many:
        values.update(zip(step.results(), out, strict=True))
    else:
        values[step.outputs] = out


def _run(step: RegionStep, operands: tuple[Any, ...]) -> Any:
    if step.op.kind == CHECKPOINT and current_transform() is not None:
        return tuple(step.op.plan.forward(operands))  # which only the tape can put off
    return run(step.op, operands, step.attrs)


def _needed(steps: Sequence[RegionStep], outputs: Sequence[Ref]) -> list[RegionStep]:
    needed = set(outputs)
    kept = []
    for step in reversed(steps):
        if not needed.isdisjoint(step.results()):
            kept.append(step)
            needed.update(n for n in step.inputs if n is not None)
    return kept[::-1]
