"""Sharded state: each process keeps a part of parameters, gradients and optimizer slots.

The parameters of a unit (a layer, a block) become one flat vector, of which a process has its part,
a parameter like any other. Forward gathers the whole just in time; the gradient of a gather is a
scatter of the sum, so that gradients come in parts too, and so does what an optimizer keeps.
All of this is operators: a captured step holds the gathers as nodes, begins them early, and its
memory plan frees what was gathered behind its last use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..autodiff.checkpointing import checkpoint
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.modes import no_grad
from ..core.op import F
from ..core.shape import size_of
from ..core.tensor import Tensor, wrap
from ..nn import Module, ModuleDict, ModuleList, Parameter, Sequential, functional_call
from ..ops.collective.exchange import exchanged
from ..optim.clip import SpreadParameter
from ..optim.clip import clip_grad_norm_ as clip_grads
from .world import ProcessGroup, group_numbered, world

CONTAINERS = (Sequential, ModuleList, ModuleDict)


class ShardParameter(Parameter, SpreadParameter):
    """The part of a process of some parameters."""

    def of_all_parts(self, x: Tensor, how: str) -> Tensor:
        """Return the sum or the largest of a number of each part."""
        group = group_numbered(self.__dict__["_group"])
        found: Tensor = exchanged(x, how, group.number, group.size, note="a norm of gradients")
        return found


def is_shard(p: Tensor) -> bool:
    """Tell whether a parameter is the part of a process, of more than it has."""
    return isinstance(p, ShardParameter)


def is_spread(model: Module) -> bool:
    """Tell whether parameters of a model are spread over processes."""
    return any(is_shard(p) for p in model.parameters())


class ShardedUnit(Module):
    """A module whose parameters are spread over processes; it is called like the module.

    shard     this process's part of all parameters, one after another
    regather  whether backward gathers them again, so that nobody keeps them in between
    """

    def __init__(self, module: Module, group: ProcessGroup, *, regather: bool) -> None:
        super().__init__()
        self._held = (module,)  # no child: its parameters are none of the model's
        self._group, self._regather = group.number, regather
        named = dict(module.named_parameters())
        self._layout = [(name, p.shape) for name, p in named.items()]
        flat = np.concatenate([np.ravel(p.detach().numpy()) for p in named.values()])
        trained = any(p.requires_grad for p in named.values())
        self.shard = ShardParameter(wrap(_part(flat, group)), trained)
        self.shard.__dict__["_group"] = group.number
        for p in named.values():
            p._value = np.broadcast_to(np.zeros((), p.dtype), p.shape)  # takes no memory
            p.requires_grad_(False)

    @property
    def group_number(self) -> int:
        """Return the number of the group that it is spread over."""
        return self._group

    @property
    def total(self) -> int:
        """Return how many elements the parameters have together."""
        return sum(int(size_of(shape)) for _, shape in self._layout)

    @property
    def module(self) -> Module:
        """Return the module whose parameters these are."""
        return self._held[0]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Gather the parameters and call the module with them."""
        self.module.train(self.training)
        run = checkpoint(self._run) if self._regather else self._run
        return run(self.shard, args, kwargs)

    def _run(self, shard: Tensor, args: Any, kwargs: Any) -> Any:
        return functional_call(self.module, self._whole(shard), *args, **kwargs)

    def _whole(self, shard: Tensor) -> dict[str, Any]:
        group = group_numbered(self._group)
        note = f"parameters of {type(self.module).__name__}"
        flat = exchanged(shard, "collect", group.number, group.size, note=note)
        # Split, not sliced: the gradient of all parts is joined once, not added up.
        sizes = [int(size_of(shape)) for _, shape in self._layout]
        filling = flat.shape[0] - sum(sizes)
        parts = F.split(flat, (*sizes, filling) if filling else tuple(sizes))
        pairs = zip(self._layout, parts, strict=False)
        return {name: F.reshape(part, shape) for (name, shape), part in pairs}

    def full_parameters(self) -> dict[str, Tensor]:
        """Return the parameters of all processes together, by their names in the module."""
        with no_grad():
            return {name: x.detach() for name, x in self._whole(self.shard).items()}

    def load_parameters(self, tensors: Mapping[str, Any]) -> None:
        """Take this process's part of parameters that are given whole."""
        arrays = [np.ravel(np.asarray(tensors[name])) for name, _ in self._layout]
        group = group_numbered(self._group)
        self.shard._value = _part(np.concatenate(arrays), group).astype(self.shard.dtype)


