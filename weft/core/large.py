"""The door through which operations on large tensors leave for machine code, as core sees it.

NumPy computes on one thread and in fresh memory. On large operands it pays to run a compiled kernel
instead, which is the business of a layer above (weft/eager): it decides when, and core knows
nothing of compilers. Core only tells when there is something to decide.

The door costs nothing while it is closed. Generated functions call the reference kernels directly;
`wrap` opens the door when the first large tensor is made, and from then on each operator that can
be lowered has a chooser in its kernel's place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from .config import config
from .heap import give_back_freed_memory, keep_freed_memory
from .imports import Injected, injected
from .locks import fork_safe_lock

if TYPE_CHECKING:
    from .op import Op

LARGE = 1 << 16  # elements

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
_opening = fork_safe_lock("door")


class Forms(NamedTuple):
    """A composite as its operators one by one, and as what its programs are traced from.

    multiplies_rows   whether rows of its first tensor serve for nothing but matrix products
    """

    name: str
    by_operators: Callable[..., Any]
    for_programs: Callable[..., Any]
    multiplies_rows: bool = False


class LargeKernels(Protocol):
    """Who computes on large tensors: what the layer above offers."""

    def install_chooser(self, op: Op, scope: dict[str, Any]) -> None:
        """Put choosers in the places of the kernels that an operator's functions call."""

    def run_composite(self, forms: Forms, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a composite, or None where its operators are to run one by one."""


large_kernels: Injected[LargeKernels] = injected("large_kernels")


class Door:
    """Whether large tensors have been seen, and the operators that wait for them."""

    def __init__(self) -> None:
        self.open = False
        self.waiting: list[tuple[Op, dict[str, Any]]] = []

    def admit(self, op: Op, scope: dict[str, Any]) -> None:
        """Let an operator's functions through as soon as the door is open."""
        with _opening:
            if self.open:
                large_kernels.get().install_chooser(op, scope)
            else:
                self.waiting.append((op, scope))

    def unlock(self) -> None:
        """Open the door, once for all: it is open when all that waited for it is done."""
        kernels = large_kernels.get()  # which may be an import, and so comes before the lock
        with _opening:
            if not self.open and not keep_freed_memory():
                give_back_freed_memory()
            while self.waiting:
                kernels.install_chooser(*self.waiting[-1])
                self.waiting.pop()
            self.open = True


door = Door()


def fused(
    name: str,
    fn: FunctionT,
    is_large: Callable[..., bool] | None = None,
    for_programs: FunctionT | None = None,
    *,
    multiplies_rows: bool = False,
) -> FunctionT:
    """Return a composite whose calls on large tensors run as one program.

    is_large          tells from the arguments whether they are; else one of them has LARGE elements
    for_programs      the same function, with a first derivative that takes fewer passes over memory
    multiplies_rows   whether rows of its first tensor serve for nothing but matrix products
    """
    forms = Forms(name, fn, for_programs or fn, multiplies_rows)

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if config.eager_kernels and (
            door.open and _is_any_large(args, kwargs)
            if is_large is None
            else is_large(*args, **kwargs)
        ):
            result = large_kernels.get().run_composite(forms, args, kwargs)
            if result is not None:
                return result
        return fn(*args, **kwargs)

    return call  # type: ignore[return-value]  # it has the function's signature, by `wraps`


def _is_any_large(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Tell whether an argument is a large tensor; one of a graph may not know its size."""
    for x in (*args, *kwargs.values()) if kwargs else args:
        value = getattr(x, "_value", None)
        if value is not None and value.size >= LARGE:
            return True
    return False
