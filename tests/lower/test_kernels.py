"""What kernels are counted to do."""

import numpy as np
import pytest

import weft as wf
from weft.compiler.stages import optimize_static
from weft.graph.run import Program
from weft.lower.kernels import bytes_moved
from weft.lower.lowering import lower
from weft.lower.storage import Buffer, View, contiguous
from weft.passes.specialize import specialize


def only_kernel(build, *shapes, dtype=wf.float32):
    with wf.Graph() as graph:
        feeds = [wf.placeholder(shape, dtype) for shape in shapes]
        result = build(*feeds)
    program = Program(graph, [result.value], [x.value for x in feeds])
    shapes_of = {x.value: x.shape for x in feeds}
    made, _ = lower(optimize_static(specialize(program, shapes_of)))
    (kernel,) = made.kernels
    return kernel


@pytest.mark.parametrize(
    ("build", "shapes", "expected"),
    [
        (wf.exp, [(4, 5)], 20),
        (lambda x, y: wf.exp(x) * y + 1.0, [(4, 5), (5,)], 60),
        (lambda x: x.sum(axis=-1), [(4, 5)], 20),
        (lambda x: x.sum(axis=0), [(4, 5)], 20),
        (lambda x: x - x.max(axis=-1, keepdims=True), [(4, 5)], 40),
        (lambda x: wf.sqrt(x.sum(axis=-1)), [(4, 5)], 24),
        (lambda x, y: x @ y, [(4, 5), (5, 6)], 240),
        (lambda x, y: x @ y, [(3, 4, 5), (5, 6)], 720),
        (wf.nn.functional.linear, [(4, 5), (6, 5), (6,)], 264),
        (lambda x: x.astype(wf.float64), [(4, 5)], 0),
        (wf.exp, [(0, 5)], 0),
        (wf.exp, [()], 1),
    ],
)
def test_operations(build, shapes, expected):
    assert only_kernel(build, *shapes).operations == expected


def test_bytes_of_repeated_elements_count_once():
    buffer = Buffer("arena", (5,), np.dtype("float32"), "x")
    row = contiguous(buffer, (5,))
    assert bytes_moved([row]) == 20
    assert bytes_moved([row.broadcast((7, 5)), row]) == 40
    assert bytes_moved([View(buffer, (0, 5), (5, 1))]) == 0
    assert bytes_moved([View(buffer, (), ())]) == 4
