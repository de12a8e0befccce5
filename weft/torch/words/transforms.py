"""What PyTorch says of functions that are differentiated or mapped, and of distributions."""

from __future__ import annotations

from typing import Any

from ...core.errors import AxisError
from ..adoption import adopt
from .refused import Refused, Rule


def grad(refused: Refused) -> Exception | None:
    """Say it of a result that is no single number."""
    result: Any = refused.facts["result"]
    return RuntimeError(
        "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
        f"{result.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
    )


def vmap(refused: Refused) -> Exception | None:
    """Say it of the sizes of batches."""
    facts = refused.facts
    if "sizes" in facts:
        return ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{facts['sizes']} for the mapped dimension"
        )
    if refused.is_a(AxisError):
        name = getattr(refused["func"], "__name__", repr(refused["func"]))
        axis, ndim = facts["axis"], facts["ndim"]
        return ValueError(
            f"vmap({name}, in_dims={refused['in_dims']}, ...)(<inputs>): Got in_dim={axis} for "
            f"some input, but that input is a Tensor of dimensionality {ndim} so expected in_dim "
            f"to satisfy -{ndim} <= in_dim < {ndim}."
        )
    return None


def distribution(refused: Refused) -> Exception | None:
    """Say it of a parameter of a distribution."""
    name, value = refused.facts["name"], refused.facts["value"]
    return ValueError(
        f"Expected parameter {name} (Tensor of shape {tuple(value.shape)}) of distribution "
        f"{refused['self']!r} to satisfy the constraint {_shown(refused.facts['constraint'])}, "
        f"but found invalid values:\n{adopt(value)}"
    )


def outside(refused: Refused) -> Exception | None:
    """Say it of a value that a distribution never gives."""
    value = adopt(refused.facts["value"])
    return ValueError(
        f"Expected value argument (Tensor of shape {tuple(value.shape)}) to be within the support "
        f"({_shown(refused.facts['support'])}) of the distribution {refused['self']!r}, but found "
        f"invalid values:\n{value}"
    )


def _shown(constraint: Any) -> str:
    """Return a constraint as PyTorch shows it: its class, with its bounds."""
    bounds = [n for n in ("lower_bound", "upper_bound") if hasattr(constraint, n)]
    if type(constraint).__name__.strip("_").lower() != repr(constraint) and not bounds:
        return repr(constraint)
    given = ", ".join(f"{name}={getattr(constraint, name)}" for name in bounds)
    return f"{type(constraint).__name__.strip('_')}({given})"


RULES: dict[str, Rule] = {
    "func.grad": grad,
    "func.vmap": vmap,
    "Distribution.__init__": distribution,
    "Distribution.log_prob": outside,
    "Distribution.cdf": outside,
}
