"""How many vectors a kernel treats at a time, and that results do not depend on it."""

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from weft.backends.cpu.codegen.target import host
from weft.backends.cpu.codegen.width import FEW, MANY

LANES = host().lanes("float32")


def compiled(function, *arrays):
    with wf.Graph() as graph:
        feeds = [wf.placeholder(x.shape, x.dtype) for x in arrays]
        out = function(*feeds)
    return wf.Session(graph).executable(out, dict(zip(feeds, arrays, strict=True)))


def computed(function, *arrays):
    (found,) = compiled(function, *arrays).run(list(arrays))
    return found


def vectors(function, *shapes, dtype="float32"):
    """Return the registers of the widest value of a kernel."""
    text = compiled(function, *(np.ones(shape, dtype) for shape in shapes)).llvm_ir()
    element = {"float32": "float", "float64": "double"}[dtype]
    lanes = host().lanes(dtype)
    widths = range(1, 2 * MANY + 1)
    return max(n for n in widths if f"<{n * lanes} x {element}>" in text)


def smooth(x, y):
    a = wf.tanh(x * y) + wf.sigmoid(x - y)
    b = wf.exp(-a * a) * x
    return wf.log(b * b + 0.5) * y


def divided(x, y):
    a = wf.abs(x * 0.5 + y) + 1.0
    return wf.sqrt(a) / (a - y)


def test_bodies_of_functions_are_wide():
    assert vectors(smooth, 4096, 4096) == MANY
    assert vectors(wf.tanh, 4096) == MANY
    assert vectors(wf.tanh, 4096, dtype="float64") == MANY
    assert vectors(lambda x: wf.softmax(x, -1), (8, 1024)) == MANY


def test_bodies_that_do_not_wait_are_narrow():
    assert vectors(lambda x, y: x * y + x, 4096, 4096) == FEW
    assert vectors(lambda x: wf.floor(x * 0.5), 4096) == FEW
    assert vectors(lambda x: F.layer_norm(x, x.shape[-1:]), (8, 1024)) == FEW


def test_a_divider_is_busy_whatever_the_order():
    assert vectors(divided, 4096, 4096) == FEW


def test_rows_treated_together_share_the_vectors():
    """Two rows of two vectors are as many chains as one row of four."""
    assert vectors(lambda x: wf.softmax(x, -1), (128, 8 * LANES)) == MANY // 2


def test_elements_taken_one_by_one_are_narrow():
    places = np.zeros(4096, np.int64)
    x = np.ones(64, np.float32)
    text = compiled(lambda x, i: wf.exp(x[i]), x, places).llvm_ir()
    assert f"<{FEW * LANES} x float>" in text
    assert f"<{MANY * LANES} x float>" not in text


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", [smooth, divided, lambda x, y: x + y])
def test_results_do_not_depend_on_the_place(function, dtype):
    """An element has the same bits in a whole vector, in a single register and in a part of one."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 5 * MANY * LANES)).astype(dtype)
    whole = computed(function, x, y)
    for start in (1, LANES - 1, LANES + 3, 3 * LANES):
        for size in (1, LANES - 1, LANES, LANES + 1, MANY * LANES, 3 * MANY * LANES + 5):
            part = slice(start, start + size)
            np.testing.assert_array_equal(computed(function, x[part], y[part]), whole[part])


COLUMNS = [1, LANES - 1, LANES, LANES + 1, 2 * LANES - 1, 2 * LANES, 2 * LANES + 1, 3 * LANES]
COLUMNS += [4 * LANES, 4 * LANES + 1, 5 * LANES, 7 * LANES + 3, 8 * LANES + 4, 21 * LANES + 2]


@pytest.mark.parametrize("columns", COLUMNS)
def test_rows_of_every_length(columns):
    x = np.random.default_rng(0).normal(size=(5, columns)).astype(np.float32)
    wide = x.astype(np.float64)
    sums = np.exp(wide).sum(-1)
    np.testing.assert_allclose(computed(lambda x: wf.exp(x).sum(-1), x), sums, rtol=1e-6)
    softmax = computed(lambda x: wf.softmax(x, -1), x)
    np.testing.assert_allclose(softmax, np.exp(wide) / sums[:, None], rtol=2e-6)
    np.testing.assert_array_equal(computed(lambda x: x.max(-1), x), x.max(-1))
    np.testing.assert_allclose(computed(wf.tanh, x.T), np.tanh(wide.T), rtol=1e-6)


@pytest.mark.parametrize("columns", COLUMNS)
def test_totals_of_rows_of_every_length(columns):
    """Rows combined element by element, into totals that are cleared by the same vectors."""
    x = np.random.default_rng(0).normal(size=(9, columns)).astype(np.float32)
    found = computed(lambda x: (wf.softmax(x, -1) * x).sum(0), x)
    wide = x.astype(np.float64)
    expected = np.exp(wide) / np.exp(wide).sum(-1, keepdims=True) * wide
    np.testing.assert_allclose(found, expected.sum(0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", [smooth, lambda x, y: (wf.softmax(x * y, -1) * y).sum(-1)])
def test_results_do_not_depend_on_the_number_of_threads(function):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 301, 1003)).astype(np.float32)
    before = wf.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            wf.set_num_threads(threads)
            found.append(computed(function, x, y))
    finally:
        wf.set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_one_element_has_no_vectors():
    text = compiled(smooth, np.ones(1, "float32"), np.ones(1, "float32")).llvm_ir()
    kernels = [part for part in text.split("define ") if "@kernel_" in part.split("(")[0]]
    assert kernels
    assert all(" x float>" not in kernel for kernel in kernels)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_element_has_the_bits_of_many(dtype):
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(40).astype(dtype) * 3 for _ in range(2))
    whole = computed(smooth, x, y)
    single = [computed(smooth, x[i : i + 1], y[i : i + 1]) for i in range(0, 40, 13)]
    np.testing.assert_array_equal(np.concatenate(single), whole[::13])
