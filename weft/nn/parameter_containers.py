"""Modules that hold parameters: in a list, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..core.errors import ArgumentTypeError, IndexOutOfRange
from ..core.shape import as_int
from ..core.tensor import Tensor
from .containers import NamedItems
from .module import PARAMETER, Module
from .parameter import Parameter


class ParameterList(Module):
    """A list of parameters, which registers them; tensors and arrays become parameters.

    >>> import weft as wf
    >>> weights = wf.nn.ParameterList([wf.zeros(2, 3), wf.ones(4)])
    >>> len(weights), weights[1].requires_grad
    (2, True)
    """

    def __init__(self, parameters: Iterable[Any] = ()) -> None:
        super().__init__()
        self.extend(parameters)

    def _names(self) -> list[str]:
        return [name for name, _ in self._own(PARAMETER)]

    def __len__(self) -> int:
        return len(self._names())

    def __iter__(self) -> Iterator[Parameter]:
        return iter([self.__dict__[name] for name in self._names()])

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self.__dict__[self._name_at(index)]

    def __setitem__(self, index: int, parameter: Any) -> None:
        setattr(self, self._name_at(index), _parameter(self, parameter))

    def append(self, parameter: Any) -> ParameterList:
        """Add a parameter at the end; return the list."""
        self.register_parameter(str(len(self)), _parameter(self, parameter))
        return self

    def extend(self, parameters: Iterable[Any]) -> ParameterList:
        """Add parameters at the end; return the list."""
        if isinstance(parameters, Tensor):
            raise ArgumentTypeError(
                f"{type(self).__name__} takes a list of parameters. Received: one tensor; put it "
                "in a list"
            )
        for parameter in list(parameters):
            self.append(parameter)
        return self

    def __iadd__(self, parameters: Iterable[Any]) -> ParameterList:
        return self.extend(parameters)

    def pop(self, index: int = -1) -> Parameter:
        """Take a parameter out and return it; those after it move up."""
        parameters, names = list(self), self._names()
        taken = parameters.pop(names.index(self._name_at(index)))
        for name in names:
            delattr(self, name)
        self.extend(parameters)
        return taken

    def _name_at(self, index: Any) -> str:
        names = self._names()
        position, size = as_int(index, f"{type(self).__name__}: the index"), len(names)
        if not -size <= position < size:
            raise IndexOutOfRange(
                f"{type(self).__name__} of {size} parameters has no index {position}"
            )
        return names[position]

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
