"""What `compile` means in every face of training: whether steps run as compiled programs.

With "auto" they do, by `wf.jit`; what cannot be compiled runs eagerly, and a warning says why,
once. With True that is an error instead. With False all runs eagerly, operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Literal, TypeVar

from ..capture import jit
from ..core.errors import ArgumentError

Compile = Literal["auto"] | bool
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def checked_compile(choice: Any) -> Compile:
    """Return the choice; refuse what is none."""
    if choice is True or choice is False or choice == "auto":
        return choice  # type: ignore[no-any-return]  # of Any
    raise ArgumentError(f"compile must be 'auto', True or False. Received: {choice!r}")


def as_compiled(function: FunctionT, choice: Compile) -> FunctionT:
    """Return a function as `compile` asks for it."""
    return function if choice is False else jit(function, strict=choice is True)


class Captures:
    """The compiled functions of an object, which keeps them from one use to the next.

    Copies of the object, and what is read from a file, begin without: their tensors are others.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[Hashable, Compile], Any] = {}

    def get(self, name: Hashable, function: FunctionT, choice: Compile) -> FunctionT:
        """Return a function as `compile` asks for it; one of the same name was the same before."""
        made = self._made.get((name, choice))
        if made is None:
            made = self._made[name, choice] = as_compiled(function, choice)
        return made

    def __reduce__(self) -> tuple[type[Captures], tuple[()]]:
        return Captures, ()
