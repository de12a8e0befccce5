"""Gradient transforms: pure (init, update) pairs that are chained into optimizers.

A transform turns gradients into updates; adding the updates to the parameters is the step:

    rule = chain(add_decayed_weights(1e-4), scale_by_adam(), scale(-1e-3))
    states = rule.init(params)
    updates, changed = rule.update(grads, states, params)
    params = apply_updates(params, updates)
    states = merge(states, changed)

Everything goes over lists of values, one state (a dictionary of named slots) per parameter. Rules
use Python operators and the namespace `F` only, so the same rule runs on raw arrays (a step of an
optimizer), on tensors (a differentiable step) and on symbols (a step as part of a graph). Nothing
is written in place: `update` returns the slots that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.op import F

Value = Any  # an array, a tensor or a symbol: an annotation of one kind would be wrong for others
State = dict[str, Any]
InitOne = Callable[[Value], State]
UpdateOne = Callable[[Value, State, Value], tuple[Value, State]]


MOVES_ALL = "its rule changes rows that have no gradient"


class GradientTransform(NamedTuple):
    """A pair (init, update) over lists, and what a step may know of it.

    init         parameters -> one state for each
    update       gradients, states, parameters -> updates, and the changed slots of each state
    each         the same pair for a single parameter, if parameters do not depend on each other
    elementwise  whether elements do not depend on each other either
    slots        the names of the entries of a state
    whole        why a rule must see all rows of a parameter; None if it may be applied to those
                 rows alone that have a gradient, and leave the others and their states as they are
    """

    init: Callable[[Sequence[Value]], list[State]]
    update: Callable[
        [Sequence[Value], Sequence[State], Sequence[Value]], tuple[list[Value], list[State]]
    ]
    each: tuple[InitOne, UpdateOne] | None = None
    elementwise: bool = False
    slots: tuple[str, ...] = ()
    whole: str | None = MOVES_ALL


def per_value(
    init: InitOne,
    update: UpdateOne,
    *,
    elementwise: bool = True,
    slots: Sequence[str] = (),
    whole: str | None = MOVES_ALL,
) -> GradientTransform:
    """Return the transform that treats every parameter alike, given the rule for one."""

    def init_all(params: Sequence[Value]) -> list[State]:
        return [init(p) for p in params]

    def update_all(
        grads: Sequence[Value], states: Sequence[State], params: Sequence[Value]
    ) -> tuple[list[Value], list[State]]:
        pairs = [update(g, s, p) for g, s, p in zip(grads, states, params, strict=True)]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    each = init, update
    return GradientTransform(init_all, update_all, each, elementwise, tuple(slots), whole)


def stateless(
    update: Callable[[Value, Value], Value],
    *,
    elementwise: bool = True,
    whole: str | None = MOVES_ALL,
) -> GradientTransform:
    """Return a transform from a function of a gradient and its parameter."""
    return per_value(
        _no_state, lambda g, s, p: (update(g, p), {}), elementwise=elementwise, whole=whole
    )


def apply_updates(params: Sequence[Value], updates: Sequence[Value]) -> list[Value]:
    """Return the parameters with the updates added."""
    return [p + u for p, u in zip(params, updates, strict=True)]


def merge(states: Sequence[State], changed: Sequence[State]) -> list[State]:
    """Return the states with the changed slots replaced."""
    return [{**old, **new} for old, new in zip(states, changed, strict=True)]


# -- combining -------------------------------------------------------------------------------------


def chain(*transforms: GradientTransform) -> GradientTransform:
    """Return the transform that applies the given ones in order.

    A slot name that several of them use gets a number from the second on: `step`, `step_1`.

    >>> import numpy as np
    >>> rule = chain(trace(0.9), scale(-0.1))
    >>> updates, states = rule.update([np.ones(2)], rule.init([np.zeros(2)]), [np.zeros(2)])
    >>> updates
    [array([-0.1, -0.1])]
    """
    for transform in transforms:
        if not isinstance(transform, GradientTransform):
            raise ArgumentTypeError(
                f"chain takes transforms. Received: {type(transform).__name__}; did you forget to "
                "call it, as in chain(scale_by_adam(), ...)?"
            )
    parts = _distinct_slots([t for t in transforms if t is not IDENTITY])
    if len(parts) == 1:
        return parts[0]
    slots = tuple(name for part in parts for name in part.slots)
    whole = next((part.whole for part in parts if part.whole is not None), None)
    pairs = [part.each for part in parts if part.each is not None]
    if len(pairs) == len(parts):
        elementwise = all(part.elementwise for part in parts)
        return per_value(*_chain_each(pairs), elementwise=elementwise, slots=slots, whole=whole)
    return _chain_lists(parts, slots)._replace(whole=whole)


def _chain_each(pairs: Sequence[tuple[InitOne, UpdateOne]]) -> tuple[InitOne, UpdateOne]:
    inits, updates = [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    def init(p: Value) -> State:
        return {name: value for one in inits for name, value in one(p).items()}

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        changed: State = {}
        for one in updates:
            g, new = one(g, s, p)
            changed.update(new)
        return g, changed

    return init, update


def _chain_lists(parts: Sequence[GradientTransform], slots: tuple[str, ...]) -> GradientTransform:
    def init(params: Sequence[Value]) -> list[State]:
        states: list[State] = [{} for _ in params]
        for part in parts:
            states = merge(states, part.init(params))
        return states

    def update(
        grads: Sequence[Value], states: Sequence[State], params: Sequence[Value]
    ) -> tuple[list[Value], list[State]]:
        changed: list[State] = [{} for _ in params]
        for part in parts:
            grads, new = part.update(grads, states, params)
            changed = merge(changed, new)
        return list(grads), changed

    return GradientTransform(init, update, None, False, slots)


def _distinct_slots(transforms: Sequence[GradientTransform]) -> list[GradientTransform]:
    taken: set[str] = set()
    result = []
    for number, transform in enumerate(transforms):
        if not taken.isdisjoint(transform.slots):
            transform = _renamed(transform, {n: f"{n}_{number}" for n in transform.slots})  # noqa: PLW2901  (the renamed one takes its place)
        taken.update(transform.slots)
        result.append(transform)
    return result


def _renamed(transform: GradientTransform, public: dict[str, str]) -> GradientTransform:
    """Return the same transform with its slots kept under other names."""

    def outer(state: State) -> State:
        return {public[name]: value for name, value in state.items()}

    def inner(state: State) -> State:
        return {name: state[other] for name, other in public.items()}

    if transform.each is None:
        raise ArgumentError("chain: a transform over whole lists must have slot names of its own")
    init, update = transform.each

    def update_one(g: Value, s: State, p: Value) -> tuple[Value, State]:
        u, changed = update(g, inner(s), p)
        return u, outer(changed)

    return per_value(
        lambda p: outer(init(p)),
        update_one,
        elementwise=transform.elementwise,
        slots=tuple(public.values()),
        whole=transform.whole,
    )


# -- simple transforms -----------------------------------------------------------------------------


def identity() -> GradientTransform:
    """Return the transform that changes nothing."""
    return IDENTITY


def scale(factor: Value) -> GradientTransform:
    """Multiply by a factor; `scale(-lr)` at the end of a chain turns an update into a descent."""
    return IDENTITY if is_number(factor, 1) else stateless(lambda g, p: g * factor, whole=None)


def add_decayed_weights(rate: Value) -> GradientTransform:
    """Add `rate` times the parameter: L2 decay before, decoupled decay after the scaling."""
    if is_number(rate, 0):
        return IDENTITY
    return stateless(lambda g, p: g + p * rate, whole="weight decay shrinks all rows")


def add_decayed_signs(rate: Value) -> GradientTransform:
    """Add `rate` times the parameter's sign: L1 decay, the gradient of the sum of sizes."""
    if is_number(rate, 0):
        return IDENTITY
    return stateless(lambda g, p: g + F.sign(p) * rate, whole="weight decay shrinks all rows")


