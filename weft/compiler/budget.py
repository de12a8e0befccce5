"""Keep a graph's program within a budget of memory, by computing values again.

What to recompute is chosen by estimates of a run node by node, which are cheap; what a choice leads
to is what the planner says of the program. So each plan tells how far estimates are off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.errors import ArgumentError, ArgumentTypeError
from ..graph.graph import Graph
from ..graph.members import Wanted
from ..passes.dce import remove_dead
from ..passes.pipeline import optimize as optimize_nodes
from ..passes.recompute import Chain, Flow, Trial
from ..passes.remat import recomputed
from ..passes.sizes import Known, known_sizes
from .memory import bytes_text, planned_memory, wanted_outputs

GRADIENTS = "gradients"  # the scope of what differentiation built
FAVOURED = (1.0, 0.5, 0.0)  # parts of the costly values that are kept, in the order of trying
TRIALS = 8  # of how much room stashed values may take
PLANS = 4  # of programs, for one place to cut the graph at


def optimize(
    graph: Graph,
    outputs: Any = None,
    *,
    memory_budget: int | None = None,
    sizes: Any = None,
    passes: Sequence[str] | None = None,
) -> Graph:
    """Return a graph that computes the same faster; symbols of the old one can be fetched from it.

    outputs         what must survive: symbols, updates, names, or nests of them; by default every
                    result that nothing takes, what has a name, and what gradients were taken of
    memory_budget   bytes that a run may take: values are computed again to keep to it
    sizes           numbers for unknown sizes, by name, to count those bytes with
    passes          names from weft.passes.PASSES to run instead, in that order

    The result is finished: take gradients before.
    """
    made = optimize_nodes(graph, outputs, passes=passes)
    if memory_budget is None or passes is not None:
        return made
    return rematerialize(made, memory_budget, outputs, sizes=sizes)


def rematerialize(
    graph: Graph,
    budget_bytes: int,
    outputs: Any = None,
    *,
    sizes: Mapping[Any, Any] | None = None,
) -> Graph:
    """Return a graph with the same results whose program takes at most `budget_bytes`.

    Counted are the arena and what a run hands out; not parameters, constants and feeds, which live
    outside of the run. Of the ways that are tried the one that is estimated to recompute least is
    taken; no node runs more than twice. A budget below what can be reached so raises ArgumentError,
    which names the least that can.

    outputs   what will be fetched: symbols, names or updates; every result of the graph by default
    sizes     values of unknown sizes: {"batch": 32}, or {placeholder: shape}
    """
    budget = _as_budget(budget_bytes)
    known = known_sizes(graph, sizes, "rematerialize")
    wanted = wanted_outputs(graph, outputs, "rematerialize")
    return _Search(graph, wanted, known, budget).found()


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


class _Planned(NamedTuple):
    """A graph, and the bytes that a run of its program takes."""

    graph: Graph
    bytes: int


class _Search:
    """Looks for a graph whose program keeps to a budget."""

    def __init__(self, graph: Graph, wanted: Wanted, known: Known, budget: int) -> None:
        self.graph = remove_dead(graph, [*wanted.fetches, *wanted.targets])
        self.wanted = wanted
        self.known = known
        self.budget = budget

    def found(self) -> Graph:
        """Return the graph, or raise: nothing that is tried is within the budget."""
        tried = [self._planned(self.graph)]
        if tried[0].bytes > self.budget:
            flow = Flow(self.graph.nodes, self.graph.outputs, self.known)
            # Programs fuse nodes and share memory: they take a part of what estimates count.
            scale = max(flow.profile()) / tried[0].bytes
            for turn in _turns(flow):
                tried += self._tries(Chain(flow, turn), scale)
                if tried[-1].bytes <= self.budget:
                    break
        if tried[-1].bytes > self.budget:
            raise ArgumentError(_too_low(self.budget, min(made.bytes for made in tried)))
        return tried[-1].graph

    def _tries(self, chain: Chain, scale: float) -> Iterator[_Planned]:
        """Yield graphs until one is within the budget, the one that takes least at the end."""
        room = self.budget * scale
        for _ in range(PLANS):
            trial = _cheapest(chain, int(room))
            if trial is None:
                break
            made = self._planned(recomputed(self.graph, chain, trial))
            yield made
            if made.bytes <= self.budget:
                return
            room *= 0.98 * self.budget / made.bytes
        yield self._planned(recomputed(self.graph, chain, _least_memory(chain)))

    def _planned(self, graph: Graph) -> _Planned:
        fetches, targets = (
            tuple(graph.check_member(value, "rematerialize") for value in values)
            for values in (self.wanted.fetches, self.wanted.targets)
        )
        wanted = self.wanted._replace(fetches=fetches, targets=targets)
        return _Planned(graph, planned_memory(graph, wanted, self.known).run_bytes)


def _turns(flow: Flow) -> Iterator[int]:
    """Yield where the forward part may end: before the gradients, or where most is alive."""
    built = [i for i, node in enumerate(flow.nodes) if node.scope[:1] == (GRADIENTS,)]
    if built:
        yield built[0] - 1
    profile = flow.profile()[:-1]
    if profile:
        peak = profile.index(max(profile))
        if not built or peak != built[0] - 1:
            yield peak
    elif not built:
        yield -1


def _cheapest(chain: Chain, room: int) -> Trial | None:
    """Return the trial within some room that costs least, if one is within it."""
    everything = chain.trial(chain.choose(2**62))
    if everything.peak <= room:
        return everything
    costly = chain.costly()
    parts = FAVOURED if costly else (0.0,)
    trials = [_within(chain, room, costly[: round(part * len(costly))]) for part in parts]
    found = [trial for trial in trials if trial is not None]
    if found:
        return min(found, key=lambda trial: trial.cost)
    least = _least_memory(chain)
    return least if least.peak <= room else None


def _within(chain: Chain, most: int, favoured: Sequence[int]) -> Trial | None:
    """Return the first trial that takes at most so many bytes as the room for the stash shrinks.

    Beside the stash the peak holds what the backward part computes, about the same for any room:
    so each trial tells how much less room the next one needs.
    """
    if sum(chain.bytes[s] for s in favoured) > most:
        return None
    room = most
    for _ in range(TRIALS):
        trial = chain.trial(chain.choose(room, favoured))
        if trial.peak <= most:
            return trial
        room = int(max(room - (trial.peak - most), room * 0.6))
    return None


def _least_memory(chain: Chain) -> Trial:
    """Return the trial with the lowest peak, over rooms from all of the stash to a hundredth."""
    rooms = [int(chain.stash_bytes * 0.8**i) for i in range(21)]
    return min((chain.trial(chain.choose(room)) for room in rooms), key=lambda trial: trial.peak)
