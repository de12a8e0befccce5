"""U-Net (Ronneberger, Fischer, Brox 2015, arXiv:1505.04597): an image in, a map of it out."""

from __future__ import annotations

from itertools import pairwise

from ...core.tensor import Tensor
from ..activation import ReLU
from ..arguments import as_size
from ..batch_norm import BatchNorm2d
from ..calls import F
from ..containers import ModuleList, Sequential
from ..conv import Conv2d
from ..conv_transpose import ConvTranspose2d
from ..module import Module


class UNet(Module):
    """Halve the image `depth` times and double it again, with a shortcut at each size.

    width   channels at full size; they double with each halving

    The convolutions are padded, so that the map has the size of the image, which may be any.

    >>> import weft as wf
    >>> UNet(1, 2, width=4, depth=2)(wf.zeros(1, 1, 17, 20)).shape
    (1, 2, 17, 20)
    """

    def __init__(
        self,
        in_channels: int | None = None,
        num_classes: int = 2,
        width: int = 64,
        depth: int = 4,
    ) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(as_size(self, "depth", depth) + 1)]
        down = [_double(in_channels, widths[0])]
        down += [_double(a, b) for a, b in pairwise(widths)]
        self.down = ModuleList(down)
        rising = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.up = ModuleList([ConvTranspose2d(a, b, 2, 2) for a, b in rising])
        self.merge = ModuleList([_double(2 * b, b) for _, b in rising])
        self.head = Conv2d(width, num_classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores (N, num_classes, H, W) for each pixel of images (N, C, H, W)."""
        skips: list[Tensor] = []
        for block in self.down:
            x = block(F.max_pool2d(x, 2) if skips else x)
            skips.append(x)
        skips.pop()
        for up, merge in zip(self.up, self.merge, strict=True):
            skip = skips.pop()
            x = merge(F.concat([skip, _padded(up(x), skip)], 1))
        result: Tensor = self.head(x)
        return result


def _double(channels: int | None, out: int) -> Sequential:
    return Sequential(
        *(Conv2d(channels, out, 3, padding=1, bias=False), BatchNorm2d(out), ReLU()),
        *(Conv2d(out, out, 3, padding=1, bias=False), BatchNorm2d(out), ReLU()),
    )


def _padded(x: Tensor, like: Tensor) -> Tensor:
    """Return x with the row and column that halving an odd size has lost."""
    rows, columns = (like.shape[axis] - x.shape[axis] for axis in (2, 3))
    return F.pad(x, ((0, 0), (0, 0), (0, rows), (0, columns))) if rows or columns else x
