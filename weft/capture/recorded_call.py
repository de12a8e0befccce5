"""A finished recording: a graph, and besides it what Python did with values.

That is what it looked at, what it returned, whose `.grad` it set, and what of this has a history.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..core.dim import Decisions, is_known
from ..core.errors import GraphError
from ..core.rng import Generator
from ..core.row_sparse import RowSparse, gradient_parts
from ..core.snapshot import snapshot
from ..core.tensor import Tensor, wrap
from ..graph.debug.ordering import effects_behind
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.paths import lead
from ..graph.run import Program
from ..graph.special import CONSTANT, STATE
from ..graph.state import State
from ..graph.tracer import at_one_line
from .deferred import with_gradients
from .evaluation import Array
from .held import CallTensors, TensorIdentities, tensors_among
from .history import CallGradient, CallHistory, call_gradient
from .looks import ValueRead, check
from .loops import with_while_loops
from .objects import ModuleTests, versioned
from .outside import (
    ArgumentWrite,
    Escaped,
    Getter,
    GradientWrite,
    GradWrite,
    KeptGrad,
    Leaves,
    Outside,
    Rebuilt,
    ResultLinks,
    RowGradWrite,
    resolving,
)
from .recorded import RecordedNumber, RecordedSnapshot, RecordedTensor
from .recorded_size import is_recorded_size
from .recorder import NotRecordedError, Recorder, RecordingGraph
from .signature import aliases_of
from .split import SplitRun
from .stand_in import StandIn
from .users_backward import StillHolds, watched
from .watch import Guards, PythonPlace, UnrepeatableError


class EscapedLeaf(NamedTuple):
    """A value of a recording that is seen outside of it: a fetch, as a tensor or a number.

    fetch     its number among the fetches
    make      what it is outside, of the array that is fetched
    """

    fetch: int
    make: Callable[[Array], Any]

    def made(self, fetched: Sequence[Array]) -> Any:
        """Return what it is in one run."""
        return self.make(fetched[self.fetch])


class Linking(NamedTuple):
    """Which results of a call have a history: one that was used up, or one to go on with.

    freed      places of results whose history backward has used up, and the nodes that made them
    kept       places of the others
    made       places of leaves that the function made
    gradient   how their gradients go on
    """

    freed: dict[int, Node]
    kept: list[int]
    made: list[int]
    gradient: CallGradient | None

    def values(self) -> list[Value]:
        """Return the values of the graph that this needs."""
        return [] if self.gradient is None else self.gradient.values()


class RecordedCall:
    """A finished recording: what the function did, by the values that stand for it.

    tensors     what the call was given, with what places hold behind it
    positions   of what is a tensor there: which leaf of the call each is
    decisions   what was decided by the sizes of the call
    places      what stands for tensors that places hold, which change from call to call
    given       how to find in a call what placeholders are
    keys        what those stand for, the same in all recordings of a function
    changing    all places that were fed
    found       places that it depends on, and which hold something else after the call
    read        places that hold numbers or tensors and were read, and what was in them
    """

    def __init__(
        self,
        graph: RecordingGraph,
        feeds: dict[Value, Getter],
        tensors: CallTensors,
        watch: Any,
        modules: ModuleTests,
        decisions: Decisions,
        keys: dict[Value, Hashable],
    ) -> None:
        self.graph = graph
        self.name = graph.name
        self.decisions = decisions
        self.places: dict[Any, Value] = {}
        self.watch = watch
        self.modules = modules
        self.recorder: Recorder = graph.tracer
        self.given, self.keys = feeds, keys
        self.changing: list[PythonPlace] = []
        self.found: list[PythonPlace] = []
        self.read: dict[PythonPlace, Any] = {}
        self.held = tensors.held
        self._leaves = tensors.leaves
        self.positions = tensors.positions()
        self.leaves: list[Any] = []  # values of the recording that are seen outside
        self.fetches: list[Value] = []
        self._numbers: dict[Value, int] = {}
        self.escaped: list[EscapedLeaf] = []
        self._escapes: dict[int, int] = {}
        self._read_by_backward: StillHolds | None = None

    def finish(self, returned: Any) -> None:
        """Take what the function returned, while its graph is open."""
        self.recorder.check_reads()
        recipe = self._recipe(returned)
        set_grads = [part for _, g in self.recorder.grads.written() for part in gradient_parts(g)]
        leaves = self.leaves = _once(x for x in (*self.watch.leaves, *set_grads) if _is_made(x))
        for leaf in leaves:
            symbol = self._number_of(leaf) if is_recorded_size(leaf) else leaf
            self._escapes[id(leaf)] = len(self.escaped)
            self.escaped.append(EscapedLeaf(self._fetch(symbol.value), MAKERS[type(symbol)]))
        self.result = self._result_of(returned, recipe)
        grads = [self._grad_write(t, g) for t, g in self.recorder.grads.written()]
        arguments, states = self._written()
        self.writes: list[GradientWrite | ArgumentWrite] = [
            *grads,
            *(self._argument_write(s, v) for s, v in arguments),
        ]
        with at_one_line(self.recorder):
            self.targets = [self.recorder.commit(*pair) for pair in states]
        for node in self._unused():
            self._fetch(node.outputs[0])
        linking = self._traced_back(leaves)
        self._kept = [*leaves, *self.watch.leaves]  # whose ids are keys
        for tensor, symbol in self.recorder.grads.found.values():
            self.given[symbol.value] = self._kept_grad(tensor)
            self.keys[symbol.value] = "grad", self.positions.get(id(tensor), id(tensor))
        self._finalize(linking)
        self._checks = [check(self.final, self.conditions)] if self.conditions else []
        needed = set(self.final.ancestors([*self.fetches, *self._checks, *self.targets]))
        for split in self.splits:
            needed.update(self.final.ancestors([x for x in split.inputs if x is not None]))
        needed.update(value.node for value in self.given if not is_known(value.shape))
        found = {value for split in self.splits for value in split.outputs}
        fed = [value for value in self.final.inputs if value.node in needed]
        self._fed = [value for value in fed if value not in found]
        self.feeds = [self.given[value] for value in self._fed]
        for call in self.recorder.put_offs:
            self.watch.effects.append(call, self.watch.where)
        observed = self.recorder.observed.values()
        self.guards = [(read, value) for read, value in observed if read() == value]

    def replaced_parts(self) -> list[PythonPlace]:
        """Return the places of modules that hold another tensor by now."""
        return [self.watch.place_of(*part) for part in self.modules.replaced()]

    def _number_of(self, size: Any) -> Any:
        """Return a size that is seen outside as a number of the graph."""
        if hasattr(size, "sizes"):  # a tensor's own count, which knows the shape it comes from
            raise NotRecordedError("returns or keeps x.size, of any size; x.numel() is an int")
        return size.symbol()

    def _finalize(self, linking: Linking | None) -> None:
        """Roll loops and make gradients of the graph, and find everything in it again."""
        wanted = [] if linking is None else linking.values()
        splits = self.recorder.splits
        wanted += [x for split in splits for x in (*split.inputs, *split.outputs) if x is not None]
        kept = [*self.fetches, *self.targets, *wanted]
        looped, looks = self._with_loops(kept)
        self.conditions = [look.condition for look in looks]
        kept += [condition.value for condition in self.conditions]
        self.recorder.forget_states()
        self.final = with_gradients(looped, [looped.aliases.get(x, x) for x in kept])
        self.fetches = [self._finally(value) for value in self.fetches]
        self.targets = [self._finally(value) for value in self.targets]
        self.given = {self._finally(value): get for value, get in self.given.items()}
        self.keys = {self._finally(value): key for value, key in self.keys.items()}
        self.conditions = [c._replace(value=self._finally(c.value)) for c in self.conditions]
        self.splits = [split.moved(self._finally) for split in splits]
        self.history = None if linking is None else self._linked(linking)

    @property
    def is_for_one_size(self) -> bool:
        """Tell whether all its shapes are known, so that it can be rewritten as a whole."""
        return not self.recorder.sizes and not self.recorder.splits

    def _with_loops(self, kept: Sequence[Value]) -> tuple[Graph, list[ValueRead]]:
        """Return the graph with loops whose length depends on values, and what else was read."""
        looks = self.recorder.looks
        if not self.is_for_one_size:
            return self.graph, looks
        return with_while_loops(self.graph, looks, kept)

    def _finally(self, value: Value) -> Value:
        return self.final.aliases.get(value, value)

    def _unused(self) -> list[Node]:
        """Return nodes whose results nobody needs, but which may raise: eager code ran them."""
        used = set(self.graph.ancestors([*self.fetches, *self.targets]))
        return [node for node in self.graph.nodes if node not in used and _may_raise(node)]

    def grads_needed(self) -> Iterator[tuple[Outside, bool]]:
        """Yield tensors from outside whose gradient was looked at, and whether there was one."""
        grads = self.recorder.grads
        yield from ((self.outside(tensor), False) for tensor in grads.absent.values())
        yield from ((self.outside(tensor), True) for tensor, _ in grads.found.values())

    def identities(self) -> TensorIdentities:
        """Return which tensors of the call are one object, and which they are not."""
        recorder, grads = self.recorder, self.recorder.grads
        outside = list(self.modules.tensors())
        same = [x for x in tensors_among(self.watch.found_same) if not x.symbolic]
        alone = [x for x in same if self._is_given_once(x)]
        met = {id(x): x for x in (*self.watch.met, *outside, *alone) if not isinstance(x, StandIn)}
        known = {self.positions[key]: x for key, x in met.items() if key in self.positions}
        used = [state.owner for state in recorder._tensors.values()]
        graded = [t for t, _ in (*grads.found.values(), *grads.now.values())]
        others = tensors_among((*self.watch.compared, *used, *graded, *grads.absent.values()))
        tested = self.positions.keys() | recorder.required.keys()  # the latter by `write_holds`
        apart = {id(x): x for x in others if id(x) not in tested}
        if not recorder.stood_for.keys().isdisjoint([id(x) for x in known.values()]):
            raise NotRecordedError("finds an argument elsewhere, whose sizes are not known")
        aliases = aliases_of(self._leaves) if self.held else None
        return TensorIdentities(self._leaves, known, apart.values(), aliases)

    def _is_given_once(self, tensor: Tensor) -> bool:
        return sum(leaf is tensor for leaf in self._leaves) == 1

    def split_run(self) -> SplitRun | None:
        """Return what runs operations whose shapes depend on values, if there are any."""
        if not self.splits:
            return None
        wanted = [*self.fetches, *self._checks, *self.targets]
        return SplitRun(self.final, self.splits, self._fed, wanted)

    def program(self, fed: Sequence[Value] | None = None) -> Program:
        """Return the graph with what is fetched and written; what is fed may be more."""
        fetches, targets = [*self.fetches, *self._checks], self.targets
        graph = self.final
        for value in self._checks:  # nothing is shown on a path that is not taken
            try:
                rebuild = effects_behind(graph, value)
            except GraphError as error:
                raise NotRecordedError(str(error)) from None
            if rebuild is not None:
                graph = rebuild.finish()
                fetches, targets = ([rebuild.value(x) for x in some] for some in (fetches, targets))
        program = Program(graph, fetches, self._fed if fed is None else fed, targets)
        program.takes_one_path = bool(self._checks)
        return program

    def program_of_fetches(self, numbers: Sequence[int]) -> tuple[Program, int]:
        """Return the same with some of the fetches, and how many checks are fetched behind them."""
        fetches = [*(self.fetches[i] for i in numbers), *self._checks]
        return Program(self.final, fetches, self._fed, self.targets), len(self._checks)

    def _fetch(self, value: Value) -> int:
        """Return the number of a value among the fetches."""
        known = self._numbers.get(value)
        if known is None:
            known = self._numbers[value] = len(self.fetches)
            self.fetches.append(value)
        return known

    def _recipe(self, returned: Any) -> Any:
        if self.watch.returns_argument(returned):
            raise NotRecordedError("returns a container that it was given", self.watch.where)
        try:
            return self.watch.recipe(returned)
        except UnrepeatableError as error:
            raise NotRecordedError(f"returns {error}", self.watch.where) from None

    def _result_of(self, returned: Any, recipe: Any) -> Callable[..., Any]:
        """Return what gives the result of a call, of the values that escaped and the arguments."""
        if _is_made(returned):
            return Escaped(self._escapes[id(returned)])
        if returned is None:
            return Escaped(-1)
        return Rebuilt(recipe, self._escapes, self.positions)

    def resolving(self, found: Sequence[Any], leaves: Leaves) -> Callable[[Any], Any]:
        """Return what finds, for one run, what stands for values and arguments of the recording."""
        return resolving(self._escapes, self.positions, found, leaves)

    def _traced_back(self, returned: Sequence[Any]) -> Linking | None:
        """Return which results of a call go on the tape; None if eager mode would record none."""
        recorded = [
            (i, leaf.value)
            for i, leaf in enumerate(returned)
            if isinstance(leaf, RecordedTensor) and leaf.requires_grad
        ]
        if not recorded:
            return None
        made = {i: v for i, v in recorded if v in self.recorder.inner_leaves}
        freed = {i: v.node for i, v in recorded if i not in made and self.recorder.is_freed(v)}
        kept = {i: v for i, v in recorded if i not in freed and i not in made}
        self._check_made(list(made.values()), list(kept.values()))
        hooked = any(watch.hooks for watch in self.recorder.watches.values())
        if kept and (hooked or self.recorder.is_observed):
            raise NotRecordedError("has hooks on gradients that may be taken outside of it")
        gradient = None if not kept else self._gradient_of(list(kept.values()))
        return Linking(freed, list(kept), list(made), gradient)

    def _gradient_of(self, kept: list[Value]) -> CallGradient:
        """Return how gradients of results go on, outside of the call."""
        make = partial(call_gradient, self.recorder, kept)
        if not self.recorder.runs_python(kept):
            return make()
        gradient, guards = watched(make)
        if len(guards):
            self.watch.guards = Guards([*self.watch.guards, *guards], versioned)
            self._read_by_backward = StillHolds(guards)
        return gradient

    def _check_made(self, made: Sequence[Value], kept: Sequence[Value]) -> None:
        """Refuse leaves of the function's own that have a gradient, or that results go back to."""
        leaves = [self.recorder.inner_leaves[value] for value in made]
        if any(self.recorder.grads.read(leaf) is not None for leaf in leaves):
            raise NotRecordedError("leaves a leaf with a gradient, which it made", self.watch.where)
        if made and not lead(self.graph.nodes, kept).isdisjoint(made):
            raise NotRecordedError("leaves a leaf that it made, and results of it")

    def _linked(self, linking: Linking) -> ResultLinks:
        """Return what puts the results of a call on the tape."""
        freed, kept, made, gradient = linking
        if gradient is None:
            return ResultLinks(freed, kept, made, None, [], [], [])
        computed = [value for split in self.splits for value in split.outputs]
        found = [*computed, *self._replaced_states()]
        history = CallHistory(self.final, gradient.moved(self._finally), found)
        history.read_by_backward = self._read_by_backward
        parents = [self.outside(leaf) for leaf in history.leaves]
        sources = [self._source(value) for value in history.sources]
        saved = [self._fetch(value) for value in history.saved]
        return ResultLinks(freed, kept, made, history, parents, sources, saved)

    def _replaced_states(self) -> list[Value]:
        """Return the values that states had which the call gives others, maybe in their memory."""
        written = self.recorder.written
        nodes = [node for node in self.final.nodes if node.op is STATE]
        return [node.outputs[0] for node in nodes if node.attrs[0].key in written]

    def _source(self, value: Value) -> Getter:
        """Return how to find the array that a call was given for a value."""
        if value in self.given:
            get = self.given[value]
            return lambda leaves: as_array(get(leaves))
        state = value.node.attrs[0]
        return lambda leaves: state.read()

    def outside(self, thing: Any) -> Outside:
        """Return how to find something from outside of the function: an argument, or itself."""
        position = self.positions.get(id(thing))
        return Outside(None, thing) if position is None else Outside(position)

    def _kept_grad(self, tensor: Tensor) -> Getter:
        return KeptGrad(self.outside(tensor))

    def _grad_write(self, tensor: Tensor, grad: Any) -> GradientWrite:
        if isinstance(grad, RowSparse):
            rows, values = (self._escapes[id(part)] for part in gradient_parts(grad))
            return RowGradWrite(self.outside(tensor), rows, values, grad)
        number = -1 if grad is None else self._escapes[id(grad)]
        return GradWrite(self.outside(tensor), number)

    def _written(self) -> tuple[list[tuple[State, Value]], list[tuple[State, Value]]]:
        """Return what was written to arguments, and what to other states."""
        arguments, states = [], []
        for state, value in self.recorder.written.values():
            if state.key in self.recorder.arguments:
                arguments.append((state, value))
            elif not isinstance(state.owner, Generator):
                states.append((state, value))
        return arguments, states

    def _argument_write(self, state: State, value: Value) -> ArgumentWrite:
        return ArgumentWrite(self.outside(state.owner), self._fetch(value))


