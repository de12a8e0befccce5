"""`custom_jvp`: give a function a derivative rule in forward mode; reverse mode transposes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...core.errors import GradientError
from ...core.tree import TreeMismatchError, flatten
from ..function import Function
from ..pullback import differentiable, pull_back_of, zeros_for
from .rule import CustomRule, RuleCall, as_pair, save_values, saved_values


class custom_jvp(CustomRule):  # noqa: N801  (used as a decorator, as in JAX)
    """Give a function a derivative rule of its own, for forward mode.

    `defjvp(rule)` sets it: `rule(primals, tangents)` returns the result and its tangent, of the
    same structure. Tangents have the structure of the arguments, with zeros where nothing changes
    and None at integers; with `symbolic_zeros=True`, zeros are None too. The tangent must be linear
    in the tangents: reverse mode transposes the rule. Arguments named in `nondiff_argnums` are not
    differentiated; the rule receives them first.

    >>> import weft as wf
    >>> @wf.custom_jvp
    ... def log1pexp(x):
    ...     return wf.log(1 + wf.exp(x))
    >>> @log1pexp.defjvp
    ... def _(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), t * (1 - 1 / (1 + wf.exp(x)))
    >>> wf.grad(log1pexp)(wf.tensor(100.0))
    tensor(1.)
    """

    def __init__(self, fn: Callable[..., Any], nondiff_argnums: Iterable[int] = ()) -> None:
        super().__init__(fn, nondiff_argnums)
        self.rule: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defjvp(self, rule: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule; return it, so that this can be used as a decorator."""
        self.rule, self.symbolic_zeros = rule, symbolic_zeros
        return rule

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Set a rule for each argument, rule(t, result, *primals); None where there is none."""

        def combined(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            out = self(*primals)
            parts = [
                rule(t, out, *primals)
                for rule, t in zip(rules, tangents, strict=True)
                if rule is not None and t is not None
            ]
            return out, sum(parts[1:], start=parts[0]) if parts else None

        self.defjvp(combined, symbolic_zeros=True)

    def _require_rule(self) -> None:
        if self.rule is None:
            raise GradientError(f"{self.name}: no derivative is defined yet; call defjvp(rule)")


class _JvpCall(RuleCall):
    """One call of a custom_jvp function: how its flat leaves map to trees."""

    def forward(self, leaves: Sequence[Any]) -> list[Any]:
        """Run the function; return the leaves of its result."""
        outputs, self.result = flatten(self.owner.fn(*self.arguments.complete(leaves)))
        return outputs

    def tangents(self, primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Run the rule; return the tangents of the result's leaves, None for zero."""
        pairs = zip(primals, tangents, strict=True)
        given = [self._tangent(x, t) for x, t in pairs]
        structure = self.arguments.structure
        trees = [tuple(structure.unflatten(leaves)) for leaves in (primals, given)]
        found = self.owner.rule(*self.arguments.in_front(), *trees)
        _, tangent = as_pair(found, f"{self.owner.name}: the rule", "result, tangent")
        if tangent is None:
            return [None] * self.result.count
        try:
            return self.result.flatten_like(tangent, "the tangent")
        except TreeMismatchError as error:
            raise GradientError(f"{self.owner.name}: from the rule, {error}") from None

    def _tangent(self, x: Any, t: Any) -> Any:
        if t is not None or self.owner.symbolic_zeros or not differentiable(x):
            return t
        return zeros_for(x)


class _JvpFunction(Function):
    """Runs the rule of a custom_jvp function on flat leaves."""

    @staticmethod
    def forward(ctx: Any, rule: _JvpCall, *leaves: Any) -> tuple[Any, ...]:
        """Run the function, and save its arguments."""
        ctx.rule = rule
        save_values(ctx, leaves)
        return tuple(rule.forward(leaves))

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> tuple[Any, ...]:
        """Run the rule."""
        return tuple(ctx.rule.tangents(saved_values(ctx), tangents))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        """Transpose the rule, which is linear in the tangents."""
        primals = saved_values(ctx)
        moved = [i for i, x in enumerate(primals) if differentiable(x)]

        def pushed(tangents: list[Any]) -> list[Any]:
            given: list[Any] = [None] * len(primals)
            for i, t in zip(moved, tangents, strict=True):
                given[i] = t
            return list(ctx.rule.tangents(primals, given))

        outs, pull, _ = pull_back_of(pushed, [zeros_for(primals[i]) for i in moved])
        gs = [g if differentiable(t) else None for g, t in zip(grads, outs, strict=True)]
        found: list[Any] = [None] * len(primals)
        for i, g in zip(moved, pull(gs), strict=True):
            found[i] = g
        return (None, *found)


custom_jvp._call, custom_jvp._function = _JvpCall, _JvpFunction
