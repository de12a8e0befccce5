"""LayerGraph: a network written as a list of named layers, each with its inputs by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...core.errors import ArgumentError
from ...core.tensor import Tensor
from ..module import MODULE, Module


class LayerStep(NamedTuple):
    """One layer of the list: the value it makes, the module it runs, the values it reads.

    options   named arguments of the call, the same in each
    """

    name: str
    module: str
    inputs: tuple[str, ...]
    options: tuple[tuple[str, Any], ...] = ()


class LayerGraph(Module):
    """Run layers in order; each reads values by name, so branches and residuals can be written.

    inputs    the names of what `forward` is given, in order
    outputs   the names of what it returns; several give a tuple. None: the last layer's

    A value is an input's or a layer's name. A layer that returns several things (an LSTM: outputs
    and state) stands for the first; "lstm.1" is the second.

    >>> import weft as wf
    >>> net = LayerGraph(["x"])
    >>> net.append("fc", wf.nn.Linear(4, 4))
    >>> net.append("sum", wf.nn.models.Add(), ["fc", "x"])
    >>> net(wf.zeros(2, 4)).shape
    (2, 4)
    """

    def __init__(
        self, inputs: Sequence[str] = ("input",), outputs: Sequence[str] | None = None
    ) -> None:
        super().__init__()
        if not inputs:
            raise ArgumentError("a LayerGraph needs at least one input")
        self.inputs = tuple(inputs)
        self.outputs = None if outputs is None else tuple(outputs)
        self.steps: list[LayerStep] = []

    def append(
        self,
        name: str,
        module: Module | str,
        inputs: Iterable[str] | None = None,
        **options: Any,
    ) -> None:
        """Add a layer after the others; by default it reads what the last one made.

        module    a module, or the name of an earlier layer whose parameters this one shares
        options   named arguments of each call of the module
        """
        if name in self.values():
            raise ArgumentError(f"there is an input or a layer named {name!r} already")
        if isinstance(module, Module):
            self.add_module(name, module)
        read = (self.last,) if inputs is None else tuple(inputs)
        for reference in read:
            self.check_reference(reference)
        shared = module if isinstance(module, str) else name
        step = LayerStep(name, self._module_of(shared), read, tuple(options.items()))
        self.steps.append(step)

    @property
    def last(self) -> str:
        """Return the name of the newest value."""
        return self.steps[-1].name if self.steps else self.inputs[0]

    def values(self) -> list[str]:
        """Return the names of all values so far."""
        return [*self.inputs, *(step.name for step in self.steps)]

    def check_reference(self, reference: str) -> None:
        """Raise unless a value of that name has been made before."""
        name, dot, index = reference.partition(".")
        if name not in self.values() or (dot and not index.isdigit()):
            known = ", ".join(self.values())
            raise ArgumentError(f"there is no earlier input or layer {reference!r}; have: {known}")

    def _module_of(self, name: str) -> str:
        if self._kinds.get(name) == MODULE:
            return name
        for step in self.steps:
            if step.name == name:
                return step.module
        raise ArgumentError(f"there is no earlier layer {name!r} to share")

    def forward(self, *inputs: Any) -> Any:
        """Return the outputs."""
        values = self.start(inputs)
        for step in self.steps:
            values[step.name] = self.run_step(step, values)
        chosen = self.outputs or (self.last,)
        results = tuple(value_of(values, name) for name in chosen)
        return results[0] if len(results) == 1 else results

    def start(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """Return the values before the first layer."""
        if len(inputs) != len(self.inputs):
            wanted = ", ".join(self.inputs)
            raise ArgumentError(
                f"the network takes {len(self.inputs)} inputs ({wanted}). Received: {len(inputs)}"
            )
        return dict(zip(self.inputs, inputs, strict=True))

    def run_step(self, step: LayerStep, values: dict[str, Any]) -> Any:
        """Return what a layer makes of the values."""
        module = self.__dict__[step.module]
        read = (value_of(values, reference) for reference in step.inputs)
        return module(*read, **dict(step.options))


def value_of(values: dict[str, Any], reference: str) -> Any:
    """Return a value by its name; of several things, the first or the one at ".index"."""
    name, dot, index = reference.partition(".")
    value = values[name]
    if isinstance(value, Tensor) or not isinstance(value, (tuple, list)):
        if dot:
            raise ArgumentError(f"{name!r} makes one value, so there is no {reference!r}")
        return value
    position = int(index) if dot else 0
    if position >= len(value):
        raise ArgumentError(f"{name!r} makes {len(value)} values, so there is no {reference!r}")
    return value[position]
