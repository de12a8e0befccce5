"""Hooks: functions of the user's that run around a module's forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..autodiff.function import Function
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.modes import current_recorder, is_grad_enabled
from ..core.tensor import Tensor
from ..core.tree import flatten
from .version import count_change

if TYPE_CHECKING:
    from .module import Module

BEFORE, AFTER = "before", "after"
GRAD_BEFORE, GRAD_AFTER = "backward before", "backward after"
Call = Callable[..., Any]


class Hook(NamedTuple):
    """A registered function, and whether it wants the keyword arguments of the call too."""

    call: Call
    with_kwargs: bool = False


class HookRemover:
    """Lets a module's hook be removed again; as a context manager, at the end of a block."""

    def __init__(self, module: Module, moment: str, key: object) -> None:
        self._module = module
        self._moment = moment
        self._key = key

    def remove(self) -> None:
        """Unregister the hook; doing so twice is harmless."""
        count_change()
        hooks = self._module._hooks
        hooks.get(self._moment, {}).pop(self._key, None)
        if not hooks.get(self._moment):
            hooks.pop(self._moment, None)

    def __enter__(self) -> HookRemover:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def add_hook(
    module: Module, moment: str, call: Call, *, prepend: bool = False, with_kwargs: bool = False
) -> HookRemover:
    """Register a function for a moment; `prepend` puts it before those already there."""
    if not callable(call):
        raise ArgumentTypeError(f"a hook must be callable. Received: {call!r}")
    count_change()
    key, hook = object(), Hook(call, with_kwargs)
    others = module._hooks.get(moment, {})
    module._hooks[moment] = {key: hook, **others} if prepend else {**others, key: hook}
    return HookRemover(module, moment, key)


def drop_hook(module: Module, moment: str, call: Call) -> None:
    """Unregister a function by itself instead of by its remover."""
    for key, hook in tuple(module._hooks.get(moment, {}).items()):
        if hook.call is call:
            HookRemover(module, moment, key).remove()


def call_with_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a module's forward with all its hooks."""
    for hook in tuple(module._hooks.get(BEFORE, {}).values()):
        args, kwargs = _before(module, hook, args, kwargs)
    hooks = module._hooks  # a hook may have removed itself
    watch = _GradientWatch(module) if GRAD_BEFORE in hooks or GRAD_AFTER in hooks else None
    if watch is not None:
        args = watch.inputs(args)
    output = module.forward(*args, **kwargs)
    for hook in tuple(module._hooks.get(AFTER, {}).values()):
        given = (args, kwargs) if hook.with_kwargs else (args,)
        changed = hook.call(module, *given, output)
        output = output if changed is None else changed
    return output if watch is None else watch.outputs(output)


def _before(
    module: Module, hook: Hook, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if not hook.with_kwargs:
        changed = hook.call(module, args)
        if changed is None:
            return args, kwargs
        return (changed if isinstance(changed, tuple) else (changed,)), kwargs
    changed = hook.call(module, args, kwargs)
    if changed is None:
        return args, kwargs
    if not isinstance(changed, tuple) or len(changed) != 2:
        raise ArgumentTypeError(
            "a hook registered with_kwargs must return None or a pair (args, kwargs). "
            f"Received: {type(changed).__name__}"
        )
    return changed


# -- gradients -----------------------------------------------------------------------------------


class _Observed(Function):
    """The identity, whose backward hands all gradients to an observer at once."""

    @staticmethod
    def forward(ctx: Any, observer: Call, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.observer = observer
        return tuple(x.detach() for x in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return (None, *ctx.observer(grads))


class _GradientWatch:
    """Observes the gradients at the outputs, then at the inputs, of one call of a module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.count = 0
        self.watched: list[int] = []
        self.grad_output: tuple[Any, ...] = ()

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.count = len(args)
        self.watched = _differentiable(args)
        return tuple(_observe(args, self.watched, self._at_inputs))

    def outputs(self, output: Any) -> Any:
        leaves, structure = flatten(output)
        return structure.unflatten(_observe(leaves, _differentiable(leaves), self._at_outputs))

    def _at_outputs(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in tuple(self.module._hooks.get(GRAD_BEFORE, {}).values()):
            grads = _replaced(hook.call(self.module, grads), grads)
        self.grad_output = grads
        if not self.watched:  # nothing flows further, so no later moment will come
            self._run((None,) * self.count)
        return grads

    def _at_inputs(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        found = dict(zip(self.watched, grads, strict=True))
        changed = self._run(tuple(found.get(i) for i in range(self.count)))
        return tuple(changed[i] for i in self.watched)

    def _run(self, grad_input: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in tuple(self.module._hooks.get(GRAD_AFTER, {}).values()):
            changed = hook.call(self.module, grad_input, self.grad_output)
            grad_input = _replaced(changed, grad_input)
        return grad_input


def _differentiable(values: Sequence[Any]) -> list[int]:
    if not is_grad_enabled():
        return []
    return [i for i, x in enumerate(values) if isinstance(x, Tensor) and x.requires_grad]


def _observe(values: Sequence[Any], places: list[int], observer: Call) -> list[Any]:
    """Return values with those at the given places behind an observed identity."""
    result = list(values)
    if places:
        recorder = current_recorder()
        if recorder is not None:
            recorder.is_observed = True
        behind = _Observed.apply(observer, *(values[i] for i in places))
        for i, x in zip(places, behind, strict=True):
            result[i] = x
    return result


def _replaced(changed: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
    if changed is None:
        return grads
    given = changed if isinstance(changed, tuple) else (changed,)
    if len(given) != len(grads):
        raise ArgumentError(
            f"a backward hook must return None or {len(grads)} gradient(s). Received: {len(given)}"
        )
    return given
