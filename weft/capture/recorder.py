"""The recorder: runs a function once, to learn which graph it computes.

It is a tracer whose symbols have values (recorded.py). The function is called with the user's own
tensors and modules; nothing of theirs changes while it runs. What it writes to tensors, to `.grad`
and to random generators, the tracer remembers, and the compiled graph does it. What Python reads of
values (`if loss > 3:`) is noted with what was read: the recording holds for those values only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence, Sized
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from ..autodiff.early import ExchangerTest, exchange_recorded
from ..autodiff.engine import freed_error
from ..autodiff.exchangers import exchangers
from ..autodiff.reverse import check_root, check_single, checked_gradient
from ..autodiff.static.reverse import places_of, symbol_gradients, total
from ..core.config import config
from ..core.device import CPU
from ..core.device_array import is_placed
from ..core.dim import SizeVar
from ..core.effects import CHAIN
from ..core.errors import PACKAGE_DIR, GradientError, format_site, user_site
from ..core.modes import is_grad_enabled, modes, no_grad
from ..core.op import F, find_op
from ..core.placing import is_called_by_weft
from ..core.row_sparse import asks_for_rows
from ..core.shape import TensorType
from ..core.tape import Leaf
from ..core.tensor import PLAIN, Tensor, check_differentiable
from ..core.watching import unseen
from ..graph.custom import passes_python
from ..graph.graph import Graph
from ..graph.node import Node, Value, subgraphs
from ..graph.paths import lead, outputs_reached
from ..graph.scope import current_scope
from ..graph.special import CONSTANT, SOURCES
from ..graph.state import State, tensor_state
from ..graph.symbol import Symbol, make_number, make_symbol
from ..graph.tracer import Tracer
from .call_grads import CallGrads
from .deferred import deferred_gradients, expanded_gradients
from .evaluation import Array, Evaluation
from .exact_reads import NUMBER, TENSOR, ExactReads
from .looks import ValueRead, same_as, truth_of
from .python_state import PythonState, python_state
from .recorded import RecordedNumber, RecordedSnapshot, RecordedTensor
from .recorded_size import plain_attrs, recorded_shape
from .split import SAID_BY_OTHERS, Split, split_types

SHOWN_IN_PARTS = "shows values (wf.debug) where a shape depends on values"


# Folders of the files that an operation comes through on its way from the program to a recorder.
_THROUGH = (os.path.dirname(__file__), os.path.join(PACKAGE_DIR, "graph"))


class NotRecordedError(BaseException):
    """Ends a recording of what cannot be recorded; then the function runs eagerly.

    No Exception: a function that catches those must not catch this.
    """

    def __init__(
        self, reason: str, where: str | None = None, *, once: bool = False, in_parts: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.where = where
        self.once = once  # whether the next call may well be recorded
        self.in_parts = in_parts  # whether what refuses runs by programs of its own


class OutsideHistoryError(NotRecordedError):
    """A result of recorded operations is used that is no argument; it may become one."""

    def __init__(self, tensor: Tensor, where: str | None) -> None:
        reason = "it uses a result of recorded operations from outside: pass it as argument"
        super().__init__(reason, where)
        self.tensor = tensor


class _DependsOnValuesError(Exception):
    """Says that the shape of what an operation returns depends on values; met here only."""

    def __init__(self, values: Sequence[Value | None], types: Sequence[TensorType]) -> None:
        super().__init__("a shape depends on values")
        self.values, self.types = values, types


class RecordingGraph(Graph):
    """The graph of a function while it is recorded."""

    symbol_class = RecordedTensor
    number_class = RecordedNumber

    def __init__(self, name: str, sizes: dict[SizeVar, int] | None = None) -> None:
        """Begin a graph; `sizes` are those that it is to hold for all of, as they are now.

        Those that depend on values are added when they are met.
        """
        super().__init__(name)
        self.counts_every_draw = True  # as eager code does
        self.shows = recorded_shape if sizes else None
        self.tracer: Recorder = Recorder(self, {} if sizes is None else sizes)


class Recorder(Tracer):
    """Records one call of a function.

    arguments      what stands for the tensors that the call was given, by the key of their state
    looks          what Python read of values
    tracked        values that eager mode would record for gradients
    inner_leaves   leaves that the function itself made, by their values
    grads          what `.grad` of tensors is
    put_offs       what is done when a call has ended: steps of schedules
    stood_for      tensors that the function was given something in place of
    splits         operations whose shapes depend on values
    bounds         how large whole numbers may be, where that is known
    """

    recording = True

    def __init__(self, graph: Graph, sizes: dict[SizeVar, int]) -> None:
        super().__init__(graph)
        self.sizes = sizes
        self.splits: list[Split] = []
        self.sequential = True
        self.evaluate = Evaluation(partial(expanded_gradients, self), sizes, self.refuse)
        self.stood_for: dict[int, Tensor] = {}
        self.put_offs: list[Callable[[], Any]] = []
        self.bounds: dict[Value, int] = {}
        self.arguments: dict[tuple[int, str], Value] = {}
        self.looks: list[ValueRead] = []
        self.tracked: set[Value] = set()
        self.inner_leaves: dict[Value, RecordedTensor] = {}
        self.required: dict[int, tuple[Tensor, bool]] = {}
        self.tests: dict[Any, Callable[[], bool]] = {}
        self.grads = CallGrads(self)
        self._differentiating = False
        self._exchanging = ExchangerTest()  # as the call began: what it switches itself is recorded
        self.watch: Any = None  # what sees which of Python's things the function changes
        self.around: FrameType | None = None  # that of who calls the function
        self._freed: set[Node] = set()
        self.seeds: set[Value] = set()  # of gradients that are known when they are taken, later
        self.is_observed = False  # whether hooks of modules are given gradients
        self._devices: set[str] = set()  # that tensors from outside are on
        self._exact = ExactReads()
        self.pins, self.most = True, sys.maxsize  # as the rules of the call say (calls.py)
        self._last_walk: tuple[Any, list[Node]] = None, []

    # -- operations --------------------------------------------------------------------------------

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Add an operation to the graph and return what stands for its results."""
        try:
            return super().apply(op, inputs, attrs)
        except _DependsOnValuesError as found:
            said = SAID_BY_OTHERS.get(op)
            return self._split(op, found, attrs) if said is None else said(inputs, attrs)

    def _infer(self, op: Any, inputs: Any, values: Any, attrs: Any) -> list[TensorType]:
        types = super()._infer(op, inputs, values, attrs)
        if any(size is None for type in types for size in type.shape):
            raise _DependsOnValuesError(values, types)
        return types

    def write_state(self, state: State, value: Value) -> None:
        """Let a state have another value from this point of the program on."""
        if state.owner is CHAIN and self.splits:
            self.refuse(SHOWN_IN_PARTS)
        super().write_state(state, value)

    def _split(self, op: Any, found: _DependsOnValuesError, attrs: tuple[Any, ...]) -> Any:
        """Return what stands for results that the next program is told the sizes of."""
        if (id(CHAIN), "") in self.written:
            self.refuse(SHOWN_IN_PARTS)
        split = Split(op, self.plain_attrs(attrs), list(found.values), [])
        operands = [None if x is None else self.evaluate(x) for x in split.inputs]
        arrays = split.run(operands, self.sizes)
        types, told = split_types(found.types, arrays, len(self.splits))
        self.sizes.update(told)
        self.graph.shows = recorded_shape
        for type, array in zip(types, arrays, strict=True):
            split.outputs.append(self.argument(type, op.name, array))
        self.splits.append(split)
        made = tuple([make_symbol(self.graph, value) for value in split.outputs])
        return made[0] if op.outputs == 1 else made

    def footprint(self) -> tuple[int, ...]:
        """Return what stays as it is while nothing happens but that nodes are added."""
        kept: list[Sized] = [self.looks, self.splits, self.tests, self.put_offs, self.required]
        kept += [self.bounds, self.arguments, self.tracked, self.inner_leaves, self.stood_for]
        return (*super().footprint(), *map(len, kept))

    def plain_attrs(self, attrs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return attributes with sizes as graphs have them."""
        return attrs if self.graph.shows is None else plain_attrs(attrs)

    def add(self, op: Any, values: Any, attrs: Any, types: Any) -> Node:
        """Append a node; note which of its results eager mode would record for gradients."""
        if len(self.graph.nodes) >= self.most:
            self.refuse(f"computes more than {self.most} operations")
        node = super().add(op, values, attrs, types)
        if op not in SOURCES and self._records():
            positions = {i for i, x in enumerate(node.inputs) if x in self.tracked}
            reached = outputs_reached(node, positions) if positions else ()
            self.tracked.update(node.outputs[j] for j in reached)
        return node

    def _records(self) -> bool:
        if self._differentiating:
            return False
        return not modes.grad_overrides or is_grad_enabled()

    def value_of(self, x: Any) -> Value:
        """Return the value in this graph that stands for a tensor.

        What a view from outside shows may be an argument: then each call must give this very one.
        """
        if not isinstance(x, Symbol) and x.is_window and (id(x._base), "") in self.arguments:
            self.watch.meet(x._base)
        return super().value_of(x)

    def read_state(self, state: State) -> Value:
        """Return the value a state has at this point of the program."""
        known = self.arguments.get(state.key)
        value = known if known and state.key not in self.written else super().read_state(state)
        if isinstance(state.owner, Tensor):
            self._note_history(state.owner, value)
        return value

    def _note_history(self, tensor: Tensor, value: Value) -> None:
        """Note whether a tensor requires gradients, which is then part of the program."""
        self.required[id(tensor)] = tensor, tensor._node is not None
        if tensor._node is not None:
            self._check_history(tensor)
            self.tracked.add(value)

    def _check_history(self, tensor: Tensor) -> None:
        if not isinstance(tensor._node, Leaf) and (id(tensor), "") not in self.arguments:
            raise OutsideHistoryError(tensor, self._where())

    def argument(self, type: TensorType, name: str, array: Array) -> Value:
        """Return a new placeholder for something that the call was given."""
        device = str(array.device) if is_placed(array) else "cpu"
        value = self.parameter(type, name, device)
        self.evaluate.give({value: array})
        return value

    def write_argument(self, tensor: Tensor, value: Value) -> None:
        """Let a tensor that something stands for have another value from here on."""
        self.write_state(tensor_state(tensor, "argument"), value)

    def first_value(self, key: tuple[int, str]) -> Value | None:
        """Return the value that a state had when the call began; None if it was not read."""
        return self.arguments.get(key) or super().first_value(key)

    def observe(self, key: Any, read: Callable[[], Any]) -> None:
        """Note that the program depends on something of Python's that is not watched."""
        if key[-1] != "training":  # which is watched, as all attributes of modules are
            super().observe(key, read)

    def require(self, key: Any, test: Callable[[], bool]) -> None:
        """Note that the recording holds where a test does."""
        self.tests.setdefault(key, test)

    def has_written(self, owner: Any, key: Any) -> bool:
        """Tell whether the function has changed a part of an object from outside."""
        return self.watch is not None and self.watch.writes(owner, key)

    def put_off(self, call: Callable[[], Any], schedule: Any, optimizer: Any) -> None:
        """Let a schedule step when each call has ended; nothing that this changes may be needed."""
        self.put_offs.append(call)
        self.watch.close((schedule, optimizer, *optimizer.param_groups))

    def refuse(self, reason: str, *, once: bool = False, in_parts: bool = False) -> None:
        """End the recording: this cannot be recorded, or not this time, or runs by itself."""
        raise NotRecordedError(reason, self._where(), once=once, in_parts=in_parts)

    def _where(self) -> str | None:
        """Return the user's line, past the standard library if the function is watched."""
        return format_site(user_site()) if self.watch is None else self.watch.where

    def tensor_state(self, tensor: Tensor) -> State:
        """Return the state that a tensor from outside is."""
        self._note_device(tensor)
        if id(tensor) in self.stood_for:
            self.refuse("it uses an argument that it also finds elsewhere")
        return super().tensor_state(tensor)

    def _note_device(self, tensor: Tensor) -> None:
        """End the recording where tensors from outside are on devices that do not go together."""
        where = tensor.device
        if where != CPU and not is_placed(tensor._value):
            self.refuse(f"a tensor is on {str(where)!r}")
        learned = tensor.requires_grad
        if where == CPU and self._devices and not learned and is_called_by_weft(_THROUGH):
            return  # what Weft makes on the way goes where it is needed
        self._devices.add(where)
        if len(self._devices) > 1:
            self.refuse(f"tensors are on {' and '.join(map(repr, sorted(self._devices)))}")

    # -- reading values ----------------------------------------------------------------------------

    def look(self, tensor: Tensor) -> Array:
        """Return the value of a tensor; the recording holds where it is the same."""
        value = self._value_seen(tensor)
        if self._exact.is_pinned(value, any_number=not self.pins):
            self.refuse(NUMBER if isinstance(tensor, RecordedNumber) else TENSOR)
        array = self.evaluate(value)
        self._note(value, array, truth=False)
        return array

    def check_reads(self) -> None:
        """End the recording if Python read floats of states that the function writes."""
        for look in self.looks:
            if not look.truth and self._exact.is_pinned(look.value, self.written):
                raise NotRecordedError(TENSOR, look.where)

    def truth(self, tensor: Tensor) -> bool:
        """Tell whether the only element is not zero; the recording holds where that is so."""
        value = self._value_seen(tensor)
        seen = bool(self.evaluate(value).item())
        self._note(value, seen, truth=True, state=python_state(self, sys._getframe()))
        return seen

    def number(self, tensor: Tensor) -> Any:
        """Return the only element of a tensor as a number that follows from it."""
        value = self._value_seen(tensor)
        if value.dtype.kind == "b":
            return self.truth(tensor)
        dtype = np.dtype(np.float64 if value.dtype.kind == "f" else np.int64)
        with no_grad():
            alone = F.reshape(F.cast(make_symbol(self.graph, value), dtype), ())
        return make_number(self.graph, alone.value)

    def snapshot(self, tensor: Tensor) -> RecordedSnapshot:
        """Return the value that a tensor has at this point, read-only."""
        symbol = self.detached(tensor)
        symbol = symbol if isinstance(symbol, Symbol) else self.symbol_of(symbol)
        made: RecordedSnapshot = object.__new__(RecordedSnapshot)
        made.graph, made.value = symbol.graph, symbol.value
        return made

    def copied(self, tensor: Tensor) -> Tensor:
        """Return a copy of a tensor from outside; one of a parameter would be a new parameter."""
        if type(tensor) not in PLAIN:
            self.refuse(f"a {type(tensor).__name__} is copied")
        copy: Tensor = F.positive(self.detached(tensor))
        return copy.requires_grad_() if tensor.requires_grad else copy

    def _value_seen(self, tensor: Tensor) -> Value:
        if isinstance(tensor, Symbol) and tensor.graph is not self.graph:
            tensor._unread("reading it here")
        value = self.value_of(tensor)
        if self.seeds and any(n.outputs[0] in self.seeds for n in self.graph.ancestors([value])):
            self.refuse("a backward reads a gradient that is taken outside of the call")
        return value

    def _note(
        self, value: Value, seen: Any, *, truth: bool, state: PythonState | None = None
    ) -> None:
        if value.node.op is CONSTANT:
            return
        holds = truth_of(self, value) if truth else same_as(self, value, seen)
        where, count = format_site(user_site()), len(self.graph.nodes)
        self.looks.append(ValueRead(value, seen, truth, where, holds, count, state))

    # -- what a state of Python's is made of besides variables -------------------------------------

    def progress(self) -> tuple[Any, ...]:
        """Return what must not change from one trip of a loop to the next."""
        tensors = [state.owner for state in self._tensors.values()]
        leaves = [id(x) for x in tensors if isinstance(x, Tensor) and x._node is not None]
        given = sum(map(len, self.leaves.values()))
        changes = None if self.watch is None else self.watch.changes
        modes = is_grad_enabled(), config.default_float, current_scope()
        counts = len(self.inner_leaves), len(self.watches), len(self._freed), given
        return (changes, frozenset(leaves), modes, counts, *self.grads.identities())

    def forget_states(self) -> None:
        """Let go of what Python held when it asked for values."""
        self.looks = [look._replace(state=None) for look in self.looks]

    def held_values(self) -> Iterator[Any]:
        """Yield what Python finds outside of its variables that may be recorded values."""
        if self.watch is not None:
            yield from self.watch.written_values()
        yield from self.grads.values()

    def standing(self, value: Value) -> tuple[bool, bool]:
        """Return how gradients see a value: whether it is recorded, and whether it is a leaf."""
        return value in self.tracked, value in self.inner_leaves

    def detached_value(self, value: Value) -> Value | None:
        """Return what operations under no_grad take for a value, if there were such."""
        return self._detached.get(value)

    # -- gradients ---------------------------------------------------------------------------------

    def switch(self, recorded: RecordedTensor, flag: bool) -> None:
        """Make a value without history a leaf, or one that requires no gradient."""
        if not recorded.is_leaf:
            raise GradientError(
                "requires_grad can be changed only on leaves; this tensor is the result of "
                f"{recorded.value.node.op.name}: use x.detach() for an independent leaf"
            )
        if flag and not recorded.requires_grad:
            check_differentiable(recorded.dtype)
            (leaf,) = self.add(
                find_op("positive"), [recorded.value], (), [recorded.value.type]
            ).outputs
            recorded.value = leaf
            self.tracked.add(leaf)
            self.inner_leaves[leaf] = recorded
        elif not flag and recorded.requires_grad:
            self.refuse("requires_grad is switched off")

    def refuse_switch(self, tensor: Tensor, flag: bool) -> None:
        """End the recording if it would change whether a tensor from outside requires gradients."""
        if not isinstance(tensor, Symbol) and tensor.requires_grad != flag:
            self.refuse("it changes requires_grad of a tensor from outside")

    def backward(
        self,
        root: RecordedTensor,
        gradient: Any = None,
        *,
        retain_graph: bool | None = None,
        create_graph: bool = False,
    ) -> None:
        """Add the gradients of a value to `.grad` of every leaf it depends on."""
        check_root(root)
        if gradient is None:
            check_single(root, "backward")
        else:
            gradient = checked_gradient(root, gradient, "backward")
        walked = self._walked(root.value)
        retain = create_graph if retain_graph is None else retain_graph
        if not retain:
            self._freed.update(walked)
        leaves = self.leaf_tensors()
        found = self.gradients_of(
            [root], leaves, [gradient], record=create_graph, rows=not create_graph
        )
        for leaf, g in zip(leaves, found, strict=True):
            if g is not None:
                self._check_leaf(leaf)
                self.grads.accumulate(leaf, g, record=create_graph)
        if exchangers:
            self._exchange([leaf for leaf, g in zip(leaves, found, strict=True) if g is not None])

    def _exchange(self, reached: Sequence[Tensor]) -> None:
        """Let those take the gradients who exchange them with others."""
        self.require(id(exchangers), self._exchanging)
        exchange_recorded(reached)

    def _check_leaf(self, leaf: Tensor) -> None:
        if not isinstance(leaf, Symbol) and not isinstance(leaf._node, Leaf):
            self.refuse("backward goes on outside of the function")

    def gradients(
        self,
        ys: Sequence[Tensor],
        xs: Sequence[Tensor],
        gs: Sequence[Any],
        retain_graph: bool | None,
        create_graph: bool,
    ) -> list[Any]:
        """Return gradients as values; without `create_graph` they have no history."""
        roots = [y for y in ys if self.symbol_of(y).requires_grad]
        walked = [node for y in roots for node in self._walked(self.value_of(y))]
        if not (create_graph if retain_graph is None else retain_graph):
            self._freed.update(walked)
        found = self.gradients_of(ys, xs, gs, record=create_graph)
        if create_graph:
            return list(found)
        return [None if g is None else F.stop_gradient(g) for g in found]

    def gradients_of(
        self,
        ys: Sequence[Tensor],
        xs: Sequence[Tensor],
        gs: Sequence[Any],
        *,
        record: bool,
        rows: bool = False,
    ) -> Sequence[Any]:
        """Return the gradients of the sum of ys, put off where nothing but their values counts.

        Row-sparse ones are not: in which form a gradient is follows from what is there by then.
        """
        with unseen():
            by_rows = rows and self._asks_for_rows(ys)
            runs_python = self.runs_python(list(map(self.value_of, ys)))
        if record or self.watches or by_rows or runs_python:
            self._differentiating = not record
            try:
                return symbol_gradients(ys, xs, gs, record=record, rows=rows)
            finally:
                self._differentiating = False
        with unseen():  # nothing of the user's runs: that is put off as well
            return self._put_off_gradients(ys, xs, gs)

    def _put_off_gradients(
        self, ys: Sequence[Tensor], xs: Sequence[Tensor], gs: Sequence[Any]
    ) -> Sequence[Any]:
        places = [places_of(self, x) for x in xs]
        found = deferred_gradients(
            self,
            [self.value_of(y) for y in ys],
            [None if g is None else self.value_of(g) for g in gs],
            [place for some in places for place in some],
        )
        return [total([found[place] for place in some if place in found]) for some in places]

    def _walked(self, root: Value) -> list[Node]:
        """Return the nodes that backward goes through; raise if some of them were freed."""
        with unseen():
            found = self._behind(root)
        freed = next((node for node in reversed(found) if node in self._freed), None)
        if freed is not None:
            raise freed_error(freed)
        return [n for n in found if self.inner_leaves.keys().isdisjoint(n.outputs)]

    def runs_python(self, ys: Sequence[Value]) -> bool:
        """Tell whether gradients pass a function of the user's, whose backward is Python."""
        nodes = [n for y in ys for n in self._behind(y)]
        hooked = any(graph.tracer.watches for n in nodes for graph in subgraphs(n))
        ordered = any(n.op.communicates for n in nodes)  # in the program's order: not put off
        return hooked or ordered or passes_python(nodes)

    def _asks_for_rows(self, ys: Sequence[Tensor]) -> bool:
        """Tell whether gradients pass an operation that gives them by rows."""
        values = [self.value_of(y) for y in ys]
        return any(asks_for_rows(n.op, n.attrs) for y in values for n in self._behind(y))

    def _behind(self, root: Value) -> list[Node]:
        """Return the nodes that gradients of a value pass."""
        nodes = self.graph.nodes
        key = root, len(nodes), len(self.tracked)  # both only grow
        if self._last_walk[0] != key:
            passed = lead(nodes, [root]) & self.tracked
            found = [n for n in nodes if n.op not in SOURCES and not passed.isdisjoint(n.outputs)]
            self._last_walk = key, found
        return self._last_walk[1]

    def leaf_tensors(self) -> list[Tensor]:
        """Return the tensors that gradients may go to, of what was read so far."""
        outer = [state.owner for state in self._tensors.values()]
        wanted = [t for t in outer if isinstance(t, Tensor) and t._node is not None]
        return [*wanted, *self.inner_leaves.values()]

    def is_freed(self, value: Value) -> bool:
        """Tell whether backward has used up what a value depends on."""
        return not self._freed.isdisjoint(self._behind(value))
