"""Where a kernel may write over what it reads."""

import numpy as np

from weft.core.scalar.builder import ScalarBuilder
from weft.lower.kernels import GemmKernel, Operand, Output, RowKernel
from weft.lower.storage import Buffer, View, contiguous
from weft.plan.in_place import writes_in_place

FLOAT = np.dtype("float32")
A, B, C = (Buffer("arena", (4, 8), FLOAT, name) for name in "abc")


def rows(*views, way=None):
    """Return the kernel that stores the sum of all views but the last in that one."""
    build = ScalarBuilder()
    loads = [build.load(i, FLOAT) for i in range(len(views) - 1)]
    total = loads[0]
    for load in loads[1:]:
        total = total + load
    operands = tuple(Operand(view, view.strides) for view in views)
    return RowKernel("add", (4, 8), operands, (Output(len(loads), total, way),))


def whole(buffer):
    return contiguous(buffer, (4, 8))


def test_element_by_element():
    kernel = rows(whole(A), whole(B), whole(C))
    assert writes_in_place(kernel, whole(C), A)
    assert writes_in_place(kernel, whole(C), B)


def test_not_where_elements_move():
    transposed = View(A, (4, 8), (1, 4))
    kernel = rows(transposed, whole(B), whole(C))
    assert not writes_in_place(kernel, whole(C), A)
    assert writes_in_place(kernel, whole(C), B)
    repeated = rows(View(A, (4, 8), (0, 1)), whole(C))
    assert not writes_in_place(repeated, whole(C), A)


def test_not_where_several_make_one():
    assert not writes_in_place(rows(whole(A), whole(C), way="sum"), whole(C), A)


def test_products_overwrite_what_their_epilogue_reads():
    x, y = whole(A), contiguous(Buffer("arena", (8, 8), FLOAT, "y"), (8, 8))
    out = whole(Buffer("arena", (4, 8), FLOAT, "out"))
    build = ScalarBuilder()
    total = build.load(0, FLOAT) + build.load(1, FLOAT)
    epilogue = {"extras": (whole(B), whole(C)), "outputs": (Output(2, total),)}
    kernel = GemmKernel("matmul", (), 4, 8, 8, x, y, out, None, **epilogue)
    assert writes_in_place(kernel, whole(C), B)
    assert not writes_in_place(kernel, whole(C), A)
    assert not writes_in_place(kernel, out, B)
