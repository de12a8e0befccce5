"""Parameter: a tensor that a module trains; UninitializedParameter: one whose shape comes later."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import ArgumentTypeError, user_site
from ..core.modes import eagerly
from ..core.shape import Shape
from ..core.tape import Leaf
from ..core.tensor import Tensor, check_differentiable, placed_like
from ..ops.creation import empty
from .starting_value import starting_value


class Parameter(Tensor):
    """A leaf tensor that a Module registers when it is assigned to an attribute.

    It has a value from the beginning, in a graph too: `Parameter(wf.randn(2))` draws there at once.

    >>> import weft as wf
    >>> wf.nn.Parameter(wf.tensor([1.0, 2.0]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    __slots__ = ()

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        source = starting_value(data, "Parameter")
        if not isinstance(requires_grad, (bool, np.bool_)):
            raise ArgumentTypeError(
                f"Parameter: requires_grad must be True or False. Received: {requires_grad!r}"
            )
        self._value = source._value
        self._node = None
        self._site = user_site()
        if requires_grad:
            check_differentiable(self._value.dtype)
            self._node = Leaf(self._site)
        placed_like(source, self)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class UninitializedParameter(Parameter):
    """Holds the place of a parameter whose shape the first input will tell.

    It becomes an ordinary Parameter where it stands, so that an optimizer that was given it before
    trains the right thing.
    """

    __slots__ = ()

    def __init__(self, dtype: Any = None, requires_grad: bool = True, device: Any = None) -> None:
        super().__init__(empty((0,), dtype=dtype, device=device), requires_grad)

    @eagerly
    def materialize(self, shape: Shape) -> Parameter:
        """Take a shape, with arbitrary values, and become a Parameter."""
        self._value = empty(shape, dtype=self.dtype, device=self.device)._value
        self.__class__ = Parameter  # type: ignore[assignment]  # the two have one layout
        return self

    def __repr__(self) -> str:
        return "UninitializedParameter()"


def new_parameter(shape: Shape, dtype: Any = None, device: Any = None) -> Parameter:
    """Return a parameter of arbitrary values, for a layer to initialise."""
    return Parameter(empty(shape, dtype=dtype, device=device))
