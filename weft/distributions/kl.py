"""The Kullback-Leibler divergence of two distributions, by a table of formulas for pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .distribution import Distribution

FormulaT = TypeVar("FormulaT", bound=Callable[..., Any])
_FORMULAS: dict[tuple[type, type], Callable[..., Any]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[FormulaT], FormulaT]:
    """Declare a function as the divergence of q from p for two classes and their subclasses.

    >>> from weft.distributions import Normal, register_kl
    >>> class Mine(Normal):
    ...     pass
    >>> @register_kl(Mine, Normal)
    ... def _(p, q):
    ...     return (p.loc - q.loc) ** 2
    """
    for kind in (type_p, type_q):
        if not issubclass(kind, Distribution):
            raise TypeError(f"register_kl: expected classes of distributions. Received: {kind!r}")

    def declare(formula: FormulaT) -> FormulaT:
        _FORMULAS[type_p, type_q] = formula
        return formula

    return declare


def kl_divergence(p: Any, q: Any) -> Any:
    """Return the expectation, over draws of p, of log p - log q.

    >>> import weft as wf
    >>> from weft.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5)
    """
    formula = _formula_for(type(p), type(q))
    if formula is None:
        raise NotImplementedError(
            f"no formula for the divergence of {type(q).__name__} from {type(p).__name__} is "
            "known; declare one with register_kl"
        )
    return formula(p, q)


def _formula_for(type_p: type, type_q: type) -> Callable[..., Any] | None:
    """Return the formula of the nearest classes: first by p, then by q."""
    for above_p in type_p.__mro__:
        for above_q in type_q.__mro__:
            found = _FORMULAS.get((above_p, above_q))
            if found is not None:
                return found
    return None
