"""Products of sizes that only a run knows take the ways and depths of products of known ones."""

from __future__ import annotations

import pytest

from weft.backends.cpu.codegen.gemm.plan import plan_for
from weft.backends.cpu.codegen.gemm.sized import sized_product
from weft.backends.cpu.codegen.target import avx512, host
from weft.core.dim import deciding, run_time_size
from weft.core.dtype import float32
from weft.lower.at_sizes import AtSizes
from weft.lower.kernels import GemmKernel
from weft.lower.storage import Buffer, contiguous

n = run_time_size("n")
(N,) = n.variables()


def product(m, columns, k, *, turned=False):
    """Return x @ y, or x @ y.T."""
    shapes = ((m, k), (columns, k) if turned else (k, columns), (m, columns))
    views = [contiguous(Buffer("arena", shape, float32, "v"), shape) for shape in shapes]
    x, y, out = views
    return GemmKernel("p", (), m, columns, k, x, y.permuted((1, 0)) if turned else y, out, None)


@pytest.mark.parametrize("size", [2, 3, 5, 6, 7, 24, 25, 100, 1000])
@pytest.mark.parametrize(
    "sizes", [(n, 512, 784, True), (n, 300, 900, False), (64, 33, n, False), (n, n, 40, True)]
)
def test_way_and_depth_are_those_of_known_sizes(sizes, size):
    *shape, turned = sizes
    kernel = product(*shape, turned=turned)
    with deciding({N: 64}):
        sized = sized_product(kernel, host())
    at = AtSizes({N: size})
    known = at.kernel(kernel)
    expected = plan_for(known, host())
    _, found = sized.at(known, at)
    assert found.way == expected.way
    if found.way == "outer":
        assert found.depth == expected.depth
        assert found.depth <= sized.depth_room
    assert found.form.rows <= max(1, found.product.m)


def test_packed_blocks_fit_into_scratch_memory():
    kernel = product(n, 4096, 784)
    with deciding({N: 64}):
        sized = sized_product(kernel, host())
    room = sized.scratch_bytes()
    assert not isinstance(room, int)
    for size in (2, 5, 31, 128, 500, 3000):
        at = AtSizes({N: size})
        _, plan = sized.at(at.kernel(kernel), at)
        if plan.way == "outer":
            assert sized.bytes_of(plan) <= at.part(room)


@pytest.mark.parametrize("size", [30, 60, 126, 250])
def test_tiles_leave_few_rows_of_usual_batches_over(size):
    kernel = product(n, 512, 784, turned=True)
    with deciding({N: size}):
        rows = sized_product(kernel, avx512()).plans[0].form.rows
    for batch in (32, 64, 128, 256):
        assert -(-batch // rows) * rows <= 1.05 * batch
