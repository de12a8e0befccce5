"""One call of a function: run eagerly, or recorded.

To record it, the function runs once on arguments that stand for any of their kind, watched by what
sees which of Python's things it reads and changes (watch/). A place that it both reads and changes,
such as a counter or a state that a module keeps from call to call, would hold another value in the
next call: then the function is recorded again with that place as an argument too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from functools import partial
from operator import is_
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..core.dim import Decisions, deciding
from ..core.errors import UnknownSizeError, is_from_signal
from ..core.shape import Shape, TensorType
from ..core.tensor import Tensor
from ..core.tree import Structure
from ..graph.node import Value
from ..graph.state import NUMBER_DTYPES, tensor_state
from ..graph.symbol import make_number, make_symbol
from .held import CallTensors, HeldTensors, tensors_in
from .number_arithmetic import limit_of
from .objects import ModuleTests, is_fixed, is_opaque, note_change, versioned, why_not_read
from .outside import Getter, Leaves, Outside, TensorArgument
from .recorded import RecordedTensor
from .recorded_array import RecordedArray
from .recorded_call import RecordedCall
from .recorded_size import is_recorded_size
from .recorder import NotRecordedError, OutsideHistoryError, Recorder, RecordingGraph
from .sizes import FIXED_SIZES, CallSizes
from .stand_in import stand_in
from .watch import Listener, PythonPlace, Refusal, Watch
from .watch.values import same

MOST_PLACES = 64  # that change, as arguments of one program


class _Unfinished(NamedTuple):
    """A recording that ended at a tensor with a history, and the places that hold that."""

    error: OutsideHistoryError
    found: list[PythonPlace]


class RecordingRules(NamedTuple):
    """What a recording may be.

    pins    whether it may hold for single values of whole numbers that change
    most    operations it may have
    check   is shown a recording before anything is made of it, and may raise NotRecordedError
    """

    pins: bool = True
    most: int = sys.maxsize
    check: Callable[[RecordedCall], None] | None = None


ALL = RecordingRules()


class JitCall(NamedTuple):
    """One call of a function."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: Leaves
    structure: Structure
    rules: RecordingRules = ALL

    def run(self) -> Any:
        """Make the call, eagerly."""
        return self.function(*self.args, **self.kwargs)

    def record(
        self,
        name: str,
        fed: Container[int],
        sizes: CallSizes = FIXED_SIZES,
        known: Iterable[PythonPlace] = (),
    ) -> RecordedCall:
        """Make the call once to see what it does, and undo that.

        fed     positions of numbers that change
        sizes   those that change, which the recording is to hold for all of
        known   places that change, of which other calls have told
        """
        places = [place for place in known if _can_be_fed(place)]
        if places:
            try:
                return self._settled(name, fed, sizes, places)
            except NotRecordedError:  # it may be that their values must be known
                if not self.rules.pins:
                    raise
            except Exception as error:
                if is_from_signal(error):
                    raise
        return self._settled(name, fed, sizes, sizes.places)

    def _settled(
        self, name: str, fed: Container[int], sizes: CallSizes, known: Iterable[PythonPlace]
    ) -> RecordedCall:
        """Record the call with places that change as arguments, more of them until all are."""
        places = dict.fromkeys(known)
        while True:
            recording = self._recorded(name, fed, places, sizes)
            further = [p for p in recording.found if _can_be_fed(p) and p not in places]
            if further and len(places) < MOST_PLACES:
                places |= dict.fromkeys(further)
            elif isinstance(recording, _Unfinished):
                raise recording.error
            else:
                if self.rules.check is not None:
                    self.rules.check(recording)
                return _with_places(recording, places)

    def _recorded(
        self, name: str, fed: Container[int], places: Iterable[PythonPlace], sizes: CallSizes
    ) -> RecordedCall | _Unfinished:
        with deciding(sizes.now, numbers=True) as decisions:
            graph = RecordingGraph(name, decisions.sizes)
            with graph:
                return self._recorded_in(graph, fed, places, sizes, decisions)

    def _recorded_in(
        self,
        graph: RecordingGraph,
        fed: Container[int],
        places: Iterable[PythonPlace],
        sizes: CallSizes,
        decisions: Decisions,
    ) -> RecordedCall | _Unfinished:
        recorder, unknown = graph.tracer, UnknownSizeError.made
        recorder.pins, recorder.most = self.rules.pins, self.rules.most
        held = HeldTensors([p for p in places if not _holds_number(p)], sizes.places)
        leaves, count = held.extended(self.leaves), len(self.leaves)
        given = self._all_given(recorder, leaves, fed, {**sizes.leaves, **held.shapes(count)})
        seen = [leaf for leaf, _, _ in given]
        numbers = {p: _number_held(recorder, p) for p in places if _holds_number(p)}
        replaced = {place: leaf for place, (leaf, _, _) in numbers.items()}
        replaced |= held.stand_ins(seen[count:])
        args, kwargs = self._with(seen[:count])
        modules = ModuleTests(places)
        modules.note(self.function)
        watch = recorder.watch = self._watch(args, kwargs, leaves, replaced, held, modules)
        all_fed: list[tuple[Hashable, tuple[Any, Value | None, Getter]]] = [
            *enumerate(given),
            *numbers.items(),
        ]
        feeds = {v: get for _, (_, v, get) in all_fed if v is not None}
        keys = {v: key for key, (_, v, _) in all_fed if v is not None}
        tensors = CallTensors(leaves, seen, held)
        recording = RecordedCall(graph, feeds, tensors, watch, modules, decisions, keys)
        recording.places = held.alone([value for _, value, _ in given[count:]])
        recorder.around = sys._getframe()
        try:
            with watch:
                returned = self.function(*args, **kwargs)
            if watch.refusal is not None:
                _refuse(watch.refusal)
            recording.found = [*watch.changing, *recording.replaced_parts()]
            if decisions.sizes and UnknownSizeError.made > unknown:
                raise NotRecordedError("depends on sizes in a way that is not known")
            recording.finish(returned)
        except OutsideHistoryError as error:
            return _Unfinished(error, watch.places_of(error.tensor))
        finally:
            recorder.around = None
            watch.undo()
        return recording

    def _watch(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        leaves: Leaves,
        replaced: Mapping[PythonPlace, Any],
        held: HeldTensors,
        modules: ModuleTests,
    ) -> Watch:
        ours = {id(leaf) for leaf in leaves if isinstance(leaf, Tensor)}
        return Watch(
            self.function,
            args,
            kwargs,
            opaque=is_opaque,
            fixed=is_fixed,
            recorded=lambda x: (
                isinstance(x, RecordedTensor) or is_recorded_size(x) or id(x) in ours
            ),
            numbers=replaced,
            held=held.places,
            versioned=versioned,
            told=Listener(note_change, modules.note, _refuse, why_not_read),
        )

    def _with(self, leaves: Leaves) -> Any:
        """Return the arguments with other leaves; the user's own containers where none changed."""
        if all(map(is_, leaves, self.leaves)):
            return self.args, self.kwargs
        return self.structure.unflatten(leaves)

    def _all_given(
        self,
        recorder: Recorder,
        leaves: Leaves,
        fed: Container[int],
        shapes: Mapping[int, Shape],
    ) -> list[tuple[Any, Value | None, Getter]]:
        """Return all arguments as `_given` does; a tensor that is given twice is so again.

        `shapes` are those that have sizes in them which change.
        """
        found: dict[int, tuple[Any, Value | None, Getter]] = {}
        made = []
        for i, leaf in enumerate(leaves):
            key = id(leaf) if i in shapes else -i - 1
            if key not in found:
                found[key] = self._given(recorder, i, leaf, i in fed, shapes.get(i))
            made.append(found[key])
        return made

    def _given(
        self, recorder: Recorder, position: int, leaf: Any, fed: bool, shape: Shape | None
    ) -> tuple[Any, Value | None, Getter]:
        """Return an argument as the function is to see it, what stands for it, how to feed that.

        `shape` has the sizes that change in it; None if the argument has none.
        """
        nth, name = Outside(position), f"argument_{position}"
        if isinstance(leaf, Tensor):
            state = tensor_state(leaf, name)
            type = state.type if shape is None else TensorType(shape, leaf.dtype)
            value = recorder.argument(type, name, leaf._value)
            recorder.arguments[state.key] = value
            seen = leaf if shape is None else stand_in(recorder.graph, value, leaf)
            return seen, value, TensorArgument(position)
        if isinstance(leaf, np.ndarray):
            type = TensorType(leaf.shape if shape is None else shape, leaf.dtype)
            value = recorder.argument(type, name, leaf)
            symbol: Any = make_symbol(recorder.graph, value)  # of a recording
            return RecordedArray(symbol), value, nth
        if fed:
            number, value = _number(recorder, leaf, name)
            return number, value, partial(_nth_number, position, recorder.bounds.get(value))
        return leaf, None, nth


