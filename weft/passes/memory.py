"""The memory plan: where every value of a graph lives while the graph runs.

Values that are never alive together share memory: an elementwise operator writes over an operand
that nobody needs any more, views live in what they look at, and everything else is placed in one
arena, at offsets that are multiples of 64 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from ..core.errors import GraphError
from ..graph.graph import Graph
from ..graph.node import Node, Value, subgraphs, type_text
from .arena import Block, align, place_blocks
from .dce import remove_dead
from .layout import Layout
from .liveness import POINTWISE, Liveness, Storage, live_profile, wanted_values
from .sizes import Known, known_sizes

SHOWN = 12  # rows in the table of a plan


class MemoryPlan:
    """Where the values of a graph live.

    unshared_bytes   what the results of all nodes take together if nothing is shared
    shared_bytes     what they take with sharing, laid side by side
    arena_bytes      the block of memory for that: each storage begins at a multiple of 64 bytes
    peak_bytes       the most bytes alive at any time; no arena can be smaller
    feed_bytes, state_bytes, constant_bytes    what comes from outside and is not in the arena
    """

    def __init__(
        self, liveness: Liveness, scratch: Mapping[Node, int], aliases: Mapping[Value, Value]
    ) -> None:
        self._liveness = liveness
        self._aliases = aliases
        self._storages = [s for s in liveness.storages if s.origin is None]
        self._scratch = [
            _scratch_storage(scratch[node], time)
            for time, node in enumerate(liveness.nodes)
            if node in scratch
        ]
        everything = [*self._storages, *self._scratch]
        placed = place_blocks([Block(align(s.bytes), s.birth, s.death) for s in everything])
        self._offsets = dict(zip(everything, placed.offsets, strict=True))
        self.arena_bytes = placed.bytes
        self.peak_bytes = max(live_profile(everything, len(liveness.nodes)), default=0)
        self.unshared_bytes = self._sum_of_results() + sum(scratch.values())

    def _sum_of_results(self) -> int:
        """Return the bytes of all values but views: those have no elements of their own."""
        views = self._liveness.views
        made = [v for s in self._storages for v in s.values if v not in views]
        return sum(map(self._liveness.bytes_of, made))

    # -- figures -----------------------------------------------------------------------------------

    @cached_property
    def shared_bytes(self) -> int:
        """Return the bytes with sharing; the room that alignment leaves between is not counted."""
        exact = [Block(s.bytes, s.birth, s.death) for s in self._offsets]
        return min(place_blocks(exact).bytes, self.arena_bytes)

    @property
    def ratio(self) -> float:
        """Return the bytes with sharing as a part of those without."""
        return self.shared_bytes / self.unshared_bytes if self.unshared_bytes else 1.0

    @property
    def feed_bytes(self) -> int:
        """Return the bytes of the placeholders."""
        return self._from_outside("feed")

    @property
    def state_bytes(self) -> int:
        """Return the bytes of the states that are read."""
        return self._from_outside("state")

    @property
    def constant_bytes(self) -> int:
        """Return the bytes of the constants."""
        return self._from_outside("constant")

    def _from_outside(self, origin: str) -> int:
        return sum(s.bytes for s in self._liveness.storages if s.origin == origin)

    # -- places ------------------------------------------------------------------------------------

    def offset(self, value: Any) -> int | None:
        """Return where a value starts in the arena, in bytes; None if it comes from outside."""
        value, storage = self._home(value)
        if storage.origin is not None:
            return None
        start = self._liveness.layouts[value].start * int(value.dtype.itemsize)
        return self._offsets[storage] + start

    def bytes(self, value: Any) -> int:
        """Return the number of bytes of a value's elements."""
        return self._liveness.bytes_of(self._home(value)[0])

    def layout(self, value: Any) -> Layout:
        """Return the layout of a value in its storage: start and strides, in elements."""
        return self._liveness.layouts[self._home(value)[0]]

    def scratch_offset(self, node: Node) -> int | None:
        """Return where the arena of a control-flow node's subgraphs starts; None if it has none."""
        time = self._liveness.nodes.index(node)
        found = [self._offsets[s] for s in self._scratch if s.birth == time]
        return found[0] if found else None

    def lifetime(self, value: Any) -> tuple[int, int]:
        """Return when the storage of a value is first and last needed, as positions of nodes."""
        storage = self._home(value)[1]
        return storage.birth, storage.death

    def shares(self, a: Any, b: Any) -> bool:
        """Tell whether two values live in the same storage: one is a view, or overwrites."""
        return self._home(a)[1] is self._home(b)[1]

    def is_view(self, value: Any) -> bool:
        """Tell whether a value has no elements of its own: it looks at another's."""
        return self._home(value)[0] in self._liveness.views

    def _home(self, value: Any) -> tuple[Value, Storage]:
        value = getattr(value, "value", value)
        value = self._aliases.get(value, value)
        storage = self._liveness.homes.get(value)
        if storage is None:
            raise GraphError(f"the memory plan does not contain {value!r:.80}")
        return value, storage

    def check(self) -> None:
        """Raise unless every storage is inside the arena and none overlaps another in its life."""
        last_in_time: list[tuple[int, Storage]] = []
        for storage in sorted(self._offsets, key=lambda s: s.birth):
            if not storage.bytes:
                continue
            last_in_time = [item for item in last_in_time if item[1].death >= storage.birth]
            for _, other in last_in_time:
                self._check_apart(storage, other)
            last_in_time.append((storage.birth, storage))
            if self._offsets[storage] + storage.bytes > self.arena_bytes:
                raise GraphError(f"{storage!r} lies outside of the arena")

    def _check_apart(self, a: Storage, b: Storage) -> None:
        start_a, start_b = self._offsets[a], self._offsets[b]
        if start_a < start_b + b.bytes and start_b < start_a + a.bytes:
            raise GraphError(f"{a!r} and {b!r} overlap at {start_a} and {start_b}")

    # -- text --------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return (
            f"<MemoryPlan: {bytes_text(self.shared_bytes)} with sharing, "
            f"{bytes_text(self.unshared_bytes)} without ({self.ratio:.2f}x)>"
        )

    def __str__(self) -> str:
        largest = sorted(self._offsets, key=lambda s: -s.bytes)[:SHOWN]
        return "\n".join([*self._summary(), "", _HEADING, *map(self._row, largest)])

    def _summary(self) -> list[str]:
        rows = {
            "results of all nodes": self.unshared_bytes,
            "with sharing": self.shared_bytes,
            "arena, aligned": self.arena_bytes,
            "most alive at once": self.peak_bytes,
            "states": self.state_bytes,
            "constants": self.constant_bytes,
            "feeds": self.feed_bytes,
        }
        shown = [f"{name:<22}{bytes_text(n):>12}" for name, n in rows.items()]
        shown[1] += f"   {self.ratio:.3f}x"
        return shown

    def _row(self, storage: Storage) -> str:
        first = storage.values[0] if storage.values else None
        name = "scratch of a subgraph" if first is None else first.name
        shared = f" +{len(storage.values) - 1}" if len(storage.values) > 1 else ""
        kind = "" if first is None else type_text(first.type)
        alive = f"{storage.birth}..{storage.death}"
        return (
            f"{self._offsets[storage]:>12}{bytes_text(storage.bytes):>12}{alive:>14}  "
            f"{name}{shared}  {kind}".rstrip()
        )


