"""The tracer: the interpreter that turns operations into nodes of a graph.

It is current inside `with graph:`. Tensors from outside become states, read anew in every run;
literals become constants. Writing to a tensor from outside (running statistics, the counter of a
random generator) changes nothing now: the tracer remembers the new value, later reads see it, and a
run that computes it commits it at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.config import config
from ..core.device import current_device, is_pinned, scopes
from ..core.dim import Dim, unknown_size
from ..core.dispatch import ERRORS, explain, group
from ..core.draw_rows import current_part, current_rows
from ..core.dtype import is_float
from ..core.errors import GraphError, Site, user_site
from ..core.modes import is_grad_enabled, modes
from ..core.op import F, elementwise, find_op
from ..core.rng import Generator
from ..core.shape import TensorType
from ..core.tape import Watch
from ..core.tensor import Constant, Tensor
from .debug.frames import user_stack
from .node import Node, Value
from .scope import current_scope
from .special import ASSIGN, CONSTANT, PLACEHOLDER, Literal
from .state import CHAIN_STATE, State, generator_state, tensor_state
from .symbol import Symbol, make_number, make_symbol

if TYPE_CHECKING:
    from .graph import Graph

SMALL = 64  # elements up to which equal literals share a node


class Tracer:
    """Builds one graph; a tracer inside another builds the body of a control-flow node."""

    recording = False  # whether a function runs on values at the same time: see capture/recorder.py

    def __init__(self, graph: Graph, parent: Tracer | None = None) -> None:
        self.graph = graph
        self.parent = parent
        if parent is not None:
            graph.shows = parent.graph.shows
        self.below = None  # where an interpreter of dual numbers would look further
        self.written: dict[tuple[int, str], tuple[State, Value]] = {}
        self.history: list[tuple[State, Value]] = []  # all that was ever written, in order
        self.leaves: dict[tuple[int, str], list[Value]] = {}  # what states were given that way
        self.observed: dict[Any, tuple[Callable[[], Any], Any]] = {}  # see `observe`
        self.sequential = False  # of a function: what it assigns holds at once, and is committed
        self.captured: dict[Value, Value] = {}  # value of the parent -> our placeholder for it
        self.watches: dict[Value, Watch] = {}  # hooks on the gradients of values
        # Results of control flow, and the same results of the node that computes tangents beside
        # them; None unless such nodes are to take the place of those without.
        self.accompanied: dict[Value, Value] | None = None
        self.site: Site | str = None  # stands in for the user's line while a pass builds nodes
        self._frozen: set[Value] = set()
        self._detached: dict[Value, Value] = {}
        self._literals: dict[tuple[Literal, str], Value] = {}  # by the devices they are for
        self._tensors: dict[int, State] = {}
        self._tensor_names: dict[int, str] = {}

    # -- operations --------------------------------------------------------------------------------

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Add an operation to the graph and return symbols for its results."""
        if hasattr(op, "trace"):  # a Function of the user's
            return op.trace(self, inputs, attrs)
        attrs = self.root.plain_attrs(attrs)
        values = [None if x is None else self.value_of(x) for x in inputs]
        frozen = bool(modes.grad_overrides) and not is_grad_enabled()
        if frozen:
            values = [self._without_gradient(x) for x in values]
        node = self.add(op, values, attrs, self._infer(op, inputs, values, attrs))
        if frozen:
            self._frozen.update(node.outputs)
        make = make_number if op.kind == elementwise and _are_numbers(inputs) else make_symbol
        symbols = tuple(make(self.graph, value) for value in node.outputs)
        return symbols[0] if op.outputs == 1 else symbols

    def plain_attrs(self, attrs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return attributes as nodes have them; see capture/recorded_size.py."""
        return attrs

    def add(
        self,
        op: Any,
        values: Sequence[Value | None],
        attrs: tuple[Any, ...],
        types: Sequence[TensorType],
    ) -> Node:
        """Append a node at the user's line; sizes its rule does not know become unknown sizes."""
        known = [TensorType(self._sizes(t.shape, op.name), t.dtype) for t in types]
        node = self.graph.add(
            op,
            values,
            self.root.plain_attrs(attrs),
            known,
            scope=current_scope(),
            site=user_site() if self.site is None else self.site,
            device=_device_for(values),
            pinned=is_pinned() if scopes else any(x is not None and x.node.pinned for x in values),
        )
        if config.graph_stacks and self.site is None:
            self.graph.stacks[node] = user_stack()
        return node

    def _infer(
        self, op: Any, inputs: Sequence[Any], values: Sequence[Value | None], attrs: tuple[Any, ...]
    ) -> list[TensorType]:
        types = [None if value is None else value.type for value in values]
        try:
            found = op.type_rule(group(op, types), attrs)
        except ERRORS as error:
            raise explain(op, error, inputs, attrs) from None
        return [found] if isinstance(found, TensorType) else list(found)

    def _sizes(self, shape: tuple[Any, ...], name: str) -> tuple[Any, ...]:
        known = [self.fresh_size(name) if size is None else size for size in shape]
        return self.root.plain_attrs(tuple(known))

    def fresh_size(self, name: str) -> Dim:
        """Return an unknown size that no value has yet."""
        return unknown_size(self.root.graph.unique_name(f"{name}_size"))

    def _without_gradient(self, value: Value | None) -> Value | None:
        """Return a value as an operation under no_grad takes it."""
        if value is None or value in self._frozen or not is_float(value.dtype):
            return value
        if value not in self._detached:
            (detached,) = self.add(find_op("stop_gradient"), [value], (), [value.type]).outputs
            self._frozen.add(detached)
            self._detached[value] = detached
        return self._detached[value]

    # -- operands ----------------------------------------------------------------------------------

    @property
    def root(self) -> Tracer:
        """Return the outermost tracer."""
        return self if self.parent is None else self.parent.root

    def sees(self, graph: Graph) -> bool:
        """Tell whether symbols of a graph can be used here."""
        tracer: Tracer | None = self
        while tracer is not None:
            if tracer.graph is graph or graph in tracer.graph.origins:
                return True
            tracer = tracer.parent
        return False

    def symbol_of(self, x: Any) -> Symbol:
        """Return an operand as a symbol of this graph."""
        return make_symbol(self.graph, self.value_of(x))

    def value_of(self, x: Any) -> Value:
        """Return the value in this graph that stands for a tensor."""
        if isinstance(x, Symbol):
            return self._own(x)
        if isinstance(x, Constant):
            return self.constant(x._value).value
        if x.is_window:
            return self.value_of(x.derived())
        return self.read_state(self.tensor_state(x))

    def _own(self, symbol: Symbol) -> Value:
        if symbol.graph is self.graph:
            return symbol.value
        if symbol.graph in self.graph.origins:
            return self.graph.check_member(symbol.value, "with graph")
        if self.parent is None:
            raise GraphError(
                f"{symbol.name} belongs to another graph ({symbol.graph.name}) than the one that "
                f"is open here ({self.graph.name})"
            )
        return self.capture(self.parent.value_of(symbol))

    def detached(self, tensor: Tensor) -> Tensor:
        """Return a tensor from outside as a value that derivatives do not pass."""
        if isinstance(tensor, Constant):
            return tensor
        result: Tensor = F.stop_gradient(self.symbol_of(tensor))
        return result

    def capture(self, outer: Value) -> Value:
        """Return the placeholder through which a value of the parent enters this body."""
        known = self.captured.get(outer)
        if known is None:
            known = self.parameter(outer.type, "captured")
            self.captured[outer] = known
        return known

    def parameter(self, type: TensorType, name: str, device: str = "cpu") -> Value:
        """Return a new placeholder of the graph."""
        site = user_site() if self.site is None else self.site
        type = TensorType(self.root.plain_attrs(type.shape), type.dtype)
        node = self.graph.add(
            PLACEHOLDER, (), (type,), (type,), name=name, site=site, device=device
        )
        return node.outputs[0]

    def constant(self, array: np.ndarray[Any, Any]) -> Symbol:
        """Return a constant of the graph."""
        literal = Literal(array)
        key = literal, current_device()
        known = self._literals.get(key) if array.size <= SMALL else None
        if known is None:
            (known,) = self.add(CONSTANT, (), (literal,), (literal.type,)).outputs
            self._frozen.add(known)
            if array.size <= SMALL:
                self._literals[key] = known
        return make_symbol(self.graph, known)

    def watch_of(self, symbol: Symbol) -> Watch:
        """Return the hooks on the gradient of a symbol."""
        return self.watches.setdefault(self.value_of(symbol), Watch())

    # -- state -------------------------------------------------------------------------------------

    def tensor_state(self, tensor: Tensor) -> State:
        """Return the state that a tensor from outside is."""
        root = self.root
        state = root._tensors.get(id(tensor))
        if state is None:
            state = root._tensors[id(tensor)] = tensor_state(tensor, self._state_name(tensor))
        return state

    def name_tensor(self, tensor: Tensor, name: str) -> None:
        """Say how to call a tensor from outside if the graph comes to read it."""
        self.root._tensor_names.setdefault(id(tensor), name)

    def _state_name(self, tensor: Tensor) -> str:
        known = self.root._tensor_names.get(id(tensor))
        if known is not None:
            return known
        return "/".join((*current_scope(), "parameter" if tensor.requires_grad else "tensor"))

    def read_state(self, state: State) -> Value:
        """Return the value a state has at this point of the program."""
        if state.key in self.written:
            return self.written[state.key][1]
        if self.parent is not None:
            return self.capture(self.parent.read_state(state))
        known = self.graph.states_by_key().get(state.key)
        if known is not None:
            return known
        return self.graph.state_value(state, user_site() if self.site is None else self.site)

    def first_value(self, key: tuple[int, str]) -> Value | None:
        """Return the value that a state has when a run starts; None if nothing reads it."""
        return self.graph.states_by_key().get(key)

    def write_state(self, state: State, value: Value) -> None:
        """Let a state have another value from this point of the program on."""
        self.written[state.key] = state, value
        self.history.append((state, value))

    def write_tensor(self, target: Tensor, symbol: Symbol) -> None:
        """Let a tensor from outside have the value of a symbol from here on."""
        state, value = self.tensor_state(target), self._own(symbol)
        self.write_state(state, self._leaf(state, value) if target.requires_grad else value)

    def _leaf(self, state: State, value: Value) -> Value:
        """Return a value as a state has it that was given it: without history, a leaf of its own.

        Derivatives with respect to the state end there, as at what it was when the run started.
        """
        if not is_float(value.dtype):
            return value
        (leaf,) = self.add(find_op("stop_gradient"), [value], (), [value.type]).outputs
        self.leaves.setdefault(state.key, []).append(leaf)
        return leaf

    def reserve(self, generator: Generator, blocks: Any) -> Symbol:
        """Return the state for a draw, and let the next draw start behind it."""
        for which, read in (("rows", current_rows), ("part", current_part)):
            self.observe((id(read()), which), read)  # by which the draw goes
        key = (id(generator), "")
        root = self.root
        state = root._tensors.setdefault(id(generator), generator_state(generator))
        assert state.key == key
        here = make_symbol(self.graph, self.read_state(state))
        self.write_state(state, self.value_of(F.advance_state(here, blocks)))
        return here

    def link(self) -> Symbol:
        """Return the link that the next effect takes."""
        return make_symbol(self.graph, self.read_state(CHAIN_STATE))

    def follow(self, link: Symbol) -> None:
        """Let further effects come behind the one that gave a link."""
        self.write_state(CHAIN_STATE, self.value_of(link))

    def assign(self, state: State, value: Value) -> Symbol:
        """Return the value that a state is to have: in a function from here on.

        In a graph the state has it after each run that computes the result.
        """
        self.refuse_inside("assign", "return the value, and assign it outside")
        if not self.sequential:
            return make_symbol(self.graph, self.commit(state, value))
        leaf = self._leaf(state, value)
        self.write_state(state, leaf)
        return make_symbol(self.graph, leaf)

    def commit(self, state: State, value: Value) -> Value:
        """Return a value that, when a run computes it, the state has afterwards."""
        return self.add(ASSIGN, [value], (state,), [state.type]).outputs[0]

    def refuse_inside(self, what: str, instead: str) -> None:
        """Raise if a body of control flow is being traced."""
        if self.parent is not None:
            raise GraphError(
                f"{what}: not possible inside {self.graph.name}, a body of control flow; {instead}"
            )

    def has_written(self, owner: Any, key: Any) -> bool:
        """Tell whether the program has changed a part of an object of Python's by now."""
        return False

    def observe(self, key: Any, read: Callable[[], Any]) -> None:
        """Note that the program depends on something of Python's, and what that is now."""
        observed = self.root.observed
        if key not in observed:
            observed[key] = read, read()

    def go_on_from(self, other: Tracer, find: Callable[[Value], Value | None]) -> None:
        """Know what the tracer of another graph does; `find` gives its values here, if any."""

        def found(values: Iterable[Value]) -> list[Value]:
            return [value for value in map(find, values) if value is not None]

        def moved(table: dict[Any, Value]) -> dict[Any, Value]:
            here = {key: find(value) for key, value in table.items()}
            return {key: value for key, value in here.items() if value is not None}

        for state, value in other.history:
            for here in found([value]):
                self.write_state(state, here)
        for key, leaves in other.leaves.items():
            self.leaves.setdefault(key, []).extend(found(leaves))
        self._frozen.update(found(other._frozen))
        detached = {here: v for x, v in other._detached.items() for here in found([x])}
        self._detached |= moved(detached)
        self._literals = moved(other._literals) | self._literals
        self.watches |= {here: w for x, w in other.watches.items() for here in found([x])}
        self.observed = other.observed | self.observed
        self._tensors = other._tensors | self._tensors
        self._tensor_names = other._tensor_names | self._tensor_names

    def footprint(self) -> tuple[int, ...]:
        """Return what stays as it is while nothing happens but that nodes are added."""
        kept = (self.history, self.leaves, self.observed, self.captured, self.watches)
        return (*map(len, kept), len(self._tensors))

    def treat_alike(self, copies: Mapping[Value, Value]) -> None:
        """Know of copies of values, which stand for others, what is known of those."""
        for value, copy in copies.items():
            if value in self._frozen:
                self._frozen.add(copy)
            detached = self._detached.get(value)
            if detached is not None and detached in copies:
                self._detached.setdefault(copy, copies[detached])

    @contextmanager
    def at(self, site: Site | str) -> Iterator[None]:
        """Build nodes on behalf of another line of the user's."""
        before, self.site = self.site, site
        try:
            yield
        finally:
            self.site = before


def _device_for(values: Sequence[Value | None]) -> str:
    """Return where a new node runs: where the context says, else where its operands are."""
    here = current_device()
    if here != "cpu" or scopes:
        return here
    return next((x.node.device for x in values if x is not None and x.node.device != "cpu"), here)


def at_one_line(tracer: Tracer) -> AbstractContextManager[None]:
    """Build many nodes at the user's line that leads here, which is looked for once."""
    if tracer.site is not None or config.graph_stacks:
        return nullcontext()
    return tracer.at(user_site())


def _are_numbers(inputs: Sequence[Any]) -> bool:
    """Tell whether an operation works on numbers of the graph and on literals only."""
    return any(getattr(x, "weak", False) for x in inputs) and all(
        x is None or x.weak or (isinstance(x, Constant) and x.ndim == 0) for x in inputs
    )
