"""`custom_vjp`: give a function a derivative rule in reverse mode, in JAX's form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...core.errors import GradientError
from ...core.tensor import Tensor
from ...core.tree import Structure, TreeMismatchError, flatten
from ..function import Function
from .rule import CustomRule, RuleCall, as_pair, save_values, saved_values


class custom_vjp(CustomRule):  # noqa: N801  (used as a decorator, as in JAX)
    """Give a function a derivative rule of its own.

    `defvjp(fwd, bwd)` sets the rule: `fwd(*args)` returns the result and residuals (any tree), and
    `bwd(residuals, g)` one gradient per argument, each of the argument's structure, or None for
    zero. Arguments named in `nondiff_argnums` are not differentiated; bwd receives them first.

    >>> import weft as wf
    >>> @wf.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, g: (wf.clip(g, -1.0, 1.0),))
    >>> x = wf.tensor(2.0, requires_grad=True)
    >>> (100 * clip_gradient(x)).backward()
    >>> x.grad
    tensor(1.)
    """

    def __init__(self, fn: Callable[..., Any], nondiff_argnums: Iterable[int] = ()) -> None:
        super().__init__(fn, nondiff_argnums)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the forward function that returns residuals, and the backward function."""
        self.fwd, self.bwd = fwd, bwd

    def _require_rule(self) -> None:
        if self.fwd is None or self.bwd is None:
            raise GradientError(f"{self.name}: no derivative is defined yet; call defvjp(fwd, bwd)")


class _VjpCall(RuleCall):
    """One call of a custom_vjp function: how its flat leaves map to trees."""

    residuals: Structure

    def forward(self, leaves: Iterable[Any]) -> tuple[list[Any], list[Any]]:
        """Run fwd; return the leaves of the result and of the residuals."""
        args = self.arguments.complete(leaves)
        found = self.owner.fwd(*args)
        result, kept = as_pair(found, f"{self.owner.name}: fwd", "result, residuals")
        outputs, self.result = flatten(result)
        residuals, self.residuals = flatten(kept)
        return outputs, residuals

    def backward(self, residuals: Iterable[Any], grads: Iterable[Any]) -> list[Any]:
        """Run bwd; return the gradients of the argument leaves."""
        fixed = self.arguments.in_front()
        g = self.result.unflatten(grads)
        found = self.owner.bwd(*fixed, self.residuals.unflatten(residuals), g)
        expected = self.arguments.count - len(fixed)
        if not isinstance(found, (tuple, list)) or len(found) != expected:
            received = len(found) if isinstance(found, (tuple, list)) else type(found).__name__
            raise GradientError(
                f"{self.owner.name}: bwd must return a tuple of {expected} gradient(s), one per "
                f"differentiable argument. Received: {received}"
            )
        return self._flat(found)

    def _flat(self, found: Iterable[Any]) -> list[Any]:
        leaves: list[Any] = []
        parts = self.arguments.structure.children
        for i, (part, g) in enumerate(zip(parts, found, strict=True)):
            if g is None:
                leaves += [None] * part.count
                continue
            try:
                leaves += part.flatten_like(g, f"gradient {i}")
            except TreeMismatchError as error:
                raise GradientError(f"{self.owner.name}: from bwd, {error}") from None
        return leaves


class _VjpFunction(Function):
    """Runs the rule of a custom_vjp function on flat leaves."""

    @staticmethod
    def forward(ctx: Any, rule: _VjpCall, *leaves: Any) -> tuple[Any, ...]:
        """Run fwd, and save the residuals."""
        outputs, residuals = rule.forward(leaves)
        ctx.rule = rule
        save_values(ctx, residuals)
        ctx.tensors = [isinstance(x, Tensor) for x in leaves]
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        """Run bwd on the residuals."""
        found = ctx.rule.backward(saved_values(ctx), grads)
        # A number among the arguments has no gradient to keep, whatever bwd returns for it.
        kept = (g if wanted else None for g, wanted in zip(found, ctx.tensors, strict=True))
        return (None, *kept)


custom_vjp._call, custom_vjp._function = _VjpCall, _VjpFunction
