"""What surrounds an operation: whether it is recorded for gradients, and who runs it.

Both modes are local to the thread (and to the asyncio task). Reading a context variable on every
operation would cost a tenth of it, so `modes` counts, over all of them, those that differ from the
default: while there are none, as almost always, nothing else is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from .errors import ArgumentTypeError
from .locks import fork_safe_lock

P = ParamSpec("P")
R = TypeVar("R")


class Interpreter(Protocol):
    """Runs operations in place of the eager path: a tracer, dual numbers, a batcher ..."""

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run one operation and return its output or tuple of outputs."""


class Modes:
    """Count, over all threads, the contexts that differ from the default.

    base             runs operations where no other interpreter does, while there are tensors that
                     are not on the CPU (core/placing.py); it counts as an interpreter once it has
                     been there
    grad_overrides   has an entry for each `_Off` that exists, so it is empty where every context
                     records; a list, whose changes need no lock: the last holder of one may be
                     let go of at any time
    """

    __slots__ = ("_lock", "base", "grad_overrides", "interpreters")

    base: Interpreter | None

    def __init__(self) -> None:
        self.interpreters = 0
        self.base = None
        self.grad_overrides: list[None] = []
        self._lock = fork_safe_lock("modes")

    def count_interpreter(self, change: int) -> None:
        """Count an interpreter context in or out."""
        with self._lock:
            self.interpreters += change


modes = Modes()


class _Off:
    """Stands in contexts that do not record, and is counted for as long as one of them holds it.

    A thread may end without switching back on, and a task begins with a copy of its parent's
    context: only the lifetime of what contexts hold tells how long somebody may be off.
    """

    __slots__ = ()

    def __init__(self) -> None:
        modes.grad_overrides.append(None)

    def __del__(self, uncount: Callable[[], None] = modes.grad_overrides.pop) -> None:
        uncount()


_off: ContextVar[_Off | None] = ContextVar("weft_grad_off", default=None)
_interpreter: ContextVar[Interpreter | None] = ContextVar("weft_interpreter", default=None)


def is_grad_enabled() -> bool:
    """Tell whether operations on tensors that require gradients are recorded.

    >>> is_grad_enabled()
    True
    """
    return _off.get() is None


def _set_grad(mode: bool) -> _Off | None:
    """Switch recording on or off in this context; return what stood there before."""
    before = _off.get()
    _off.set(None if mode else before or _Off())
    return before


class set_grad_enabled:  # noqa: N801  (used like a function, as in PyTorch)
    """Switch recording on or off: as a call for this thread, as a context or as a decorator."""

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise ArgumentTypeError(f"set_grad_enabled expects True or False. Received: {mode!r}")
        self._mode = mode
        self._previous = [_set_grad(mode)]

    def __enter__(self) -> set_grad_enabled:
        """Keep the mode that the constructor set."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Restore the mode of before."""
        _off.set(self._previous.pop())

    def __call__(self, fn: Callable[P, R]) -> Callable[P, R]:
        """Restore the mode of before and return `fn` wrapped so that its body runs in this one."""
        self.__exit__()
        return GradMode(self._mode)(fn)