def _may_raise(node: Node) -> bool:
    """Tell whether an operation looks at values: at indices, or whether a matrix has an inverse."""
    if node.op.kind != "general" or node.op.advances:
        return False
    given = [x for x in node.inputs if x is not None and x.node.op is not CONSTANT]
    indexed = any(x.dtype.kind in "iu" and x.dtype.itemsize < 16 for x in given[1:])
    is_product = node.op.product_rule is not None  # which multiplies whatever there is
    return indexed or (node.op.__module__.startswith("weft.ops.linalg.") and not is_product)


def _is_made(thing: Any) -> bool:
    """Tell whether a call makes something anew: a value of its recording, but no argument."""
    if isinstance(thing, RecordedTensor):
        return not isinstance(thing, StandIn)
    return is_recorded_size(thing)


def _once(leaves: Iterable[Any]) -> list[Any]:
    """Return leaves, each object once."""
    return list({id(leaf): leaf for leaf in leaves}.values())


def _item(array: Array) -> Any:
    """Return the only element of a result, wherever it is."""
    return array.item()


MAKERS: dict[type, Callable[[Array], Any]] = {
    RecordedTensor: wrap,
    RecordedSnapshot: snapshot,
    RecordedNumber: _item,
}


def as_array(given: Any) -> Array:
    """Return what is fed as an array."""
    return given._value if isinstance(given, Tensor) else np.asarray(given)
