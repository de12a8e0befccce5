"""The door through which operations on large tensors leave for machine code.

NumPy computes on one thread and in fresh memory. On large operands it pays to run a compiled kernel
instead. Which of them computes must not show in the results: a training that was killed and resumed
has met fewer operations than one that was not, and ends with the same weights. So there are two
kinds of operators:

    those that round at most once   the code equals NumPy bit for bit. From LARGE elements on it is
    (EXACT)                         compiled in the background when an operation comes for the
                                    second time, and takes over as soon as it is ready
    all others                      the code may differ in the last bits. From VERY_LARGE elements
                                    on it always computes, and the first use waits for it

The door costs nothing while it is closed. Generated functions call the reference kernels directly;
`wrap` opens the door when the first large tensor is made, and from then on each operator that can
be lowered has a chooser in its kernel's place. A chooser that meets small operands goes on to the
reference kernel, as it does with operands that code does not take (not in C order, say). An
operation is an operator with attributes, shapes and dtypes; the code comes from a layer above.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from .background import background
from .config import config
from .heap import keep_freed_memory
from .late import late_function
from .shape import size_of

if TYPE_CHECKING:
    from .op import Op

LARGE = 1 << 16  # elements
VERY_LARGE = 1 << 19  # where compiling, at some 10 ms, is soon worth its while
MOST_USES = 512  # operations that are remembered, the latest used ones
EXACT = frozenset(
    (
        *("abs", "add", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "div", "equal"),
        *("greater", "greater_equal", "isfinite", "isinf", "isnan", "leaky_relu", "less"),
        *("less_equal", "mul", "neg", "not_equal", "sqrt", "sub", "threshold", "where"),
    )
)

# Machine code takes arrays and returns the result, or None for arrays that it does not take.
Code = Callable[..., Any]
tick = count().__next__
Uses = dict[Any, "Use"]
Chooser = Callable[..., Any]


class Use:
    """One operation that was met, and its machine code once there is some.

    run    what to call, when it has taken over
    last   when it was last called, by a count of all calls
    """

    __slots__ = ("count", "last", "made", "ordered", "ready", "run")

    def __init__(self) -> None:
        self.count = 0
        self.ordered = False
        self.last = tick()
        self.run: Code | None = None
        self.made: Code | None = None  # None too if there cannot be any
        self.ready = threading.Event()

    def again(self, compile_it: Callable[[], Code | None], *, exact: bool) -> Code | None:
        """Count one more use; return what to call if machine code takes over now."""
        self.count += 1
        if not self.ordered and (self.count > 1 or not exact):
            self.ordered = True
            self._order(compile_it)
        if not exact and not background.is_here():
            self.ready.wait()
        if self.ready.is_set():
            self.run = self.made
        return self.run

    def _order(self, compile_it: Callable[[], Code | None]) -> None:
        def job() -> None:
            try:
                self.made = compile_it()
            except Exception as error:  # NumPy goes on; who looks for speed should know why
                with suppress(Warning):  # even where warnings are errors
                    warnings.warn(f"an eager kernel was not compiled: {error}", stacklevel=1)
            finally:
                self.ready.set()

        if not background.submit(job):
            self.ready.set()


class Door:
    """Whether large tensors have been seen, and which operations on them."""

    def __init__(self) -> None:
        self.open = False
        self.scopes: list[tuple[Op, dict[str, Any]]] = []
        self.known: list[tuple[Uses, Any]] = []  # all uses, by the tables that hold them

    def guard(self, op: Op, scope: dict[str, Any]) -> None:
        """Have the kernels in the globals of an operator's functions replaced in time."""
        self.scopes.append((op, scope))
        if self.open:
            _install(op, scope)

    def unlock(self) -> None:
        """Open the door, once for all."""
        self.open = True
        keep_freed_memory()
        for op, scope in self.scopes:
            _install(op, scope)

    def use(self, uses: Uses, key: Any) -> Use:
        """Return what is known of an operation; of a new one too, and forget some if many."""
        known = uses.get(key)
        if known is None:
            known = uses[key] = Use()
            self.known.append((uses, key))
            if len(self.known) > MOST_USES:
                self._forget_some()
        known.last = tick()
        return known

    def _forget_some(self) -> None:
        """Forget the quarter of the operations that were not used for the longest time."""
        found = [(uses, key, uses[key].last) for uses, key in self.known if key in uses]
        found.sort(key=itemgetter(2))
        for uses, key, _ in found[: MOST_USES // 4]:
            uses.pop(key, None)
        self.known = [(uses, key) for uses, key, _ in found[MOST_USES // 4 :]]

    def forget_orders(self) -> None:
        """Forget what is not ready: after a fork nobody works on it."""
        for uses, key in self.known:
            if key in uses and not uses[key].ready.is_set():
                del uses[key]


door = Door()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=door.forget_orders)


def accepts(op: Op) -> bool:
    """Tell whether an operator can have kernels: one result, from a fixed number of arrays."""
    simple = not op.variadic and not op.optional and op.outputs == 1 and bool(op.inputs)
    return simple and op.lower_rule is not None and op.kind in ("elementwise", "reduction")


def _install(op: Op, scope: dict[str, Any]) -> None:
    if accepts(op):
        # 1, 1.0 and True are equal, as are 0.0 and -0.0. The attributes of reductions are axes and
        # flags in canonical form.
        by_text = op.kind != "reduction" and bool(op.attrs)
        scope["kernel"] = make_chooser(op.name, op.kernel, len(op.inputs), by_text=by_text)
    scope["times"] = _TIMES


def make_chooser(name: str, kernel: Any, count: int, *, by_text: bool = False) -> Chooser:
    """Return a function that takes an operator's arrays and attributes to the better kernel.

    by_text   whether attributes that are equal may differ in what they do
    """
    uses: Uses = {}
    make = {1: _of_one, 2: _of_two}.get(count, partial(_of_several, count=count))
    describe: Callable[[Any], Any] = repr if by_text else _as_they_are
    least = LARGE if name in EXACT else VERY_LARGE
    return make(uses, kernel, describe, _newcomer(uses, name, kernel, count), least)


# The first two are the third, written out for few arrays: after a large operation nothing of the
# interpreter is in the processor's cache, and each step costs several times the usual.


def _of_one(uses: Uses, kernel: Any, describe: Any, new: Any, least: int) -> Chooser:
    def choose(x: Any, *attrs: Any) -> Any:
        try:
            key = (x.shape, x.dtype, describe(attrs)) if x.size >= least else None
        except AttributeError:  # rules may give Python numbers
            key = None
        if key is None:
            return kernel(x, *attrs)
        use = uses.get(key)
        if use is None or use.run is None or not config.eager_kernels:
            return new(key, (x, *attrs))
        use.last = tick()
        result = use.run(x)
        return kernel(x, *attrs) if result is None else result

    return choose


def _of_two(uses: Uses, kernel: Any, describe: Any, new: Any, least: int) -> Chooser:
    exact = least == LARGE

    def choose(x: Any, y: Any, *attrs: Any) -> Any:
        try:
            large = x.size >= least or y.size >= least or (exact and _makes_large(x, y))
            key = (x.shape, x.dtype, y.shape, y.dtype, describe(attrs)) if large else None
        except AttributeError:
            key = None
        if key is None:
            return kernel(x, y, *attrs)
        use = uses.get(key)
        if use is None or use.run is None or not config.eager_kernels:
            return new(key, (x, y, *attrs))
        use.last = tick()
        result = use.run(x, y)
        return kernel(x, y, *attrs) if result is None else result

    return choose


def _makes_large(x: Any, y: Any) -> bool:
    """Tell whether small operands broadcast against one another to a large result.

    Only exact code may ask: whether the door is open then must not show.
    """
    if x.size * y.size < LARGE or x.shape == y.shape:
        return False
    try:
        return size_of(np.broadcast_shapes(x.shape, y.shape)) >= LARGE
    except ValueError:  # they do not fit; the reference kernel says so
        return False


def _of_several(
    uses: Uses, kernel: Any, describe: Any, new: Any, least: int, count: int
) -> Chooser:
    def choose(*args: Any) -> Any:
        arrays = args[:count]
        try:
            large = max(x.size for x in arrays) >= least
            types = [part for x in arrays for part in (x.shape, x.dtype)] if large else None
        except AttributeError:
            types = None
        return kernel(*args) if types is None else new((*types, describe(args[count:])), args)

    return choose


def _newcomer(uses: Uses, name: str, kernel: Any, count: int) -> Callable[..., Any]:
    """Return a function that runs operations whose machine code may not have taken over yet."""

    def run(key: Any, args: tuple[Any, ...]) -> Any:
        if not config.eager_kernels:
            return kernel(*args)
        use = door.use(uses, key)
        attrs = args[count:]  # the job must not hold the arrays
        code = use.run or use.again(lambda: _compiled(name, key[:-1], attrs), exact=name in EXACT)
        result = None if code is None else code(*args[:count])
        return kernel(*args) if result is None else result

    return run


def _as_they_are(attrs: Any) -> Any:
    return attrs


_TIMES = make_chooser("mul", np.multiply, 2)  # what a generated backward multiplies with


def _compiled(name: str, types: Sequence[Any], attrs: tuple[Any, ...]) -> Code | None:
    pairs = list(zip(types[::2], types[1::2], strict=True))
    made: Code | None = late_function("eager", "compile_kernel")(name, pairs, attrs)
    return made
