"""The functions that layers call: operators and composites by name, tensors in and tensors out."""

from __future__ import annotations

from collections.abc import Callable

from ..core.facade import public_function
from ..core.tensor import Tensor

Function = Callable[..., Tensor]


class Functions:
    """Every public function by name, resolved when first used."""

    def __getattr__(self, name: str) -> Function:
        try:
            found: Function = public_function(name)
        except KeyError as error:
            raise AttributeError(str(error)) from None
        setattr(self, name, found)
        return found


F = Functions()
