"""Arguments of transforms: which of them are differentiated, as flat lists of tensors."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core.dtype import is_float
from ..core.errors import ArgumentError, ArgumentTypeError, DTypeError
from ..core.operands import tensor_from
from ..core.tensor import Tensor, constant
from ..core.tree import Structure, TreeMismatchError, flatten, flatten_with_paths
from .matching import array_of, require_type

Argnums = int | Sequence[int]


class Chosen:
    """A call of a function, with the arguments to differentiate apart from the others.

    primals     their leaves, as tensors
    structure   the tree of the results for them: of the argument, or a tuple of several
    """

    def __init__(
        self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Any
    ) -> None:
        self.fn, self.args, self.kwargs = fn, args, kwargs
        name = name_of(fn)
        self.positions = _positions(argnums, len(args), name)
        single = not isinstance(argnums, Iterable)
        tree = tuple(args[i] for i in self.positions)
        leaves, self._filling = flatten(tree)
        self.structure = flatten(tree[0])[1] if single else self._filling
        paths = [path for path, _ in flatten_with_paths(tree)]
        self.primals = [
            as_primal(x, f"{name}: argument {path}") for x, path in zip(leaves, paths, strict=True)
        ]

    def __call__(self, primals: Sequence[Any]) -> Any:
        """Call the function with other leaves in the places of the primals."""
        args = list(self.args)
        for i, value in zip(self.positions, self._filling.unflatten(primals), strict=True):
            args[i] = value
        return self.fn(*args, **self.kwargs)


def name_of(fn: Callable[..., Any]) -> str:
    """Return what messages call a function."""
    return getattr(fn, "__name__", type(fn).__name__)


def check_callable(fn: Any, what: str) -> None:
    """Raise unless a transform was given a function."""
    if not callable(fn):
        raise ArgumentTypeError(f"{what} takes a function. Received: {fn!r:.60}")


def check_examples(fn: Callable[..., Any], examples: Sequence[Any], what: str) -> None:
    """Raise unless a function, or the `forward` of a module, can be called with examples."""
    try:
        signature = inspect.signature(getattr(fn, "forward", fn))
    except (TypeError, ValueError):  # a function without a signature
        return
    try:
        signature.bind(*examples)
    except TypeError as error:
        raise ArgumentTypeError(
            f"{what}: {name_of(fn)} takes {signature}; give an example of each argument. "
            f"Received: {len(examples)} examples, {error}"
        ) from None


def _positions(argnums: Any, count: int, name: str) -> list[int]:
    given = list(argnums) if isinstance(argnums, Iterable) else [argnums]
    try:
        numbers = [operator.index(i) for i in given]
    except TypeError:
        raise ArgumentTypeError(
            f"{name}: argnums must be an integer or several. Received: {argnums!r:.60}"
        ) from None
    for i in numbers:
        if not -count <= i < count:
            raise ArgumentError(
                f"{name}: argnums names argument {i}, but it was called with {count} positional "
                "argument(s)"
            )
    found = [i % count for i in numbers]
    if len(set(found)) != len(found) or not found:
        raise ArgumentError(
            f"{name}: argnums must name different arguments, at least one. Received: {argnums!r}"
        )
    return found


def as_primal(x: Any, what: str) -> Tensor:
    """Return a leaf to differentiate as a tensor; raise if it has no derivative."""
    tensor = as_value(x, what)
    if not is_float(tensor.dtype):
        raise DTypeError(
            f"{what} is {tensor.dtype}: only floating-point values have gradients; cast it, or "
            "leave it out of argnums"
        )
    return tensor


def as_value(x: Any, what: str) -> Tensor:
    """Return a leaf of an argument or of a result as a tensor."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, (bool, int, float, np.ndarray, np.generic)):
        return tensor_from(x, what)
    raise ArgumentTypeError(f"{what} must be a tensor or a number. Received: {x!r:.60}")


def flat_outputs(result: Any, what: str) -> tuple[list[Tensor], Structure]:
    """Return the leaves of a result as tensors, and its structure."""
    leaves, structure = flatten(result)
    return [as_value(y, what) for y in leaves], structure


class FlatFunction:
    """A function of trees as one of lists of tensors; `result` is the tree that it returned last.

    structure   the tree of its arguments
    what        what messages call its result
    """

    result: Structure

    def __init__(self, fn: Callable[..., Any], structure: Structure, what: str) -> None:
        self.fn, self.structure, self.what = fn, structure, what

    def __call__(self, xs: Sequence[Any]) -> list[Any]:
        """Call the function on leaves; return the leaves of its result."""
        made = self.fn(*self.structure.unflatten(xs))
        ys, self.result = flat_outputs(made, self.what)
        return ys


def split_aux(result: Any, has_aux: bool, what: str) -> tuple[Any, Any]:
    """Return a result and what comes with it, if anything does."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentTypeError(
            f"{what}: with has_aux the function must return a pair (result, aux). "
            f"Received: {type(result).__name__}"
        )
    return result


def matching_cotangents(
    tree: Any, outputs: Sequence[Tensor], structure: Structure, what: str
) -> list[Tensor | None]:
    """Return the gradients given for outputs, checked leaf by leaf; None is zero."""
    if tree is None:
        return [None] * len(outputs)
    try:
        leaves = structure.flatten_like(tree, "the cotangent")
    except TreeMismatchError as error:
        raise type(error)(f"{what}: {error}") from None
    return [_matching(g, y, what) for g, y in zip(leaves, outputs, strict=True)]


def _matching(g: Any, y: Tensor, what: str) -> Tensor | None:
    if g is None:
        return None
    if not is_float(y.dtype):
        raise DTypeError(f"{what}: an output is {y.dtype} and has no gradient; pass None for it")
    what = f"{what}: a cotangent"
    matching = g if isinstance(g, Tensor) else constant(array_of(g, y, what))
    require_type(matching, y, what, "its output")
    return matching
