"""Which transform leads from all reals to a constrained region.

`biject_to(constraint)` gives one that can be undone; `transform_to(constraint)` one that is as
simple as possible, to optimise an unconstrained parameter behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.op import F
from . import constraints as c
from .number_transforms import AffineTransform, ExpTransform, SigmoidTransform
from .transforms import (
    ComposeTransform,
    IndependentTransform,
    Transform,
    identity_transform,
)
from .vector_transforms import (
    CatTransform,
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
)

Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """Transforms by the class of a constraint.

    >>> from weft.distributions import biject_to, constraints
    >>> biject_to(constraints.positive)
    ExpTransform()
    """

    def __init__(self) -> None:
        self._factories: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Declare the transform of a class of constraints, or of an instance's class."""
        kind = constraint if isinstance(constraint, type) else type(constraint)
        if not issubclass(kind, c.Constraint):
            raise TypeError(f"register: expected a Constraint. Received: {constraint!r}")
        if factory is None:
            return lambda made: self.register(kind, made)
        self._factories[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Transform:
        """Return the transform to a constraint."""
        factory = self._factories.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"no transform to {constraint!r} is known; register one")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _above(constraint: Any) -> Transform:
    if isinstance(constraint.lower_bound, (int, float)) and constraint.lower_bound == 0:
        return ExpTransform()
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.lower_bound, 1.0)])


def _below(constraint: Any) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.upper_bound, -1.0)])


def _between(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, F.subtract(high, low))])


def _register_both(constraint: Any, factory: Factory) -> None:
    biject_to.register(constraint, factory)
    transform_to.register(constraint, factory)


def _register_all() -> None:
    _register_both(c.real, lambda _: identity_transform)
    for above in (c.greater_than, c.greater_than_eq):
        _register_both(above, _above)
    _register_both(c.less_than, _below)
    for between in (c.interval, c.half_open_interval):
        _register_both(between, _between)
    biject_to.register(c.simplex, lambda _: StickBreakingTransform())
    transform_to.register(c.simplex, lambda _: SoftmaxTransform())
    _register_both(c.lower_cholesky, lambda _: LowerCholeskyTransform())
    _register_both(c.positive_definite, lambda _: PositiveDefiniteTransform())
    _register_both(c.positive_semidefinite, lambda _: PositiveDefiniteTransform())
    _register_both(c.corr_cholesky, lambda _: CorrCholeskyTransform())
    for registry in (biject_to, transform_to):
        _register_nested(registry)


def _register_nested(registry: ConstraintRegistry) -> None:
    registry.register(
        c.independent,
        lambda k: IndependentTransform(registry(k.base_constraint), k.reinterpreted_batch_ndims),
    )
    registry.register(
        c.cat, lambda k: CatTransform([registry(p) for p in k.cseq], k.dim, k.lengths)
    )
    registry.register(c.stack, lambda k: StackTransform([registry(p) for p in k.cseq], k.dim))


_register_all()
