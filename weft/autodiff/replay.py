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
from ..core.modes import current_interpreter
from ..core.tape import FanNode, Node, next_order, output_node
from ..core.tensor import Tensor, wrap, wrap_with_node
from .region import Plan, Ref, Step
from .rules import Operation, has_rule


class Replay:
    """How a plan is run again when some of its inputs are differentiated.

    active   values that depend on those inputs
    run      steps that must run, by their place
    """

    def __init__(self, plan: Plan, wanted: Iterable[Ref], kept: Iterable[Ref]) -> None:
        self.plan = plan
        self.active = set(wanted)
        for step in plan.steps:
            if self._passes(step):
                pairs = zip(step.results(), step.types, strict=True)
                self.active.update(n for n, kind in pairs if is_float(kind.dtype))
        self.run = self._must_run(set(kept))

    def _passes(self, step: Step) -> bool:
        """Tell whether a step has a derivative with respect to an active value."""
        return step.recorded and any(
            n in self.active and has_rule(step.op, i) for i, n in enumerate(step.inputs)
        )

    def asked(self, step: Step) -> list[Ref]:
        """Return the values that the derivative rules of a step ask for."""
        if not self._passes(step):
            return []
        saves = _saves(step.op)
        if saves is None:
            return [n for n in step.inputs if n is not None]
        last = len(step.op.inputs) - 1
        names = [step.op.inputs[min(i, last)] for i in range(len(step.inputs))]
        asked = [n for name, n in zip(names, step.inputs, strict=True) if name in saves]
        return [n for n in asked if n is not None] + (
            list(step.results()) if "out" in saves else []
        )

    def _must_run(self, kept: set[Ref]) -> set[int]:
        asked = {n for step in self.plan.steps for n in self.asked(step)} - kept
        found: set[int] = set()
        for i in reversed(range(len(self.plan.steps))):
            step = self.plan.steps[i]
            if not asked.isdisjoint(step.results()) or _runs_always(step, self.asked(step)):
                found.add(i)
                asked.update(n for n in step.inputs if n is not None and n not in kept)
        return found

    def outputs(self, inputs: Sequence[Tensor], kept: Mapping[Ref, Any]) -> list[Any]:
        """Return the outputs at their places on the tape; some have no value."""
        if current_interpreter() is not None:
            return self.plan.forward(inputs)
        values: dict[Ref, Any] = {-1 - i: x for i, x in enumerate(inputs)}
        for i, step in enumerate(self.plan.steps):
            if i in self.run:
                self.plan.take(step, values)
            elif self.active.isdisjoint(step.results()):
                values.update((n, wrap(kept[n])) for n in step.results() if n in kept)
            else:
                self._mark(step, values, kept)
            self.plan.drop(i, values)
        return [values.get(n) for n in self.plan.outputs]

    def _mark(self, step: Step, values: dict[Ref, Any], kept: Mapping[Ref, Any]) -> None:
        """Leave the node of a step on the tape, without running it."""
        tensors = [None if n is None else values.get(n) for n in step.inputs]
        operands = tuple(map(self._known, step.inputs, tensors))
        found = tuple(kept.get(n, kind) for n, kind in zip(step.results(), step.types, strict=True))
        node = FanNode() if step.many else Node()
        node.parents = tuple(None if x is None else x._node for x in tensors)
        _fill(node, Operation(step.op, operands, step.attrs, found if step.many else found[0]))
        for i, n in enumerate(step.results()):
            place = output_node(node, i) if isinstance(node, FanNode) else node
            values[n] = wrap_with_node(kept.get(n), place if n in self.active else None)  # type: ignore[arg-type]  # no value

    def _known(self, n: Ref | None, x: Tensor | None) -> Any:
        """Return the array of an operand; its type, if it was not computed again."""
        if n is None:
            return None
        return self.plan.types[n] if x is None or x._value is None else x._value


def _fill(node: Node, operation: Operation) -> None:
    op = operation.op
    op.specialized  # noqa: B018  (generates the rules' function on first use)
    node.order = next_order()
    node.op, node.attrs, node.watch = op, operation.attrs, None
    node.shapes = operation._shapes()
    node.code, node.offset = user_site() or (None, 0)
    if isinstance(node, FanNode):
        node.outputs = tuple((y.shape, y.dtype) for y in operation.outputs)
    make = getattr(op, "saved_for", None)
    node.saved = make(operation) if make is not None else tuple(map(operation.lookup, op.saves))


def _saves(op: Any) -> tuple[str, ...] | None:
    """Return the names that the rules of an operator ask for; None if it has none of its own."""
    if not hasattr(op, "saves"):
        return None
    op.specialized  # noqa: B018  (which finds out)
    saves: tuple[str, ...] = op.saves
    return saves


def _runs_always(step: Step, asked: list[Ref]) -> bool:
    """Tell whether only running a step can say what its derivative needs."""
    return bool(asked) and not hasattr(step.op, "saves") and not hasattr(step.op, "saved_for")
