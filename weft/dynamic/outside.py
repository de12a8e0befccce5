"""What a function could read besides its example, and whether that is as it was.

A function's code names the globals and closure cells that it reads; through these it reaches
other functions, classes and objects, and so on. All of that is walked through, once. Where
everything it reaches is known (Python code, containers, objects of Python classes, tensors, pure
functions of libraries) a function does the same for the same example as long as nothing of it has
changed. Where something is not (files, clocks, generators of random numbers other than Weft's, what
a C library hides), its Python code runs for every example.
"""

from __future__ import annotations

import builtins
import dis
import functools
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from operator import is_
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..capture.watch.trust import Owner, is_library_class, is_library_module, owner_of
from ..core.rng import Generator
from ..core.tensor import Tensor
from .named_attributes import (
    NAMED_BY_LIBRARIES,
    NamedAttributes,
    called_unnamed,
    is_known,
    is_read_by_name,
)
from .structure import OpaqueError, Remembering, StructureWalk, Wrapped

MOST_OBJECTS = 20_000
PURE_MODULES = frozenset(
    {
        *("math", "cmath", "operator", "itertools", "functools", "collections", "dataclasses"),
        *("typing", "enum", "types", "string", "re", "copy", "numbers", "fractions", "abc"),
        *("numpy", "weft", "builtins", "_operator", "_functools", "_collections", "__future__"),
    }
)
# What reads or changes more than it is given; and names under which libraries keep such things.
IMPURE_BUILTINS = frozenset(
    {
        *("open", "input", "print", "eval", "exec", "compile", "globals", "locals", "vars", "id"),
        *("hash", "__import__", "breakpoint", "setattr", "delattr", "memoryview", "help", "exit"),
        *("quit", "getattr", "type", "super", "object"),
    }
)
IMPURE_NAMES = frozenset(
    {
        *("random", "config", "manual_seed", "get_rng_state", "set_rng_state", "debug", "gc"),
        *("set_default_dtype", "set_num_threads", "set_grad_enabled", "__dict__", "__class__"),
        *("default_rng", "mro", "__mro__", "__bases__", "__subclasses__"),
    }
)
# What reads attributes that no code names: copies, fields of data classes, getters made of names.
READING_ALL = frozenset({"copy", "dataclasses", "operator", "_operator"})
MAKING = frozenset({"__init__", "__new__", "__init_subclass__", "__set_name__", "__post_init__"})
NAMING = frozenset(
    {*("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"), *("STORE_ATTR", "DELETE_ATTR")}
)
CHANGING = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})


