"""torch.nn.modules: what PyTorch divides among many modules is in each of them here."""

from __future__ import annotations

from typing import Any

from ... import nn as core_nn
from ..legacy import reduction_of
from ..names import names
from ..parts import serve_parts
from .layers import CLASSES
from .module import Module
from .parameter import Parameter

_PARTS = names("""
    activation adaptive batchnorm channelshuffle container conv distance dropout flatten fold
    instancenorm lazy linear loss module normalization padding pixelshuffle pooling rnn sparse
    transformer upsampling utils
""")


class _Loss(Module):
    """The base of losses: how they are reduced."""

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"):
        super().__init__()
        old = size_average is not None or reduce is not None
        self.reduction = reduction_of(size_average, reduce) if old else reduction


class _WeightedLoss(_Loss):
    """The base of losses with weights of classes."""

    def __init__(self, weight: Any = None, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.register_buffer("weight", weight)


def _tuple_of(count: int) -> Any:
    return lambda x: tuple(x) if isinstance(x, (tuple, list)) else (x,) * count


HELD: dict[str, Any] = {
    **CLASSES,
    "Module": Module,
    "Parameter": Parameter,
    "_BatchNorm": core_nn.BatchNorm1d.__base__,
    "_InstanceNorm": core_nn.InstanceNorm1d.__base__,
    "_ConvNd": core_nn.Conv1d.__base__,
    "_Loss": _Loss,
    "_WeightedLoss": _WeightedLoss,
    "_ntuple": _tuple_of,
    "_single": _tuple_of(1),
    "_pair": _tuple_of(2),
    "_triple": _tuple_of(3),
    "_quadruple": _tuple_of(4),
}
globals().update(HELD)
__path__: list[str] = []  # it has modules
globals().update(serve_parts(__name__, dict.fromkeys(_PARTS, HELD)))