_HEADING = f"{'offset':>12}{'bytes':>12}{'alive':>14}  value (+ values in the same storage)"


def memory_plan(
    graph: Graph, outputs: Any = None, *, sizes: Mapping[Any, Any] | None = None
) -> MemoryPlan:
    """Return where the values of a graph live in a run that fetches the outputs.

    outputs   symbols, names or updates in any nest; every result of the graph by default
    sizes     values of unknown sizes: {"batch": 32}, or {placeholder: shape}

    >>> import weft as wf
    >>> from weft.passes.memory import memory_plan
    >>> with wf.Graph() as graph:
    ...     x = wf.placeholder((1024,), wf.float32, name="x")
    ...     y = wf.exp(wf.sin(wf.cos(x)))
    >>> memory_plan(graph)
    <MemoryPlan: 4.0 KiB with sharing, 12.0 KiB without (0.33x)>
    """
    wanted = wanted_values(graph, outputs, "memory_plan")
    return _plan(graph, wanted, known_sizes(graph, sizes, "memory_plan"))


def _plan(graph: Graph, wanted: Sequence[Value], known: Known) -> MemoryPlan:
    if graph.extended:  # a run takes a loop and the same loop with more results as one
        graph = remove_dead(graph, wanted)
        wanted = graph.outputs
    nodes = graph.ancestors(wanted)
    liveness = Liveness(nodes, wanted, known)
    return MemoryPlan(liveness, scratch_bytes(nodes, known), graph.aliases)


def scratch_bytes(nodes: Sequence[Node], known: Known) -> dict[Node, int]:
    """Return what the subgraphs of control-flow nodes need while they run.

    One subgraph runs at a time and its results leave its arena when it ends, so a node needs the
    largest arena among its subgraphs, once. Fused operators run by blocks and need none.
    """
    found: dict[Node, int] = {}
    for node in nodes:
        bodies = subgraphs(node)
        if bodies and node.op.kind not in POINTWISE:
            found[node] = max(_plan(body, body.outputs, known).arena_bytes for body in bodies)
    return found


def _scratch_storage(nbytes: int, time: int) -> Storage:
    return Storage(nbytes, time, None)


def bytes_text(count: float) -> str:
    """Return a number of bytes as text, e.g. `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
