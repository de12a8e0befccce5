"""Arguments that PyTorch takes by its names, and such as say nothing here, or say it twice."""

from __future__ import annotations

from typing import Any

# How a step is computed, which the compiler decides here.
UNUSED = frozenset(("foreach", "fused", "capturable", "differentiable", "_stacklevel"))


def reduction_of(size_average: Any, reduce: Any) -> str:
    """Return what the old arguments of losses mean."""
    average = True if size_average is None else size_average
    if reduce is False:
        return "none"
    return "mean" if average else "sum"


def by_name(
    order: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return arguments by PyTorch's names, without those that say nothing."""
    if len(args) > len(order):
        raise TypeError(f"expected at most {len(order)} arguments, got {len(args)}")
    named = {**dict(zip(order, args, strict=False)), **kwargs}
    average, reduce = named.pop("size_average", None), named.pop("reduce", None)
    if average is not None or reduce is not None:
        named["reduction"] = reduction_of(average, reduce)
    return {name: value for name, value in named.items() if name not in UNUSED}


def by_place(
    operands: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Return arguments by place; operands that are given by PyTorch's names are taken out."""
    for operand in operands[len(args) :]:
        if operand not in kwargs:
            break
        args = (*args, kwargs.pop(operand))
    return args
