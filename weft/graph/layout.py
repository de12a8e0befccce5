"""Lay out a program that runs node by node: its steps, and the slots that values lie in.

Slots are numbered, and cleared as soon as nobody needs what is in them. Compiled programs need none
of this, so it is made when a program is first run by its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.dim import Dim, SizeVar
from .node import Node, Value, attr_items, is_graph
from .special import ASSIGN, CONSTANT, STATE
from .state import State

Array = np.ndarray[Any, Any]
Resolve = Callable[[Value], Value]


class ProgramStep(NamedTuple):
    """One node, ready to run.

    inputs    slots of the operands (-1 for one left out); `fixed` of them stand alone and the rest
              form a list, if the operator takes any number
    outputs   slots of the results
    checked   whether the operator must check its attributes again, now that sizes are known
    tells     which axis of which result tells an unknown size
    frees     slots that nobody needs after this step
    """

    node: Node
    kernel: Callable[..., Any]
    inputs: tuple[int, ...]
    fixed: int | None
    attrs: tuple[Any, ...]
    sized: bool
    checked: bool
    nested: bool
    outputs: tuple[int, ...]
    tells: tuple[tuple[int, int, SizeVar], ...]
    frees: tuple[int, ...]


class ProgramLayout(NamedTuple):
    """The steps of a program, what lies in which slot, and how many slots there are."""

    steps: list[ProgramStep]
    constants: list[tuple[int, Array]]
    states: list[tuple[int, State]]
    slots: dict[Value, int]
    size: int


def lay_out(
    nodes: Sequence[Node],
    order: Sequence[Node],
    feeds: Sequence[Value],
    kept: Sequence[Value],
    resolved: Resolve,
) -> ProgramLayout:
    """Return the layout of a program.

    nodes      those it needs, also if they are not run
    order      those it runs
    feeds      values that are given
    kept       values that are needed when it has ended
    resolved   gives the value that stands for one
    """
    maker = _LayoutMaker(nodes, feeds, kept, resolved)
    for node in order:
        maker.place(node)
    for value in kept:
        maker.slot(value)  # what is fed and fetched, and what no step touches, has one too
    return ProgramLayout(maker.steps, maker.constants, maker.states, maker.slots, len(maker.slots))


class _LayoutMaker:
    """Gives values their slots, and nodes their steps, one after another."""

    def __init__(
        self,
        nodes: Sequence[Node],
        feeds: Sequence[Value],
        kept: Sequence[Value],
        resolved: Resolve,
    ) -> None:
        self.resolved = resolved
        self.slots: dict[Value, int] = {}
        self.constants: list[tuple[int, Array]] = []
        self.states: list[tuple[int, State]] = []
        self.steps: list[ProgramStep] = []
        self._last = self._last_uses(nodes, kept)
        self._fed = set(feeds)
        self._told: set[SizeVar] = set()
        for value in feeds:
            self._tell(value)

    def _last_uses(self, nodes: Iterable[Node], kept: Sequence[Value]) -> dict[Value, Node | None]:
        """Return the node after which each value is not needed; None for those kept to the end."""
        last: dict[Value, Node | None] = {}
        for node in nodes:
            for value in node.inputs:
                if value is not None:
                    last[self.resolved(value)] = node
        return last | {self.resolved(value): None for value in kept}

    def slot(self, value: Value) -> int:
        """Return the number of the slot that holds a value."""
        value = self.resolved(value)
        return self.slots.setdefault(value, len(self.slots))

    def place(self, node: Node) -> None:
        """Let a node be run next; sources lie in their slots from the start."""
        if all(value in self._fed for value in node.outputs):
            return
        (first, *_) = node.outputs
        if node.op is CONSTANT:
            self.constants.append((self.slot(first), node.attrs[0].array))
        elif node.op is STATE:
            self.states.append((self.slot(first), node.attrs[0]))
        elif node.op is not ASSIGN:
            self.steps.append(self._step(node))

    def _step(self, node: Node) -> ProgramStep:
        op = node.op
        outputs = tuple(-1 if value in self._fed else self.slot(value) for value in node.outputs)
        return ProgramStep(
            node,
            op.kernel,
            tuple(-1 if value is None else self.slot(value) for value in node.inputs),
            len(op.inputs) - 1 if op.variadic else None,
            node.attrs,
            any(item.__class__ is Dim for item in attr_items(node.attrs)),
            op.kind != "control" and has_unknown_sizes(op, node.inputs),
            any(is_graph(item) for item in attr_items(node.attrs)),
            outputs,
            tuple((i, *told) for i, value in enumerate(node.outputs) for told in self._tell(value)),
            self._freed_after(node),
        )

    def _tell(self, value: Value) -> tuple[tuple[int, SizeVar], ...]:
        """Return the axes of a value that tell sizes nothing before it told."""
        found = []
        for axis, size in enumerate(value.shape):
            variable = size.variable() if isinstance(size, Dim) else None
            if variable is not None and variable not in self._told:
                self._told.add(variable)
                found.append((axis, variable))
        return tuple(found)

    def _freed_after(self, node: Node) -> tuple[int, ...]:
        touched = [self.resolved(v) for v in (*node.inputs, *node.outputs) if v is not None]
        return tuple(
            self.slot(value)
            for value in dict.fromkeys(touched)
            if self._last.get(value, node) is node
        )


def has_unknown_sizes(op: Any, inputs: Iterable[Any]) -> bool:
    """Tell whether an operand's size, which a check of the operator may need, is not known."""
    if getattr(op, "canonicalize", None) is None:
        return False
    return any(isinstance(size, Dim) for x in inputs if x is not None for size in x.shape)