def scale_by_schedule(schedule: Callable[[Any], Any]) -> GradientTransform:
    """Multiply by a function of the number of updates made so far (0 at the first)."""

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        return g * schedule(s["step"]), {"step": s["step"] + 1}

    return per_value(lambda p: {"step": 0}, update, slots=("step",), whole=None)


def trace(momentum: Value, *, dampening: Value = 0.0, nesterov: bool = False) -> GradientTransform:
    """Accumulate a decaying sum of gradients: heavy-ball momentum (Polyak 1964) or Nesterov's.

    The first gradient enters undampened, as in PyTorch. Of rows without a gradient the sum stays as
    it is: it decays when they have one again.
    """

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        step = s["step"]
        weight = choose(step == 0, 1.0, 1.0 - dampening)
        entering = g if is_number(weight, 1) else g * weight
        buffer = s["momentum_buffer"] * momentum + entering
        changed = {"step": step + 1, "momentum_buffer": buffer}
        return (g + buffer * momentum if nesterov else buffer), changed

    return per_value(
        lambda p: {"step": 0, "momentum_buffer": F.zeros_like(p)},
        update,
        slots=("step", "momentum_buffer"),
        whole=None
        if is_number(dampening, 0)
        else "dampening spares the first gradient of all rows",
    )


def sign() -> GradientTransform:
    """Replace each element by its sign."""
    return stateless(lambda g, p: F.sign(g), whole=None)


