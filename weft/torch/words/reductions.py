"""What PyTorch says of reductions, orders and counts."""

from __future__ import annotations

from ...core.errors import ArgumentError, AxisError, DTypeError, IndexOutOfRange, ShapeError
from .refused import Refused, Rule, kind_of


def extremum(refused: Refused) -> Exception | None:
    """Say it of the extremum of nothing."""
    if not refused.is_a(ShapeError) or refused.facts:
        return None
    name, axis = refused.function, refused["axis"]
    x = refused["x"]
    if axis is None or (isinstance(axis, tuple) and len(axis) == x.ndim and name[0] != "a"):
        return RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify "
            "the reduction dim with the 'dim' argument."
        )
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    empty = next(range(x.ndim)[a] for a in axes if x.shape[a] == 0)
    return IndexError(f"{name}(): Expected reduction dim {empty} to have non-zero size.")


def topk(refused: Refused) -> Exception | None:
    """Say it of more elements than there are."""
    return None if refused.is_a(AxisError) else RuntimeError("selected index k out of range")


def kthvalue(refused: Refused) -> Exception | None:
    """Say it of a place in an order."""
    if refused.is_a(AxisError):
        return None
    axis = range(refused["x"].ndim)[-1 if refused["axis"] is None else refused["axis"]]
    return RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")


def quantile(refused: Refused) -> Exception | None:
    """Say it of a level."""
    if not refused.is_a(ArgumentError):
        return None
    return RuntimeError(f"quantile() q must be in the range [0, 1] but got {refused['q']}")


def bincount(refused: Refused) -> Exception | None:
    """Say it of what cannot be counted."""
    x = refused["x"]
    if refused.is_a(DTypeError):
        return NotImplementedError(f"\"bincount_cpu\" not implemented for '{kind_of(x)}'")
    if refused.is_a(IndexOutOfRange, ShapeError):
        return RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    return None


def multinomial(refused: Refused) -> Exception | None:
    """Say it of weights, and of how many are drawn."""
    facts = refused.facts
    if "wanted" in facts:
        if facts["wanted"] <= facts["categories"]:
            return None  # PyTorch draws what has no weight
        return RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if refused.is_a(ArgumentError):
        return RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    return None


RULES: dict[str, Rule] = {
    **dict.fromkeys(("max", "min", "amax", "amin", "argmax", "argmin"), extremum),
    "topk": topk,
    "kthvalue": kthvalue,
    "quantile": quantile,
    "bincount": bincount,
    "categorical": multinomial,
    "random_categorical": multinomial,
    "multinomial": multinomial,
}