class FunctionSurroundings:
    """What functions reach from outside.

    reason   what of it is not known, if something is: then nothing is kept
    """

    def __init__(self, *roots: Any) -> None:
        self.reason: str | None = None
        self._walks: list[StructureWalk] = []
        self._names: list[tuple[dict[str, Any], str, Any]] = []
        self._cells: list[tuple[Any, Any]] = []
        self._functions: list[tuple[FunctionType, list[Any]]] = []
        self._classes: list[tuple[type, list[Any]]] = []
        self._members: list[tuple[str, Any]] = []  # of classes, that no code has named so far
        self._named = {*NAMED_BY_LIBRARIES}
        self._objects: list[NamedAttributes] = []
        self._reads_all = False  # whether code may read attributes without naming them
        self._tensors: dict[int, Tensor] = {}
        self._met: set[int] = set()
        self._alive: list[Any] = []
        self.include(*roots)

    def include(self, *roots: Any) -> None:
        """Walk through more: the classes of an example, say."""
        pending = list(roots)
        try:
            while pending and self.reason is None:
                x = pending.pop()
                if id(x) not in self._met:
                    self._met.add(id(x))
                    self._alive.append(x)
                    pending += self._reached(x)
                    if len(self._met) > MOST_OBJECTS:
                        raise OpaqueError(f"more than {MOST_OBJECTS} objects")
                if not pending:
                    pending = self._newly_named()
        except OpaqueError as error:
            self.reason = str(error)

    def _newly_named(self) -> list[Any]:
        """Return members of classes that code names by now, and those that operators call."""
        members, self._members = self._members, []
        found: list[Any] = []
        for name, member in members:
            if name in self._named or _is_special(name):
                found.append(member)
            else:
                self._members.append((name, member))
        for x in self._objects:
            found += x.newly_named(self._named, everything=self._reads_all)
        return found

    def is_same(self) -> bool:
        """Tell whether all of it is as it was."""
        for scope, name, value in self._names:
            if scope.get(name, MISSING) is not value:
                return False
        for cell, value in self._cells:
            if _content(cell) is not value:
                return False
        for fn, parts in self._functions:
            own = _parts_of(fn)
            if len(own) != len(parts) or not all(map(is_, own, parts)):
                return False
        for kind, values in self._classes:
            if len(vars(kind)) != len(values) or any(
                x is not y for x, y in zip(vars(kind).values(), values, strict=True)
            ):
                return False
        return all(x.is_same() for x in self._objects) and all(
            walk.is_same() for walk in self._walks
        )

    def holders(self) -> Iterator[Any]:
        """Yield what may hold something else by now: cells, objects, and what names stand for."""
        for scope, name, _ in self._names:
            yield scope.get(name)
        for cell, _ in self._cells:
            yield cell
        for kind, _ in self._classes:
            yield kind
        for x in self._objects:
            yield x.owner
        for walk in self._walks:
            yield walk.root

    def holds(self, x: Tensor) -> bool:
        """Tell whether a tensor is one of those that are reached: it is there in any call."""
        if id(x) not in self._tensors:
            found = [y for walk in self._walks for y in walk.tensors]
            found += [y for held in self._objects for y in held.tensors()]
            self._tensors = {id(y): y for y in found}
        return id(x) in self._tensors

    # -- the walk ----------------------------------------------------------------------------------

    def _reached(self, x: Any) -> Iterable[Any]:
        for kind, parts in PARTS.items():
            if isinstance(x, kind):
                return parts(self, x)
        if hasattr(type(x), "__func__"):  # a bound method
            return x.__func__, x.__self__
        if callable(x) and not hasattr(x, "__dict__"):
            return self._of_builtin(x)
        return self._of_object(x)

    def _of_function(self, fn: FunctionType) -> Iterator[Any]:
        op, owner = getattr(fn, "op", None), owner_of(fn.__code__)
        if owner is Owner.STANDARD and fn.__code__.co_filename == "<string>":
            # A method that `dataclasses` or `namedtuple` wrote: it fills, compares and prints.
            yield from self._given(fn)
            return
        if op is not None or owner is not Owner.USER:
            # What `functools.wraps` made names the module of what it wraps.
            inside = fn.__globals__.get("__name__") if owner is Owner.STANDARD else fn.__module__
            self._check_library(inside or "", fn.__qualname__)
            yield from getattr(fn, "registry", {}).values()  # of functools.singledispatch
            return
        yield from self._given(fn)
        if fn.__dict__:
            yield fn.__dict__
        yield from self._of_code(fn.__code__, fn.__globals__)

    def _given(self, fn: FunctionType) -> Iterator[Any]:
        """Walk through what a function was given when it was made: defaults and closure."""
        self._functions.append((fn, _parts_of(fn)))
        yield from fn.__defaults__ or ()
        yield from (fn.__kwdefaults__ or {}).values()
        for cell in fn.__closure__ or ():
            value = _content(cell)
            self._cells.append((cell, value))
            if value is not MISSING:
                yield value

    def _of_code(self, code: CodeType, scope: dict[str, Any]) -> Iterator[Any]:
        for instruction in dis.get_instructions(code):
            name = instruction.argval
            if instruction.opname in CHANGING:
                raise OpaqueError(f"{code.co_qualname} writes the global {name}")
            self._reads_all |= instruction.opname == "MATCH_CLASS"  # attributes are not named
            if instruction.opname == "IMPORT_NAME":
                self._check_library(name, name)
            elif instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                yield from self._of_name(scope, name)
            elif instruction.opname in NAMING:  # what is only written changes as well
                if name in IMPURE_NAMES:
                    raise OpaqueError(f"{code.co_qualname} uses .{name}")
                self._named.add(name)
            elif isinstance(name, CodeType):
                yield from self._of_code(name, scope)

    def _of_name(self, scope: dict[str, Any], name: str) -> Iterator[Any]:
        value = scope.get(name, MISSING)
        self._names.append((scope, name, value))
        if value is not MISSING:
            yield value
        elif name in IMPURE_BUILTINS:
            raise OpaqueError(f"{name}()")
        elif not hasattr(builtins, name):
            raise OpaqueError(f"the global {name}, which is not there")

    def _of_module(self, module: ModuleType) -> Iterator[Any]:
        if not is_library_module(module):
            raise OpaqueError(f"the module {module.__name__}; import what is used of it")
        self._check_library(module.__name__, module.__name__)
        return iter(())

    def _check_library(self, module: str, what: str) -> None:
        self._reads_all |= module.partition(".")[0] in READING_ALL
        if module.partition(".")[0] not in PURE_MODULES or module.startswith("numpy.random"):
            raise OpaqueError(f"{what} of {module}" if module != what else f"the module {what}")

    def _of_class(self, kind: type, *, made: bool) -> Iterator[Any]:
        """Walk through a class, which code makes instances of if it has the class itself."""
        if is_library_class(kind):
            self._check_library(kind.__module__, kind.__qualname__)
            return
        self._classes.append((kind, list(vars(kind).values())))
        called = called_unnamed(kind)
        for name, x in vars(kind).items():
            if made and name in MAKING:
                yield x
            elif callable(x) or isinstance(x, DESCRIPTORS):
                if name in called:
                    yield x
                else:
                    self._members.append((name, x))
            elif not (_is_special(name) or is_known(x) or _is_place(x)):
                self._members.append((name, x))  # a list that all its objects share, say
        if type(kind) is not type:
            yield instance_of(type(kind))
        for base in kind.__bases__:
            if base is not object:
                yield base if made else instance_of(base)

    def _of_builtin(self, x: Any) -> Iterator[Any]:
        module = (
            getattr(x, "__module__", None) or getattr(x, "__objclass__", x).__class__.__module__
        )
        self._check_library(module, getattr(x, "__qualname__", repr(x)))
        return iter(())

    def _of_object(self, x: Any) -> Iterator[Any]:
        """Walk through an object and all that it holds, as through an example.

        Of an object of the user's, only what code names: not its optimizer, or a list of losses.
        """
        if isinstance(x, Generator):
            return
        if is_read_by_name(x.__class__):
            self._objects.append(NamedAttributes(x))
            yield instance_of(x.__class__)
            return
        walk = StructureWalk(x, _is_left)
        self._walks.append(walk)
        yield from walk.others
        yield from [instance_of(kind) for kind in walk.classes]


