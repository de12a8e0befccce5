"""Layers whose weights are divided: each process computes with its columns, rows or heads.

All processes of the group have the same input and compute the same loss. A layer by columns gives
each process its part of the output, a layer by rows takes such parts and adds up: between the two
nothing travels (Shoeybi et al. 2019, Megatron-LM).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ..core.draw_rows import DrawPart, drawing_part
from ..core.errors import ArgumentError, ShapeError
from ..core.op import F
from ..core.tensor import Tensor, wrap
from ..nn import Dropout, Embedding, Linear, Module, MultiheadAttention, Parameter
from ..ops.collective.exchange import exchanged
from .placement import join_parts, local_part
from .sharded import ShardParameter
from .world import ProcessGroup, group_numbered, world


def _copied(x: Tensor, group: ProcessGroup) -> Tensor:
    copied: Tensor = F.copy_to_all(x, group.number, group.size)
    return copied


def _bounds(what: str, size: int, group: ProcessGroup) -> tuple[int, int]:
    if size % group.size:
        raise ShapeError(f"{what}: {group.size} processes must divide the size {size}")
    assert group.rank is not None
    part = size // group.size
    return group.rank * part, (group.rank + 1) * part


def _part(what: str, tensor: Tensor, axis: int, group: ProcessGroup) -> ShardParameter:
    start, stop = _bounds(what, tensor.shape[axis], group)
    places = (slice(None),) * axis + (slice(start, stop),)
    return ShardParameter(wrap(np.array(tensor.detach().numpy()[places])), tensor.requires_grad)


class _Divided(Module):
    """What layers with divided weights share: their group."""

    def __init__(self, group: ProcessGroup | None) -> None:
        super().__init__()
        self._number = (world() if group is None else group).number

    @property
    def group(self) -> ProcessGroup:
        """Return the processes that share the layer."""
        return group_numbered(self._number)

    def _part_along(self, axis: int) -> DrawPart:
        """Return which part of the layer's random numbers is drawn here."""
        assert self.group.rank is not None
        return DrawPart(self.group.rank, self.group.size, axis)


