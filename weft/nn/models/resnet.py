"""Residual networks (He, Zhang, Ren, Sun 2016, arXiv:1512.03385).

Parameter names are those of torchvision, so that its weights load.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.tensor import Tensor
from .. import init
from ..arguments import as_flag
from ..batch_norm import BatchNorm2d
from ..calls import F
from ..containers import Sequential
from ..conv import Conv2d
from ..linear import Linear
from ..module import Module
from ..pooling import AdaptiveAvgPool2d


class BasicBlock(Module):
    """Two convolutions of 3 by 3 beside a shortcut."""

    expansion = 1

    def __init__(self, channels: int, width: int, stride: int, shortcut: Module | None) -> None:
        super().__init__()
        self.conv1 = _conv3(channels, width, stride)
        self.bn1 = BatchNorm2d(width)
        self.conv2 = _conv3(width, width, 1)
        self.bn2 = BatchNorm2d(width)
        self.register_module("downsample", shortcut)

    def forward(self, x: Tensor) -> Tensor:
        """Return the rectified sum of the shortcut and the convolutions."""
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + _shortcut(self, x))

    @property
    def last_norm(self) -> BatchNorm2d:
        """Return the normalisation before the sum."""
        return self.bn2


class Bottleneck(Module):
    """Convolutions of 1 by 1, 3 by 3 and 1 by 1 beside a shortcut.

    The stride stands at the middle one, as in torchvision ("version 1.5"), not at the first.
    """

    expansion = 4

    def __init__(self, channels: int, width: int, stride: int, shortcut: Module | None) -> None:
        super().__init__()
        self.conv1 = _conv1(channels, width, 1)
        self.bn1 = BatchNorm2d(width)
        self.conv2 = _conv3(width, width, stride)
        self.bn2 = BatchNorm2d(width)
        self.conv3 = _conv1(width, width * self.expansion, 1)
        self.bn3 = BatchNorm2d(width * self.expansion)
        self.register_module("downsample", shortcut)

    def forward(self, x: Tensor) -> Tensor:
        """Return the rectified sum of the shortcut and the convolutions."""
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + _shortcut(self, x))

    @property
    def last_norm(self) -> BatchNorm2d:
        """Return the normalisation before the sum."""
        return self.bn3


class ResNet(Module):
    """A stem, four stages of residual blocks, and a linear layer on the mean over the image.

    depths               blocks in each stage
    small_input          a stem of one 3 by 3 convolution without pooling, for images of 32 pixels
    width                channels of the first stage
    zero_init_residual   let each block begin as its shortcut (Goyal et al. 2017, section 5.1)

    >>> import weft as wf
    >>> net = ResNet(BasicBlock, [1, 1, 1, 1], num_classes=10, small_input=True, width=8)
    >>> net(wf.zeros(2, 3, 32, 32)).shape
    (2, 10)
    """

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        depths: Sequence[int],
        num_classes: int = 1000,
        in_channels: int = 3,
        small_input: bool = False,
        width: int = 64,
        zero_init_residual: bool = False,
    ) -> None:
        super().__init__()
        self.small_input = as_flag(self, "small_input", small_input)
        kernel, stride, padding = (3, 1, 1) if small_input else (7, 2, 3)
        self.conv1 = Conv2d(in_channels, width, kernel, stride, padding, bias=False)
        self.bn1 = BatchNorm2d(width)
        channels = width
        for stage, depth in enumerate(depths):
            planes = width * 2**stage
            made = _stage(block, channels, planes, depth, 1 if stage == 0 else 2)
            self.add_module(f"layer{stage + 1}", made)
            channels = planes * block.expansion
        self.stages = len(depths)
        self.avgpool = AdaptiveAvgPool2d(1)
        self.fc = Linear(channels, num_classes)
        _draw(self, as_flag(self, "zero_init_residual", zero_init_residual))

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (N, num_classes) of images (N, C, H, W)."""
        x = F.relu(self.bn1(self.conv1(x)))
        if not self.small_input:
            x = F.max_pool2d(x, 3, 2, 1)
        for stage in range(self.stages):
            x = self.__dict__[f"layer{stage + 1}"](x)
        result: Tensor = self.fc(F.flatten(self.avgpool(x), 1))
        return result


def resnet18(
    num_classes: int = 1000,
    in_channels: int = 3,
    small_input: bool = False,
    width: int = 64,
    zero_init_residual: bool = False,
) -> ResNet:
    """Return a residual network of 18 layers."""
    options = (num_classes, in_channels, small_input, width, zero_init_residual)
    return ResNet(BasicBlock, [2, 2, 2, 2], *options)


def resnet34(
    num_classes: int = 1000,
    in_channels: int = 3,
    small_input: bool = False,
    width: int = 64,
    zero_init_residual: bool = False,
) -> ResNet:
    """Return a residual network of 34 layers."""
    options = (num_classes, in_channels, small_input, width, zero_init_residual)
    return ResNet(BasicBlock, [3, 4, 6, 3], *options)


def resnet50(
    num_classes: int = 1000,
    in_channels: int = 3,
    small_input: bool = False,
    width: int = 64,
    zero_init_residual: bool = False,
) -> ResNet:
    """Return a residual network of 50 layers, of bottlenecks."""
    options = (num_classes, in_channels, small_input, width, zero_init_residual)
    return ResNet(Bottleneck, [3, 4, 6, 3], *options)


def _stage(block: Any, channels: int, planes: int, depth: int, stride: int) -> Sequential:
    """Return the blocks of a stage; the first changes size and channels, its shortcut too."""
    out = planes * block.expansion
    shortcut = None
    if stride != 1 or channels != out:
        shortcut = Sequential(_conv1(channels, out, stride), BatchNorm2d(out))
    blocks = [block(channels, planes, stride, shortcut)]
    blocks += [block(out, planes, 1, None) for _ in range(depth - 1)]
    return Sequential(*blocks)


def _conv3(channels: int, out: int, stride: int) -> Conv2d:
    return Conv2d(channels, out, 3, stride, 1, bias=False)


def _conv1(channels: int, out: int, stride: int) -> Conv2d:
    return Conv2d(channels, out, 1, stride, bias=False)


def _shortcut(block: Any, x: Tensor) -> Tensor:
    result: Tensor = x if block.downsample is None else block.downsample(x)
    return result


def _draw(net: Module, zero_init_residual: bool) -> None:
    for module in net.modules():
        if isinstance(module, Conv2d):
            init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if zero_init_residual and isinstance(module, BasicBlock | Bottleneck):
            scale = module.last_norm.weight
            assert scale is not None
            init.zeros_(scale)
