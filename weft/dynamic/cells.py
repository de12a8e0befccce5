"""`@wf.cell`: functions that are put off, batched and compiled as a whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

import numpy as np

from ..core.errors import ArgumentTypeError, WeftError
from ..core.modes import interpreter_here, modes
from ..core.operands import tensor_from
from ..core.tensor import Tensor
from .cell_work import LEAF, CellWork, NotAUnitError
from .deferred import DeferredTensor
from .structure import Wrapped

PLAIN = (bool, int, float, str, bytes, type(None), complex)


def cell(fn: Callable[..., Any]) -> Any:
    """Return `fn` as a cell: inside `wf.batched` its calls run as one kernel, not as many.

    A cell computes tensors from tensors, and may use parameters from outside. Numbers and strings
    among its arguments are part of what is compiled. Anywhere else it is `fn` itself.

    >>> import weft as wf
    >>> w = wf.ones(2)
    >>> step = wf.cell(lambda h, x: wf.tanh(h * w + x))
    >>> step(wf.zeros(2), wf.zeros(2))
    tensor([0., 0.])
    """
    if not callable(fn):
        raise ArgumentTypeError(f"cell: a function is needed. Received: {fn!r:.60}")
    return Cell(fn)


class Cell(Wrapped):
    """A function that is batched as a whole."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.apart: set[Any] = set()  # calls that must run operation by operation
        update_wrapper(self, fn, updated=())

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy has: nothing of calls, whose tensors are those of this one."""
        return {**self.__dict__, "apart": set()}

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return the method of an instance."""
        return self if instance is None else partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; inside of a batched one, put the call off as a whole."""
        run: Any = interpreter_here() if modes.interpreters else None
        if not hasattr(run, "defers"):
            return self.fn(*args, **kwargs)
        if not kwargs:
            found = run.put_off_known(self, args)
            if found is not None:
                return found
        leaves: list[Any] = []
        form = _form(args, leaves), _form(kwargs, leaves) if kwargs else None
        specs, refs, level = run.operands(self, leaves)
        if refs and len(refs) < len(leaves):
            leaves = run.rows_of_vectors(leaves, specs)
            specs, refs, level = run.operands(self, leaves)
        key = (self, form, specs, run.grad())
        found = run.table.find(key)
        if found is None or not run.shared.accepts(found):
            found = self._new(run, key, leaves, args, kwargs) if refs else None
        if found is None:
            return self.fn(*args, **kwargs)
        run.know(self, args, found)
        return found.work.nested(run.put_off(found, refs, level))

    def _new(self, run: Any, key: Any, leaves: Any, args: Any, kwargs: Any) -> Any:
        """Return the signature of a call; None for what must run operation by operation."""
        if key in self.apart:
            return None
        try:
            work = CellWork(self.fn, args, kwargs, [run.type_in(spec) for spec in key[2]])
            captured = tuple([run.shared.slot(x) for x in work.captured])
            return run.table.new(key, work, (*key[2], *captured), leaves, key[3])
        except (WeftError, NotAUnitError):  # it reads values, draws, is on two devices, or wrong
            self.apart.add(key)
            return None


def _form(value: Any, leaves: list[Any]) -> Any:
    """Return arguments as a key, with the tensors among them left out and put into a list."""
    kind = value.__class__
    if kind is DeferredTensor or isinstance(value, Tensor):
        leaves.append(value)
        return LEAF
    if kind is tuple or kind is list:
        return (kind, *[_form(x, leaves) for x in value])
    if kind is dict:
        return (kind, *value, *[_form(x, leaves) for x in value.values()])
    if isinstance(value, (np.ndarray, np.generic)):
        leaves.append(tensor_from(value, "cell: an argument"))
        return LEAF
    if kind in PLAIN:
        return kind, repr(value) if kind is float else value
    return Held(value)


class Held:
    """An argument that counts by its identity: a module, say."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)