def clip_by_value(limit: Value) -> GradientTransform:
    """Bound each element to [-limit, limit]."""
    return stateless(lambda g, p: F.maximum(F.minimum(g, limit), -limit), whole=None)


def clip_by_norm(max_norm: Value) -> GradientTransform:
    """Scale each parameter's gradient down to a 2-norm of at most `max_norm`."""
    return stateless(lambda g, p: g * _shrink(norm(g), max_norm), elementwise=False, whole=None)


def clip_by_global_norm(max_norm: Value) -> GradientTransform:
    """Scale all gradients together so that their joint 2-norm is at most `max_norm`."""

    def update(
        grads: Sequence[Value], states: Sequence[State], params: Sequence[Value]
    ) -> tuple[list[Value], list[State]]:
        if not grads:
            return [], []
        total = sum(F.sum(F.square(g)) for g in grads) ** 0.5
        factor = _shrink(total, max_norm)
        return [g * factor for g in grads], [{} for _ in grads]

    return GradientTransform(lambda params: [{} for _ in params], update, whole=None)


def centralize() -> GradientTransform:
    """Subtract from each gradient its mean over all axes but the first (Yong et al. 2020)."""

    def update(g: Value, p: Value) -> Value:
        if len(g.shape) < 2:
            return g
        return g - F.mean(g, axis=tuple(range(1, len(g.shape))), keepdims=True)

    return stateless(update, elementwise=False, whole=None)


# -- helpers for rules -----------------------------------------------------------------------------


def norm(x: Value) -> Value:
    """Return the 2-norm of all elements."""
    return F.sum(F.square(x)) ** 0.5


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """Return one of two values by a Python truth value, or by a tensor or symbol."""
    if condition is True or condition is False:
        return yes if condition else no
    return F.where(condition, yes, no)


def _shrink(length: Value, limit: Value) -> Value:
    """Return the factor that brings a length down to a limit, and leaves shorter ones alone."""
    # The small constant keeps the division defined for a zero gradient; PyTorch uses the same.
    return F.minimum(limit / (length + 1e-6), 1.0)


def is_number(value: Any, number: float) -> bool:
    """Tell whether a value is a certain number; one that each run reads anew is none."""
    return value.__class__ in (int, float) and bool(value == number)


def _no_state(p: Value) -> State:
    return {}


def _unchanged(g: Value, s: State, p: Value) -> tuple[Value, State]:
    return g, {}


IDENTITY = per_value(_no_state, _unchanged, whole=None)