def _refuse(refusal: Refusal) -> NoReturn:
    raise NotRecordedError(refusal.reason, refusal.where, once=refusal.once)


def _nth_number(position: int, bound: int | None, leaves: Leaves) -> Any:
    return _as_fed(leaves[position], bound)


def _as_fed(number: Any, bound: int | None) -> Any:
    """Return a number as an array; raise if an integer is larger than the program takes."""
    if bound is None:
        return np.array(number, np.float64)
    if not -bound <= number <= bound:
        raise OverflowError(f"{number} is more than {bound}, which the program is for")
    return np.array(number, np.int64)


def _number(recorder: Recorder, number: Any, name: str) -> tuple[Any, Value]:
    dtype = NUMBER_DTYPES[type(number)]
    value = recorder.argument(TensorType((), dtype), name, np.array(number, dtype))
    if type(number) is int:
        recorder.bounds[value] = limit_of(number)
    return make_number(recorder.graph, value), value


# -- places that change from call to call ----------------------------------------------------------


def _with_places(recording: RecordedCall, places: Iterable[PythonPlace]) -> RecordedCall:
    """Return a recording that knows which places it was fed, and what is in others."""
    recording.changing = list(places)
    watch = recording.watch
    read = (*watch.number_places, *watch.opaque_places)
    others = [place for place in read if place not in recording.changing]
    recording.read = {place: place.get() for place in others if _can_be_fed(place)}
    return recording


