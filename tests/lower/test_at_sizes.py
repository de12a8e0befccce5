"""Kernels with sizes become kernels with numbers, and keep what has none."""

from __future__ import annotations

import numpy as np

from weft.core.dim import run_time_size
from weft.core.dtype import float32
from weft.core.scalar.builder import ScalarBuilder
from weft.lower.at_sizes import AtSizes, has_sizes
from weft.lower.kernels import Operand, Output, RowKernel
from weft.lower.size_numbers import SizeNumber
from weft.lower.storage import Buffer, contiguous

n = run_time_size("n")
(N,) = n.variables()


def kernel(size):
    """Return the kernel of x / size, for so many rows of three."""
    buffers = [Buffer("arena", (size, 3), float32, name) for name in "xy"]
    views = [contiguous(buffer, buffer.shape) for buffer in buffers]
    builder = ScalarBuilder()
    value = builder.load(0, float32) / builder.constant(size, float32)
    operands = tuple(Operand(view, (1,)) for view in views)
    return RowKernel("k", (size * 3,), operands, (Output(1, value),))


def test_sizes_become_numbers_everywhere():
    made = AtSizes({N: 4}).kernel(kernel(n))
    assert made.loops == (12,)
    assert made.operands[0].view.buffer.shape == (4, 3)
    assert made.outputs[0].value.args[1].data == 4.0
    assert not has_sizes(made)


def test_a_buffer_is_made_once():
    given = kernel(n)
    at = AtSizes({N: 4})
    made = at.kernel(given)
    assert at.buffer(given.operands[0].view.buffer) is made.operands[0].view.buffer
    assert at.kernel(given) is made


def test_what_has_no_sizes_stays_as_it_is():
    given = kernel(5)
    assert AtSizes({N: 4}).kernel(given) is given
    assert not has_sizes(given)
    assert has_sizes(kernel(n))


def test_numbers_follow_from_sizes():
    number = SizeNumber(("truediv", 1.0, n), float32)
    found = number.at({N: 3})
    assert found.dtype == np.float32
    assert found == np.float32(1.0 / 3)
