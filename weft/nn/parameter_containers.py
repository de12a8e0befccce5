"""Modules that hold parameters: in a list, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from ..core.errors import ArgumentTypeError
from ..core.tensor import Tensor
from .containers import NamedItems, NumberedItems
from .module import PARAMETER, Module
from .parameter import Parameter

P = TypeVar("P", bound="ParameterList")


class ParameterList(NumberedItems):
    """A list of parameters, which registers them; tensors and arrays become parameters.

    >>> import weft as wf
    >>> weights = wf.nn.ParameterList([wf.zeros(2, 3), wf.ones(4)])
    >>> len(weights), weights[1].requires_grad
    (2, True)
    """

    _held = PARAMETER

    def __init__(self, parameters: Iterable[Any] = ()) -> None:
        super().__init__()
        self.extend(parameters)

    def _checked(self, item: Any) -> Parameter:
        return _parameter(self, item)

    def extend(self: P, items: Iterable[Any]) -> P:
        """Add parameters at the end; return the list."""
        if isinstance(items, Tensor):
            raise ArgumentTypeError(
                f"{type(self).__name__} takes a list of parameters. Received: one tensor; put it "
                "in a list"
            )
        return super().extend(items)

    def __repr__(self) -> str:
        return _format(self)


class ParameterDict(NamedItems):
    """A dictionary of parameters, which registers them; tensors and arrays become parameters.

    >>> import weft as wf
    >>> scales = wf.nn.ParameterDict({"left": wf.ones(2), "right": wf.ones(3)})
    >>> scales["right"].shape
    (3,)
    """

    _held = PARAMETER

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__(parameters)

    def __setitem__(self, name: str, parameter: Any) -> None:
        self.register_parameter(name, _parameter(self, parameter))

    def __repr__(self) -> str:
        return _format(self)


def _parameter(owner: Module, value: Any) -> Parameter:
    if isinstance(value, Parameter):
        return value
    if isinstance(value, str) or not hasattr(value, "shape"):
        raise ArgumentTypeError(
            f"{type(owner).__name__} holds parameters. Received: {type(value).__name__}"
        )
    return Parameter(value)


def _format(module: Module) -> str:
    """Return the repr: dtype and size of each parameter, not its values."""
    lines = [
        f"({name}): Parameter containing: "
        f"[{p.dtype.name} of size {'x'.join(map(str, p.shape)) or 'one number'}]"
        for name, p in module.named_parameters(recurse=False)
    ]
    title = type(module).__name__
    return f"{title}(\n    " + "\n    ".join(lines) + "\n)" if lines else f"{title}()"