def changing_places(recordings: Iterable[RecordedCall]) -> list[PythonPlace]:
    """Return places of which calls have shown that they change.

    They are those that one of them has read and written, and those that hold another number, or
    another tensor, by now: a call in between may have put it there.
    """
    known = list(recordings)
    found = dict.fromkeys(place for recording in known for place in recording.changing)
    for recording in known:
        found |= dict.fromkeys(p for p, was in recording.read.items() if _is_another(p, was))
        found |= dict.fromkeys(recording.replaced_parts())
    return list(found)


def _is_another(place: PythonPlace, was: Any) -> bool:
    now = place.get()
    return type(now) is type(was) and not same(now, was)


def _can_be_fed(place: PythonPlace) -> bool:
    """Tell whether a place holds what a program can be fed with: a number, or tensors."""
    return _holds_number(place) or tensors_in(place.get()) is not None


def _holds_number(place: PythonPlace) -> bool:
    return type(place.get()) in (int, float)


def _number_held(recorder: Recorder, place: PythonPlace) -> tuple[Any, Value, Getter]:
    """Return the number that is to stand in a place, its value, and how to feed that."""
    number, value = _number(recorder, place.get(), "place")
    bound = recorder.bounds.get(value)
    return number, value, lambda leaves: _as_fed(place.get(), bound)
