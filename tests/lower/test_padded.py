"""Images with padding: all that windows can reach is written, whatever was there before."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from weft.core.dtype import float32
from weft.lower.padded import Axis, Padded
from weft.lower.storage import Buffer, contiguous

PHASES = (0, 1)
CASES = {
    "narrow gaps": (Axis(5, 1, 7), Axis(6, 1, 8)),
    "wide gaps": (Axis(5, 2, 9), Axis(6, 9, 20)),
    "rows alone": (Axis(5, 0, 5), Axis(6, 2, 9)),
    "columns alone": (Axis(5, 3, 9), Axis(6, 0, 6)),
    "before only": (Axis(5, 1, 6), Axis(6, 3, 9)),
    "after only": (Axis(5, 0, 7), Axis(6, 0, 8)),
    "none": (Axis(5, 0, 5), Axis(6, 0, 6)),
    "cropped": (Axis(5, -1, 3), Axis(6, -2, 7)),
    "nothing inside": (Axis(5, 9, 4), Axis(6, 1, 8)),
    "one axis": (Axis(6, 2, 10),),
    "three axes": (Axis(2, 1, 4), Axis(3, 0, 3), Axis(6, 1, 8)),
    "three padded axes": (Axis(2, 0, 2), Axis(3, 2, 6), Axis(6, 1, 7)),
    "phases": (Axis(5, 1, 4, 2, PHASES), Axis(6, 2, 6, 2, PHASES)),
    "one phase of two": (Axis(5, 1, 3, 2, (1,)), Axis(6, 0, 6)),
}


def seen(arrays, view):
    """Return a view of a buffer as an array that can be written to."""
    flat = arrays[view.buffer][view.offset :]
    return as_strided(flat, view.shape, [s * flat.itemsize for s in view.strides])


def run(kernel, arrays):
    """Do what a kernel does that copies or fills."""
    for output in kernel.outputs:
        target = seen(arrays, kernel.operands[output.operand].view)
        if output.value.kind == "const":
            target[...] = output.value.data
        else:
            target[...] = seen(arrays, kernel.operands[output.value.data].view)


def expected(x, axes, phases):
    """Return what belongs to some phases: places outside of the image are zero."""
    found = np.zeros((*x.shape[:2], *(axis.length for axis in axes)), x.dtype)
    for place in product(*(range(axis.length) for axis in axes)):
        at = [q * a.stride + p - a.before for q, a, p in zip(place, axes, phases, strict=True)]
        if all(0 <= i < axis.size for i, axis in zip(at, axes, strict=True)):
            found[:, :, *place] = x[:, :, *at]
    return found


@pytest.mark.parametrize("name", CASES)
def test_padding_and_images(name):
    axes = CASES[name]
    x = np.random.default_rng(0).normal(size=(2, 3, *(a.size for a in axes))).astype(np.float32)
    images = contiguous(Buffer("feed", x.shape, float32, "x"), x.shape)
    padded = Padded(x.shape[:2], axes, float32)
    memory = np.full(padded.whole.shape, np.nan, np.float32)
    for kernel in padded.kernels(images):
        run(kernel, {images.buffer: x.reshape(-1), padded.whole.buffer: memory})
    inner = memory[padded.start : -padded.start].reshape(padded.shape)
    for numbers in product(*(range(len(axis.phases)) for axis in axes)):
        phases = [axis.phases[i] for axis, i in zip(axes, numbers, strict=True)]
        np.testing.assert_array_equal(inner[:, :, *numbers], expected(x, axes, phases))
