"""Run a written program beside the function that it was written of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import GraphError
from ...core.modes import no_grad
from ...core.tensor import wrap
from ...core.tree import flatten, tree_leaves
from ..arguments import as_value

TOLERANCE = {2: 0.1, 4: 1e-3, 8: 1e-9}  # by the bytes of an element


class WrittenProgram(NamedTuple):
    """A program as text: how it is called, and how many results it returns.

    outside   the states behind its arguments: tensors that the function uses from outside
    """

    text: str
    name: str
    mode: str
    outside: Sequence[Any]
    results: int

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the results for the leaves of arguments; derivatives are not looked at."""
        scope: dict[str, Any] = {}
        exec(compile(self.text, f"<source of {self.name}>", "exec"), scope)  # what it is for
        function = scope[self.name]
        given = [*arguments, *(state.read() for state in self.outside)]
        taken = function.__code__.co_argcount - len(given)
        with np.errstate(all="ignore"):
            found = function(*given, *self._more(arguments, taken))
        return list(found[: self.results]) if self.mode != "value" or self.results > 1 else [found]

    def _more(self, arguments: Sequence[Any], count: int) -> list[Any]:
        """Return zeros for the gradients of results, or the directions of arguments."""
        if self.mode == "forward":
            return [np.zeros_like(x) for x in arguments if x.dtype.kind == "f"][:count]
        return [np.zeros(())] * count  # broadcast to any shape


def check_program(program: WrittenProgram, fn: Callable[..., Any], examples: Any) -> None:
    """Raise unless a program computes what the function does."""
    leaves, structure = flatten(examples)
    arguments = [np.array(as_value(x, "an example")) for x in leaves]
    own = structure.unflatten(wrap(array.copy()) for array in arguments)  # it may write to them
    with no_grad():
        expected = [as_value(y, "a result").numpy() for y in tree_leaves(fn(*own))]
    for i, (a, b) in enumerate(zip(program.run(arguments), expected, strict=True)):
        close = TOLERANCE.get(b.dtype.itemsize, 0.0) if b.dtype.kind == "f" else 0.0
        if np.shape(a) != b.shape or not np.allclose(a, b, close, close, equal_nan=True):
            raise GraphError(
                f"source of {program.name}: the program gives {a!r:.80} for result {i} where the "
                f"function gives {b!r:.80}. The function may depend on more than its arguments: "
                "tensors that share memory, objects of Python's that it changes, random numbers"
            )