class ColumnParallelLinear(_Divided):
    """A linear layer of which each process computes a part of the outputs.

    whole    the layer to divide
    gather   whether every process gets all outputs; else its own, for a layer by rows
    """

    def __init__(
        self, whole: Linear, *, gather: bool = False, group: ProcessGroup | None = None
    ) -> None:
        super().__init__(group)
        self.gather = gather
        self.weight = _part("ColumnParallelLinear", whole.weight, 0, self.group)
        self.bias = (
            None if whole.bias is None else _part("ColumnParallelLinear", whole.bias, 0, self.group)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return this process's outputs, or those of all."""
        y: Tensor = F.linear(_copied(x, self.group), self.weight, self.bias)
        return join_parts(y, -1, group=self.group) if self.gather else y


class RowParallelLinear(_Divided):
    """A linear layer of which each process takes a part of the inputs; all get the outputs.

    whole     the layer to divide
    divided   whether the input comes in parts, from a layer by columns
    """

    def __init__(
        self, whole: Linear, *, divided: bool = True, group: ProcessGroup | None = None
    ) -> None:
        super().__init__(group)
        self.divided = divided
        self.weight = _part("RowParallelLinear", whole.weight, 1, self.group)
        self.bias = None if whole.bias is None else Parameter(whole.bias.detach())

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, added up over processes."""
        part = x if self.divided else local_part(x, -1, group=self.group)
        y: Tensor = _total(F.linear(part, self.weight), self.group)
        return y if self.bias is None else y + self.bias


def _total(x: Tensor, group: ProcessGroup) -> Tensor:
    """Return a sum over processes, of which all compute the same loss."""
    found: Tensor = exchanged(x, "total", group.number, group.size)
    return found


class ParallelEmbedding(_Divided):
    """A table of which each process has a part of the rows."""

    def __init__(self, whole: Embedding, *, group: ProcessGroup | None = None) -> None:
        super().__init__(group)
        self._first, self._last = _bounds("ParallelEmbedding", whole.weight.shape[0], self.group)
        self.weight = _part("ParallelEmbedding", whole.weight, 0, self.group)

    def forward(self, places: Tensor) -> Tensor:
        """Return the rows, of which one process has each."""
        mine = (places >= self._first) & (places < self._last)
        rows = F.embedding(self.weight, F.where(mine, places - self._first, 0))
        return _total(F.where(mine[..., None], rows, 0.0), self.group)


_HEADS = 1  # their axis in attention weights


class ParallelAttention(_Divided):
    """Attention of which each process computes some heads; queries, keys and values are one input.

    whole   a MultiheadAttention with equal sizes, whose heads the processes divide
    """

    def __init__(self, whole: MultiheadAttention, *, group: ProcessGroup | None = None) -> None:
        super().__init__(group)
        self.embed_dim, heads = whole.embed_dim, whole.num_heads
        start, stop = _bounds("ParallelAttention: heads", heads, self.group)
        self.num_heads, self.head_dim = stop - start, whole.embed_dim // heads
        rows = slice(start * self.head_dim, stop * self.head_dim)
        if whole.in_proj_weight is None:
            raise ArgumentError("ParallelAttention: keys and values must have the queries' size")
        if whole.bias_k is not None or whole.add_zero_attn:
            raise ArgumentError(
                "ParallelAttention: keys and values must come from the input alone. Received: "
                "add_bias_kv or add_zero_attn"
            )
        self.weight = ShardParameter(wrap(_heads(whole.in_proj_weight, rows)))
        bias = whole.in_proj_bias
        self.bias = None if bias is None else ShardParameter(wrap(_heads(bias, rows)))
        self.out = RowParallelLinear(whole.out_proj, group=self.group)
        self.batch_first, self.dropout = whole.batch_first, whole.dropout

    def forward(self, x: Tensor, *, is_causal: bool = False) -> Tensor:
        """Return what x attends to in itself."""
        x = x if self.batch_first else F.transpose(x, (1, 0, 2))
        stacked = F.linear(_copied(x, self.group), self.weight, self.bias)
        width = self.num_heads * self.head_dim
        split = [self._by_heads(stacked[..., i * width : (i + 1) * width]) for i in range(3)]
        p = self.dropout if self.training else 0.0
        with drawing_part(self._part_along(_HEADS)):
            y = F.scaled_dot_product_attention(*split, dropout_p=p, is_causal=is_causal)
        y = F.reshape(F.transpose(y, (0, 2, 1, 3)), (*x.shape[:2], width))
        y = self.out(y)
        found: Tensor = y if self.batch_first else F.transpose(y, (1, 0, 2))
        return found

    def _by_heads(self, x: Tensor) -> Any:
        shape = (*x.shape[:2], self.num_heads, self.head_dim)
        return F.transpose(F.reshape(x, shape), (0, 2, 1, 3))


class ParallelDropout(_Divided):
    """Dropout between a layer by columns and one by rows: each process drops in its own columns.

    whole   the layer, which drops elements of all columns
    """

    def __init__(self, whole: Dropout, *, group: ProcessGroup | None = None) -> None:
        super().__init__(group)
        self.whole = whole

    def forward(self, x: Tensor) -> Tensor:
        """Return this process's columns of what one process would return."""
        with drawing_part(self._part_along(-1)):
            y: Tensor = self.whole(x)
        return y


def _heads(stacked: Tensor, rows: slice) -> np.ndarray[Any, Any]:
    """Return the rows of some heads of queries, keys and values, which stand one behind another."""
    parts = np.split(stacked.detach().numpy(), 3)
    return np.concatenate([part[rows] for part in parts])


KINDS: dict[str, Callable[..., Module]] = {
    "column": ColumnParallelLinear,
    "row": RowParallelLinear,
    "column_to_all": lambda whole, group: ColumnParallelLinear(whole, gather=True, group=group),
    "row_of_all": lambda whole, group: RowParallelLinear(whole, divided=False, group=group),
    "table": ParallelEmbedding,
    "heads": ParallelAttention,
    "dropout": ParallelDropout,
}


def tensor_parallel(
    model: Module, plan: Mapping[str, str], *, group: ProcessGroup | None = None
) -> Module:
    """Divide layers of a model among processes; return the model. Make optimizers after it.

    plan   patterns of the names of modules, with "column" (each process computes a part of the
           outputs), "column_to_all" (and gets all), "row" (takes parts of the inputs),
           "row_of_all" (divides them itself), "table" (rows of an embedding), "heads" (of
           attention) or "dropout" (between "column" and "row": other layers draw alike on all)

    All processes must have the same weights, the same input and the same loss.

    >>> import weft as wf
    >>> model = wf.nn.Sequential(wf.nn.Linear(4, 8), wf.nn.ReLU(), wf.nn.Linear(8, 4))
    >>> model = wf.distributed.tensor_parallel(model, {"0": "column", "2": "row"})
    >>> [type(layer).__name__ for layer in model]
    ['ColumnParallelLinear', 'ReLU', 'RowParallelLinear']
    """
    group = world() if group is None else group
    for pattern, kind in plan.items():
        if kind not in KINDS:
            raise ArgumentError(
                f"tensor_parallel: {pattern!r} must be one of {', '.join(KINDS)}. "
                f"Received: {kind!r}"
            )
        found = [n for n, _ in model.named_modules() if n and fnmatchcase(n, pattern)]
        if not found:
            raise ArgumentError(f"tensor_parallel: no module is named {pattern!r}")
        for name in found:
            _divide(model, name, KINDS[kind], group)
    return model


def _divide(model: Module, name: str, kind: Callable[..., Module], group: ProcessGroup) -> None:
    *path, last = name.split(".")
    parent = model
    for step in path:
        parent = getattr(parent, step)
    whole = getattr(parent, last)
    setattr(parent, last, kind(whole, group=group).train(whole.training))
