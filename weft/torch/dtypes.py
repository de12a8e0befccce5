"""Dtypes as PyTorch shows them: `torch.float32`.

Everywhere else in Weft a dtype is NumPy's object. These stand in front of those: they are equal to
them and have their hash, and NumPy, which looks for an attribute `dtype`, takes them as they are.
"""

from __future__ import annotations

from typing import Any

from ..core import dtype as dt


class dtype:  # noqa: N801  (PyTorch's name)
    """The type of a tensor's elements: `torch.float32` and its like, of each one object.

    >>> from weft import torch
    >>> torch.ones(2).dtype
    torch.float32
    >>> torch.ones(2).dtype is torch.float
    True
    """

    __slots__ = ("dtype", "itemsize", "kind", "name")
    stands_for_dtype = True
    dtype: dt.DType
    is_complex = False

    def __init__(self, behind: dt.DType) -> None:
        self.dtype = behind
        self.name, self.kind, self.itemsize = behind.name, behind.kind, behind.itemsize

    @property
    def is_floating_point(self) -> bool:
        """Tell whether values are floats."""
        return dt.is_float(self.dtype)

    @property
    def is_signed(self) -> bool:
        """Tell whether values may be negative."""
        return self.dtype.kind not in "ub"

    def to_real(self) -> Any:
        """Return the dtype of the real part: this one."""
        return self

    def __getattr__(self, name: str) -> Any:
        """Return what else NumPy says of the dtype."""
        return getattr(self.dtype, name)

    def __eq__(self, other: Any) -> bool:
        if isinstance(other, dtype):
            return self is other
        return other is not None and bool(self.dtype == other)

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"torch.{self.dtype.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return named, (self.dtype.name,)


class _BFloat16(dtype):
    """The dtype that a package of its own provides, which is asked for when it is used."""

    __slots__ = ()

    def __init__(self) -> None:
        """Have nothing yet."""

    @property
    def dtype(self) -> dt.DType:  # type: ignore[override]  # of the base it is a slot
        """Return it."""
        return dt.bfloat16()

    def __eq__(self, other: Any) -> bool:
        return self is other or str(other) == "bfloat16"

    def __hash__(self) -> int:
        return hash("bfloat16")

    def __repr__(self) -> str:
        return "torch.bfloat16"


class _Made(dict[Any, dtype]):
    def __missing__(self, behind: Any) -> dtype:
        found = BFLOAT16 if behind.name == "bfloat16" else dtype(behind)
        return self.setdefault(behind, found)


MADE = _Made()  # by NumPy's objects
BFLOAT16 = _BFloat16()


def named(wanted: Any) -> dtype:
    """Return the dtype of this face for one of NumPy's, or for a name."""
    return MADE[dt.as_dtype(wanted)]
