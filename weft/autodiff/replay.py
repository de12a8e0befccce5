"""Run a region again for its gradient: compute what the derivative rules need, and no more.

Of each step the rules ask for some operands, some results, or only for shapes. What they ask for
and is not at hand (an input, or saved by the policy) is computed again, with what that takes. The
other steps leave a node on the tape without being run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core.dtype import is_float
from ..core.errors import user_site
from ..core.modes import current_transform
from ..core.tape import FanNode, output_node
from ..core.tensor import Tensor, wrap, wrap_with_node
from .region import Ref, RegionPlan, RegionStep, take
from .rules import Operation, has_rule


def replay_of(plan: RegionPlan, wanted: tuple[Ref, ...]) -> RegionReplay:
    """Return how to run a plan again for the gradients of some of its inputs."""
    found: RegionReplay | None = plan.replays.get(wanted)
    if found is None:
        found = plan.replays[wanted] = RegionReplay(plan, wanted)
    return found


class RegionReplay:
    """How a plan is run again when some of its inputs are differentiated.

    active      values that depend on those inputs
    asked       for each step the values that its derivative rules ask for
    all_asked   these together
    """

    def __init__(self, plan: RegionPlan, wanted: Iterable[Ref]) -> None:
        self.plan = plan
        self.active = set(wanted)
        self.asked = [self._asked(step) for step in plan.steps]
        self.all_asked = frozenset(n for values in self.asked for n in values)
        self._must_run: dict[frozenset[Ref], set[int]] = {}

    def _asked(self, step: RegionStep) -> list[Ref]:
        op = step.op
        if not step.recorded or not any(
            n in self.active and has_rule(op, i) for i, n in enumerate(step.inputs)
        ):
            return []
        pairs = zip(step.results(), step.types, strict=True)
        self.active.update([n for n, kind in pairs if is_float(kind.dtype)])
        if not hasattr(op, "saves"):  # it knows itself what it needs of its operands
            return [n for n in step.inputs if n is not None]
        op.specialized  # noqa: B018  (which finds out what is saved)
        last, saves = len(op.inputs) - 1, op.saves
        operands = enumerate(step.inputs)
        asked = [n for i, n in operands if n is not None and op.inputs[min(i, last)] in saves]
        return [*asked, *step.results()] if "out" in saves else asked

    def steps_to_run(self, kept: Iterable[Ref]) -> set[int]:
        """Return the places of the steps that must run, given the values that were kept."""
        known = frozenset(kept)
        found = self._must_run.get(known)
        if found is None:
            found = self._must_run[known] = self._steps_to_run(known)
        return found

    def _steps_to_run(self, known: frozenset[Ref]) -> set[int]:
        asked = set(self.all_asked - known)
        found: set[int] = set()
        for i in reversed(range(len(self.plan.steps))):
            step = self.plan.steps[i]
            if not asked.isdisjoint(step.results()) or (self.asked[i] and _runs_always(step.op)):
                found.add(i)
                asked.update([n for n in step.inputs if n is not None and n not in known])
        return found

    def outputs(self, inputs: Sequence[Tensor], kept: Mapping[Ref, Any]) -> list[Any]:
        """Return the outputs at their places on the tape; some have no value."""
        if current_transform() is not None:
            return self.plan.forward(inputs)
        values: dict[Ref, Any] = {-1 - i: x for i, x in enumerate(inputs)}
        must_run = self.steps_to_run(kept)
        for i, step in enumerate(self.plan.steps):
            if i in must_run:
                take(step, values)
            elif self.active.isdisjoint(step.results()):
                values.update((n, wrap(kept[n])) for n in step.results() if n in kept)
            else:
                self._mark(step, values, kept)
            self.plan.drop(i, values)
        return [values.get(n) for n in self.plan.outputs]

    def _mark(self, step: RegionStep, values: dict[Ref, Any], kept: Mapping[Ref, Any]) -> None:
        """Leave the node of a step on the tape, without running it."""
        tensors = [None if n is None else values.get(n) for n in step.inputs]
        operands = tuple(map(self._known, step.inputs, tensors))
        found = tuple(kept.get(n, kind) for n, kind in zip(step.results(), step.types, strict=True))
        operation = Operation(step.op, operands, step.attrs, found if step.many else found[0])
        parents = tuple(None if x is None else x._node for x in tensors)
        node = operation.node(parents, user_site())
        for i, n in enumerate(step.results()):
            place = output_node(node, i) if isinstance(node, FanNode) else node
            values[n] = wrap_with_node(kept.get(n), place if n in self.active else None)  # type: ignore[arg-type]  # no value

    def _known(self, n: Ref | None, x: Tensor | None) -> Any:
        """Return the array of an operand; its type, if it was not computed again."""
        if n is None:
            return None
        return self.plan.types[n] if x is None or x._value is None else x._value


def _runs_always(op: Any) -> bool:
    """Tell whether only running an operation can say what its derivative needs."""
    return not hasattr(op, "saves") and not hasattr(op, "saved_for")
