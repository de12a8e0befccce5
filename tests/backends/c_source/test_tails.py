"""Small kernels behind others, in the same launch."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.backends.opencl.test_backend import needs_device
from tests.backends.shim import needs_compiler
from weft.backends import backend_named
from weft.backends.c_source import tails
from weft.backends.c_source.execution import DeviceExecution

pytestmark = pytest.mark.usefixtures("shim")
PLACES = [
    pytest.param("opencl:0", marks=needs_device),
    pytest.param("shim:1", marks=needs_compiler),
]


@pytest.fixture(params=PLACES)
def place(request):
    return request.param


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=(300, 500)).astype(np.float32)


def prepared(build, place, *arrays):
    """Return a program on a device, and the results of the reference."""
    with wf.Graph() as graph:
        given = [wf.placeholder(a.shape, a.dtype) for a in arrays]
        fetches = build(*given)
    feeds = dict(zip(given, arrays, strict=True))
    executable = wf.Session(graph, device="reference").executable(fetches, feeds)
    ready = DeviceExecution(backend_named(place), executable.program, executable.sources)
    return ready, [np.array(y) for y in executable.run(list(arrays))]


def found(ready, *arrays):
    copy_out = ready.backend.copy_out
    values = ready.run(list(arrays))
    return [y if isinstance(y, np.ndarray) else copy_out(y.block.memory) for y in values]


def sums(x):
    """Return sums that are found in parts, and what follows from them."""
    total = x.sum()
    return [total, x.sum(axis=0), wf.exp(total / 1e6), (x * 2).sum(axis=1)]


def count(ready):
    return len(ready.code.functions)


def test_small_kernels_have_no_launch_of_their_own(place, x):
    ready, expected = prepared(sums, place, x)
    alone = sum(map(len, ready.code.alone.values()))
    assert alone > len(ready.code.alone) // 2
    assert count(ready) < alone
    first = found(ready, x)
    for a, b in zip(first, expected, strict=True):
        np.testing.assert_allclose(a.reshape(b.shape), b, rtol=1e-5, atol=1e-4)
    for _ in range(200):  # whoever is done last, and with the word as it was
        for a, b in zip(found(ready, x), first, strict=True):
            np.testing.assert_array_equal(a, b)


@needs_compiler
def test_the_order_of_groups_changes_nothing(x):
    ready, _ = prepared(sums, "shim:1", x)
    first = found(ready, x)
    backend_named("shim:1").driver.backwards = True
    for a, b in zip(found(ready, x), first, strict=True):
        np.testing.assert_array_equal(a, b)


def test_kernels_can_be_read_and_timed_alone(place, x):
    ready, _ = prepared(sums, place, x)
    kernels = ready.program.kernels
    for kernel in kernels:
        text = ready.source(kernel.name)
        assert "KERNEL void weft_" in text
        assert "weft_joined" not in text
    assert "KERNEL void weft_joined" in ready.source()
    assert len(ready.profile([x]).kernels) == len(kernels)


@needs_compiler
@pytest.mark.parametrize("limit", ["MOST_WORK", "MOST_TAILS", "MOST_ARGUMENTS", "MOST_GROUPS"])
def test_limits(limit, x, monkeypatch):
    monkeypatch.setattr(tails, limit, 0)
    ready, _ = prepared(sums, "shim:1", x)
    assert count(ready) == sum(map(len, ready.code.alone.values()))


@needs_compiler
def test_large_kernels_and_the_host_stand_between(x):
    def build(x):
        small = x[:3, :3]
        inverse = wf.linalg.inv(small @ wf.transpose(small) + wf.eye(3))  # the host's
        return [x * 2, small + 1, inverse, wf.exp(x), small - 1, inverse + 1]

    ready, expected = prepared(build, "shim:1", x)
    for a, b in zip(found(ready, x), expected, strict=True):
        np.testing.assert_allclose(a.reshape(b.shape), b, rtol=1e-4, atol=1e-5)
    names = {id(k): k.name for k in ready.program.kernels}
    leading = [names[n] for n, made in ready.code.launches.items() if made]
    assert len(leading) < len(ready.code.alone)
    large = [k for k in ready.program.kernels if getattr(k, "loops", ()) and np.prod(k.loops) > 1e5]
    assert {k.name for k in large} <= set(leading)


@needs_compiler
def test_loops_have_tails_of_their_own():
    """Rows that move with the turn of a loop are found for each launch."""

    def step(state, row):
        state = wf.tanh(state * 0.5 + row)
        return state, (state.sum(), wf.exp(state).sum(axis=0))

    def build(x):
        last, (totals, rows) = wf.scan(step, x[0], x)
        return [last, totals, rows]

    x = np.random.default_rng(0).normal(size=(6, 4, 5)).astype(np.float32)
    ready, expected = prepared(build, "shim:1", x)
    for a, b in zip(found(ready, x), expected, strict=True):
        np.testing.assert_allclose(a.reshape(b.shape), b, rtol=1e-5, atol=1e-5)
    assert any("weft_joined" in launch.name for launch in ready.code.functions)


@needs_compiler
def test_groups_of_threads_have_none(x):
    ready, _ = prepared(sums, "shim:0", x)
    assert ready.code.launches is ready.code.alone
