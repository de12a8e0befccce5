"""The memory of a graph's program: what a run takes, and where in the arena everything lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from ..core.cached_property import cached_property
from ..core.dim import is_known
from ..core.errors import GraphError, UnknownSizeError
from ..core.shape import TensorType
from ..core.tree import tree_leaves
from ..graph.donation import donated_feeds
from ..graph.graph import Graph
from ..graph.members import Wanted, wanted_values
from ..graph.node import subgraphs, type_text
from ..graph.run import Program
from ..graph.special import ASSIGN, GraphOp
from ..lower.memory import MemoryPlan
from ..lower.program import KernelProgram
from ..lower.verify import verify
from ..passes.sizes import Known, known_shape, known_sizes
from ..plan.arena import ArenaBlock, ChainSpan, most_alive, place_blocks
from ..plan.memory import arena_block, when_alive
from .stages import plan_static, specialized

SHOWN = 12  # rows in the table of a plan


class Storage(NamedTuple):
    """A part of the arena: what lies there, and the first and last kernel that touch it.

    chain   that these kernels are part of, if it runs at the same time as others
    """

    name: str
    type: TensorType
    offset: int
    bytes: int
    birth: int
    death: int
    chain: ChainSpan | None = None


class MemoryReport:
    """What the program of a graph takes while it runs.

    unshared_bytes   what the results of all nodes take together, if each had memory of its own
    shared_bytes     what the program takes, which fuses nodes and shares memory
    arena_bytes      the block of memory that it computes in: each storage begins at a multiple of
                     64 bytes
    fetch_bytes      the arrays that a run makes to hand them out
    peak_bytes       the most bytes alive at any time; no arena can be smaller
    donated_bytes    results that take the memory of feeds which are given away: so much less is
                     handed out, and taken, than without
    feed_bytes, state_bytes, constant_bytes    what comes from outside
    storages         what lies in the arena
    """

    def __init__(self, program: KernelProgram, unshared_bytes: int) -> None:
        layout = program.memory
        assert layout is not None
        self.unshared_bytes = unshared_bytes
        self.arena_bytes: int = layout.arena_bytes
        self.fetch_bytes: int = sum(buffer.nbytes for buffer in layout.fresh)
        self.donated_bytes: int = sum(buffer.nbytes for buffer in layout.donated)
        self.constant_bytes = sum(buffer.nbytes for buffer in layout.constants)
        self.state_bytes = sum(b.nbytes for b in (*layout.states, *layout.numbers))
        self.feed_bytes = sum(b.nbytes for b in layout.arguments[: layout.first_state])
        self.storages = _storages(program, layout)
        self._program = program

    @cached_property
    def shared_bytes(self) -> int:
        """Return the bytes with sharing; the room that alignment leaves between is not counted."""
        return self.fetch_bytes + min(place_blocks(self._blocks).bytes, self.arena_bytes)

    @cached_property
    def peak_bytes(self) -> int:
        """Return the most bytes alive at any time."""
        return self.fetch_bytes + most_alive(self._blocks)

    @property
    def _blocks(self) -> list[ArenaBlock]:
        return [ArenaBlock(s.bytes, s.birth, s.death, s.chain) for s in self.storages]

    @property
    def run_bytes(self) -> int:
        """Return the bytes that a run takes: the arena, and what it hands out."""
        return self.arena_bytes + self.fetch_bytes

    @property
    def ratio(self) -> float:
        """Return the bytes with sharing as a part of those without."""
        return self.shared_bytes / self.unshared_bytes if self.unshared_bytes else 1.0

    def storage(self, value: Any) -> Storage:
        """Return where a value lies; raise if it has no memory of its own in the arena.

        It may be computed inside of a kernel, be seen in the memory of another, or be handed out.
        """
        name = getattr(getattr(value, "value", value), "name", value)
        for storage in self.storages:
            if storage.name == name:
                return storage
        raise GraphError(f"the arena has no memory for {name!r:.80}")

    def check(self) -> None:
        """Raise if what lives at the same time overlaps, or leaves the arena."""
        verify(self._program)

    def __repr__(self) -> str:
        return (
            f"<MemoryReport: {bytes_text(self.shared_bytes)} with sharing, "
            f"{bytes_text(self.unshared_bytes)} without ({self.ratio:.2f}x)>"
        )

    def __str__(self) -> str:
        largest = sorted(self.storages, key=lambda s: -s.bytes)[:SHOWN]
        return "\n".join([*self._summary(), "", _HEADING, *map(_row, largest)])

    def _summary(self) -> list[str]:
        rows = {
            "results of all nodes": self.unshared_bytes,
            "with sharing": self.shared_bytes,
            "arena, aligned": self.arena_bytes,
            "handed out": self.fetch_bytes,
            "most alive at once": self.peak_bytes,
            "states": self.state_bytes,
            "constants": self.constant_bytes,
            "feeds": self.feed_bytes,
        }
        if self.donated_bytes:
            rows["in memory of feeds"] = self.donated_bytes
        shown = [f"{name:<22}{bytes_text(n):>12}" for name, n in rows.items()]
        shown[1] += f"   {self.ratio:.3f}x"
        return shown


_HEADING = f"{'offset':>12}{'bytes':>12}{'alive':>14}  value"


def _row(storage: Storage) -> str:
    alive = f"{storage.birth}..{storage.death}"
    size = bytes_text(storage.bytes)
    return f"{storage.offset:>12}{size:>12}{alive:>14}  {storage.name}  {type_text(storage.type)}"


def memory_plan(
    graph: Graph,
    outputs: Any = None,
    *,
    sizes: Mapping[Any, Any] | None = None,
    donate: Any = None,
) -> MemoryReport:
    """Return what a run that fetches the outputs takes.

    outputs   symbols, names or updates in any nest; every result of the graph by default
    sizes     values of unknown sizes: {"batch": 32}, or {placeholder: shape}
    donate    placeholders that runs are given for good, as for `Session.run`

    >>> import weft as wf
    >>> with wf.Graph() as graph:
    ...     x = wf.placeholder((1024,), wf.float32, name="x")
    ...     y = wf.exp(wf.sin(wf.cos(x)))
    >>> graph.memory_plan()
    <MemoryReport: 4.0 KiB with sharing, 12.0 KiB without (0.33x)>
    """
    known = known_sizes(graph, sizes, "memory_plan")
    given = () if donate is None else donated_feeds("memory_plan", graph, graph.inputs, donate)
    return planned_memory(graph, wanted_outputs(graph, outputs, "memory_plan"), known, given)


def wanted_outputs(graph: Graph, outputs: Any, what: str) -> Wanted:
    """Return what is fetched: symbols, names or updates in any nest, or all results of a graph."""
    if outputs is not None:
        return wanted_values(graph, tree_leaves(outputs), what)
    results = graph.results()
    updates = tuple(value for value in results if value.node.op is ASSIGN)
    fetches = tuple(value for value in results if value.node.op is not ASSIGN)
    return Wanted(fetches, updates, [True] * len(fetches))


def planned_memory(
    graph: Graph, wanted: Wanted, known: Known, donated: Sequence[int] = ()
) -> MemoryReport:
    """Return what a run takes for fetches of a graph."""
    program = Program(graph, wanted.fetches, graph.inputs, wanted.targets, donated=donated)
    static = specialized(program, {v: known_shape(v, known) for v in program.feeds})
    planned = None if static is None else plan_static(program, static)
    if static is None or planned is None:
        raise UnknownSizeError("memory_plan: shapes inside of control flow depend on values")
    return MemoryReport(planned.program, _bytes_of_results(static))


def _bytes_of_results(graph: Graph) -> int:
    """Return the bytes that nodes make, those of bodies counted once; views make none."""
    made = [node for node in graph.nodes if not _makes_nothing(node.op)]
    values = [value for node in made for value in node.outputs]
    for value in values:
        if not is_known(value.shape):
            raise UnknownSizeError(
                f"{value.name} is {type_text(value.type)}: its size depends on values"
            )
    inner = sum(_bytes_of_results(body) for node in made for body in subgraphs(node))
    return inner + sum(prod(v.shape) * int(v.dtype.itemsize) for v in values)


def _makes_nothing(op: Any) -> bool:
    return isinstance(op, GraphOp) or op.is_view


def _storages(program: KernelProgram, layout: MemoryPlan) -> list[Storage]:
    """Return what lies in the arena, in the order of time."""
    alive = when_alive(program)
    found = []
    for buffer, offset in layout.in_arena().items():
        kind = TensorType(buffer.shape, buffer.dtype)
        block = arena_block(buffer, alive, buffer.nbytes)
        found.append(Storage(buffer.name, kind, offset, *block))
    return sorted(found, key=lambda s: s.birth)


def bytes_text(count: float) -> str:
    """Return a number of bytes as text, e.g. `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
