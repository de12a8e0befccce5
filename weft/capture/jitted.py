"""`wf.jit`: ordinary eager code as compiled programs.

The first call of a signature runs the function once on values that record what happens to them
(recorder.py), compiles that, and runs it; later calls run the compiled program alone. What the path
through Python depended on is checked in each call; where it differs, the function is recorded
again, and both paths are kept.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from sys import gettrace
from threading import RLock
from types import MethodType
from typing import Any
from weakref import WeakKeyDictionary

from ..compiler.saved import load_programs, save_programs
from ..core.anomaly import detecting_anomaly
from ..core.errors import (
    GraphError,
    is_final,
    user_line,
    user_stacklevel,
)
from ..core.imports import is_found_by_name
from ..core.modes import current_interpreter, current_transform, modes
from ..core.parts import running_in_parts
from ..core.tree import Structure, flatten
from ..graph.graph import Graph
from ..graph.size_patterns import Shapes
from .calls import ALL, JitCall, changing_places
from .debugging import is_debugged
from .entry import Entries
from .exported_call import export_recorded, shapes_of_call, shapes_of_last
from .joining import joined
from .later import LaterTraces
from .new_sizes import REASON, NewSizes
from .outside import Leaves
from .parts import JittedParts
from .recorded_call import RecordedCall
from .recorder import NotRecordedError
from .report import JitReport, stats_of, why_not
from .signature import CallSignature, Signatures
from .sized_traces import SizedTraces
from .source import call_source, program_of, program_states
from .trace import MISSED, Trace

EAGER = object()  # in place of a result: the call is to be made eagerly
MOST_SIGNATURES = 64  # programs of a function, each with an arena
MOST_PATHS = 16  # through one signature
MOST_KINDS = 4096
ANEW = "recorded anew in each call"  # what is said once of a function, whatever changes


class Jitted:
    """A function that runs as compiled programs."""

    def __init__(
        self, function: Callable[..., Any], *, strict: bool = False, background: bool = False
    ) -> None:
        self._function = function
        self._strict = strict
        self._later = LaterTraces() if background else None
        self.name = getattr(function, "__name__", type(function).__name__)
        functools.update_wrapper(self, function, updated=())
        self._signatures = Signatures()
        self._traces: OrderedDict[Any, list[Trace]] = OrderedDict()
        self._sized = SizedTraces()
        self._new_sizes = NewSizes()
        self._refused: dict[Any, str] = {}
        self._parts: JittedParts | None = None  # if some calls run in parts
        self._warned: set[str] = set()
        self._methods: WeakKeyDictionary[Any, Jitted] = WeakKeyDictionary()
        self._entries = Entries()
        self._report = JitReport()
        self._lock = RLock()
        self._rules = ALL

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind to an object, as a method; each object has programs of its own."""
        if instance is None:
            return self
        bound = self._methods.get(instance)
        if bound is None:
            method = MethodType(self._function, instance)
            bound = self._methods[instance] = self._bound_to(method)
        return bound

    def _bound_to(self, method: MethodType) -> Jitted:
        return Jitted(method, **self._settings())

    def _settings(self) -> dict[str, Any]:
        """Return how it was made, beside the function."""
        return {"strict": self._strict, "background": self._later is not None}

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Copy and pickle the function: each copy of it has programs of its own."""
        owner = getattr(self._function, "__self__", None)
        if owner is not None and getattr(owner, self.name, None) is self:  # a method of its class
            return getattr, (owner, self.name)
        if is_found_by_name(self):
            return str(self.__qualname__)  # type: ignore[attr-defined]  # the function's own
        return functools.partial(type(self), **self._settings()), (self._function,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the function does."""
        if gettrace() is not None and is_debugged():
            return self._run_eagerly(args, kwargs)
        if not modes.interpreters or current_interpreter() is None:
            with self._lock:
                for enter in self._entries.quick:
                    result = enter(args, kwargs)
                    if result is not MISSED:
                        return result
        elif current_transform() is not None or detecting_anomaly():
            return self._run_eagerly(args, kwargs)  # it becomes part of what is traced around it
        return self._call_generally(args, kwargs)

    def _call_generally(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do what the function does: by a trace that is found by the signature, or a new one."""
        leaves, structure = flatten((args, kwargs))
        with self._lock:
            signature = self._signatures.of(leaves, structure)
            if signature.general not in self._refused:
                missed: list[Trace] = []
                try:
                    result = self._run_known(signature, leaves, structure, missed)
                except Exception as error:  # nothing is written: eager code raises it in its place
                    if is_final(error):
                        raise
                    result = EAGER
                if result is EAGER:
                    self._report.eager += 1
                    return self._run_eagerly(args, kwargs)
                if result is not MISSED:
                    return result
                call = JitCall(self._function, args, kwargs, leaves, structure, self._rules)
                if self._strict or not self._is_put_off(signature, call):
                    return self._record(signature, call, missed)
        self._report.eager += 1
        with running_in_parts(self._parts):
            return self._run_eagerly(args, kwargs)

    def _run_eagerly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a call without a program."""
        return self._function(*args, **kwargs)

    def _is_put_off(self, signature: CallSignature, call: JitCall) -> bool:
        """Tell whether a call is of sizes that are not worth a program yet, and say so once."""
        if signature.key in self._traces or not self._new_sizes.are_put_off(signature):
            return False
        if not self._new_sizes.said:
            self._new_sizes.said = True
            self._say_eager(call, REASON, None)
        return True

    @property
    def __code__(self) -> Any:
        """The code of the function, for debuggers: `break step` stops there."""
        return self._function.__code__

    def __repr__(self) -> str:
        programs = sum(map(len, self._traces.values())) + len(self._sized.traces())
        return f"<jit of {self.name}: {programs} program{'s' * (programs != 1)}>"

    def stats(self) -> dict[str, Any]:
        """Return counts of signatures, paths, recordings, calls by kind, kernels and bytes."""
        traces = [trace for paths in self._traces.values() for trace in paths]
        traces += self._sized.traces()
        return {
            "signatures": len(self._traces),
            "recordings": self._report.recordings,
            "eager_calls": self._report.eager,
            **stats_of(traces),
            **({} if self._parts is None else {"parts": self._parts.stats()}),
        }

    def explain(self) -> str:
        """Return why the function was recorded each time, and which calls run eagerly, and why."""
        return self._report.text(self.name)

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """Return what a call with these arguments computes, as a graph; nothing is run or changed.

        Without arguments: what the last call computed.
        """
        if not args and not kwargs and self._traces:
            return next(reversed(self._traces.values()))[0].graph
        found, _ = self._computed(args, kwargs)
        return found.graph if isinstance(found, Trace) else found.final

    def source(self, *args: Any, **kwargs: Any) -> str:
        """Return what a call with these arguments computes as a NumPy program; nothing is run.

        The text stands alone. It defines a function of arrays for the arguments, and of a
        dictionary of states as `states` gives it; that returns the result, and a dictionary of the
        states that are written, gradients among them. What the function does to other objects of
        Python's is left out. Where a value that Python read is another, IndexError is raised.
        """
        found, leaves = self._computed(args, kwargs)
        return call_source(found, program_of(found), self.name, leaves)

    def states(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the states that a call with these arguments reads, by name, as arrays."""
        return program_states(program_of(self._computed(args, kwargs)[0]))

    def profile(self, *args: Any, runs: int = 20) -> Any:
        """Run a call with these arguments several times; return the times of its kernels.

        Nothing is changed by it: states are read, but the runs write to copies of them.
        """
        executable, arrays = self.code_of(args)
        return executable.profile(arrays, runs=runs)

    def code_of(self, args: tuple[Any, ...]) -> tuple[Any, list[Any]]:
        """Return the machine code of a call with these arguments, and what that is fed."""
        found, leaves = self._computed(args, {})
        if not isinstance(found, Trace):  # recorded, and not kept: a call keeps it
            self(*args)
            found, leaves = self._computed(args, {})
        if not isinstance(found, Trace) or found.split_run is not None:
            raise GraphError(f"jit: a call of {self.name} with these arguments is no one program")
        given = found.held.extended(leaves) if found.held else leaves
        arrays = found.call.arrays([get(given) for get in found.feeds])
        return found.call.executable(arrays), arrays

    def save(self, path: Any) -> None:
        """Write the machine code of all programs that there are to a file, for `load`.

        It holds code and plans of memory, no weights and nothing of Python's: the function must be
        there to be recorded, and states are those that it uses then.
        """
        traces = [trace for paths in self._traces.values() for trace in paths]
        calls = [trace.call for trace in (*traces, *self._sized.traces())]
        save_programs(path, self.name, (code for call in calls for code in call.compiled()))

    def export(self, path: Any, *args: Any, **options: Any) -> list[Any]:
        """Write what a call with these arguments computes to a shared library with a C header.

        Without arguments: what the last call computed. Numbers of Python's that the program reads
        anew in each call are inputs of the library, like the arguments. For the options see
        `wf.export`.
        """
        if not args and self._traces:
            trace = next(reversed(self._traces.values()))[0]
            shapes = shapes_of_last(trace, self.name)
            return export_recorded(trace, shapes, self.name, path, **options)
        found, leaves = self._computed(args, {})
        return export_recorded(found, shapes_of_call(found, leaves), self.name, path, **options)

    def load(self, path: Any) -> bool:
        """Let calls use the machine code in a file that `save` wrote, instead of compiling.

        Return whether it can be used. A file for another machine, number of threads or version,
        one that another user wrote, or a damaged one is not used, and a warning says why. What the
        function computes is recorded as ever: code of another program is never run.
        """
        return load_programs(path, f"{self.name}.load")

    def _computed(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Trace | RecordedCall, Leaves]:
        """Return what is known of calls like this one, recorded now if need be, and its leaves."""
        leaves, structure = flatten((args, kwargs))
        signature = self._signatures.of(leaves, structure)
        for trace in self._traces.get(signature.key, ()):
            if len(trace.paths) == 1 and trace.holds(leaves):
                return trace, leaves
        call = JitCall(self._function, args, kwargs, leaves, structure)
        try:
            return call.record(self.name, signature.fed), leaves
        except NotRecordedError as error:
            raise GraphError(
                f"jit: {self.name} has no graph: {error.reason} ({error.where})"
            ) from None

    def _run_known(
        self,
        signature: CallSignature,
        leaves: Leaves,
        structure: Structure,
        missed: list[Trace],
    ) -> Any:
        """Run the program of a path that holds for a call; MISSED if none is known.

        missed   is given those that hold but for values
        """
        key = signature.key
        for table in (self._traces, self._sized.bound):
            for trace in table.get(key, ()):
                if trace.holds(leaves):
                    self._entries.note(trace, structure, leaves)  # while all is as it was recorded
                    result = self._run_trace(trace, leaves)
                    if result is EAGER:
                        return EAGER
                    if result is not MISSED:
                        table.move_to_end(key)
                        return result
                    missed.append(trace)
        return self._run_sized(signature, leaves)

    def _run_sized(self, signature: CallSignature, leaves: Leaves) -> Any:
        """Run what holds for many sizes, those of a call among them."""
        for trace in self._sized.find(signature, leaves):
            if trace.holds(leaves):
                result = self._run_trace(trace, leaves)
                if result is EAGER:
                    return EAGER
                if result is not MISSED:
                    self._sized.bind(signature, trace)
                    return result
        return MISSED

    def _run_trace(self, trace: Trace, leaves: Leaves) -> Any:
        """Run a trace; EAGER if its program is being compiled in the background."""
        if self._later is not None and self._later.is_pending(trace):
            return EAGER
        return trace.run(leaves)

    def _first_run(self, trace: Trace, leaves: Leaves) -> Any:
        """Run a new trace, or have it compiled in the background."""
        if self._later is not None and self._later.begin(trace, leaves):
            return EAGER
        return trace.run(leaves)

    def _record(self, signature: CallSignature, call: JitCall, missed: Sequence[Trace]) -> Any:
        """Record a call and run what came of it; if that cannot be, run it eagerly."""
        failure: BaseException
        try:
            why = self._why(signature)
            trace, result = self._recorded_run(signature, call, missed)
            if result is MISSED:
                raise NotRecordedError("asks for a truth that compiled code rounds over", once=True)
        except NotRecordedError as error:
            failure = error
        except Exception as error:  # the user's own, or that of something that cannot be recorded
            if is_final(error):
                raise
            failure = error
        else:
            self._report.recorded(_shown(call, trace.pattern), why)
            self._keep(signature, call, trace, why)
            if result is not EAGER:
                return result
            self._report.eager += 1
            return call.run()
        self._report.eager += 1
        return self._without_program(signature, call, failure)

    def _without_program(
        self, signature: CallSignature, call: JitCall, failure: BaseException
    ) -> Any:
        """Make a call eagerly that could not be recorded, and say so if all like it cannot."""
        if isinstance(failure, NotRecordedError) and failure.in_parts:
            return self._begin_parts(signature.general, call, failure)
        passing = isinstance(failure, NotRecordedError) and failure.once
        if self._strict and isinstance(failure, NotRecordedError) and not passing:
            return self._insist(signature, call, failure)
        result = self._run_unlocked(call)
        if not passing and not self._signatures.fix(signature.general):
            self._refuse(signature.general, call, failure)
        return result

    def _run_unlocked(self, call: JitCall) -> Any:
        """Make a call eagerly: raise the user's own errors, and leave what eager code leaves.

        Other threads may call meanwhile, as virtual shards do, which wait for one another in it.
        """
        try:
            self._lock.release()  # here: an interrupt comes behind a call, and finds it released
            return call.run()
        finally:
            self._lock.acquire()

    def _begin_parts(self, general: Any, call: JitCall, failure: NotRecordedError) -> Any:
        """Run calls of a kind eagerly from now on, around what has programs of its own.

        What is whole in itself, the update of an optimizer, is compiled.
        """
        if self._parts is None:
            self._parts = JittedParts(Jitted)
        self._refused[general] = failure.reason
        self._report.refused(_shown(call), failure.reason, failure.where)
        with running_in_parts(self._parts):
            return call.run()

    def _recorded_run(
        self, signature: CallSignature, call: JitCall, missed: Sequence[Trace]
    ) -> tuple[Trace, Any]:
        """Record a call, for many sizes if some change; return what came of it, and its result."""
        trace = self._sized.record(self.name, signature, call)
        if trace is not None:
            try:
                return trace, self._first_run(trace, call.leaves)
            except Exception as error:  # nothing is written; what is for its own sizes may run
                if is_final(error):
                    raise
                self._report.kept_apart(error)
        known = [path.recording for t in self._traces.get(signature.key, ()) for path in t.paths]
        recording = call.record(self.name, signature.fed, known=changing_places(known))
        trace = Trace(recording, signature.fed)
        return self._joined_run(signature.key, trace, missed, call.leaves)

    def _joined_run(
        self, key: Any, trace: Trace, missed: Sequence[Trace], leaves: Leaves
    ) -> tuple[Trace, Any]:
        """Run a new path, as one program with those that it joins; these are not kept alone."""
        for known in missed:
            try:
                both = joined(known, trace)
                result = MISSED if both is None else self._first_run(both, leaves)
            except Exception as error:  # nothing is written; the path alone may run
                if is_final(error):
                    raise
                self._report.kept_apart(error)
                continue
            if both is not None and result is not MISSED:
                self._traces[key].remove(known)
                return both, result
        return trace, self._first_run(trace, leaves)

    def _why(self, signature: CallSignature) -> list[str]:
        """Return why no path that is known was that of this call."""
        known = self._traces.get(signature.key, ())
        return why_not(known) if known else []

    def _insist(self, signature: CallSignature, call: JitCall, failure: BaseException) -> Any:
        """Record a call again with its numbers as they are, or say why it cannot be recorded."""
        if self._signatures.fix(signature.general):
            return self(*call.args, **call.kwargs)
        reason, where = _explained(failure)
        raise GraphError(
            f"jit: {self.name} cannot be compiled: {reason}" + (f" ({where})" if where else "")
        ) from (failure if isinstance(failure, Exception) else None)

    def _keep(
        self, signature: CallSignature, call: JitCall, trace: Trace, why: Sequence[str]
    ) -> None:
        self._sized.see(signature, call, trace)
        self._new_sizes.note(signature, trace)
        if trace.pattern is not None:
            return
        paths = self._traces.setdefault(signature.key, [])
        paths.insert(0, trace)
        in_vain = len(paths) > MOST_PATHS and all(path.runs <= 1 for path in paths)
        if in_vain and why and ANEW not in self._warned:
            self._warned.add(ANEW)
            self._warn(f"jit: {self.name} is {ANEW}: {why[0]}; see explain()")
        del paths[MOST_PATHS:]
        while len(self._traces) > MOST_SIGNATURES:
            self._traces.popitem(last=False)
        if len(self._signatures) > MOST_KINDS:  # of calls, each of which is remembered
            self._signatures = Signatures()

    def _refuse(self, general: Any, call: JitCall, failure: BaseException) -> None:
        """Run calls of a kind eagerly from now on, and say why."""
        reason, where = _explained(failure)
        self._refused[general] = reason
        self._say_eager(call, reason, where)

    def _say_eager(self, call: JitCall, reason: str, where: str | None) -> None:
        self._report.refused(_shown(call), reason, where)
        self._warn(f"jit: {self.name} runs eagerly: {reason}" + (f" ({where})" if where else ""))

    def _warn(self, text: str) -> None:
        if text not in self._warned:  # which calls of other kinds may have been for the same
            self._warned.add(text)
            warnings.warn(text, RuntimeWarning, stacklevel=user_stacklevel())


def _shown(call: JitCall, pattern: Shapes | None = None) -> str:
    """Return what a call was given, as text; by a pattern, with sizes in place of numbers."""
    shapes = [getattr(leaf, "shape", ()) for leaf in call.leaves] if pattern is None else pattern
    shown = [
        f"{leaf.dtype}{list(shape)}" if hasattr(leaf, "dtype") else f"{leaf!r:.20}"
        for leaf, shape in zip(call.leaves, shapes, strict=False)
    ]
    return f"({', '.join(shown)})"


def _explained(failure: BaseException) -> tuple[str, str | None]:
    """Return why a call could not be recorded, and where."""
    if isinstance(failure, NotRecordedError):
        return failure.reason, failure.where
    return f"{type(failure).__name__}: {failure}", user_line(failure)
