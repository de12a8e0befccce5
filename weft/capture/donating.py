"""`wf.jit(function, donate=...)`: calls that take the memory of some of their arguments."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np

from ..core.modes import current_interpreter, modes
from ..core.tensor import Tensor
from ..core.tree import flatten, flatten_with_paths
from ..graph.donation import (
    Donated,
    check_donated,
    donated_arguments,
    may_have_taken,
    take_donated,
)
from ..graph.symbol import Symbol
from .jitted import Jitted
from .outside import Leaves
from .trace import Trace


class DonatingJitted(Jitted):
    """A function that runs as compiled programs, whose results may take memory of arguments."""

    def __init__(self, function: Callable[..., Any], donate: Any, **options: Any) -> None:
        super().__init__(function, **options)
        self._donate = donate
        self._now = threading.local()  # places of leaves that the call of a thread gives away

    def _bound_to(self, method: MethodType) -> Jitted:
        settings = self._settings() | {"donate": _behind_self(self._donate)}
        return DonatingJitted(method, **settings)

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"donate": self._donate}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the function does; what is donated has no elements any more then."""
        if modes.interpreters and current_interpreter() is not None:
            return super().__call__(*args, **kwargs)  # part of what is traced around it
        leaves, _ = flatten((args, kwargs))
        donated = self._donated(args, kwargs)
        others = [leaf for i, leaf in enumerate(leaves) if i not in donated]
        given = list(donated.values())
        if any(isinstance(value.given, Symbol) for value in given):
            return super().__call__(*args, **kwargs)
        what = f"jit: {self.name}"
        check_donated(what, given, others)
        self._now.places = frozenset(donated)
        try:
            result = super().__call__(*args, **kwargs)
        except BaseException as error:
            if may_have_taken(error):
                take_donated(self.name, given)
            raise
        take_donated(self.name, given, kept=flatten(result)[0])
        return result

    def _donated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, Donated]:
        """Return what is given away, by places among the leaves of a call's arguments."""
        names = _names(self._function, len(args))
        chosen = self._chosen(names, len(args), list(kwargs))
        found: dict[int, Donated] = {}
        place = 0
        for name, argument in (*zip(names, args, strict=False), *kwargs.items()):
            for path, leaf in flatten_with_paths(argument):
                if name in chosen and isinstance(leaf, (Tensor, np.ndarray)):
                    found[place] = Donated(name + path, leaf)
                place += 1
        return found

    def _chosen(self, names: list[str], count: int, keywords: list[str]) -> set[str]:
        """Return the names of the arguments that are given away, of those that a call has."""
        several = isinstance(self._donate, (list, tuple, set, frozenset))
        wanted = self._donate if several else [self._donate]
        called = {key for key in wanted if isinstance(key, str) and key in keywords}
        rest = [key for key in wanted if key not in called]
        places = donated_arguments("jit", self._function, rest, max(count, len(names)))
        return called | {names[i] for i in places if i < count}

    def _first_run(self, trace: Trace, leaves: Leaves) -> Any:
        trace.donate(self._now.places)
        return super()._first_run(trace, leaves)


def _behind_self(donate: Any) -> list[Any]:
    """Return what is donated of a method that is bound: positions counted its object."""
    keys = donate if isinstance(donate, (list, tuple, set, frozenset)) else [donate]
    return [key - 1 if isinstance(key, int) and key > 0 else key for key in keys]


def _names(function: Callable[..., Any], count: int) -> list[str]:
    """Return the names of so many positional arguments."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    known = list(code.co_varnames[: code.co_argcount]) if code is not None else []
    known = known[1:] if isinstance(function, MethodType) else known
    return [*known, *(f"argument_{i}" for i in range(len(known), count))]