class GradMode:
    """A reusable, nestable context manager and decorator that fixes the grad mode."""

    __slots__ = ("_mode", "_previous")

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._previous: list[_Off | None] = []

    def __enter__(self) -> None:
        """Enter the mode."""
        self._previous.append(_set_grad(self._mode))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Restore the mode of before, also after an error."""
        _off.set(self._previous.pop())

    def __call__(self, fn: Callable[P, R]) -> Callable[P, R]:
        """Return `fn` wrapped so that its body runs in this mode."""
        mode = self._mode

        @wraps(fn)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            with GradMode(mode):
                return fn(*args, **kwargs)

        return wrapped


@overload
def no_grad(fn: None = None) -> GradMode: ...
@overload
def no_grad(fn: Callable[P, R]) -> Callable[P, R]: ...
def no_grad(fn: Any = None) -> Any:
    """Return a context (or decorator) in which nothing is recorded for differentiation."""
    return GradMode(False) if fn is None else _decorated(GradMode(False), fn, "no_grad")


@overload
def enable_grad(fn: None = None) -> GradMode: ...
@overload
def enable_grad(fn: Callable[P, R]) -> Callable[P, R]: ...
def enable_grad(fn: Any = None) -> Any:
    """Return a context (or decorator) that records again inside `no_grad`."""
    return GradMode(True) if fn is None else _decorated(GradMode(True), fn, "enable_grad")


def _decorated(mode: GradMode, fn: Any, what: str) -> Any:
    if not callable(fn):
        raise ArgumentTypeError(
            f"{what} takes no arguments, or as a decorator a function. Received: {fn!r:.60}"
        )
    return mode(fn)


def current_interpreter() -> Interpreter | None:
    """Return the interpreter of this context, or None for plain eager execution."""
    return _interpreter.get() or modes.base if modes.interpreters else None


# The same for code that asks `modes` itself; where it is None, `modes.base` may have come since.
interpreter_here = _interpreter.get


def current_transform() -> Interpreter | None:
    """Return the interpreter of this context unless it does no more than mark tensors."""
    found = current_interpreter()
    return None if found is modes.base else found


def is_transformed() -> bool:
    """Tell whether operations of this context are recorded or transformed, not run at once.

    >>> is_transformed()
    False
    """
    return bool(modes.interpreters) and _interpreter.get(None) not in (None, modes.base)


def current_tracer() -> Any:
    """Return the interpreter that builds a graph, also from below dual numbers, or None."""
    interpreter: Any = current_interpreter()
    while interpreter is not None and not hasattr(interpreter, "read_state"):
        interpreter = getattr(interpreter, "below", None)
    return interpreter


def current_deferral() -> Any:
    """Return the interpreter that puts operations off (weft/dynamic), or None."""
    interpreter: Any = current_interpreter()
    while interpreter is not None and not hasattr(interpreter, "defers"):
        interpreter = getattr(interpreter, "below", None)
    return interpreter


def current_recorder() -> Any:
    """Return the tracer that records a function while it runs (capture/recorder.py), or None."""
    tracer = current_tracer() if modes.interpreters else None
    return None if tracer is None or not tracer.root.recording else tracer.root


def note_look(x: Any, *, value: bool = False) -> None:
    """Tell whoever puts operations off that Python looks at a tensor that was there before.

    What it does next may depend on that, and another call may find something else.

    value   whether it looks at no more than the value
    """
    run = current_deferral()
    if run is not None:
        run.looked_at(x, value=value)


def refuse_recording(what: str, *, once: bool = False, in_parts: bool = False) -> None:
    """End the recording that runs, if one does, at what only eager mode can do.

    once       the next call may well be recorded
    in_parts   it runs by programs of its own: parts of what is around it may be compiled
    """
    if modes.interpreters and (recorder := current_recorder()) is not None:
        recorder.refuse(what, once=once, in_parts=in_parts)


def drawn_examples() -> Any:
    """Return for how many examples each random draw of this context is made, because of vmap."""
    examples: Any = 1
    interpreter: Any = current_interpreter()
    while interpreter is not None:
        examples *= getattr(interpreter, "draws", 1)
        interpreter = getattr(interpreter, "below", None)
    return examples


def eagerly(fn: Callable[P, R]) -> Callable[P, R]:
    """Return a function that runs eagerly although a graph is being built: to make state."""

    @wraps(fn)
    def outside(*args: P.args, **kwargs: P.kwargs) -> R:
        if modes.interpreters and current_tracer() is not None:
            refuse_recording(f"{fn.__qualname__} makes state in each call")
            with interpret_with(None):
                return fn(*args, **kwargs)
        return fn(*args, **kwargs)

    return outside


class interpret_with:  # noqa: N801  (a context manager used like a function)
    """Run the operations of a `with` block through an interpreter (None = eagerly)."""

    __slots__ = ("_counted", "_interpreter", "_token")

    def __init__(self, interpreter: Interpreter | None) -> None:
        self._interpreter = interpreter

    def __enter__(self) -> Interpreter | None:
        """Make the interpreter current."""
        # Inside another one this context is counted already.
        self._counted = self._interpreter is not None and _interpreter.get() is None
        self._token = _interpreter.set(self._interpreter)
        if self._counted:
            modes.count_interpreter(+1)
        return self._interpreter

    def __exit__(self, *exc: object) -> None:
        """Restore the interpreter of before, also after an error."""
        _interpreter.reset(self._token)
        if self._counted:
            modes.count_interpreter(-1)


def run_below(interpreter: Interpreter | None, fn: Callable[..., R], *args: Any) -> R:
    """Call fn with another interpreter current: the hot path of interpreters, which run already."""
    token = _interpreter.set(interpreter)
    try:
        return fn(*args)
    finally:
        _interpreter.reset(token)
