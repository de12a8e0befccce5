"""torch.compile: Weft's jit, of functions and of modules."""

from __future__ import annotations

import functools
from typing import Any

from ..capture.attempts import NOT_RUN, Attempt
from ..capture.calls import RecordingRules
from ..capture.recorded_call import RecordedCall
from ..capture.recorder import NotRecordedError
from ..core.errors import format_site
from ..nn import Module as CoreModule
from .adoption import adopt
from .nn.module import Module
from .storage import groups, relatives, relatives_ever
from .tensor import wrap


class CompiledFunction:
    """A function that runs by compiled programs."""

    def __init__(self, function: Any, **options: Any) -> None:
        from ..capture import jit  # noqa: PLC0415  (only for those who ask)

        functools.update_wrapper(self, function)
        self._jitted = jit(function, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function; views are written back that it has written into."""
        if not any(hasattr(x, "_window") for x in (*args, *kwargs.values())):
            return adopt(self._jitted(*args, **kwargs))
        return self._with_views(args, kwargs)

    def _with_views(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        stands: list[tuple[Any, Any, Any]] = []

        def plain(x: Any) -> Any:
            made = _shown(x)
            if made is not x:
                stands.append((x, made, made._value))
            return made

        result = self._jitted(*map(plain, args), **{n: plain(x) for n, x in kwargs.items()})
        for view, made, before in stands:
            if made._value is not before:
                view._rebind(made)
        return adopt(result)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def explain(self) -> Any:
        """Return what was compiled, and what runs eagerly, and why."""
        return self._jitted.explain()


def _shown(x: Any) -> Any:
    """Return a plain tensor with what a view shows now; anything else itself."""
    if not hasattr(x, "_window") or x.symbolic:
        return x
    made = wrap(x._value)
    made._node = x._node
    return made


class CompiledStep(CompiledFunction):
    """A part of a program that runs by compiled programs, or not at all (faces/steps)."""

    def __init__(self, function: Any, rules: RecordingRules) -> None:
        self._rules = rules
        self._jitted = Attempt(function, rules._replace(check=self._check))
        self._bases: list[Any] = []  # of views among the arguments, and what else shares memory
        self._written: dict[int, Any] = {}  # tensors from outside that programs write to
        self._writes_arguments = False

    @property
    def failure(self) -> BaseException | None:
        """Return why the last call could not be recorded."""
        found: BaseException | None = self._jitted.failure
        return found

    @property
    def recordings(self) -> int:
        """Return how often it was recorded."""
        count: int = self._jitted.recordings
        return count

    def __call__(self, *args: Any) -> Any:
        """Run the part, unless tensors that it is given share memory with what programs write."""
        self._bases = [x._base for x in args if hasattr(x, "_window")]
        if groups:
            self._bases += [x for x in args if id(x) in groups and relatives(x)]
        if not self._bases:
            return adopt(self._jitted(*args))
        if self._writes_arguments or any(id(x) in self._written for x in self._bases):
            return NOT_RUN
        return adopt(self._jitted(*map(_shown, args)))

    def _check(self, recording: RecordedCall) -> None:
        """Refuse a recording that writes to memory which it is given in several ways."""
        recorder = recording.recorder
        written = {key: state.owner for key, (state, _) in recorder.written.items()}
        outside = {id(x): x for key, x in written.items() if key not in recorder.arguments}
        writes_arguments = any(key in recorder.arguments for key in written)
        if self._bases and (writes_arguments or any(id(x) in outside for x in self._bases)):
            raise NotRecordedError("writes to a tensor whose memory another one shares")
        _refuse_shared(recording)
        _refuse_histories(recording)
        self._written |= outside
        self._writes_arguments |= writes_arguments
        if self._rules.check is not None:
            self._rules.check(recording)


def _refuse_shared(recording: RecordedCall) -> None:
    """Refuse a recording that leaves tensors which share memory with one another, or with others.

    Programs give each of them memory of its own.
    """
    roots: dict[int, Any] = {}
    for leaf in recording.leaves:
        root = leaf._base if hasattr(leaf, "_window") else leaf
        related = list(relatives_ever(root))
        is_shared = id(root) in roots or any(id(x) in roots for x in related)
        is_outside = root is not leaf and not getattr(root, "symbolic", False)
        if is_shared or is_outside or any(not x.symbolic for x in related):
            made = leaf._held if hasattr(leaf, "_window") else leaf.value
            where = format_site(made.node.site)
            raise NotRecordedError("leaves a view of a tensor that is seen elsewhere", where)
        roots[id(root)] = root


def _refuse_histories(recording: RecordedCall) -> None:
    """Refuse a recording whose results go back in ways of their own.

    A call has one history. Backward of one result uses it up, as the tape does where results have
    operations in common, and goes on to all that the call was given.
    """
    recorder = recording.recorder
    values = [x._held if hasattr(x, "_window") else x.value for x in recording.leaves]
    going_on = [x for x in values if x in recorder.tracked and not recorder.is_freed(x)]
    found = [_way_back(recorder, value) for value in dict.fromkeys(going_on)]
    for given, nodes in found[1:]:
        if given != found[0][0] or nodes.isdisjoint(found[0][1]):
            raise NotRecordedError("leaves results that have nothing in common to go back through")


def _way_back(recorder: Any, root: Any) -> tuple[set[Any], set[Any]]:
    """Return the arguments that gradients of a value go to, and the operations on the way."""
    given, nodes, pending = set(), set(), [root]
    while pending:
        value = pending.pop()
        if value.node in nodes or value in given:
            continue
        inputs = [x for x in value.node.inputs if x is not None and x in recorder.tracked]
        if inputs:
            nodes.add(value.node)
            pending += inputs
        elif value in recorder.arguments.values():
            given.add(value)
    return given, nodes


class OptimizedModule(Module):
    """A module whose forward runs by compiled programs."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self._orig_mod = module
        self.__dict__["_compiled"] = CompiledFunction(module)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module."""
        return self.__dict__["_compiled"](*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        inner = self.__dict__.get("_orig_mod")
        if inner is None:
            raise AttributeError(name)
        return getattr(inner, name)


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: Any = None,
    backend: Any = None,
    mode: Any = None,
    options: Any = None,
    disable: bool = False,
) -> Any:
    """Return a function, or a module, that runs by compiled programs: `wf.jit`.

    >>> from weft import torch
    >>> double = torch.compile(lambda x: x * 2)
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, disable=disable)
    if disable:
        return model
    if isinstance(model, CoreModule):
        return OptimizedModule(model)
    return CompiledFunction(model, strict=fullgraph)
