"""What passes the caches or is asked for early: where, and that nothing but speed depends on it."""

import dataclasses

import numpy as np
import pytest

import weft as wf
from weft.backends.cpu import device
from weft.backends.cpu.codegen.target import host
from weft.backends.cpu.runtime.arena import aligned_empty

SMALL = dataclasses.replace(
    host(), l2_bytes=1024, l3_bytes=4096
)  # a machine whose caches everything exceeds


@pytest.fixture
def small_caches(monkeypatch):
    make_caches_small(monkeypatch)


def make_caches_small(monkeypatch):
    monkeypatch.setattr(device, "host", lambda: SMALL)


def compiled(function, *arrays):
    with wf.Graph() as graph:
        feeds = [wf.placeholder(x.shape, x.dtype) for x in arrays]
        out = function(*feeds)
    return wf.Session(graph).executable(out, dict(zip(feeds, arrays, strict=True)))


CASES = {
    "map": (lambda x, y: x * y + 1.0, [(64, 65), (64, 65)]),
    "rows": (lambda x, y: wf.softmax(x + y, -1), [(50, 64), (64,)]),
    "rows of odd lengths": (lambda x, y: wf.softmax(x + y, -1), [(50, 67), (67,)]),
    "totals of rows": (
        lambda x, y: wf.concat(
            [
                wf.gradients(wf.nn.functional.layer_norm(x, (64,), y, y).square().sum(), v).reshape(
                    -1
                )
                for v in (x, y)
            ]
        ),
        [(500, 64), (64,)],
    ),
    "two results": (lambda x, y: wf.concat([x.exp(), y.exp()]), [(4000,), (4000,)]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_results_are_the_same(name, dtype, monkeypatch):
    function, shapes = CASES[name]
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(dtype) for shape in shapes]
    (expected,) = compiled(function, *arrays).run(arrays)
    make_caches_small(monkeypatch)
    (found,) = compiled(function, *arrays).run(arrays)
    np.testing.assert_array_equal(found, expected)


def test_large_results_are_streamed(small_caches):
    x = np.ones((64, 64), np.float32)
    assert "!nontemporal" in compiled(lambda x: x * 2.0, x).llvm_ir()


@pytest.mark.parametrize("columns", [16, 64])
def test_what_the_caches_hold_is_not(columns):
    x = np.ones((64, columns), np.float32)
    assert "!nontemporal" not in compiled(lambda x: x * 2.0, x).llvm_ir()


def test_rows_that_do_not_begin_at_vectors_are_not(small_caches):
    x = np.ones((64, 67), np.float32)
    assert "!nontemporal" not in compiled(lambda x: wf.softmax(x, -1), x).llvm_ir()


def test_memory_at_any_place_is_written(small_caches):
    """A result that does not lie at a vector's boundary gets ordinary stores."""
    x = np.arange(4096, dtype=np.float32)
    program = compiled(lambda x: x * 2.0, x)
    for shift in (0, 4, 16, 32):
        out = aligned_empty(4 * 4096 + 64)[shift : shift + 4 * 4096].view(np.float32)
        assert program.entry((x,), (out,)) is None
        np.testing.assert_array_equal(out, 2 * x)


def asks_ahead(function, *arrays):
    return "llvm.prefetch" in compiled(function, *arrays).llvm_ir()


@pytest.mark.parametrize("function", [lambda x: x * 2.0, lambda x: (x * 2.0).sum()])
def test_what_exceeds_the_caches_is_asked_for_ahead(function, small_caches):
    assert asks_ahead(function, np.ones((64, 64), np.float32))


def test_what_the_caches_hold_is_not_asked_for():
    assert not asks_ahead(lambda x: x * 2.0, np.ones((64, 64), np.float32))


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: x[:, :40] * 2.0, id="parts of rows"),
        pytest.param(lambda x: wf.softmax(x, -1), id="several passes"),
    ],
)
def test_what_does_not_come_next_is_not_asked_for(function, small_caches):
    assert not asks_ahead(function, np.ones((64, 64), np.float32))
