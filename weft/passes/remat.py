"""Rematerialisation: train in less memory by computing values of the forward part twice.

The backward part needs values of the forward part, which otherwise wait for it in memory. Here some
are dropped after the forward part and computed again just before they are needed. Operators are
pure functions (a draw takes the generator's state as an operand) and states keep their value during
a run, so the results are the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.op import find_op
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.special import CONSTANT
from .dce import remove_dead
from .liveness import Liveness, wanted_values
from .memory import bytes_text, scratch_bytes
from .recompute import Chain, Trial
from .rewrite import Rebuild
from .sizes import known_sizes

GRADIENTS = "gradients"  # the scope of what differentiation built
FAVOURED = (1.0, 0.5, 0.0)  # parts of the costly values that are kept, in the order of trying
_BARRIER = find_op("checkpoint_name")
TRIALS = 8  # of how much room stashed values may take


def rematerialize(
    graph: Graph,
    budget_bytes: int,
    outputs: Any = None,
    *,
    sizes: Mapping[Any, Any] | None = None,
) -> Graph:
    """Return a graph with the same results in which at most `budget_bytes` are alive at any time.

    Counted are the results of nodes, each with memory of its own as when a Session runs them;
    not parameters, constants and feeds, which live outside of the run. Of the ways that are tried
    the one that is estimated to recompute least is taken; no node runs more than twice. A budget
    below what can be reached so raises ArgumentError, which names the least that can.

    Let it be the last pass: common-subexpression elimination would undo it.

    outputs   what will be fetched: symbols, names or updates; every result of the graph by default
    sizes     values of unknown sizes: {"batch": 32}, or {placeholder: shape}
    """
    budget = _as_budget(budget_bytes)
    known = known_sizes(graph, sizes, "rematerialize")
    graph = remove_dead(graph, wanted_values(graph, outputs, "rematerialize"))
    wanted = graph.outputs
    nodes = graph.ancestors(wanted)
    live = Liveness(nodes, wanted, known, in_place=False)
    scratch = scratch_bytes(nodes, known)
    chains = [Chain(live, wanted, scratch, turn) for turn in _turns(live)]
    for chain in chains:
        trial = _cheapest(chain, budget)
        if trial is not None:
            return _Builder(graph, wanted, chain, trial).built()
    raise ArgumentError(_too_low(budget, min(_least_memory(chain).peak for chain in chains)))


def _as_budget(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise ArgumentTypeError(
            f"rematerialize: the budget must be a number of bytes. Received: {given!r:.60}"
        )
    if not given >= 0:
        raise ArgumentError(f"rematerialize: the budget must not be negative. Received: {given}")
    return int(min(given, 2**62))


def _too_low(budget: int, least: int) -> str:
    return (
        f"rematerialize: a budget of {budget} bytes ({bytes_text(budget)}) cannot be met; the "
        f"least that can be reached is {least} bytes ({bytes_text(least)}), for a forward part "
        "computed twice; give at least that, a smaller batch, or fetch less"
    )


# -- searching -------------------------------------------------------------------------------------


def _turns(live: Liveness) -> Iterator[int]:
    """Yield where the forward part may end: before the gradients, or where most is alive."""
    built = [i for i, node in enumerate(live.nodes) if node.scope[:1] == (GRADIENTS,)]
    if built:
        yield built[0] - 1
    profile = live.profile()[:-1]
    if profile:
        peak = profile.index(max(profile))
        if not built or peak != built[0] - 1:
            yield peak
    elif not built:
        yield -1


def _cheapest(chain: Chain, budget: int) -> Trial | None:
    """Return the trial within the budget that costs least, if one is within it."""
    everything = chain.trial(chain.choose(2**62))
    if everything.peak <= budget:
        return everything
    costly = chain.costly()
    parts = FAVOURED if costly else (0.0,)
    trials = [_within(chain, budget, costly[: round(part * len(costly))]) for part in parts]
    found = [trial for trial in trials if trial is not None]
    if found:
        return min(found, key=lambda trial: trial.cost)
    least = _least_memory(chain)
    return least if least.peak <= budget else None


def _within(chain: Chain, budget: int, favoured: Sequence[int]) -> Trial | None:
    """Return the first trial within the budget as the room for the stash shrinks.

    Beside the stash the peak holds what the backward part computes, about the same for any room:
    so each trial tells how much less room the next one needs.
    """
    if sum(chain.bytes[s] for s in favoured) > budget:
        return None
    room = budget
    for _ in range(TRIALS):
        trial = chain.trial(chain.choose(room, favoured))
        if trial.peak <= budget:
            return trial
        room = int(max(room - (trial.peak - budget), room * 0.6))
    return None


def _least_memory(chain: Chain) -> Trial:
    """Return the trial with the lowest peak, over rooms from all of the stash to a hundredth."""
    rooms = [int(chain.stash_bytes * 0.8**i) for i in range(21)]
    return min((chain.trial(chain.choose(room)) for room in rooms), key=lambda trial: trial.peak)


# -- building --------------------------------------------------------------------------------------


class _Builder:
    """Copies a graph, adding nodes that run again before those that need them."""

    def __init__(self, graph: Graph, wanted: Sequence[Value], chain: Chain, trial: Trial) -> None:
        nodes = chain.nodes
        self.rebuild = Rebuild(graph, wanted)
        self.before = {nodes[i]: [nodes[j] for j in again] for i, again in trial.clones.items()}
        self.backward = set(nodes[chain.turn + 1 :])
        self.again: dict[Value, Value] = {}  # values of the forward part, computed anew
        self.kept: dict[Value, Value] = {}  # values they are computed from, behind a barrier

    def built(self) -> Graph:
        """Return the new graph."""
        for node in self.rebuild.old.nodes:
            for other in self.before.get(node, ()):
                self._run_again(other)
            self.rebuild.place(node, self._copy(node))
        return self.rebuild.finish()

    def _run_again(self, node: Node) -> None:
        graph = self.rebuild.graph
        inputs = [None if x is None else self._apart(x) for x in node.inputs]
        clone = graph.append(node.rebuilt(inputs, name=graph.unique_name(node.name)))
        self.again.update(zip(node.outputs, clone.outputs, strict=True))

    def _apart(self, x: Value) -> Value:
        """Return an operand of what runs again: computed anew, or under a name of its own.

        Else later passes would see that a node and its copy compute the same, and share them.
        """
        known = self.again.get(x) or self.kept.get(x)
        if known is None:
            value = self.rebuild.value(x)
            if value.node.op is CONSTANT:
                return value
            node = self.rebuild.graph.add(_BARRIER, (value,), ("recomputed",), (value.type,))
            known = self.kept[x] = node.outputs[0]
        return known

    def _copy(self, node: Node) -> Node:
        if node not in self.backward:
            return self.rebuild.current(node)
        inputs = self._now(node)
        same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
        return node if same else node.rebuilt(inputs)

    def _now(self, node: Node) -> list[Value | None]:
        """Return the operands of a node as the backward part finds them."""
        return [
            None if x is None else self.again.get(x, self.rebuild.value(x)) for x in node.inputs
        ]
