"""Constraints: which values a parameter or a sample may take.

A constraint tells for each value whether it holds: `check(value)` has the shape of value without
the last `event_dim` axes. Those of two arguments are classes to be called, others are instances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.op import F
from ._shared import as_tensor


class Constraint:
    """A region of values.

    is_discrete   whether it is one of whole numbers
    event_dim     how many last axes make one value
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Any) -> Any:
        """Return whether each value lies in the region."""
        raise NotImplementedError(f"{self!r} says nothing of values")

    def __repr__(self) -> str:
        return type(self).__name__.strip("_").lower()


class _Dependent(Constraint):
    """A region that depends on other variables; it cannot be checked alone."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: bool = False, event_dim: int = 0) -> _Dependent:
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value: Any) -> Any:
        raise ValueError("a dependent constraint cannot be checked")


def is_dependent(constraint: Any) -> bool:
    """Tell whether a constraint depends on other variables."""
    return isinstance(constraint, _Dependent)


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        one = F.sum(value, -1) == 1
        return F.all((value == 0) | (value == 1), -1) & one


class _Real(Constraint):
    def check(self, value: Any) -> Any:
        return value == value  # noqa: PLR0124  (not NaN)


class _GreaterThan(Constraint):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Any) -> Any:
        return value > self.lower_bound

    def __repr__(self) -> str:
        return f"greater_than({self.lower_bound})"


class _GreaterThanEq(Constraint):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Any) -> Any:
        return value >= self.lower_bound

    def __repr__(self) -> str:
        return f"greater_than_eq({self.lower_bound})"


class _LessThan(Constraint):
    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Any:
        return value < self.upper_bound

    def __repr__(self) -> str:
        return f"less_than({self.upper_bound})"


class _Interval(Constraint):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Any) -> Any:
        return (value >= self.lower_bound) & (value <= self.upper_bound)

    def __repr__(self) -> str:
        return f"{type(self).__name__.strip('_').lower()}({self.lower_bound}, {self.upper_bound})"


class _HalfOpenInterval(_Interval):
    def check(self, value: Any) -> Any:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return super().check(value) & _is_whole(value)


class _IntegerGreaterThan(_GreaterThanEq):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return super().check(value) & _is_whole(value)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Any) -> Any:
        return F.all(value >= 0, -1) & (F.abs(F.sum(value, -1) - 1) < 1e-6)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Any:
        return F.all((value >= 0) & _is_whole(value), -1) & (F.sum(value, -1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return F.all(F.tril(value) == value, (-2, -1))


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Any) -> Any:
        return super().check(value) & F.all(F.diagonal(value, 0, -2, -1) > 0, -1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Any) -> Any:
        norms = F.sqrt(F.sum(value * value, -1))
        tolerance = 10 * value.shape[-1] * 1.2e-7
        return super().check(value) & F.all(F.abs(norms - 1) <= tolerance, -1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        square = value.shape[-1] == value.shape[-2]
        return F.full_like(F.sum(value, (-2, -1)), float(square)) == 1


class _Symmetric(_Square):
    def check(self, value: Any) -> Any:
        if value.shape[-1] != value.shape[-2]:
            return super().check(value)
        turned = F.swapaxes(value, -1, -2)
        return F.all(F.abs(value - turned) <= 1e-6 * (1 + F.abs(value)), (-2, -1))


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        return symmetric & F.all(F.eigvalsh(value) >= 0, -1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        return symmetric & (F.cholesky_info(value) == 0)


class _Independent(Constraint):
    """A constraint that holds where another holds along so many more of the last axes."""

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        held = self.base_constraint.check(value)
        count = self.reinterpreted_batch_ndims
        return F.all(held, tuple(range(held.ndim - count, held.ndim))) if count else held

    def __repr__(self) -> str:
        return f"independent({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Cat(Constraint):
    """Constraints on successive parts of an axis."""

    def __init__(self, cseq: Sequence[Any], dim: int = 0, lengths: Any = None) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = list(lengths) if lengths is not None else [1] * len(self.cseq)
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        self.event_dim = max(c.event_dim for c in self.cseq)

    def check(self, value: Any) -> Any:
        parts = F.split(value, self.lengths, self.dim)
        checks = [c.check(part) for c, part in zip(self.cseq, parts, strict=True)]
        return F.concat(checks, self.dim)


class _Stack(Constraint):
    """Constraints on the places of an axis."""

    def __init__(self, cseq: Sequence[Any], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        self.event_dim = max(c.event_dim for c in self.cseq)

    def check(self, value: Any) -> Any:
        places = F.unstack(value, axis=self.dim)
        checks = [c.check(part) for c, part in zip(self.cseq, places, strict=True)]
        return F.stack(checks, self.dim)


def _is_whole(value: Any) -> Any:
    value = as_tensor(value)
    return F.floor(value) == value if value.dtype.kind == "f" else value == value  # noqa: PLR0124


dependent = _Dependent()
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = _Independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
interval = _Interval
half_open_interval = _HalfOpenInterval
unit_interval = _Interval(0.0, 1.0)
simplex = _Simplex()
multinomial = _Multinomial
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
independent = _Independent
cat = _Cat
stack = _Stack
