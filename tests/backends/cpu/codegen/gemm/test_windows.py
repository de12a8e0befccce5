"""Windows of images in products: read by the tiles themselves, or packed first."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.backends.cpu.codegen.gemm import outer
from weft.backends.cpu.codegen.gemm.windows import WindowPanel
from weft.compiler import stages

LINES = {
    "lines of vectors": (16, 16),
    "lines that end within vectors": (7, 13),
    "lines shorter than vectors": (9, 4),
}


def convolution(size, channels, kernels):
    """Return the code of a convolution, and its result."""
    rng = np.random.default_rng(0)
    shapes = (2, channels, *size), (kernels, channels, 3, 3)
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    with wf.Graph() as graph:
        feeds = [wf.placeholder(a.shape, a.dtype) for a in (x, w)]
        out = wf.nn.functional.conv2d(*feeds, padding=1)
    session = wf.Session(graph)
    fed = dict(zip(feeds, (x, w), strict=True))
    return session.executable(out, fed).llvm_ir(), session.run(out, fed)


@pytest.mark.parametrize("kernels", [1, 5, 40])
@pytest.mark.parametrize("size", LINES.values(), ids=LINES)
def test_both_ways_give_the_same_bits(size, kernels, monkeypatch):
    monkeypatch.setattr(stages, "known_program", lambda *_: None)
    code, read = convolution(size, 4, kernels)
    monkeypatch.setattr(outer, "MOST_PIECES", 0)
    other, packed = convolution(size, 4, kernels)
    assert "pack_windows" in other
    assert "pack_windows" not in code
    np.testing.assert_array_equal(read, packed)


def test_windows_of_short_lines_are_packed(monkeypatch):
    monkeypatch.setattr(outer, "MOST_PIECES", 2)
    code, _ = convolution((30, 1), 4, 5)
    assert "pack_windows" in code


def test_a_vector_has_a_piece_for_each_line_that_it_may_touch():
    def pieces(*sizes):
        return WindowPanel("float", 8, 2, tuple((n, 1) for n in sizes)).pieces

    assert pieces(4, 16) == 1
    assert pieces(4, 12) == 2
    assert pieces(4, 3) == 4
    assert pieces(1, 3) == 1
