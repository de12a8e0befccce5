"""torch.autograd.function: functions with a backward of one's own."""

from __future__ import annotations

from functools import wraps
from typing import Any

from ...autodiff.function import Function as CoreFunction
from ...core import tensor as core
from ...core.modes import is_grad_enabled, no_grad
from ..absent import absent
from ..adoption import adopt

__all__ = ["Function", "once_differentiable"]


class Function(CoreFunction):
    """A differentiable function with hand-written forward and backward.

    >>> from weft import torch
    >>> class Twice(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return 2 * g
    >>> x = torch.ones(2, requires_grad=True)
    >>> Twice.apply(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if isinstance(cls.__dict__.get("setup_context"), staticmethod):
            forward = _with_context(cls.__dict__["forward"].__func__, cls)
            setattr(cls, "forward", staticmethod(forward))  # noqa: B010  (mypy knows a method there)
        for name in ("forward", "backward"):
            own = cls.__dict__.get(name)
            if isinstance(own, staticmethod):
                setattr(cls, name, staticmethod(_of_this_face(own.__func__)))
        super().__init_subclass__(**kwargs)

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and record it for differentiation."""
        return adopt(super().apply(*args, **kwargs))


def _with_context(forward: Any, kind: Any) -> Any:
    """Return a forward that is given the context, of one that leaves it to `setup_context`."""

    @wraps(forward)
    def call(ctx: Any, *args: Any) -> Any:
        output = forward(*args)
        kind.setup_context(ctx, args, output)
        return output

    return call


def _of_this_face(function: Any) -> Any:
    """Return a function that is given tensors of this face."""

    def call(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        return function(_FaceContext(ctx), *map(adopt, args), **kwargs)

    call.__name__ = function.__name__
    return call


class _FaceContext:
    """What forward leaves for backward, whose tensors are those of this face."""

    __slots__ = ("_ctx",)

    def __init__(self, ctx: Any) -> None:
        object.__setattr__(self, "_ctx", ctx)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """Return what `save_for_backward` was given."""
        return tuple(map(adopt, self._ctx.saved_tensors))

    def mark_dirty(self, *tensors: Any) -> None:
        """Refuse: a function returns new tensors."""
        raise RuntimeError("mark_dirty: return a new tensor instead of writing into an argument")

    def set_materialize_grads(self, value: bool) -> None:
        """Do nothing: gradients that are missing are zeros."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)


def once_differentiable(fn: Any) -> Any:
    """Let a backward be computed without a history; second derivatives are refused."""

    @wraps(fn)
    def call(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            found = fn(ctx, *grads)
        if not is_grad_enabled() or not any(_requires_grad(g) for g in grads):
            return found
        several = found if isinstance(found, tuple) else (found,)
        marked = tuple([g if g is None else _Once.apply(g, *grads) for g in several])
        return marked if isinstance(found, tuple) else marked[0]

    return call


def _requires_grad(thing: Any) -> bool:
    return isinstance(thing, core.Tensor) and thing.requires_grad


class _Once(Function):
    """A gradient that has no derivative."""

    @staticmethod
    def forward(ctx: Any, found: Any, *grads: Any) -> Any:
        """Return a gradient that was computed from others."""
        return found.clone()

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        """Refuse."""
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


__getattr__ = absent(globals(), {})
