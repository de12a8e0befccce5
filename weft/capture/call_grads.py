"""What `.grad` of tensors is while a function is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..core.modes import no_grad
from ..core.op import F
from ..core.row_sparse import RowSparse, add_gradients, gradient_parts
from ..core.shape import type_of
from ..core.tensor import Tensor
from ..graph.symbol import Symbol, make_symbol
from .recorded import RecordedTensor

if TYPE_CHECKING:
    from .recorder import Recorder


class CallGrads:
    """What `.grad` of tensors is at this point of a recording.

    found     gradients that were there before, by what stands for them
    absent    tensors that had none, and were asked for it
    now       tensors whose gradient was set, and to what
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.found: dict[int, tuple[Tensor, Symbol]] = {}
        self.absent: dict[int, Tensor] = {}
        self.now: dict[int, tuple[Tensor, Any]] = {}

    def read(self, tensor: Tensor) -> Any:
        """Return the gradient of a tensor."""
        key = id(tensor)
        if key in self.now:
            return self.now[key][1]
        if isinstance(tensor, RecordedTensor):
            watch = self.recorder.watches.get(tensor.value)
            return None if watch is None else watch.grad
        return self._before(tensor)

    def _before(self, tensor: Tensor) -> Any:
        """Return the gradient that a tensor from outside had when the call began."""
        key, kept = id(tensor), tensor._kept_grad()
        if key in self.found:
            return self.found[key][1]
        if kept is None:
            self.absent[key] = tensor
            return None
        if kept.is_sparse:
            self.recorder.refuse("it adds to a row-sparse gradient from outside")
        if kept._node is not None:
            self.recorder.refuse("a gradient from outside has a history of its own")
        value = self.recorder.parameter(type_of(kept), "grad", str(kept.device))
        self.recorder.evaluate.give({value: kept._value})
        self.found[key] = tensor, make_symbol(self.recorder.graph, value)
        return self.found[key][1]

    def write(self, tensor: Tensor, value: Any) -> None:
        """Let a tensor have another gradient, or none."""
        if isinstance(value, RowSparse):
            value = value.map_parts(self._symbol)
        elif value is not None:
            value = self._symbol(value)
        self.now[id(tensor)] = tensor, value

    def _symbol(self, value: Tensor) -> Symbol:
        return value if isinstance(value, Symbol) else self.recorder.symbol_of(value)

    def accumulate(self, leaf: Tensor, g: Any, *, record: bool) -> None:
        """Run the hooks of a leaf on its gradient, and add that to what it has."""
        node = None if isinstance(leaf, Symbol) else leaf._node
        watch = self.recorder.watches.get(leaf.value) if isinstance(leaf, Symbol) else node.watch  # type: ignore[union-attr]  # a leaf
        total: Any = g
        if not record:
            by_rows = isinstance(g, RowSparse)
            total = g.map_parts(F.stop_gradient) if by_rows else F.stop_gradient(g)
        for hook in () if watch is None else tuple(watch.hooks.values()):
            with no_grad():
                changed = hook(total)
            total = total if changed is None else changed
        before = self.read(leaf)
        self.now[id(leaf)] = leaf, total if before is None else add_gradients(before, total)

    def identities(self) -> list[tuple[int, int]]:
        """Return which tensors have which gradients by now."""
        return [(key, id(grad)) for key, (_, grad) in self.now.items()]

    def values(self) -> Iterator[Any]:
        """Yield the gradients that tensors have."""
        yield from (part for _, grad in self.now.values() for part in gradient_parts(grad))
        yield from (grad for _, grad in self.found.values())

    def written(self) -> Iterable[tuple[Tensor, Any]]:
        """Return the tensors from outside whose gradient was set, and to what."""
        return [(t, g) for t, g in self.now.values() if not isinstance(t, Symbol)]
