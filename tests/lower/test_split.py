"""Products that are long and have few elements are cut into parts along their inner dimension."""

import numpy as np
import pytest

from weft.lower.kernels import ColumnKernel, GemmKernel
from weft.lower.split import LEAST_DEPTH, PARTS, product_work, split_inner
from weft.lower.storage import Buffer, contiguous

FLOAT = np.dtype("float32")


def product(m, k, n):
    x, y, out = (
        contiguous(Buffer("arena", shape, FLOAT, "b"), shape) for shape in ((m, k), (k, n), (m, n))
    )
    return GemmKernel("matmul", (), m, n, k, x, y, out, None)


def test_sums_of_few_elements_are_divided():
    whole = product(32, PARTS * LEAST_DEPTH + 3, 32)
    parts, rest, total = split_inner(whole)
    assert (parts.batch, parts.k, rest.batch, rest.k) == ((PARTS,), LEAST_DEPTH, (), 3)
    assert parts.x.offset == parts.y.offset == 0
    assert rest.x.offset == PARTS * LEAST_DEPTH
    assert rest.y.offset == PARTS * LEAST_DEPTH * 32
    assert isinstance(total, ColumnKernel)
    assert total.loops == (PARTS + 1, 1024)


def test_parts_of_one_length_leave_no_rest():
    parts, total = split_inner(product(16, 2 * PARTS * LEAST_DEPTH, 16))
    assert (parts.k, total.loops) == (2 * LEAST_DEPTH, (PARTS, 256))


@pytest.mark.parametrize("sizes", [(16, 1000, 16), (512, 8192, 512), (0, 8192, 16)])
def test_others_stay_whole(sizes):
    kernel = product(*sizes)
    assert split_inner(kernel) == [kernel]


def test_work_of_thin_products_is_that_of_reading():
    assert product_work(1, 64, 64, 100) == 2 * 64 * 64 * 100
    assert product_work(1, 1, 64, 100) == 2 * 100 * 4 * 65
