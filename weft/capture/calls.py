"""One call of a function: run eagerly, or recorded.

To record it, the function runs once on arguments that stand for any of their kind, watched by what
sees which of Python's things it reads and changes (watch/). A place that it both reads and changes,
such as a counter or a state that a module keeps from call to call, would hold another value in the
next call: then the function is recorded again with that place as an argument too.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from operator import is_
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..core.shape import TensorType
from ..core.tensor import Tensor
from ..core.tree import Structure
from ..graph.node import Value
from ..graph.state import NUMBER_DTYPES, tensor_state
from ..graph.symbol import make_number, make_symbol
from .objects import ModuleTests, is_fixed, is_opaque, note_change, versioned, why_not_read
from .outside import Getter, Leaves, Outside, TensorArgument
from .recorded import RecordedTensor
from .recorded_array import recorded_array
from .recorder import NotRecordedError, Recorder, RecordingGraph
from .trace import RecordedCall
from .watch import Listener, PythonPlace, Refusal, Watch

MOST_PLACES = 64  # that change, as arguments of one program


class JitCall(NamedTuple):
    """One call of a function."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: Leaves
    structure: Structure

    @property
    def is_plain(self) -> bool:
        """Whether the positional arguments are the leaves, and there are no others."""
        return not self.kwargs and len(self.args) == len(self.leaves)

    def run(self) -> Any:
        """Make the call, eagerly."""
        return self.function(*self.args, **self.kwargs)

    def record(self, name: str, fed: Container[int]) -> RecordedCall:
        """Make the call once to see what it does, and undo that; `fed` are numbers that change."""
        places: dict[PythonPlace, None] = {}
        recording = self._recorded(name, fed, places)
        while len(places) < MOST_PLACES:
            changing = [p for p in recording.watch.changing if _can_be_fed(p) and p not in places]
            if not changing:
                break
            places |= dict.fromkeys(changing)
            recording = self._recorded(name, fed, places)
        return recording

    def _recorded(
        self, name: str, fed: Container[int], places: Iterable[PythonPlace]
    ) -> RecordedCall:
        graph = RecordingGraph(name)
        recorder = graph.tracer
        with graph:
            given = [self._given(recorder, i, x, i in fed) for i, x in enumerate(self.leaves)]
            held = {place: _held(recorder, place) for place in places}
            args, kwargs = self._with([leaf for leaf, _, _ in given])
            replaced = {place: leaf for place, (leaf, _, _) in held.items()}
            modules = ModuleTests()
            modules.note(self.function)
            watch = recorder.watch = self._watch(args, kwargs, replaced, modules)
            feeds = {v: get for _, v, get in (*given, *held.values()) if v is not None}
            recording = RecordedCall(graph, name, feeds, self._positions(), watch, modules)
            try:
                with watch:
                    returned = self.function(*args, **kwargs)
                if watch.refusal is not None:
                    _refuse(watch.refusal)
                recording.finish(returned)
            finally:
                watch.undo()
        return recording

    def _watch(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        replaced: Mapping[PythonPlace, Any],
        modules: ModuleTests,
    ) -> Watch:
        ours = {id(leaf) for leaf in self.leaves if isinstance(leaf, Tensor)}
        return Watch(
            self.function,
            args,
            kwargs,
            opaque=is_opaque,
            fixed=is_fixed,
            recorded=lambda x: isinstance(x, RecordedTensor) or id(x) in ours,
            numbers=replaced,
            versioned=versioned,
            told=Listener(note_change, modules.note, _refuse, why_not_read),
        )

    def _with(self, leaves: Leaves) -> Any:
        """Return the arguments with other leaves; the user's own containers where none changed."""
        if all(map(is_, leaves, self.leaves)):
            return self.args, self.kwargs
        return self.structure.unflatten(leaves)

    def _positions(self) -> dict[int, int]:
        return {id(x): i for i, x in enumerate(self.leaves) if isinstance(x, Tensor)}

    def _given(
        self, recorder: Recorder, position: int, leaf: Any, fed: bool
    ) -> tuple[Any, Value | None, Getter]:
        """Return an argument as the function is to see it, what stands for it, how to feed that."""
        nth, name = Outside(position), f"argument_{position}"
        if isinstance(leaf, Tensor):
            state = tensor_state(leaf, name)
            value = recorder.argument(state.type, name, leaf._value)
            recorder.arguments[state.key] = value
            return leaf, value, TensorArgument(position)
        if isinstance(leaf, np.ndarray):
            value = recorder.argument(TensorType(leaf.shape, leaf.dtype), name, leaf)
            return recorded_array(leaf, make_symbol(recorder.graph, value)), value, nth  # type: ignore[arg-type]  # of a recording
        if fed:
            number, value = _number(recorder, leaf, name)
            return number, value, partial(_nth_number, position, value.dtype)
        return leaf, None, nth


def _refuse(refusal: Refusal) -> NoReturn:
    raise NotRecordedError(refusal.reason, refusal.where)


def _nth_number(position: int, dtype: np.dtype[Any], leaves: Leaves) -> Any:
    return np.array(leaves[position], dtype)


def _number(recorder: Recorder, number: Any, name: str) -> tuple[Any, Value]:
    dtype = NUMBER_DTYPES[type(number)]
    value = recorder.argument(TensorType((), dtype), name, np.array(number, dtype))
    return make_number(recorder.graph, value), value


# -- places that change from call to call ----------------------------------------------------------


def _can_be_fed(place: PythonPlace) -> bool:
    """Tell whether a place holds what a program can be fed with: a number, or a plain tensor."""
    held = place.get()
    return type(held) in (int, float) or (type(held) is Tensor and held._node is None)


def _held(recorder: Recorder, place: PythonPlace) -> tuple[Any, Value, Getter]:
    """Return what is to stand in a place, what stands for it in the graph, and how to feed that."""
    held, name = place.get(), "place"
    if isinstance(held, Tensor):
        value = recorder.argument(TensorType(held.shape, held.dtype), name, held._value)
        return make_symbol(recorder.graph, value), value, lambda leaves: place.get()
    number, value = _number(recorder, held, name)
    return number, value, lambda leaves: np.array(place.get(), value.dtype)
