"""`custom_jvp`: give a function a derivative rule in forward mode; reverse mode transposes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import update_wrapper
from typing import Any

from ..core.errors import ArgumentTypeError, GradientError
from ..core.modes import current_interpreter
from ..core.tensor import Tensor
from ..core.tree import Structure, TreeMismatchError, flatten
from .function import Function, is_recorded, positional
from .pullback import differentiable, pull_back_of, zeros_for


class custom_jvp:  # noqa: N801  (used as a decorator, as in JAX)
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
        if not callable(fn):
            raise ArgumentTypeError(f"custom_jvp expects a function. Received: {fn!r:.60}")
        update_wrapper(self, fn)
        self.fn = fn
        self.name = getattr(fn, "__name__", "custom_jvp")
        self.nondiff_argnums = frozenset(nondiff_argnums)
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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; its own rule stands for its derivative."""
        if self.rule is None:
            raise GradientError(f"{self.name}: no derivative is defined yet; call defjvp(rule)")
        if kwargs:
            args = positional(self.fn, self.name, args, kwargs)
        fixed = {i: a for i, a in enumerate(args) if i in self.nondiff_argnums}
        leaves, structure = flatten([a for i, a in enumerate(args) if i not in fixed])
        if current_interpreter() is None and not is_recorded(leaves):
            return self.fn(*args)
        call = _Rule(self, fixed, len(args), structure)
        outputs = _RuleFunction.apply(call, *leaves)
        return call.result.unflatten(outputs)


class _Rule:
    """One call of a custom_jvp function: how its flat leaves map to trees."""

    def __init__(
        self, owner: custom_jvp, fixed: dict[int, Any], count: int, structure: Structure
    ) -> None:
        self.owner = owner
        self.fixed = fixed
        self.count = count
        self.structure = structure
        self.result: Structure

    def forward(self, leaves: Sequence[Any]) -> list[Any]:
        """Run the function; return the leaves of its result."""
        given = iter(self.structure.unflatten(leaves))
        args = [self.fixed[i] if i in self.fixed else next(given) for i in range(self.count)]
        outputs, self.result = flatten(self.owner.fn(*args))
        return outputs

    def tangents(self, primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Run the rule; return the tangents of the result's leaves, None for zero."""
        pairs = zip(primals, tangents, strict=True)
        given = [self._tangent(x, t) for x, t in pairs]
        fixed = [self.fixed[i] for i in sorted(self.fixed)]
        trees = [tuple(self.structure.unflatten(leaves)) for leaves in (primals, given)]
        pair = self.owner.rule(*fixed, *trees)  # type: ignore[misc]  # checked by the caller
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise GradientError(
                f"{self.owner.name}: the rule must return a pair (result, tangent). "
                f"Received: {type(pair).__name__}"
            )
        if pair[1] is None:
            return [None] * self.result.count
        try:
            return self.result.flatten_like(pair[1], "the tangent")
        except TreeMismatchError as error:
            raise GradientError(f"{self.owner.name}: from the rule, {error}") from None

    def _tangent(self, x: Any, t: Any) -> Any:
        if t is not None or self.owner.symbolic_zeros or not differentiable(x):
            return t
        return zeros_for(x)


class _RuleFunction(Function):
    """Runs the rule of a custom_jvp function on flat leaves."""

    @staticmethod
    def forward(ctx: Any, rule: _Rule, *leaves: Any) -> tuple[Any, ...]:
        """Run the function, and save its arguments."""
        ctx.rule = rule
        ctx.save_for_backward(*(x if isinstance(x, Tensor) else None for x in leaves))
        ctx.others = [None if isinstance(x, Tensor) else x for x in leaves]
        return tuple(rule.forward(leaves))

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> tuple[Any, ...]:
        """Run the rule."""
        return tuple(ctx.rule.tangents(_primals(ctx), tangents))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        """Transpose the rule, which is linear in the tangents."""
        primals = _primals(ctx)
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


def _primals(ctx: Any) -> list[Any]:
    pairs = zip(ctx.saved_tensors, ctx.others, strict=True)
    return [x if t is None else t for t, x in pairs]
