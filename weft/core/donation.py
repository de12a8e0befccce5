"""What stands in a tensor whose memory was given away: it says so to whoever looks at it."""

from __future__ import annotations

from typing import Any, NoReturn

from .errors import DonatedError


class DonatedMemory:
    """In the place of an array that a call took: its type can be read, its elements cannot."""

    __slots__ = ("_message", "dtype", "ndim", "shape", "size")

    def __init__(self, array: Any, message: str) -> None:
        self.shape, self.dtype, self.ndim, self.size = (
            array.shape,
            array.dtype,
            array.ndim,
            array.size,
        )
        self._message = message

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Raise what a use of the memory means."""
        raise DonatedError(self._message)

    def __repr__(self) -> str:
        return f"<memory of {self.dtype}{list(self.shape)}, donated>"

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse whatever an array has besides."""
        if name.startswith("__"):  # Python and NumPy ask for protocols, and go on to others
            raise AttributeError(name)
        self.refuse()

    __array__ = __array_ufunc__ = __array_function__ = refuse
    __getitem__ = __setitem__ = __len__ = __iter__ = __bool__ = __float__ = __int__ = refuse
    __index__ = __complex__ = __contains__ = __buffer__ = __reduce_ex__ = refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = refuse
    __rtruediv__ = __matmul__ = __rmatmul__ = __pow__ = __rpow__ = __neg__ = __abs__ = refuse
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = __xor__ = __invert__ = refuse
    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = refuse
