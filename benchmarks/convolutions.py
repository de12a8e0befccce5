"""Convolutions and their two adjoints against PyTorch (oneDNN).

    python benchmarks/convolutions.py --peer-python /path/to/python/with/torch

Layers of the usual nets: 3x3 kernels from large images with few channels to small ones with many,
strided ones, 1x1 kernels, and a first layer of 7x7. "forward" gives the result, "input" and
"weight" the adjoints for a given gradient of it. All compute the same arrays in float32 on two
threads, which is checked before anything is timed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from harness import Workloads, main

THREADS = 2
BAR = 1.0
TOLERANCE = 1e-4
WAYS = ("forward", "input", "weight")


@dataclass(frozen=True)
class Layer:
    """Images (batch, channels, size, size) and so many kernels, padded to keep the size."""

    batch: int
    channels: int
    size: int
    outputs: int
    kernel: int = 3
    stride: int = 1

    @property
    def padding(self) -> int:
        """Return the places of padding on each side."""
        return self.kernel // 2

    def arrays(self) -> list[np.ndarray]:
        """Return images, weight, and the gradient of the result."""
        rng = np.random.default_rng(0)
        size = (self.size + 2 * self.padding - self.kernel) // self.stride + 1
        shapes = (
            (self.batch, self.channels, self.size, self.size),
            (self.outputs, self.channels, self.kernel, self.kernel),
            (self.batch, self.outputs, size, size),
        )
        return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


LAYERS = {
    "64x1x28 32 of 3x3": Layer(64, 1, 28, 32),
    "16x32x28 64 of 3x3": Layer(16, 32, 28, 64),
    "16x64x32 64 of 3x3": Layer(16, 64, 32, 64),
    "16x128x16 128 of 3x3": Layer(16, 128, 16, 128),
    "16x256x8 256 of 3x3": Layer(16, 256, 8, 256),
    "16x512x4 512 of 3x3": Layer(16, 512, 4, 512),
    "16x64x32 128 of 3x3 by 2": Layer(16, 64, 32, 128, stride=2),
    "16x64x32 128 of 1x1 by 2": Layer(16, 64, 32, 128, kernel=1, stride=2),
    "16x64x56 256 of 1x1": Layer(16, 64, 56, 256, kernel=1),
    "8x3x224 64 of 7x7 by 2": Layer(8, 3, 224, 64, kernel=7, stride=2),
}
CASES = {f"{name} {way}": (layer, way) for name, layer in LAYERS.items() for way in WAYS}


def with_weft() -> Workloads:
    """Return the workloads for Weft."""
    import weft as wf

    wf.set_num_threads(THREADS)

    def case_of(layer, way):
        arrays = layer.arrays()
        with wf.Graph() as graph:
            x, w, g = (wf.placeholder(a.shape, a.dtype) for a in arrays)
            y = wf.nn.functional.conv2d(x, w, stride=layer.stride, padding=layer.padding)
            fetch = y if way == "forward" else wf.gradients(y, [x if way == "input" else w], g)[0]
        session = wf.Session(graph, compiled=True)
        needed = {"forward": (x, w), "input": (w, g), "weight": (x, g)}[way]
        given = dict(zip((x, w, g), arrays, strict=True))
        feeds = {symbol: given[symbol] for symbol in needed}

        def run():
            return session.run(fetch, feeds)

        return run

    return {name: case_of(*case) for name, case in CASES.items()}


def with_torch() -> Workloads:
    """Return the workloads for PyTorch."""
    import torch

    torch.set_num_threads(THREADS)

    def case_of(layer, way):
        x, w, g = map(torch.from_numpy, layer.arrays())
        pairs = ([layer.stride] * 2, [layer.padding] * 2, [1, 1])
        wanted = [way == "input", way == "weight", False]

        @torch.no_grad()
        def run():
            if way == "forward":
                return torch.conv2d(x, w, None, *pairs)
            backward = torch.ops.aten.convolution_backward
            return backward(g, x, w, None, *pairs, False, [0, 0], 1, wanted)[way == "weight"]

        return run

    return {name: case_of(*case) for name, case in CASES.items()}


if __name__ == "__main__":
    main(
        __file__,
        {"weft": with_weft, "torch": with_torch},
        bars=dict.fromkeys(CASES, BAR),
        tolerance=TOLERANCE,
    )
