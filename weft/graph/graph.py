"""The graph: nodes in an order in which they can run.

A graph is built by `with graph:`, in which every operation becomes a node, or by a pass from
another graph. It only grows; its nodes are frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn
from weakref import WeakSet

from ..core.dim import Dim, SizeVar, variables
from ..core.errors import ArgumentError, ArgumentTypeError, GraphError, Site
from ..core.imports import Injected, deferred_imports, injected
from ..core.modes import interpret_with
from ..core.rng import Generator
from ..core.shape import TensorType
from .debug.frames import Stack
from .edit_methods import Editable
from .node import Node, Value, rename, size_variables
from .special import ASSIGN, CONSTANT, PLACEHOLDER, STATE
from .state import State
from .symbol import Symbol, WeakSymbol
from .tracer import Tracer

_optimize: Injected[Callable[..., Graph]] = injected("Graph.optimize")
_memory_plan = injected("Graph.memory_plan")
_draw: Injected[Callable[..., str]] = injected("Graph.draw")
_repr_svg: Injected[Callable[..., str]] = injected("Graph.repr_svg")
_save = injected("Graph.save")
_load: Injected[Callable[..., Graph]] = injected("Graph.load")
_write_tensorboard = injected("Graph.write_tensorboard")


class Graph(Editable):
    """A dataflow graph. Build it inside `with graph:`, run it by `wf.Session(graph)`.

    nodes     all operations, each after those whose results it takes
    outputs   the results of a graph that is a function (a body of control flow, an optimised
              graph); empty for one that sessions fetch from
    names     values the user has named
    aliases   values of the graph this one was made from, and what they became here
    """

    symbol_class: type[Symbol] = Symbol  # of what stands for its values
    number_class: type[Symbol] = WeakSymbol  # of what stands for numbers
    shows: Callable[[Any], Any] | None = None  # how functions see shapes, if not as they are

    def __init__(self, name: str = "graph") -> None:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"Graph: name must be a string. Received: {name!r:.60}")
        self.name = name
        self.nodes: list[Node] = []
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.is_function = False  # whether it returns its outputs alone, even if there are none
        self.names: dict[str, Value] = {}
        self.aliases: dict[Value, Value] = {}
        self._states: dict[tuple[int, str], Value] = {}
        self._members: set[Node] = set()
        self._taken: dict[str, int] = {}
        self.program: Any = None  # of a function: made by run.py when it first runs
        self.session: Any = None  # made when it is first called on values
        self.differentiated: set[Value] = set()
        self.counts_every_draw = False  # else a run counts the draws that it makes
        self.extended: dict[Node, Node] = {}  # loops, and the same loops with more results
        self.given_names: dict[Value, str] = {}
        self.stacks: dict[Node, Stack] = {}  # lines that led to nodes, if config.graph_stacks
        self.origins: WeakSet[Graph] | tuple[()] = ()  # whose symbols mean values of this one
        self.tracer = Tracer(self)
        self._contexts: list[Any] = []

    # -- building ----------------------------------------------------------------------------------

    def __enter__(self) -> Graph:
        """Let every operation become a node of this graph until the end of the block."""
        if self.outputs:
            raise GraphError(
                f"{self.name} is finished: it has outputs; build in a wf.Graph() of your own"
            )
        context = interpret_with(self.tracer)
        context.__enter__()
        self._contexts.append(context)
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the graph; it may be opened again."""
        self._contexts.pop().__exit__(*exc)

    def name_value(self, value: Value, name: Any) -> None:
        """Give a value a name by which it can be fetched and fed."""
        if self.names.get(name) is not value:
            self.check_free(name)
        self._taken.setdefault(name, 0)
        self.names[name] = value
        self.given_names[value] = name

    def check_free(self, name: Any) -> None:
        """Raise unless something can be named so."""
        if not isinstance(name, str) or not name:
            raise ArgumentTypeError(f"a name must be a non-empty string. Received: {name!r:.60}")
        if name in self._taken:
            raise ArgumentError(f"the name {name!r} is taken in this graph")

    def forget_name(self, value: Value) -> None:
        """Take the name that a user gave a value from it."""
        name = self.given_names.pop(value)
        del self.names[name]
        self.free_names([name])

    def pending_updates(self) -> list[tuple[State, Value]]:
        """Return what the program wrote to tensors from outside, in order; draws are not here."""
        return [
            (state, value)
            for state, value in self.tracer.written.values()
            if not isinstance(state.owner, Generator)
        ]

    # -- growing -----------------------------------------------------------------------------------

    def add(
        self,
        op: Any,
        inputs: Sequence[Value | None],
        attrs: tuple[Any, ...],
        types: Iterable[TensorType],
        *,
        name: str | None = None,
        scope: tuple[str, ...] = (),
        site: Site | str = None,
        device: str = "cpu",
        pinned: bool = False,
    ) -> Node:
        """Append an operation and return its node."""
        unique = self.unique_name("/".join((*scope, name or op.name)))
        return self.append(
            Node(
                op,
                inputs,
                attrs,
                types,
                name=unique,
                scope=scope,
                site=site,
                device=device,
                pinned=pinned,
            )
        )

    def append(self, node: Node) -> Node:
        """Append a node whose inputs are in the graph already."""
        self.nodes.append(node)
        self._members.add(node)
        self._taken.setdefault(node.name, 0)
        if node.op is PLACEHOLDER:
            self.inputs.append(node.outputs[0])
        elif node.op is STATE:
            self._states[node.attrs[0].key] = node.outputs[0]
        return node

    def keep_only(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        """Drop what the outputs do not need, and all other inputs; for who is building it."""
        kept = {*self.ancestors(outputs), *(x.node for x in inputs)}
        self.nodes = [node for node in self.nodes if node in kept]
        self._members = set(self.nodes)
        self.inputs, self.outputs = list(inputs), list(outputs)
        pairs = self.extended.items()
        self.extended = {a: b for a, b in pairs if a in self._members and b in self._members}

    def name_newest(self, value: Value, name: str) -> None:
        """Give the node of a value a name close to the given one, if it is the newest.

        Nobody has looked at its name yet; nodes that have been used keep theirs.
        """
        node = value.node
        if self.nodes and self.nodes[-1] is node and node.op not in (PLACEHOLDER, STATE, CONSTANT):
            self._taken.pop(node.name, None)
            rename(node, self.unique_name("/".join((*node.scope, name))))

    def unique_name(self, wanted: str) -> str:
        """Return a name no node has yet: the wanted one, or with a number behind it."""
        if wanted not in self._taken:
            self._taken[wanted] = 0
            return wanted
        while True:
            self._taken[wanted] += 1
            name = f"{wanted}_{self._taken[wanted]}"
            if name not in self._taken:
                self._taken[name] = 0
                return name

    def reserve_names(self, names: Iterable[str]) -> None:
        """Let no new node have one of these names."""
        self._taken |= dict.fromkeys(names, 0)

    def take_names(self, other: Graph) -> None:
        """Let all names of another graph, those of its unknown sizes too, be taken here."""
        self._taken.update(other._taken)

    def free_names(self, names: Iterable[str]) -> None:
        """Let names that no node and no value has be given again."""
        used = {*self.names, *(node.name for node in self.nodes)}
        for name in names:
            if name not in used:
                self._taken.pop(name, None)

    def add_origin(self, other: Graph) -> None:
        """Understand symbols of another graph here, and of those that it came from."""
        self.origins = WeakSet([*self.origins, other, *other.origins])

    def state_value(self, state: State, site: Site | str = None) -> Value:
        """Return the value that a run reads from a state when it starts."""
        known = self._states.get(state.key)
        if known is None:
            node = self.add(
                STATE, (), (state,), (state.type,), name=state.name, site=site, device=state.device
            )
            known = node.outputs[0]
        return known

    # -- reading -----------------------------------------------------------------------------------

    def __contains__(self, value: object) -> bool:
        """Tell whether a value, or a node, belongs to this graph."""
        return (value.node if isinstance(value, Value) else value) in self._members

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        """Iterate over the nodes in their order."""
        return iter(self.nodes)

    def values(self) -> Iterator[Value]:
        """Yield all values of the graph in the order of their nodes."""
        for node in self.nodes:
            yield from node.outputs

    def states(self) -> list[State]:
        """Return the states that the graph reads or writes."""
        found = {n.attrs[0].key: n.attrs[0] for n in self.nodes if n.op in (STATE, ASSIGN)}
        return list(found.values())

    def states_by_key(self) -> dict[tuple[int, str], Value]:
        """Return the value that a run reads from each state, by the key of the state."""
        return self._states

    def results(self) -> list[Value]:
        """Return the outputs; for a graph without them, all that a user is likely to fetch.

        These are the values that no node takes, those with a name of the user's, and those whose
        gradients were asked for.
        """
        if self.outputs or self.is_function:
            return list(self.outputs)
        taking = [node for node in self.nodes if not node.op.effect]
        used = {value for node in taking for value in node.inputs if value is not None}
        wanted = {*self.names.values(), *self.differentiated}
        made = (value for node in taking for value in node.outputs)
        return [value for value in made if value not in used or value in wanted]

    def find(self, name: str) -> Value:
        """Return a value by its name."""
        known = self.names.get(name)
        if known is not None:
            return known
        base, _, position = name.partition(":")
        for node in self.nodes:
            if node.name == base:
                index = int(position) if position.isdigit() else 0
                if index < len(node.outputs):
                    return node.outputs[index]
        near = nearest_name(name, [*self.names, *(node.name for node in self.nodes)])
        raise ArgumentError(
            f"the graph has no value named {name!r}" + (f"; did you mean {near!r}?" if near else "")
        )

    def users(self) -> dict[Value, list[Node]]:
        """Return, for each value, the nodes that take it."""
        found: dict[Value, list[Node]] = {value: [] for value in self.values()}
        for node in self.nodes:
            for value in dict.fromkeys(node.inputs):
                if value is not None:
                    found[value].append(node)
        return found

    def size_sources(self) -> dict[SizeVar, Value]:
        """Return the value whose shape tells each unknown size: the first that has it."""
        found: dict[SizeVar, Value] = {}
        for node in self.nodes:
            for value in node.outputs:
                for size in value.type.shape:
                    variable = None if size.__class__ is int else _variable(size)
                    if variable is not None and variable not in found:
                        found[variable] = value
        return found

    def free_sizes(self) -> set[SizeVar]:
        """Return the unknown sizes that must be known before this graph can run.

        They are those its nodes use and no value inside it tells.
        """
        needed: set[SizeVar] = set()
        for node in self.nodes:
            needed |= size_variables(node)
        told = {
            variable
            for node in self.nodes
            if node.op is not PLACEHOLDER
            for value in node.outputs
            for size in value.shape
            for variable in variables(size)
            if _variable(size) is not None
        }
        return needed - told

    def ancestors(self, values: Iterable[Value], cut: Iterable[Value] = ()) -> list[Node]:
        """Return the nodes needed to compute values, in order; the search stops at `cut`.

        A node also needs those values whose shapes tell the unknown sizes among its attributes.
        """
        sources = self.size_sources()
        known = set(cut)
        told_sizes = {v for value in known for size in value.shape if (v := _variable(size))}
        needed: set[Node] = set()
        pending = [value for value in values if value not in known]
        while pending:
            node = pending.pop().node
            if node in needed:
                continue
            needed.add(node)
            pending += [x for x in node.inputs if x is not None and x not in known]
            if sources:
                told = (sources.get(v) for v in size_variables(node) - told_sizes)
                pending += [x for x in told if x is not None and x not in known]
        return [node for node in self.nodes if node in needed]

    def check_member(self, value: Value, what: str) -> Value:
        """Return the value that stands for one in this graph; raise if there is none."""
        known = self.aliases.get(value, value)
        if known not in self:
            gone = "; to keep what was optimised away or pruned, name it among the outputs"
            raise GraphError(
                f"{what}: {value.name} does not belong to this graph ({self.name})"
                f"{gone if self.aliases else ''}"
            )
        return known

    # -- what other modules do with a graph --------------------------------------------------------

    def optimize(self, outputs: Any = None, **options: Any) -> Graph:
        """Return an equivalent graph that computes less; fetch symbols of this one from it.

        outputs         what must be kept: symbols or nests of them; default: see `results`
        memory_budget   bytes that a run may use: values are computed again rather than kept
        """
        return _optimize(self, outputs, **options)

    def memory_plan(self, outputs: Any = None, **options: Any) -> Any:
        """Return what a run would take: the bytes with and without sharing of memory."""
        return _memory_plan(self, outputs, **options)

    def draw(self, path: Any = None, **options: Any) -> str:
        """Draw the graph to an SVG, PNG or DOT file; return the text of the picture."""
        return _draw(self, path, **options)

    def save(self, path: Any) -> None:
        """Write the graph with its constants and the present values of its states to a file."""
        _save(self, path)

    @staticmethod
    def load(path: Any, **options: Any) -> Graph:
        """Return a graph that `save` wrote."""
        return _load(path, **options)

    def hash(self, outputs: Any = None) -> str:
        """Return a hash of what the graph computes, whatever its nodes are called and ordered."""
        with deferred_imports:
            from .identity.canonical import canonical_hash  # noqa: PLC0415  (it knows Graph)
        return canonical_hash(self, outputs)

    def step_hash(self) -> str:
        """Return a hash of what a run writes to states, however the graph was built: see `hash`."""
        with deferred_imports:
            from .identity.canonical import step_hash  # noqa: PLC0415  (it knows Graph)
        return step_hash(self)

    def verify(self) -> None:
        """Raise a GraphError if the graph is not well-formed."""
        with deferred_imports:
            from .verify import verify  # noqa: PLC0415  (it knows Graph)
        verify(self)

    def write_tensorboard(self, logdir: Any) -> None:
        """Write the graph for TensorBoard's graph tab."""
        _write_tensorboard(self, logdir)

    def _repr_svg_(self) -> str:
        return _repr_svg(self)

    def __str__(self) -> str:
        with deferred_imports:
            from .text.printer import graph_text  # noqa: PLC0415  (it knows Graph)
        return graph_text(self)

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self.nodes)} nodes>"

    def __reduce__(self) -> NoReturn:
        raise GraphError(
            f"the graph {self.name!r} cannot be copied or pickled, since tensors from outside are "
            "its states; edits return new graphs, and graph.save(path) writes one with its states"
        )


def _variable(size: Any) -> SizeVar | None:
    """Return the unknown size that a value with this dimension tells, if any."""
    return size.variable() if isinstance(size, Dim) else None


def nearest_name(name: str, known: list[str]) -> str | None:
    """Return the one of several names that a wrong one is most like, for a message."""
    from difflib import get_close_matches  # noqa: PLC0415  (slow to import, for an error only)

    found = get_close_matches(name, known, n=1)
    return found[0] if found else None
