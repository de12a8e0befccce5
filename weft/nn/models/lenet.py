"""LeNet-5 (LeCun, Bottou, Bengio, Haffner 1998), with rectifiers and maxima."""

from __future__ import annotations

from ...core.tensor import Tensor
from ..calls import F
from ..conv import Conv2d
from ..linear import Linear
from ..module import Module


class LeNet(Module):
    """Two convolutions and three linear layers, for images of 12 by 12 pixels and more.

    >>> import weft as wf
    >>> LeNet(1, 10)(wf.zeros(2, 1, 28, 28)).shape
    (2, 10)
    """

    def __init__(self, in_channels: int | None = None, num_classes: int = 10) -> None:
        super().__init__()
        self.conv1 = Conv2d(in_channels, 6, 5, padding=2)
        self.conv2 = Conv2d(6, 16, 5)
        self.fc1 = Linear(None, 120)  # 16 * 5 * 5 for 28 by 28 pixels
        self.fc2 = Linear(120, 84)
        self.fc3 = Linear(84, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (N, num_classes) of images (N, C, H, W)."""
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(F.flatten(x, 1)))
        result: Tensor = self.fc3(F.relu(self.fc2(x)))
        return result
