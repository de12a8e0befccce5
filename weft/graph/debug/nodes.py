"""`wf.debug`: print, call, stop and check in the middle of a program, whoever runs it.

In eager code it happens at once. In a graph it becomes a node (effects.py), also in the bodies of
control flow, and happens in every run that computes the values.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtype import is_float
from ...core.effects import in_trips, trips
from ...core.errors import ArgumentTypeError, CheckError, GradientError, GraphError, user_site
from ...core.modes import current_tracer, modes
from ...core.op import F
from ...core.tensor import Tensor, constant
from ...core.tree import Structure, flatten, flatten_with_paths
from ..symbol import Symbol, add_hook
from .console import stop_at
from .effects import Array, EffectOp, EffectPlace, PythonCallback, add_effect, place_text
from .frames import user_stack
from .shown import shown

# -- what happens ----------------------------------------------------------------------------------


def _print(arrays: list[Array], place: EffectPlace, labels: tuple[str, ...], stats: bool) -> None:
    trip = f" ({place.trip})" if place.trip else ""
    for label, array in zip(labels, arrays, strict=True):
        builtins.print(shown(f"{label}{trip}", array, stats=stats))


def _call(arrays: list[Array], place: EffectPlace, fn: PythonCallback | str) -> None:
    if isinstance(fn, str):
        raise GraphError(f"the text of a graph has only the name of what a callback calls: {fn}")
    fn(arrays)


def _check(arrays: list[Array], place: EffectPlace, message: str) -> None:
    holds, *values = arrays
    if not holds.all():
        raise CheckError(f"{message.format(*values)} [{_failed(holds)}{place}]")


def _failed(holds: Array) -> str:
    count = holds.size - int(holds.sum())
    return f"{count} of {holds.size} elements are false: " if holds.ndim else ""


# -- what nodes of them can be given ---------------------------------------------------------------


def _can_print(operands: Sequence[Any], labels: Any, stats: Any) -> bool:
    return _are_labels(operands, labels) and isinstance(stats, bool)


def _can_call(operands: Sequence[Any], fn: Any) -> bool:
    return isinstance(fn, (PythonCallback, str))


def _can_stop(operands: Sequence[Any], labels: Any, stack: Any) -> bool:
    known = isinstance(stack, tuple) and all(isinstance(at, tuple) and len(at) == 3 for at in stack)
    return _are_labels(operands, labels) and known


def _can_check(operands: Sequence[Any], message: Any) -> bool:
    pred = operands[0].dtype.kind if operands else ""
    return pred == "b" and isinstance(message, str)


def _are_labels(operands: Sequence[Any], labels: Any) -> bool:
    if not isinstance(labels, tuple) or len(labels) != len(operands):
        return False
    return all(isinstance(label, str) for label in labels)


PRINT = EffectOp("print", ("labels", "stats"), _print, _can_print)
CALLBACK = EffectOp("callback", ("fn",), _call, _can_call)
BREAKPOINT = EffectOp("breakpoint", ("labels", "stack"), stop_at, _can_stop)
CHECK = EffectOp("check", ("message",), _check, _can_check)
EFFECTS = {op.name: op for op in (PRINT, CALLBACK, BREAKPOINT, CHECK)}


class UserCall(PythonCallback):
    """A function of the user's with the nest of its arguments, which arrays fill.

    Each call has arrays of its own: those of a program are written again.
    """

    def __init__(self, fn: Callable[..., Any], leaves: Sequence[Any], nest: Structure) -> None:
        self.fn, self.nest = fn, nest
        self.leaves = [_FILLED if isinstance(leaf, Tensor) else leaf for leaf in leaves]

    def __call__(self, arrays: Sequence[Array]) -> None:
        """Call the function."""
        given = iter(arrays)
        leaves = [np.array(next(given)) if leaf is _FILLED else leaf for leaf in self.leaves]
        args, kwargs = self.nest.unflatten(leaves)
        self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return getattr(self.fn, "__qualname__", None) or repr(self.fn)


_FILLED = object()


# -- nodes -----------------------------------------------------------------------------------------


def print(x: Any, label: str = "", *, stats: bool = False, grad: bool = False) -> Any:
    """Show a tensor, or a nest of them, each time that it is computed; return it.

    label   what to call it
    stats   whether to show the least, mean and greatest element in place of all
    grad    whether to show its gradient too, when that is computed: use what is returned then

    In loops the number of the trip is shown. Under `wf.vmap` the whole batch is shown at once, the
    batch axis in front. A gradient passes as if nothing was there.

    >>> import weft as wf
    >>> h = wf.debug.print(wf.tensor([1.0, 2.0]), "h")
    h: float32[2] [1. 2.]
    """
    _check_text(label, "print: label")
    _check_flag(stats, "print: stats")
    _check_flag(grad, "print: grad")
    paths = flatten_with_paths(x)
    tensors = [_tensor(leaf, "print: x") for _, leaf in paths]
    labels = tuple(label + path for path, _ in paths)
    _show(PRINT, tensors, (labels, stats))
    return _with_gradients_shown(x, labels, stats) if grad else x


def callback(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Call `fn(*args, **kwargs)` each time that the tensors among the arguments are computed.

    Tensors, in nests too, are handed over as NumPy arrays of the function's own; everything else
    as it is now. What the function returns is not used. `wf.debug.trips()` says in it which trip
    of a loop runs. An exception ends the run, with all states as they were before.

    >>> import weft as wf
    >>> seen = []
    >>> wf.debug.callback(seen.append, wf.tensor(2.0))
    >>> seen
    [array(2., dtype=float32)]
    """
    if not callable(fn):
        raise ArgumentTypeError(f"callback: fn must be a function. Received: {fn!r:.60}")
    leaves, nest = flatten((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    _show(CALLBACK, tensors, (UserCall(fn, leaves, nest),))


def breakpoint(*xs: Any, **named: Any) -> None:
    """Stop there, with nothing written yet, and open a prompt at which the values can be seen.

    Values that are given by keyword are known by it there, others as x0, x1 ... Type `help` at the
    prompt; `continue` goes on. Without values a program stops in every run.
    """
    values = {f"x{i}": x for i, x in enumerate(xs)} | named
    paths = [(name + path, x) for name, v in values.items() for path, x in flatten_with_paths(v)]
    tensors = [_tensor(x, f"breakpoint: {name}") for name, x in paths]
    stack = tuple(map(tuple, user_stack()))
    _show(BREAKPOINT, tensors, (tuple(name for name, _ in paths), stack))


def check(pred: Any, message: str, *values: Any) -> None:
    """Raise CheckError with a message unless all elements of `pred` are true when it is computed.

    A run that fails a check has changed nothing. `{}` in the message stand for values.

    >>> import weft as wf
    >>> x = wf.tensor([1.0, -2.0])
    >>> wf.debug.check(x > 0, "x must be positive, but is {}", x)
    Traceback (most recent call last):
        ...
    weft.core.errors.CheckError: x must be positive, but is [ 1. -2.] [1 of 2 elements are ...
    """
    _check_text(message, "check: message")
    holds = _tensor(pred, "check: pred")
    if holds.dtype.kind != "b":
        raise ArgumentTypeError(
            f"check: pred must be boolean. Received: {holds.dtype}; compare, as in x > 0"
        )
    tensors = [_tensor(x, "check: values") for x in values]
    try:
        message.format(*[np.zeros(())] * len(tensors))
    except (IndexError, KeyError, ValueError) as error:
        raise ArgumentTypeError(
            f"check: message has places for other values than the {len(tensors)} given "
            f"({error!r:.60}). Received: {message!r:.80}"
        ) from None
    _show(CHECK, [holds, *tensors], (message,))


def _show(op: EffectOp, tensors: Sequence[Tensor], attrs: tuple[Any, ...]) -> None:
    """Let an effect happen: now, or in each run of the graph that is open."""
    inside = [_innermost(x) for x in tensors]
    tracer = current_tracer() if modes.interpreters else None
    if tracer is None:
        where = place_text(user_site())
        op.happen([x.numpy() for x in inside], (*attrs, "", where))
    else:
        add_effect(tracer, op, [tracer.value_of(x) for x in inside], attrs)


def _innermost(x: Any) -> Tensor:
    """Return the values behind what transforms put around them: all examples of a batch."""
    while hasattr(x, "primal"):
        x = x.primal
    found: Tensor = x
    return found


def _with_gradients_shown(x: Any, labels: Sequence[str], stats: bool) -> Any:
    """Return the same values; their gradients are shown too."""
    leaves, nest = flatten(x)
    pairs = zip(leaves, labels, strict=True)
    return nest.unflatten([_with_gradient_shown(leaf, label, stats) for leaf, label in pairs])


def _with_gradient_shown(x: Any, label: str, stats: bool) -> Any:
    if not isinstance(x, Tensor) or not is_float(x.dtype):
        return x
    another = F.positive(x)
    name = f"gradient of {label or 'x'}"
    around = trips()  # of eager loops; those of a graph tell it in each run

    def show(g: Tensor) -> None:
        with in_trips(around or trips()):
            print(g, name, stats=stats)

    return another if _is_hooked(another, show) else x


def _is_hooked(x: Any, hook: Any) -> bool:
    """Register a hook on a value, or on the batch that it is an example of, if that can be."""
    if isinstance(x, Symbol):
        add_hook(x, hook)  # it may be differentiated later
        return True
    try:
        x.register_hook(hook)
    except GradientError:
        return hasattr(x, "primal") and _is_hooked(x.primal, hook)
    return True


# -- arguments -------------------------------------------------------------------------------------


def _tensor(x: Any, what: str) -> Tensor:
    if isinstance(x, Tensor):
        return x
    if isinstance(x, (bool, int, float, np.ndarray, np.generic)):
        return constant(np.asarray(x))
    raise ArgumentTypeError(
        f"{what} must be a tensor, an array or a number. Received: {type(x).__name__} {x!r:.60}"
    )


def _check_text(text: Any, what: str) -> None:
    if not isinstance(text, str):
        raise ArgumentTypeError(f"{what} must be a string. Received: {text!r:.60}")


def _check_flag(flag: Any, what: str) -> None:
    if not isinstance(flag, bool):
        raise ArgumentTypeError(f"{what} must be True or False. Received: {flag!r:.60}")


__all__ = ["EFFECTS", "breakpoint", "callback", "check", "print", "trips"]
