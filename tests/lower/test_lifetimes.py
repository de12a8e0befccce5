"""When buffers are alive."""

import numpy as np

from weft.core.scalar.builder import ScalarBuilder
from weft.lower.kernels import Operand, Output, RowKernel
from weft.lower.lifetimes import lifetimes, uses_of
from weft.lower.storage import Buffer, contiguous

FLOAT = np.dtype("float32")


def memory(name):
    return Buffer("arena", (8,), FLOAT, name)


def copy(source, target):
    loops = [Operand(contiguous(buffer, (8,)), (1,)) for buffer in (source, target)]
    return RowKernel("copy", (8,), loops, [Output(1, ScalarBuilder().load(0, FLOAT))])


def test_a_buffer_lives_from_its_first_use_to_its_last():
    a, b, c = map(memory, "abc")
    kernels = [copy(a, b), copy(b, c), copy(a, c)]
    found = lifetimes(kernels)
    assert found.spans == {a: (0, 2), b: (0, 1), c: (1, 2)}
    assert found.end == 3
    assert uses_of([*kernels[:2], None, kernels[2]]) == {a: [0, 3], b: [0, 1], c: [1, 3]}
