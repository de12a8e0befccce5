"""Programs on several devices: parts, each a program of one device, and copies between them.

A graph whose nodes are placed is cut where a value goes from one device to another. Parts have a
rank: a value that is copied goes to a part of a higher one, so that parts run one after another,
and as few of them as the copies allow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..backends.protocol import Runnable
from ..backends.states import STATES
from ..core.device_array import held_like, moved
from ..core.tensor import Tensor
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.special import CONSTANT, PLACEHOLDER, STATE
from ..graph.state import State


class DeviceCopy(NamedTuple):
    """A value that goes from one device to another, once in each run."""

    name: str
    source: str
    target: str


@dataclass
class DevicePart:
    """A part of a graph that one device runs.

    inputs    values of the whole graph that it is given
    outputs   values of the whole graph that others need
    """

    device: str
    graph: Graph
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)


def split(graph: Graph, placed: Mapping[Node, str]) -> list[DevicePart]:
    """Return a graph, of which it is known where each node runs, as parts in order."""
    ranks = _ranks(graph, placed)
    keys = sorted({(rank, placed[node]) for node, rank in ranks.items()})
    members: dict[tuple[int, str], list[Node]] = {key: [] for key in keys}
    for node, rank in ranks.items():
        members[rank, placed[node]].append(node)
    needed = _needed_elsewhere(graph, ranks, placed)
    return [_part(graph, device, members[rank, device], needed) for rank, device in keys]


def _is_anywhere(node: Node) -> bool:
    """Tell whether a source needs no part of its own: each part reads it, or makes it, itself."""
    return node.op is CONSTANT or (node.op is STATE and node.device == "cpu")


def _ranks(graph: Graph, placed: Mapping[Node, str]) -> dict[Node, int]:
    ranks: dict[Node, int] = {}
    for node in graph.nodes:
        if node.op is PLACEHOLDER or _is_anywhere(node):
            continue
        makers = [x.node for x in node.inputs if x is not None and x.node in ranks]
        ranks[node] = max((ranks[n] + (placed[n] != placed[node]) for n in makers), default=0)
    return ranks | _late_states(graph, ranks, placed)


def _late_states(
    graph: Graph, ranks: Mapping[Node, int], placed: Mapping[Node, str]
) -> dict[Node, int]:
    """Return the ranks of states: that of the first part on their device which reads them."""
    found: dict[Node, list[int]] = {}
    for node, rank in ranks.items():
        for x in node.inputs:
            if x is not None and x.node in ranks and x.node.op is STATE:
                first = rank if placed[x.node] == placed[node] else 0
                found.setdefault(x.node, []).append(first)
    return {node: min(some) for node, some in found.items()}


def _needed_elsewhere(
    graph: Graph, ranks: Mapping[Node, int], placed: Mapping[Node, str]
) -> set[Value]:
    """Return the values that leave the part which makes them."""
    found = {value for value in graph.outputs if value.node in ranks}
    for node, rank in ranks.items():
        for x in node.inputs:
            if x is None or x.node not in ranks:
                continue
            if (ranks[x.node], placed[x.node]) != (rank, placed[node]):
                found.add(x)
    return found


def _part(graph: Graph, device: str, nodes: Sequence[Node], needed: set[Value]) -> DevicePart:
    part = DevicePart(device, Graph(graph.name))
    part.graph.counts_every_draw = graph.counts_every_draw
    here: dict[Value, Value] = {}
    for node in nodes:
        for x in node.inputs:
            if x is not None and x not in here:
                _bring(part, x, here)
        given = [None if x is None else here[x] for x in node.inputs]
        made = part.graph.append(node.rebuilt(given, device=device))
        here.update(zip(node.outputs, made.outputs, strict=True))
    part.outputs = [y for node in nodes for y in node.outputs if y in needed]
    part.graph.outputs = [here[y] for y in part.outputs]
    part.graph.is_function = True
    return part


def _bring(part: DevicePart, x: Value, here: dict[Value, Value]) -> None:
    """Let a part have a value that it does not make: a source of its own, or an input."""
    if _is_anywhere(x.node):
        made = part.graph.append(x.node.rebuilt([], device=part.device))
    else:
        name = x.name.replace(":", "_")
        made = part.graph.add(PLACEHOLDER, (), (x.type,), (x.type,), name=name)
        part.inputs.append(x)
    here[x] = made.outputs[x.index if _is_anywhere(x.node) else 0]


class PartedRun:
    """A program on several devices, ready to run.

    parts     with what runs each of them
    copies    what goes from one device to another in each run
    """

    checks_feeds = False
    direct = None

    def __init__(
        self,
        graph: Graph,
        commits: Sequence[State],
        parts: Sequence[tuple[DevicePart, Runnable]],
        placed: Mapping[Node, str],
    ) -> None:
        self.parts = list(parts)
        self.copies = _copies([part for part, _ in parts], placed)
        self._inputs = list(graph.inputs)
        count = len(graph.outputs) - len(commits)
        self._fetches = graph.outputs[:count]
        self._commits = list(zip(commits, graph.outputs[count:], strict=True))

    def run(self, feeds: Sequence[Any]) -> list[Any]:
        """Run on values of the shapes it was compiled for, write the states, return the fetches."""
        with STATES:
            known: dict[Value, Any] = dict(zip(self._inputs, feeds, strict=True))
            find = _Finder(known)
            for part, code in self.parts:
                given = [find(x, part.device) for x in part.inputs]
                known.update(zip(part.outputs, code.run(given), strict=True))
            fetched = [find.source(value) for value in self._fetches]
            for state, value in self._commits:
                _commit(state, find.source(value))
        return fetched

    def run_unchecked(self, feeds: tuple[Any, ...]) -> None:
        """Decline: only a look at all feeds tells whether they suit."""
        return

    def stats(self) -> dict[str, Any]:
        """Return how many kernels there are on each device, what runs in Python, and the copies."""
        found = [(part.device, code.stats()) for part, code in self.parts]
        return {
            "kernels": {f"{name} {i}": s["kernels"] for i, (name, s) in enumerate(found)},
            "library": [name for _, s in found for name in s["library"]],
            "arena_bytes": sum(s["arena_bytes"] for _, s in found),
            "copies": list(self.copies),
        }

    def __repr__(self) -> str:
        names = ", ".join(part.device for part, _ in self.parts)
        return f"<PartedRun on {names}: {len(self.copies)} copies>"


class _Finder:
    """Finds values of a run on the devices that need them; each is copied to one once."""

    def __init__(self, known: dict[Value, Any]) -> None:
        self._known = known
        self._copied: dict[tuple[Value, str], Any] = {}

    def __call__(self, value: Value, device: str) -> Any:
        key = value, device
        if key not in self._copied:
            self._copied[key] = moved(self._known[value], device)
        return self._copied[key]

    def source(self, value: Value) -> Any:
        """Return a value wherever it is: as it was made, or as it is kept."""
        if value in self._known:
            return self._known[value]
        node = value.node
        return node.attrs[0].array if node.op is CONSTANT else node.attrs[0].read()


def _commit(state: State, value: Any) -> None:
    """Write a state where it was; a slot that nobody else has, where its value was made."""
    is_slot = state.held and not isinstance(state.owner, Tensor)
    state.write(value if is_slot else held_like(state.read(), value))


def _copies(parts: Sequence[DevicePart], placed: Mapping[Node, str]) -> list[DeviceCopy]:
    pairs = dict.fromkeys((x, part.device) for part in parts for x in part.inputs)
    return [
        DeviceCopy(x.name, placed[x.node], target)
        for x, target in pairs
        if x.node.op is not PLACEHOLDER and placed[x.node] != target
    ]


Compile = Callable[[DevicePart], Runnable | None]


def compiled_parts(parts: Sequence[DevicePart], compile_part: Compile) -> list[Any] | None:
    """Return parts with what runs each of them; None if one cannot be compiled."""
    found = [(part, compile_part(part)) for part in parts]
    return None if any(code is None for _, code in found) else found
