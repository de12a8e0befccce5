"""Batch normalisation by the statistics of the rows of all processes."""

from __future__ import annotations

from typing import Any

from ..core.modes import no_grad
from ..core.op import F
from ..core.shape import size_of
from ..core.tensor import Tensor
from ..nn import Module
from ..nn.batch_norm import _BatchNorm
from .collectives import all_reduce
from .lockstep import current_shard
from .world import ProcessGroup, group_numbered, world


class SyncBatchNorm(_BatchNorm):
    """Normalise each channel over the rows of all processes; otherwise as BatchNorm2d does.

    Each process must have as many rows. `synchronize_batch_norm` turns the layers of a model into
    this one; its parameters and statistics have the same names.

    >>> import weft as wf
    >>> norm = wf.distributed.SyncBatchNorm(2)
    >>> norm(wf.tensor([[1.0, 5.0], [3.0, 5.0]])).detach().round(decimals=3)
    tensor([[-1.,  0.],
            [ 1.,  0.]])
    """

    _dims = (2, 3, 4, 5)
    _layout = "(N, C) or (N, C, ...)"

    def __init__(self, *args: Any, group: ProcessGroup | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._group = (world() if group is None else group).number

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised: by the statistics of all in training, else by the running ones."""
        if not self.training and self.running_mean is not None:
            return super().forward(x)
        self._check(x)
        group = group_numbered(self._group)
        axes = (0, *range(2, x.ndim))
        shape = (1, -1, *(1,) * (x.ndim - 2))
        mean = all_reduce(F.mean(x, axis=axes), "mean", group=group)
        centred = x - F.reshape(mean, shape)
        var = all_reduce(F.mean(F.square(centred), axis=axes), "mean", group=group)
        if self.training:
            self._move_statistics(x, mean, var, group.size)
        scale = F.rsqrt(var + self.eps)
        scale = scale if self.weight is None else scale * self.weight
        normal: Tensor = centred * F.reshape(scale, shape)
        return normal if self.bias is None else normal + F.reshape(self.bias, shape)

    def _move_statistics(self, x: Tensor, mean: Tensor, var: Tensor, size: int) -> None:
        """Move the running statistics towards those of all rows, with the unbiased variance."""
        shard = current_shard()
        if self.running_mean is None or self.running_var is None or (shard and shard.index):
            return  # of the virtual shards of a process the first one does it, for all
        assert self.num_batches_tracked is not None
        part = self._count_batch(self.num_batches_tracked)
        count = size_of(x.shape) // x.shape[1] * (shard.count if shard else size)
        with no_grad():
            unbiased = var * (count / max(count - 1, 1))
            self.running_mean += (mean.detach() - self.running_mean) * part
            self.running_var += (unbiased.detach() - self.running_var) * part


def synchronize_batch_norm(model: Module, group: ProcessGroup | None = None) -> Module:
    """Let the batch normalisation of a model use the rows of all processes; return the model.

    Layers are replaced, with their parameters and statistics; if the model is such a layer itself,
    what is returned is another one.

    >>> import weft as wf
    >>> model = wf.nn.Sequential(wf.nn.Linear(3, 2), wf.nn.BatchNorm1d(2))
    >>> wf.distributed.synchronize_batch_norm(model)[1].running_mean
    tensor([0., 0.])
    """
    for name, child in list(model.named_children()):
        made = synchronize_batch_norm(child, group)
        if made is not child:
            setattr(model, name, made)
    is_plain = isinstance(model, _BatchNorm) and not isinstance(model, SyncBatchNorm)
    return _synchronized(model, group) if is_plain else model  # type: ignore[arg-type]  # is_plain


def _synchronized(norm: _BatchNorm, group: ProcessGroup | None) -> SyncBatchNorm:
    made = SyncBatchNorm(
        norm.num_features,
        norm.eps,
        norm.momentum,
        norm.affine,
        norm.track_running_stats,
        group=group,
        bias=norm.bias is not None,
    )
    for name in ("weight", "bias"):
        setattr(made, name, getattr(norm, name))
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        setattr(made, name, getattr(norm, name))
    return made.train(norm.training)
