"""Call the functions of control flow, and explain what was meant for another convention.

TensorFlow gives loop variables one by one, PyTorch the operands of a branch as one tuple; here each
argument is one tree, handed over as it was given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ...core.errors import ArgumentTypeError, WeftError


class calling:  # noqa: N801  (a context manager used like a function)
    """Explain errors of a call, and of looking at its result, by how the function is called.

    fn       the function
    what     the name of it that messages use: `while_loop: cond_fn`
    names    of its arguments
    trees    the arguments
    """

    __slots__ = ("_fn", "_names", "_trees", "_what")

    def __init__(
        self, fn: Callable[..., Any], what: str, names: Sequence[str], trees: Sequence[Any]
    ) -> None:
        self._fn, self._what, self._names, self._trees = fn, what, names, trees

    def __enter__(self) -> None:
        """Do nothing: only errors cost time."""

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        """Raise a better error, if the arguments tell what was misunderstood."""
        if type(error) is not TypeError and not isinstance(error, WeftError):
            return
        taken = _parameters(self._fn, len(self._trees))
        if taken is not None:
            raise ArgumentTypeError(self._wrong_count(taken)) from None
        single = [n for n, t in zip(self._names, self._trees, strict=True) if _is_single(t)]
        if single and not getattr(error, "single", False):
            raise self._explained(error, single[0]) from error

    def _wrong_count(self, taken: list[str]) -> str:
        names, short = list(self._names), self._what.split()[-1]
        called = f"{self._what} is called as {short}({', '.join(names)}), each argument one tree"
        apart = taken[len(names) - 1 :] if names else []
        received = f"Received: a function of ({', '.join(taken)})"
        if len(apart) < 2:
            return f"{called}. {received}"
        advice = f"take the tree apart inside: {', '.join(apart)} = {names[-1]}"
        if self._what.startswith("cond:"):
            advice += f", or give operands one by one: wf.cond(pred, f, g, {', '.join(taken)})"
        return f"{called}; {advice}. {received}"

    def _explained(self, error: Exception, name: str) -> WeftError:
        kind = error.__class__ if isinstance(error, WeftError) else ArgumentTypeError
        tree = self._trees[list(self._names).index(name)]
        found = kind(
            f"{error} [in {self._what}, whose argument {name} is one tree, here a "
            f"{type(tree).__name__} of one: give the tensor itself in its place, or take it out "
            f"inside, (x,) = {name}]"
        )
        found.__dict__.update(error.__dict__, single=True)  # so that outer loops add nothing
        return found


def _parameters(fn: Any, count: int) -> list[str] | None:
    """Return the parameters of a function that cannot be called with so many arguments."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # a function without a signature
        return None
    try:
        signature.bind(*range(count))
    except TypeError:
        return [name for name, p in signature.parameters.items() if p.default is p.empty]
    return None


def _is_single(tree: Any) -> bool:
    return isinstance(tree, (list, tuple)) and len(tree) == 1
