"""VGG (Simonyan, Zisserman 2015, arXiv:1409.1556), with torchvision's parameter names."""

from __future__ import annotations

from ...core.errors import ArgumentError
from ...core.tensor import Tensor
from .. import init
from ..activation import ReLU
from ..batch_norm import BatchNorm2d
from ..calls import F
from ..containers import Sequential
from ..conv import Conv2d
from ..dropout import Dropout
from ..linear import Linear
from ..max_pooling import MaxPool2d
from ..module import Module
from ..pooling import AdaptiveAvgPool2d

# Convolutions in each of the five stages, by the number of layers with weights (their table 1).
STAGES = {
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}


class VGG(Module):
    """Five stages of 3 by 3 convolutions, each ending in a pooling, and three linear layers.

    depth        11, 13, 16 or 19 layers
    batch_norm   normalise after each convolution
    width        channels of the first stage
    hidden       size of the linear layers
    pooled       side of the image that the linear layers see

    >>> import weft as wf
    >>> VGG(3, 10, width=4, hidden=8, pooled=1)(wf.zeros(2, 3, 32, 32)).shape
    (2, 10)
    """

    def __init__(
        self,
        in_channels: int = 3,
        num_classes: int = 1000,
        depth: int = 16,
        batch_norm: bool = False,
        dropout: float = 0.5,
        width: int = 64,
        hidden: int = 4096,
        pooled: int = 7,
    ) -> None:
        super().__init__()
        if depth not in STAGES:
            known = ", ".join(map(str, STAGES))
            raise ArgumentError(f"VGG: depth must be one of {known}. Received: {depth!r}")
        layers: list[Module] = []
        channels = in_channels
        for stage, count in enumerate(STAGES[depth]):
            out = min(width * 2**stage, width * 8)
            for _ in range(count):
                layers += _convolution(channels, out, batch_norm)
                channels = out
            layers.append(MaxPool2d(2, 2))
        self.features = Sequential(*layers)
        self.avgpool = AdaptiveAvgPool2d(pooled)
        self.classifier = Sequential(
            *(Linear(channels * pooled * pooled, hidden), ReLU(), Dropout(dropout)),
            *(Linear(hidden, hidden), ReLU(), Dropout(dropout)),
            Linear(hidden, num_classes),
        )
        _draw(self)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (N, num_classes) of images (N, C, H, W) of 32 pixels and more."""
        result: Tensor = self.classifier(F.flatten(self.avgpool(self.features(x)), 1))
        return result


def _convolution(channels: int, out: int, batch_norm: bool) -> list[Module]:
    norm: list[Module] = [BatchNorm2d(out)] if batch_norm else []
    return [Conv2d(channels, out, 3, padding=1), *norm, ReLU()]


def _draw(net: Module) -> None:
    for module in net.modules():
        if isinstance(module, Conv2d):
            init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, Linear):
            init.normal_(module.weight, 0.0, 0.01)
        if isinstance(module, Conv2d | Linear) and module.bias is not None:
            init.zeros_(module.bias)
