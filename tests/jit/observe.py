"""Observe what a program left behind: everything reachable, as a flat table of facts by path.

A fact is an array, a number, or anything that is compared by `==`. What is met a second time is
recorded as `Same(path)`: which names share one object is part of what a program can see.
"""

from __future__ import annotations

import dataclasses
import random
import types
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

import weft as wf

Facts = dict[str, Any]

_ATOMS = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype, range)
_NAMED = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type)


class Same(NamedTuple):
    """The object that was met before at another path."""

    path: str


class Printed(NamedTuple):
    """Text for people: numbers in it are compared as numbers."""

    text: str


def observe(root: Mapping[str, Any]) -> Facts:
    """Return the facts of all that can be reached from the values of a dictionary."""
    walk = _Walk()
    for name, value in root.items():
        walk.visit(name, value)
    return walk.facts


def random_positions() -> dict[str, Any]:
    """Return where the random generators of the process stand."""
    return {
        "weft": str(wf.get_rng_state()),
        "random": hash(random.getstate()),
        "numpy": str(np.random.get_state()),  # noqa: NPY002  (programs of users draw from it)
    }


class _Walk:
    def __init__(self) -> None:
        self.facts: Facts = {}
        self.seen: dict[int, str] = {}
        self.alive: list[Any] = []  # so that no number of an object is given out again

    def visit(self, path: str, value: Any) -> None:
        if isinstance(value, (*_ATOMS, Printed)):
            self.facts[path] = value
        elif isinstance(value, _NAMED):
            self.facts[path] = getattr(value, "__qualname__", value.__name__)
        elif isinstance(value, slice):
            self._tuple(path, (value.start, value.stop, value.step))
        elif isinstance(value, tuple):
            self._tuple(path, value)
        elif id(value) in self.seen:
            self.facts[path] = Same(self.seen[id(value)])
        else:
            self.seen[id(value)] = path
            self.alive.append(value)
            self._object(path, value)

    def _object(self, path: str, value: Any) -> None:
        self.facts[path] = type(value).__qualname__
        if isinstance(value, wf.Symbol):
            self.facts[path] = f"{type(value).__qualname__} that has left its graph"
        elif isinstance(value, wf.Tensor):
            self._tensor(path, value)
        elif isinstance(value, np.ndarray):
            self._array(path, value)
        elif isinstance(value, Mapping):
            self._mapping(path, value)
        elif isinstance(value, list | deque):
            self._items(path, value)
        elif isinstance(value, set | frozenset):
            self.facts[f"{path}.elements"] = sorted(map(repr, value))
        else:
            self._attributes(path, value)

    def _tensor(self, path: str, value: wf.Tensor) -> None:
        self._array(path, value.detach().numpy())
        self.facts[f"{path}.requires_grad"] = value.requires_grad
        self.facts[f"{path}.is_leaf"] = value.is_leaf
        self.visit(f"{path}.grad", value.grad)

    def _array(self, path: str, value: np.ndarray[Any, Any]) -> None:
        self.facts[f"{path}.dtype"] = value.dtype
        self.facts[f"{path}.shape"] = value.shape
        self.facts[f"{path}.values"] = np.array(value)

    def _tuple(self, path: str, value: tuple[Any, ...]) -> None:
        self.facts[path] = f"{type(value).__qualname__} of {len(value)}"
        for index, item in enumerate(value):
            self.visit(f"{path}[{index}]", item)

    def _items(self, path: str, value: Iterable[Any]) -> None:
        items = list(value)
        self.facts[f"{path}.length"] = len(items)
        for index, item in enumerate(items):
            self.visit(f"{path}[{index}]", item)

    def _mapping(self, path: str, value: Mapping[Any, Any]) -> None:
        names = [repr(k) if isinstance(k, _ATOMS) else f"#{i}" for i, k in enumerate(value)]
        self.facts[f"{path}.keys"] = names
        for name, item in zip(names, value.values(), strict=True):
            self.visit(f"{path}[{name}]", item)

    def _attributes(self, path: str, value: Any) -> None:
        state = _hidden_state(value)
        if state is not None:
            self.facts[f"{path}.state"] = str(state)
            return
        for name, item in _visible(value).items():
            self.visit(f"{path}.{name}", item)


def _hidden_state(value: Any) -> Any:
    """Return the state of an object that keeps it elsewhere than in attributes, or None."""
    if isinstance(value, wf.Generator):
        return value.get_state()
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if isinstance(value, random.Random):
        return hash(value.getstate())
    return None


def _visible(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, without what Weft's own classes keep for themselves."""
    if dataclasses.is_dataclass(value):
        found = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    else:
        slots = {name: getattr(value, name) for name in _slots(value)}
        found = slots | getattr(value, "__dict__", {})
    own = type(value).__module__.partition(".")[0] == "weft"
    return {name: x for name, x in found.items() if not (own or name in _PRIVATE) or name[0] != "_"}


def _slots(value: Any) -> list[str]:
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return [name for name in names if hasattr(value, name) and not name.startswith("__")]


def _private_names() -> frozenset[str]:
    """Return what classes of users inherit from Weft's and cannot see."""
    bases = (wf.nn.Module(), wf.optim.SGD([wf.zeros((1,)).requires_grad_()], lr=0.1))
    return frozenset(name for base in bases for name in vars(base) if name.startswith("_"))


_PRIVATE = _private_names()
