"""`@wf.cell`: functions that are put off, batched and compiled as a whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

import numpy as np

from ..autodiff.batching import vmap
from ..core.errors import ArgumentTypeError, WeftError
from ..core.modes import current_interpreter
from ..core.operands import tensor_from
from ..core.shape import TensorType
from ..core.tensor import Tensor
from ..core.tree import flatten
from ..graph.frontend import placeholder
from ..graph.graph import Graph
from .deferred import Deferred
from .signatures import ValueDependentError

LEAF = object()  # stands where a cell was given a tensor
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


class Cell:
    """A function that is batched as a whole."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.alone: set[Any] = set()  # signatures of calls that must run operation by operation
        update_wrapper(self, fn, updated=())

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return the method of an instance."""
        return self if instance is None else partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; inside of a batched one, put the call off as a whole."""
        run: Any = current_interpreter()
        if not hasattr(run, "defers"):
            return self.fn(*args, **kwargs)
        leaves: list[Any] = []
        form = (_form(args, leaves), _form(kwargs, leaves) if kwargs else None)
        specs, refs, level = run.operands(self, leaves)
        key = (self, form, specs, run.grad())
        found = run.table.find(key)
        if found is None:
            if not refs or key in self.alone:
                return self.fn(*args, **kwargs)
            try:
                found = run.table.new(key, CellWork(self, args, kwargs), specs, leaves, key[3])
            except (WeftError, ValueDependentError):  # it reads values, draws, or is wrong
                self.alone.add(key)
                return self.fn(*args, **kwargs)
        return found.work.nested(run.put_off(found, refs, level))


def _form(value: Any, leaves: list[Any]) -> Any:
    """Return arguments as a key, with the tensors among them left out and put into a list."""
    kind = value.__class__
    if kind is Deferred or isinstance(value, Tensor):
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


class CellWork:
    """A cell, called with arguments of one form."""

    many = True

    def __init__(self, cell: Cell, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.cell = cell
        self.name = getattr(cell.fn, "__name__", type(cell.fn).__name__)
        leaves, self.structure = flatten((args, kwargs), lambda x: isinstance(x, Tensor))
        self.fixed = [_unless_tensor(x) for x in leaves]

    def call(self, tensors: Any) -> Any:
        """Call the function with tensors in their places; return the leaves of its result."""
        rest = iter(tensors)
        given = [next(rest) if x is LEAF else x for x in self.fixed]
        args, kwargs = self.structure.unflatten(given)
        leaves, self.result = flatten(self.cell.fn(*args, **kwargs))
        return tuple(leaves)

    def types(self, types: list[TensorType | None], inputs: Any) -> list[TensorType]:
        """Return the types of the results, by a trace; raise if the cell cannot be a unit."""
        with Graph(self.name) as graph:
            found = self.call([placeholder(t.shape, t.dtype) for t in types if t is not None])
        if graph.pending_updates() or not all(isinstance(y, Tensor) for y in found):
            raise ValueDependentError
        return [TensorType(tuple(y.shape), y.dtype) for y in found]

    def together(self, operands: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        """Run all members."""
        axes = tuple([0 if flag else None for flag in flags])
        return vmap(lambda *given: self.call(given), axes, axis_size=size)(*operands)

    def nested(self, results: tuple[Any, ...]) -> Any:
        """Return results in the nest in which the function returns them."""
        return self.result.unflatten(results)


def _unless_tensor(x: Any) -> Any:
    return LEAF if isinstance(x, (Tensor, np.ndarray, np.generic)) else x
