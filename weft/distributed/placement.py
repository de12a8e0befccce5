"""Placement: say along which axis processes divide a tensor; the compiler does the rest.

A program is written for whole tensors, as for one process. `shard` says of some of them that each
process is to compute its part; `place_parameters` lets each process keep parts of parameters only.
Compiled programs (`wf.jit`, graphs) carry placements on through products, sums and elementwise
operations, forwards and backwards, and exchange what must be whole (weft/passes/dividing). Results
are those of one process; eager code, which computes everything everywhere, has the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ..core.op import F
from ..core.shape import normalize_axis
from ..core.tensor import Tensor, wrap
from ..nn import Module, functional_call
from ..ops.collective.placed import whole_of
from .sharded import ShardParameter
from .world import ProcessGroup, group_numbered, world


def shard(x: Tensor, axis: int | None = 0, *, group: ProcessGroup | None = None) -> Tensor:
    """Return x, and let compiled programs compute it in parts along an axis, one on each process.

    x must be the same on all processes of the group, and what is made of it is: the placement only
    says who computes what. None as the axis says that every process needs all of it.

    >>> import weft as wf
    >>> @wf.jit
    ... def product(x, w):
    ...     return x @ wf.distributed.shard(w, axis=1)
    >>> product(wf.ones(2, 3), wf.ones(3, 4)).shape
    (2, 4)
    """
    _check_tensor("shard", x)
    found: Tensor = F.placed(x, *_place(group), axis)
    return found


def local_part(x: Tensor, axis: int = 0, *, group: ProcessGroup | None = None) -> Tensor:
    """Return this process's part, along an axis, of a tensor that all processes have.

    Its gradient is made of the parts of all.

    >>> import weft as wf
    >>> wf.distributed.local_part(wf.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    _check_tensor("local_part", x)
    part: Tensor = F.part_of(x, *_place(group), axis)
    return part


def join_parts(x: Tensor, axis: int = 0, *, group: ProcessGroup | None = None) -> Tensor:
    """Return the parts of all processes joined along an axis, on all of them: undoes `local_part`.

    All must compute the same with the whole, of whose gradient each takes its part.

    >>> import weft as wf
    >>> wf.distributed.join_parts(wf.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    _check_tensor("join_parts", x)
    whole: Tensor = whole_of(x, *_place(group), normalize_axis(axis, x.ndim))
    return whole


def _check_tensor(what: str, x: Any) -> None:
    if not isinstance(x, Tensor):
        raise ArgumentTypeError(f"{what}: x must be a tensor. Received: {type(x).__name__}")


def _place(group: ProcessGroup | None) -> tuple[int, int, int]:
    group = world() if group is None else group
    group.exchanges  # noqa: B018  (raises if this process is no member)
    assert group.rank is not None
    return group.number, group.size, group.rank


class PlacedModule(Module):
    """A module of whose parameters each process has parts; it is called like the module.

    Parameters and children have the names that they have in the module.
    """

    def __init__(self, module: Module, axes: Mapping[str, int], group: ProcessGroup) -> None:
        super().__init__()
        self._held = (module,)  # no child: its parameters are none of the model's
        self._axes, self._number = dict(axes), group.number
        for name, child in module.named_children():
            setattr(self, name, child)
        for name, p in module.named_parameters(recurse=False):
            setattr(self, name, _part(name, p, axes[name], group) if name in axes else p)

    @property
    def module(self) -> Module:
        """Return the module whose parameters these are."""
        return self._held[0]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module with whole parameters, of which a compiled program needs parts only."""
        place = _place(group_numbered(self._number))
        self.module.train(self.training)
        whole = {n: whole_of(getattr(self, n), *place, axis) for n, axis in self._axes.items()}
        return functional_call(self.module, whole, *args, **kwargs)


def _part(name: str, p: Tensor, axis: int, group: ProcessGroup) -> ShardParameter:
    if p.shape[axis] % group.size:
        raise ShapeError(
            f"place_parameters: {group.size} processes must divide axis {axis} of {name}, of shape "
            f"{tuple(p.shape)}"
        )
    assert group.rank is not None
    size = p.shape[axis] // group.size
    places = (slice(None),) * axis + (slice(group.rank * size, (group.rank + 1) * size),)
    part = ShardParameter(wrap(np.array(p.detach().numpy()[places])), p.requires_grad)
    whole = np.broadcast_to(np.zeros((), p.dtype), p.shape)  # takes no memory
    p._value = whole
    p.requires_grad_(False)
    return part


def place_parameters(
    model: Module, plan: Mapping[str, int], *, group: ProcessGroup | None = None
) -> Module:
    """Let each process keep its part of parameters; return the model. Make optimizers after it.

    plan   patterns of the names of parameters, with the axis along which they are divided

    All processes must have the same parameters, inputs and losses. In a compiled step the products
    with a divided parameter are divided as well, so that a linear layer by columns and one by rows
    do what `tensor_parallel` writes out. Eager code gathers parameters when it needs them.

    >>> import weft as wf
    >>> model = wf.nn.Sequential(wf.nn.Linear(4, 8), wf.nn.ReLU(), wf.nn.Linear(8, 4))
    >>> plan = {"0.weight": 0, "0.bias": 0, "2.weight": 1}
    >>> model = wf.distributed.place_parameters(model, plan)
    >>> [name for name, _ in model.named_parameters()]
    ['0.weight', '0.bias', '2.weight', '2.bias']
    """
    if not isinstance(model, Module):
        raise ArgumentTypeError(
            f"place_parameters: expected a module. Received: {type(model).__name__}"
        )
    group = world() if group is None else group
    chosen = _chosen(model, plan)
    for owner in sorted(chosen, key=lambda name: -name.count(".") - bool(name)):
        _replace(model, owner, chosen[owner], group)
    return model


def _chosen(model: Module, plan: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return which parameters are divided, by the names of the modules that have them."""
    named, chosen = dict(model.named_parameters()), dict[str, dict[str, int]]()
    owners = Counter(id(p) for m in model.modules() for p in m.parameters(recurse=False))
    for pattern, axis in plan.items():
        found = [name for name in named if fnmatchcase(name, pattern)]
        if not found:
            raise ArgumentError(f"place_parameters: no parameter is named {pattern!r}")
        for name in found:
            owner, _, own = name.rpartition(".")
            if not owner:
                raise ArgumentError(
                    f"place_parameters: {name} belongs to the model itself; put the layer into a "
                    "container, wf.nn.Sequential(layer) say"
                )
            if owners[id(named[name])] > 1:
                raise ArgumentError(f"place_parameters: several modules share {name}")
            chosen.setdefault(owner, {})[own] = normalize_axis(axis, named[name].ndim)
    return chosen


def _replace(model: Module, name: str, axes: Mapping[str, int], group: ProcessGroup) -> None:
    *path, last = name.split(".")
    parent = model
    for step in path:
        parent = getattr(parent, step)
    setattr(parent, last, PlacedModule(getattr(parent, last), axes, group))
