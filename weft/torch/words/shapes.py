"""What PyTorch says of shapes that do not fit together."""

from __future__ import annotations

from typing import Any

from ...core.errors import AxisError, DTypeError, ShapeError
from ..sentences import unequal_sizes
from .refused import Refused, Rule, sizes


def concat(refused: Refused) -> Exception | None:
    """Say it of tensors that are put together."""
    if refused.is_a(AxisError):
        return None
    first, *others = refused["tensors"]
    axis = range(first.ndim)[refused["axis"]]
    for number, x in enumerate(others, 1):
        if x.ndim != first.ndim:
            return RuntimeError(
                f"Tensors must have same number of dimensions: got {first.ndim} and {x.ndim}"
            )
        for d in range(x.ndim):
            if d != axis and x.shape[d] != first.shape[d]:
                return RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size "
                    f"{first.shape[d]} but got size {x.shape[d]} for tensor number {number} in "
                    "the list."
                )
    return None


def stack(refused: Refused) -> Exception | None:
    """Say it of tensors that are put beside each other."""
    if refused.is_a(AxisError):
        return None
    first, *others = refused["tensors"]
    number, other = next(
        (i, x) for i, x in enumerate(others, 1) if tuple(x.shape) != tuple(first.shape)
    )
    return RuntimeError(
        f"stack expects each tensor to be equal size, but got {sizes(first)} at entry 0 and "
        f"{sizes(other)} at entry {number}"
    )


def roll(refused: Refused) -> Exception | None:
    """Say it of shifts and dimensions."""
    if "ndim" in refused.facts:
        return None
    shifts, dims = (_count(refused[name]) for name in ("shifts", "axis"))
    return RuntimeError(f"shifts and dimensions must align. shifts: {shifts}, dims:{dims}")


def _count(given: Any) -> int:
    return len(given) if isinstance(given, (tuple, list)) else int(given is not None)


def triangle(refused: Refused) -> Exception | None:
    """Say it of what is no matrix."""
    if not refused.is_a(ShapeError):
        return None
    return RuntimeError(f"{refused.function}: input tensor must have at least 2 dimensions")


def diag(refused: Refused) -> Exception | None:
    """Say it of what is neither a vector nor a matrix."""
    return RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {refused['x'].ndim}D")


def masked_select(refused: Refused) -> Exception | None:
    """Say it of a mask: PyTorch names it first."""
    if "shapes" in refused.facts:
        return unequal_sizes((refused["mask"].shape, refused["x"].shape))
    return None


def masked_fill(refused: Refused) -> Exception | None:
    """Say it of a mask."""
    mask = refused["mask"]
    if refused.is_a(DTypeError):
        return RuntimeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype "
            f"{_C_NAMES.get(mask.dtype.name, mask.dtype.name)}"
        )
    return masked_select(refused)


_C_NAMES = {"float32": "float", "float64": "double", "int64": "long int", "int32": "int"}


def unflatten(refused: Refused) -> Exception | None:
    """Say it of sizes that a dimension is taken apart into."""
    if refused.is_a(AxisError):
        return None
    x, dim, wanted = refused["x"], refused["dim"], refused["sizes"]
    axis = range(x.ndim)[dim]
    return RuntimeError(
        f"unflatten: Provided sizes {list(wanted)} don't multiply up to the size of dim {axis} "
        f"({x.shape[axis]}) in the input tensor"
    )


def unfold(refused: Refused) -> Exception | None:
    """Say it of windows."""
    if refused.is_a(AxisError):
        return None
    x, dim = refused["x"], range(refused["x"].ndim)[refused["dimension"]]
    return RuntimeError(
        f"maximum size for tensor at dimension {dim} is {x.shape[dim]} but size is "
        f"{refused['size']}"
    )


RULES: dict[str, Rule] = {
    "concat": concat,
    "stack": stack,
    "roll": roll,
    "tril": triangle,
    "triu": triangle,
    "diag": diag,
    "masked_select": masked_select,
    "masked_fill": masked_fill,
    "unflatten": unflatten,
    "windows": unfold,
    "sliding_windows": unfold,
}