class InstanceOf:
    """A class of which there are instances; that it can be called is not said."""

    def __init__(self, kind: type) -> None:
        self.kind = kind


@cache
def instance_of(kind: type) -> InstanceOf:
    """Return a class as that of instances."""
    return InstanceOf(kind)


def _is_special(name: str) -> bool:
    """Tell whether Python calls a method without naming it; makers are apart."""
    return name.startswith("__") and name.endswith("__") and name not in MAKING


PARTS: dict[type, Callable[[FunctionSurroundings, Any], Iterable[Any]]] = {
    FunctionType: FunctionSurroundings._of_function,
    ModuleType: FunctionSurroundings._of_module,
    type: partial(FunctionSurroundings._of_class, made=True),
    InstanceOf: lambda outside, x: outside._of_class(x.kind, made=False),
    Wrapped: lambda outside, x: (x.fn,),
    Remembering: lambda outside, x: (),
    staticmethod: lambda outside, x: (x.__func__,),
    classmethod: lambda outside, x: (x.__func__,),
    property: lambda outside, x: [part for part in (x.fget, x.fset) if part is not None],
    functools.cached_property: lambda outside, x: (x.func,),
    functools.singledispatchmethod: lambda outside, x: (x.func, x.dispatcher),
}
MISSING = object()
DESCRIPTORS = (
    *(staticmethod, classmethod, property),
    *(functools.cached_property, functools.partialmethod, functools.singledispatchmethod),
)


def _is_place(x: Any) -> bool:
    """Tell whether a member of a class says no more than where an attribute lies."""
    return hasattr(x, "__get__") and is_library_class(type(x))


def _is_left(x: Any) -> bool:
    return isinstance(x, (Generator, Wrapped)) or is_read_by_name(x.__class__)


def _parts_of(fn: FunctionType) -> list[Any]:
    """Return what may be put in the place of a function's own: notebooks do when files change."""
    return [fn.__code__, fn.__defaults__, *(fn.__kwdefaults__ or {}).values()]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING
