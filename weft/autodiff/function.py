"""Functions with a derivative of the user's own: the class `Function`, and `custom_vjp`.

A call is recorded as one node of the tape. Forward runs unrecorded; backward is plain Python, so
print and pdb work in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import update_wrapper
from inspect import signature
from typing import Any, ClassVar

from ..core.errors import ArgumentError, ArgumentTypeError, GradientError
from ..core.modes import current_interpreter, is_grad_enabled
from ..core.tensor import Tensor
from ..core.tree import Structure, TreeMismatchError, flatten
from .calls import Call, FunctionOp


class Function:
    """A differentiable function with hand-written forward and backward.

    Subclass it with two static methods and call `apply`. `forward(ctx, *args, **kwargs)` computes
    on tensors without being recorded; `backward(ctx, *grads)` receives one gradient per output
    (zeros where nothing depends on it) and returns one per positional argument of forward, None
    where there is none. If backward is written in Weft operations, higher derivatives and forward
    mode follow. A static method `jvp(ctx, *tangents)`, if there is one, serves forward mode: it
    receives one tangent per positional argument (None for zero) and returns one per output.

    >>> import weft as wf
    >>> class Square(wf.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * g
    >>> x = wf.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor(6.)
    """

    _op: ClassVar[FunctionOp]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._op = FunctionOp(cls)

    def __init__(self) -> None:
        raise ArgumentTypeError(
            f"{type(self).__name__} is not instantiated; call {type(self).__name__}.apply(...)"
        )

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; keep in `ctx` what backward needs."""
        raise NotImplementedError("a Function needs a static method forward(ctx, *args)")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return the gradient of each positional argument of forward."""
        raise NotImplementedError("a Function needs a static method backward(ctx, *grads)")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and record it for differentiation."""
        call = Call(cls, args, kwargs)
        tensors = tuple(x for x in args if isinstance(x, Tensor))
        interpreter = current_interpreter()
        if interpreter is None:
            result = cls._op.execute(tensors, (call,))
        else:
            result = interpreter.apply(cls._op, tensors, (call,))
        return call.arrange(result if isinstance(result, tuple) else (result,))


# -- JAX's form -----------------------------------------------------------------------------------


class custom_vjp:  # noqa: N801  (used as a decorator, as in JAX)
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
        if not callable(fn):
            raise ArgumentTypeError(f"custom_vjp expects a function. Received: {fn!r:.60}")
        update_wrapper(self, fn)
        self.fn = fn
        self.name = getattr(fn, "__name__", "custom_vjp")
        self.nondiff_argnums = frozenset(nondiff_argnums)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the forward function that returns residuals, and the backward function."""
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; its own rule stands for its derivative."""
        if self.fwd is None or self.bwd is None:
            raise GradientError(f"{self.name}: no derivative is defined yet; call defvjp(fwd, bwd)")
        if kwargs:
            args = positional(self.fn, self.name, args, kwargs)
        chosen = [a for i, a in enumerate(args) if i not in self.nondiff_argnums]
        leaves, structure = flatten(chosen)
        if current_interpreter() is None and not is_recorded(leaves):
            return self.fn(*args)
        fixed = {i: a for i, a in enumerate(args) if i in self.nondiff_argnums}
        rule = _Rule(self, fixed, len(args), structure)
        outputs = _RuleFunction.apply(rule, *leaves)
        return rule.result.unflatten(outputs)


def positional(
    fn: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Return the arguments of a call by position, which derivative rules refer to."""
    bound = signature(fn).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise ArgumentError(
            f"{name}: keyword-only arguments have no place in a derivative rule. "
            f"Received: {sorted(bound.kwargs)}"
        )
    return bound.args


def is_recorded(leaves: list[Any]) -> bool:
    """Tell whether the tape records operations on some of these values."""
    return is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in leaves)


class _Rule:
    """One call of a custom_vjp function: how its flat leaves map to trees."""

    def __init__(
        self, owner: custom_vjp, fixed: dict[int, Any], count: int, structure: Structure
    ) -> None:
        self.owner = owner
        self.fixed = fixed
        self.count = count
        self.structure = structure
        self.result: Structure
        self.residuals: Structure

    def forward(self, leaves: Iterable[Any]) -> tuple[list[Any], list[Any]]:
        """Run fwd; return the leaves of the result and of the residuals."""
        given = iter(self.structure.unflatten(leaves))
        args = [self.fixed[i] if i in self.fixed else next(given) for i in range(self.count)]
        pair = self.owner.fwd(*args)  # type: ignore[misc]  # checked by the caller
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise GradientError(
                f"{self.owner.name}: fwd must return a pair (result, residuals). "
                f"Received: {type(pair).__name__}"
            )
        outputs, self.result = flatten(pair[0])
        residuals, self.residuals = flatten(pair[1])
        return outputs, residuals

    def backward(self, residuals: Iterable[Any], grads: Iterable[Any]) -> list[Any]:
        """Run bwd; return the gradients of the argument leaves."""
        fixed = [self.fixed[i] for i in sorted(self.fixed)]
        g = self.result.unflatten(grads)
        found = self.owner.bwd(*fixed, self.residuals.unflatten(residuals), g)  # type: ignore[misc]  # checked by the caller
        expected = self.count - len(self.fixed)
        if not isinstance(found, (tuple, list)) or len(found) != expected:
            received = len(found) if isinstance(found, (tuple, list)) else type(found).__name__
            raise GradientError(
                f"{self.owner.name}: bwd must return a tuple of {expected} gradient(s), one per "
                f"differentiable argument. Received: {received}"
            )
        return self._flat(found)

    def _flat(self, found: Iterable[Any]) -> list[Any]:
        leaves: list[Any] = []
        for i, (part, g) in enumerate(zip(self.structure.children, found, strict=True)):
            if g is None:
                leaves += [None] * part.count
                continue
            try:
                leaves += part.flatten_like(g, f"gradient {i}")
            except TreeMismatchError as error:
                raise GradientError(f"{self.owner.name}: from bwd, {error}") from None
        return leaves


class _RuleFunction(Function):
    """Runs the rule of a custom_vjp function on flat leaves."""

    @staticmethod
    def forward(ctx: Any, rule: _Rule, *leaves: Any) -> tuple[Any, ...]:
        """Run fwd and save the residuals: tensors by their place, other values as they are."""
        outputs, residuals = rule.forward(leaves)
        ctx.rule = rule
        ctx.save_for_backward(*(x if isinstance(x, Tensor) else None for x in residuals))
        ctx.others = [None if isinstance(x, Tensor) else x for x in residuals]
        ctx.tensors = [isinstance(x, Tensor) for x in leaves]
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        """Run bwd on the residuals."""
        pairs = zip(ctx.saved_tensors, ctx.others, strict=True)
        found = ctx.rule.backward([x if t is None else t for t, x in pairs], grads)
        # A number among the arguments has no gradient to keep, whatever bwd returns for it.
        kept = (g if wanted else None for g, wanted in zip(found, ctx.tensors, strict=True))
        return (None, *kept)