def _part(flat: np.ndarray[Any, Any], group: ProcessGroup) -> np.ndarray[Any, Any]:
    """Return this process's part of a vector, which is filled up with zeros."""
    size = -(-flat.size // group.size)
    assert group.rank is not None
    part = np.zeros(size, flat.dtype)
    mine = flat[group.rank * size : (group.rank + 1) * size]
    part[: mine.size] = mine
    return part


def shard_parameters(
    model: Module,
    *,
    stage: int = 3,
    units: Callable[[Module], bool] | None = None,
    group: ProcessGroup | None = None,
) -> Module:
    """Spread the parameters of a model over processes; return the model. Make optimizers after it.

    stage   1 or 2: what was gathered for forward stays until backward (gradients and optimizer
            slots are spread); 3: backward gathers again (parameters too)
    units   tells which modules are gathered at once; by default the children of the model, with
            containers looked into. Modules with buffers stay whole, and so do, by default, those
            that share a parameter with another (a table that is the last layer, too)

    >>> import weft as wf
    >>> model = wf.nn.Sequential(wf.nn.Linear(3, 2), wf.nn.Linear(2, 1))
    >>> model = wf.distributed.shard_parameters(model)
    >>> [(name, p.shape) for name, p in model.named_parameters()]
    [('0.shard', (8,)), ('1.shard', (3,))]
    """
    if stage not in (1, 2, 3):
        raise ArgumentError(f"shard_parameters: stage must be 1, 2 or 3. Received: {stage!r}")
    if not isinstance(model, Module):
        raise ArgumentTypeError(
            f"shard_parameters: expected a module. Received: {type(model).__name__}"
        )
    group = world() if group is None else group
    found = list(_units(model, units))
    shared = _shared(found)
    if units is not None and shared:
        raise ArgumentError(
            f"shard_parameters: {' and '.join(shared.values())} share a parameter; make what holds "
            "all of them one unit: units=lambda m: ..."
        )
    for parent, name, child in found:
        if id(child) not in shared:
            setattr(parent, name, ShardedUnit(child, group, regather=stage == 3))
    return model


def _units(
    parent: Module, chosen: Callable[[Module], bool] | None
) -> Iterator[tuple[Module, str, Module]]:
    """Yield the modules that are gathered at once, with where they stand."""
    for name, child in parent.named_children():
        is_unit = not isinstance(child, CONTAINERS) if chosen is None else chosen(child)
        if isinstance(child, ShardedUnit) or not any(True for _ in child.parameters()):
            continue
        if is_unit and not any(True for _ in child.buffers()):
            yield parent, name, child
        elif not is_unit or chosen is None:
            yield from _units(child, chosen)


def _shared(units: list[tuple[Module, str, Module]]) -> dict[int, str]:
    """Return the names of units that share a parameter with another one, by their identity."""
    owners: dict[int, list[tuple[int, str]]] = {}
    for _, name, unit in units:
        for p in unit.parameters():
            owners.setdefault(id(p), []).append((id(unit), name))
    return {unit: name for some in owners.values() if len(set(some)) > 1 for unit, name in some}


def full_state_dict(model: Module) -> dict[str, Tensor]:
    """Return the state of a model with whole parameters, as before it was sharded.

    All processes must call it.

    >>> import weft as wf
    >>> model = wf.nn.Sequential(wf.nn.Linear(3, 2))
    >>> sorted(full_state_dict(wf.distributed.shard_parameters(model)))
    ['0.bias', '0.weight']
    """
    found = dict(model.state_dict())
    for name, unit in model.named_modules():
        if isinstance(unit, ShardedUnit):
            prefix = f"{name}." if name else ""
            del found[f"{prefix}shard"]
            found |= {f"{prefix}{inner}": x for inner, x in unit.full_parameters().items()}
    return found


def load_full_state_dict(model: Module, state: Mapping[str, Any]) -> None:
    """Give a sharded model whole parameters, of which each process takes its part."""
    rest = dict(state)
    for name, unit in model.named_modules():
        if isinstance(unit, ShardedUnit):
            prefix = f"{name}." if name else ""
            unit.load_parameters({n: rest.pop(f"{prefix}{n}") for n, _ in unit._layout})
            rest[f"{prefix}shard"] = unit.shard.detach()
    model.load_state_dict(rest)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    *,
    group: ProcessGroup | None = None,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale gradients so that their joint norm is at most `max_norm`; return the norm before.

    `wf.optim.clip_grad_norm_` does the same, where some parameters are parts of processes too.

    group   the processes that have the parts; those that they were spread over by default

    >>> import weft as wf
    >>> w = wf.tensor([0.0, 0.0], requires_grad=True)
    >>> (w * wf.tensor([3.0, 4.0])).sum().backward()
    >>> wf.distributed.clip_grad_norm_([w], 1.0)
    tensor(5.)
    """
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if group is not None:
        _check_group(given, group)
    return clip_grads(given, max_norm, norm_type, error_if_nonfinite=error_if_nonfinite)


def _check_group(parameters: Iterable[Tensor], group: ProcessGroup) -> None:
    """Raise if parts belong to other processes than is said: norms of all parts would be wrong."""
    if not isinstance(group, ProcessGroup):
        raise ArgumentTypeError(
            f"clip_grad_norm_: group must be a process group. Received: {group!r:.60}"
        )
    numbers = {p.__dict__["_group"] for p in parameters if is_shard(p)}
    for other in (group_numbered(number) for number in numbers - {group.number}):
        raise ArgumentError(
            f"clip_grad_norm_: parameters are spread over {other}, not over {group}; leave group "
            "out, or clip what each group has by itself"
        )


def memory_of(parameters: Iterable[Tensor], optimizer: Any = None) -> dict[str, int]:
    """Return the bytes that parameters, gradients and optimizer slots take in this process.

    >>> import weft as wf
    >>> memory_of(wf.nn.Linear(3, 2).parameters())
    {'parameters': 32, 'gradients': 0, 'slots': 0}
    """
    params = list(parameters)
    slots = () if optimizer is None else [s for p in params for s in _slots(optimizer, p)]
    return {
        "parameters": sum(p.numel() * p.dtype.itemsize for p in params),
        "gradients": sum(p.grad.numel() * p.dtype.itemsize for p in params if p.grad is not None),
        "slots": sum(s.nbytes for s in slots if s.ndim),
    }


def _slots(optimizer: Any, p: Tensor) -> list[Any]:
    return [s for s in optimizer.state.get(p, {}).values() if isinstance(s, np.ndarray)]
