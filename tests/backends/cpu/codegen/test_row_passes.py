"""Passes over rows: what they fetch ahead, where they keep values, which rows go together."""

import dataclasses

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from weft.backends.cpu import device
from weft.backends.cpu.codegen.target import KIB, MIB, host
from weft.backends.cpu.codegen.width import MANY_ROWS

USUAL = dataclasses.replace(host(), l2_bytes=512 * KIB, l3_bytes=32 * MIB)
SMALL = dataclasses.replace(USUAL, l3_bytes=4096)  # a machine whose caches everything exceeds


def use_machine(monkeypatch, target):
    monkeypatch.setattr(device, "host", lambda: target)


@pytest.fixture
def usual_caches(monkeypatch):
    use_machine(monkeypatch, USUAL)


@pytest.fixture
def small_caches(monkeypatch):
    use_machine(monkeypatch, SMALL)


def compiled(function, *arrays):
    with wf.Graph() as graph:
        feeds = [wf.placeholder(x.shape, x.dtype) for x in arrays]
        out = function(*feeds)
    return wf.Session(graph).executable(out, dict(zip(feeds, arrays, strict=True)))


def softmax(x):
    return wf.softmax(x, -1)


def layer_norm(x):
    return F.layer_norm(x, x.shape[-1:])


def softmax_gradient(x):
    return wf.gradients(softmax(x), x, x * 2.0)


FUNCTIONS = [softmax, layer_norm, softmax_gradient]


def fetches(function, rows, columns):
    return "@llvm.prefetch" in compiled(function, np.ones((rows, columns), np.float32)).llvm_ir()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_next_row_is_fetched(function, usual_caches):
    assert fetches(function, 2048, 1024)


@pytest.mark.parametrize(("rows", "columns"), [(8, 1024), (65536, 32), (8, 500_000)])
def test_what_is_near_tiny_or_huge_is_not_fetched(rows, columns, usual_caches):
    assert not fetches(softmax, rows, columns)


def test_one_pass_fetches_nothing(usual_caches):
    assert not fetches(lambda x: x.sum(-1), 2048, 1024)


def test_streamed_results_hold_nothing_before(small_caches):
    """Each element is written once, past the caches; the exponentials stay in scratch memory."""
    rows = MANY_ROWS - 1  # so few are not treated together, which would write the loop twice
    text = compiled(softmax, np.ones((rows, 256), np.float32)).llvm_ir()
    fitting = text[text.index("fitting") : text.index("fence seq_cst")]
    stores = [line for line in fitting.splitlines() if " store <" in line]
    assert sum("!nontemporal" in line for line in stores) == 1
    assert "alloca float" in text


def test_rows_too_long_for_scratch_memory_are_not_streamed(small_caches):
    x = np.random.default_rng(0).normal(size=(16, 8192)).astype(np.float32)
    program = compiled(softmax, x)
    assert "!nontemporal" not in program.llvm_ir()
    np.testing.assert_allclose(program.run([x])[0].sum(-1), 1, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 7, 16, 40, 64])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_rows_treated_together_are_like_single_ones(function, columns, dtype):
    """The last of an odd number of rows is alone; it has the bits that it has in company."""
    x = np.random.default_rng(0).normal(size=(MANY_ROWS + 1, columns)).astype(dtype)
    x[-1] = x[0]
    (found,) = compiled(function, x).run([x])
    np.testing.assert_array_equal(found[-1], found[0])
    for row in range(0, len(x), 16):
        (alone,) = compiled(function, x[row : row + 1]).run([x[row : row + 1]])
        np.testing.assert_allclose(found[row], alone[0], rtol=1e-5, atol=1e-6)


def test_rows_treated_together_over_their_operand():
    """A chain of row kernels, whose results may take the memory of their operands."""
    x = np.random.default_rng(0).normal(size=(3, 101, 24)).astype(np.float32)
    (found,) = compiled(lambda x: softmax(layer_norm(softmax(x)) * 3.0), x).run([x])
    for expected, row in zip(x.reshape(-1, 24), found.reshape(-1, 24), strict=True):
        y = np.exp(expected.astype(np.float64))
        y /= y.sum()
        y = np.exp(3 * (y - y.mean()) / np.sqrt(y.var() + 1e-5))
        np.testing.assert_allclose(row, y / y.sum(), rtol=2e-5)


def test_totals_of_rows_treated_together():
    x = np.random.default_rng(0).normal(size=(131, 24)).astype(np.float32)
    w = np.ones(24, np.float32)

    def gradient(x, w):
        return wf.gradients((F.layer_norm(x, (24,), w) * x).sum(), w)

    deviation = x - x.mean(-1, keepdims=True)
    expected = (deviation / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * x).sum(0)
    np.testing.assert_allclose(compiled(gradient, x, w).run([x, w])[0], expected, rtol=1e-4)
