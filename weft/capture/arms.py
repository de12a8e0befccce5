"""Join two paths into one graph: what both compute once, and `cond` where they are apart.

Nodes of both are laid side by side (alignment.py). Each stretch that one path has alone becomes an
arm of a cond; a node that both have stands outside, and where its operands differ it takes what a
cond gives. Each path so runs the very nodes that its own program has.

Every value is spoken of by the name that it has on one side: of what both have, that of the path
on which the condition holds.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.op import random
from ..graph.draws import is_threaded
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.special import ASSIGN, CONSTANT, PLACEHOLDER, SOURCES, STATE
from .alignment import NodeLetters, Pair, Stretch, align
from .branches import NO, YES, Arm, Choice, Gap, add_cond
from .flow import NotJoinedError, PathFlow
from .looks import PathCondition, wrong


def join(yes: PathFlow, no: PathFlow, at: int) -> PathFlow:
    """Return one flow for two that part at a condition, which holds on the first alone.

    They have the conditions before it in common.
    """
    return _Join(yes, no, at).flow()


class CommonNode(NamedTuple):
    """A node that both paths have, with the operands of each."""

    node: Node
    operands: list[Choice | None]


class _Join:
    """The join of two flows."""

    def __init__(self, yes: PathFlow, no: PathFlow, at: int) -> None:
        self.flows, self.at = (yes, no), at
        self.graph = Graph(yes.graph.name)
        self.graph.counts_every_draw = True
        self.common: dict[Value, Value] = {}  # values of `no`, and of `yes` the same ones
        self.made: dict[Value, tuple[int, int]] = {}  # those of arms: side and gap
        self.since: dict[Value, int] = {}  # those both have: the first gap behind them
        self.items: list[Gap | CommonNode] = []
        self.gaps: list[Gap] = []
        self.now: tuple[dict[Value, Value], dict[Value, Value]] = ({}, {})
        self.chosen: dict[Choice, Value] = {}
        self.keys: dict[Value, Hashable] = {}
        self._share_sources()

    # -- what both have ----------------------------------------------------------------------------

    def _share_sources(self) -> None:
        """Place what nobody computes: placeholders, states and constants, of both paths once."""
        known: dict[Hashable, Value] = {}
        for flow in self.flows:
            for node in flow.graph.nodes:
                if node.op in SOURCES and _is_given(flow, node):
                    (value,) = node.outputs
                    first = known.setdefault(_source_key(flow, node), value)
                    if first is value:
                        self._place_source(flow, node)
                    self.common[value] = first

    def _place_source(self, flow: PathFlow, node: Node) -> None:
        (value,) = node.outputs
        self.graph.append(node)
        self.now[YES][value] = self.now[NO][value] = value
        if node.op is PLACEHOLDER:
            self.keys[value] = flow.keys[value]

    def _name(self, value: Value) -> Value:
        """Return the name of a value of either path."""
        return self.common.get(value, value)

    def _same(self, pair: Pair) -> bool:
        """Tell whether nodes take the same values, and make of them one that both have."""
        a, b = ([None if x is None else self._name(x) for x in node.inputs] for node in pair)
        if a != b:
            return False
        self._identify(pair)
        return True

    def _identify(self, pair: Pair) -> None:
        for y, z in zip(pair[YES].outputs, pair[NO].outputs, strict=True):
            self.common[z] = y

    # -- the plan ----------------------------------------------------------------------------------

    def flow(self) -> PathFlow:
        """Return the flow of both."""
        letters = NodeLetters(self._name)
        (ahead, rest), (ahead_too, rest_too) = map(self._halves, self.flows)
        (first, *parted) = align(ahead, ahead_too, letters, self._same)
        if any(part.yes or part.no or part.same for part in parted):
            raise NotJoinedError("conditions are computed in other ways")
        self._plan(first)
        for stretch in align(rest, rest_too, letters, self._same):
            self._plan(stretch)
        return self._finished()

    def _halves(self, flow: PathFlow) -> tuple[list[Node], list[Node]]:
        """Return the nodes that the conditions need, up to the one that decides, and the others."""
        asked = [condition.value for condition in flow.conditions[: self.at + 1]]
        ends = [*flow.fetches, *(value for _, value in flow.commits.values())]
        ends += [condition.value for condition in flow.conditions]
        computed = [
            node
            for node in flow.graph.ancestors(ends)
            if node.op not in SOURCES and node.op is not ASSIGN
        ]
        first = set(flow.graph.ancestors(asked))
        return [n for n in computed if n in first], [n for n in computed if n not in first]

    def _plan(self, stretch: Stretch) -> None:
        """Take nodes into the plan: what both have, or a gap."""
        for pair in stretch.same:
            operands = [
                None if x is None or y is None else self._choice(x, y)
                for x, y in zip(pair[YES].inputs, pair[NO].inputs, strict=True)
            ]
            self._identify(pair)
            for value in pair[YES].outputs:
                self.since[value] = len(self.gaps)
            self.items.append(CommonNode(pair[YES], operands))
        if stretch.yes or stretch.no:
            gap = self._open(stretch.yes, stretch.no)
            for side in (YES, NO):
                self._plan_arm(side, gap.nodes[side])

    def _open(self, yes: list[Node], no: list[Node]) -> Gap:
        gap = Gap(yes, no)
        self.items.append(gap)
        self.gaps.append(gap)
        return gap

    def _plan_arm(self, side: int, nodes: list[Node]) -> None:
        number = len(self.gaps) - 1
        for node in nodes:
            if node.op.kind == random or node.op.advances or _threads(node):
                raise NotJoinedError("a branch draws random numbers, or shows values")
            for x in node.inputs:
                if x is not None:
                    self._need(side, self._name(x), number)
            self.made.update(dict.fromkeys(node.outputs, (side, number)))

    def _need(self, side: int, value: Value, number: int) -> None:
        """See to it that an arm finds a value that an earlier one has made."""
        made = self.made.get(value)
        if made is not None and made[1] < number:
            self.gaps[made[1]].alone[side][value] = None

    def _choice(self, x: Value, y: Value) -> Choice:
        """Return what both paths take at one place; unless it is the same, a cond gives it."""
        choice = self._name(x), self._name(y)
        if choice[YES] is not choice[NO]:
            self._gap_behind(choice).choices[choice] = None
        return choice

    def _gap_behind(self, choice: Choice) -> Gap:
        """Return the first gap that comes behind both values, a new one if there is none."""
        number = max(self._available(value) for value in choice if value is not None)
        if number == len(self.gaps):
            self._open([], [])
        for side in (YES, NO):
            value = choice[side]
            if value is not None:
                self._need(side, value, number)
        return self.gaps[number]

    def _available(self, value: Value) -> int:
        made = self.made.get(value)
        return self.since.get(value, 0) if made is None else made[1]

    # -- what is asked of the whole ----------------------------------------------------------------

    def _finished(self) -> PathFlow:
        yes, no = self.flows
        fetches, slots = self._fetches()
        commits = self._commits()
        asked = self._asked()
        rest = self._rest()
        self._emit()
        conditions = [
            PathCondition(self._value(choice), one.seen, one.branch)
            for choice, one in zip(asked, yes.conditions, strict=False)
        ]
        if rest is not None:
            conditions.append(PathCondition(self._value(rest), seen=False, branch=False))
        return PathFlow(
            self.graph,
            self.keys,
            {**no.feeds, **yes.feeds},
            [self._value(choice) for choice in fetches],
            slots,
            {key: (state, self._value(choice)) for key, (state, choice) in commits.items()},
            conditions,
        )

    def _fetches(self) -> tuple[list[Choice], dict[int, list[int]]]:
        """Return the fetches of both, those of one type in one place, and which each path has."""
        yes, no = ([self._name(value) for value in flow.fetches] for flow in self.flows)
        places = [0, *(1 + place for place in _shared_places(yes[1:], no[1:]))]  # paths first
        count = max([len(yes), *(place + 1 for place in places)])
        at = dict(zip(places, no, strict=True))
        first = dict(enumerate(yes))
        chosen = [self._chosen(first.get(i), at.get(i)) for i in range(count)]
        slots = dict(self.flows[YES].slots)
        for path, own in self.flows[NO].slots.items():
            slots[path] = [places[i] for i in own]
        return chosen, slots

    def _chosen(self, x: Value | None, y: Value | None) -> Choice:
        if x is not None and y is not None:
            return self._choice(x, y)
        value = x if x is not None else y
        assert value is not None
        if value not in self.made:
            return value, value
        choice: Choice = (x, y)
        self._gap_behind(choice).choices[choice] = None
        return choice

    def _commits(self) -> dict[tuple[int, str], tuple[Any, Choice]]:
        """Return what states are in the end; on a path that does not write one, as it was."""
        yes, no = (flow.commits for flow in self.flows)
        found = {}
        for key in dict.fromkeys([*yes, *no]):
            state = (yes.get(key) or no[key])[0]
            x, y = (c[key][1] if key in c else self._start(state) for c in (yes, no))
            if is_threaded(state) and self._name(x) is not self._name(y):
                raise NotJoinedError("a branch draws random numbers")
            found[key] = state, self._choice(x, y)
        return found

    def _start(self, state: Any) -> Value:
        """Return what a state is when a run starts."""
        known = self.graph.states_by_key().get(state.key)
        if known is None:
            known = self.graph.state_value(state)
            self.now[YES][known] = self.now[NO][known] = known
        return known

    def _asked(self) -> list[Choice]:
        """Return the conditions up to the one that decides, which both paths have in common."""
        yes, no = (
            [self._name(one.value) for one in flow.conditions[: self.at + 1]] for flow in self.flows
        )
        if yes != no or len(yes) <= self.at:
            raise NotJoinedError("conditions differ before paths part")
        self.decides = yes[self.at]
        return [(value, value) for value in yes[: self.at]]

    def _rest(self) -> Choice | None:
        """Return whether one of the later conditions of the path taken is not as it was."""
        later = [flow.conditions[self.at + 1 :] for flow in self.flows]
        if not any(later):
            return None
        (x, yes), (y, no) = (self._wrong(side, later[side]) for side in (YES, NO))
        self._plan(Stretch([], yes, no))
        return self._choice(x, y)

    def _wrong(self, side: int, conditions: Sequence[PathCondition]) -> tuple[Value, list[Node]]:
        """Return what tells that a path is not the right one, and the nodes that find it out."""
        if not conditions:
            never = self.graph.tracer.constant(np.zeros((), np.bool_)).value
            self.now[YES][never] = self.now[NO][never] = never
            return never, []
        graph = self.flows[side].graph
        count = len(graph.nodes)
        found = wrong(graph, conditions)
        return found, graph.nodes[count:]

    # -- the new graph -----------------------------------------------------------------------------

    def _value(self, choice: Choice) -> Value:
        """Return what stands for a choice in the new graph."""
        if choice in self.chosen:
            return self.chosen[choice]
        name = choice[YES]
        assert name is not None
        return self.now[YES][name]

    def _emit(self) -> None:
        for item in self.items:
            if isinstance(item, Gap):
                self._emit_gap(item)
            else:
                self._emit_node(item)

    def _emit_node(self, item: CommonNode) -> None:
        inputs = [None if choice is None else self._value(choice) for choice in item.operands]
        node = item.node
        if tuple(inputs) != node.inputs:
            node = node.rebuilt(inputs, name=self.graph.unique_name(node.name))
        self.graph.append(node)
        for before, after in zip(item.node.outputs, node.outputs, strict=True):
            self.now[YES][before] = self.now[NO][before] = after

    def _emit_gap(self, gap: Gap) -> None:
        choices = gap.results()
        if not choices:
            return
        yes, no = (self._arm(side, gap.nodes[side], choices) for side in (YES, NO))
        node = add_cond(self.graph, self.now[YES][self.decides], yes, no)
        for choice, value in zip(choices, node.outputs, strict=True):
            self.chosen[choice] = value
            for side, name in enumerate(choice):
                if name is not None and name in self.made:
                    self.now[side].setdefault(name, value)

    def _arm(self, side: int, nodes: list[Node], choices: Sequence[Choice]) -> Arm:
        results = [choice[side] for choice in choices]
        own = {value for node in nodes for value in node.outputs}
        taken: list[Value | None] = [*(x for node in nodes for x in node.inputs), *results]
        outer = [x for x in dict.fromkeys(taken) if x is not None and x not in own]
        return Arm(nodes, results, {x: self.now[side][self._name(x)] for x in outer})


def _is_given(flow: PathFlow, node: Node) -> bool:
    """Tell whether a source is fed by calls: seeds of gradients outside of them are not."""
    return node.op is not PLACEHOLDER or node.outputs[0] in flow.keys


def _source_key(flow: PathFlow, node: Node) -> Hashable:
    if node.op is PLACEHOLDER:
        return PLACEHOLDER, flow.keys[node.outputs[0]]
    if node.op is STATE:
        return STATE, node.attrs[0].key
    literal = node.attrs[0]
    return CONSTANT, literal, literal.array.strides, node.device


def _threads(node: Node) -> Any:
    threads = getattr(node.op, "threads", None)
    return () if threads is None else threads(node)


def _shared_places(yes: Sequence[Value], no: Sequence[Value]) -> list[int]:
    """Return where the fetches of one path go: to those of the other that are alike, or behind."""
    free = dict.fromkeys(range(len(yes)))
    places: dict[int, int] = {}
    for alike in (lambda x, y: x is y, lambda x, y: x.type == y.type):
        for j, y in enumerate(no):
            if j not in places:
                found = next((i for i in free if alike(yes[i], y)), None)
                if found is not None:
                    places[j] = found
                    del free[found]
    behind = iter(range(len(yes), len(yes) + len(no)))
    return [places[j] if j in places else next(behind) for j in range(len(no))]
