"""torch.FloatTensor and its like: classes of old that stand for a dtype."""

from __future__ import annotations

from typing import Any

from ..core import dtype as dt
from ..core import tensor as core
from .adoption import adopt
from .tensor import new_tensor_of
from .types import TYPE_NAMES


class _OldType(type):
    """A tensor of the dtype is an instance."""

    dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, core.Tensor) and instance.dtype == cls.dtype

    def __call__(cls, *args: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], core.Tensor):
            return adopt(args[0]).to(cls.dtype)
        if len(args) == 1 and not isinstance(args[0], int):
            return new_tensor_of(args[0], cls.dtype)
        from ..ops.creation import zeros  # noqa: PLC0415  (beside what needs it)

        return adopt(zeros(args or (0,), dtype=cls.dtype))


TYPES: dict[str, Any] = {
    f"{name}Tensor": _OldType(f"{name}Tensor", (), {"dtype": dtype, "__module__": "torch"})
    for dtype, name in TYPE_NAMES.items()
}


def set_default_tensor_type(t: Any) -> None:
    """Set the dtype that Python floats become, by the name of a class of old."""
    name = t if isinstance(t, str) else t.__name__
    kind = TYPES.get(name.rpartition(".")[2])
    if kind is None or "cuda" in name:
        raise TypeError(f"there is no tensor type {name!r} on the CPU")
    dt.set_default_dtype(kind.dtype)
