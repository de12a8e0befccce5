"""OpenCL devices: programs, texts, times, errors. Skipped where no driver is."""

from __future__ import annotations

import sys
from functools import cache

import numpy as np
import pytest

import weft as wf
from tests.backends.conformance import to_array, why_not
from tests.compile.agreement import PROGRAM, assert_agree
from weft.backends import backend_named
from weft.backends.c_source.devices import SourceBackend
from weft.backends.c_source.execution import DeviceExecution
from weft.backends.device_memory import memory_of
from weft.backends.opencl.backend import open_device
from weft.core.device_array import DeviceError
from weft.core.errors import AllocationError

reason = why_not("opencl:0")
needs_device = pytest.mark.skipif(reason is not None, reason=str(reason))


def network(x, w, i):
    """Return results of all kinds of kernels over loops."""
    h = wf.relu(x @ w + 1)
    total = h.sum(axis=0)
    table = wf.gradients((wf.take(h, i, axis=0) * total).sum(), [h, w])
    return [wf.softmax(h, axis=-1), total, wf.cumsum(h, axis=1), wf.sin(x * 1e6), *table]


WAYS = {"for processors": (True, 32), "for wide vectors": (True, 64), "for groups": (False, 32)}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@cache
def device_of(way):
    """Return a device with a context of its own, whose kernels are written in one of these ways."""
    serial, vector_bytes = way
    return SourceBackend(
        f"serial {serial}, {vector_bytes}",
        lambda: open_device(0, serial=serial, vector_bytes=vector_bytes),
    )


@pytest.fixture(scope="module")
def prepared():
    """Return a graph's program, what it stands for, and its arrays."""
    rng = np.random.default_rng(0)
    arrays = [
        rng.normal(size=(70, 40)).astype(np.float32),
        rng.normal(size=(40, 150)).astype(np.float32),
        rng.integers(0, 70, 9),
    ]
    with wf.Graph() as graph:
        given = [wf.placeholder(a.shape, a.dtype) for a in arrays]
        fetches = network(*given)
    executable = wf.Session(graph, device="reference").executable(
        fetches, dict(zip(given, arrays, strict=True))
    )
    return executable, arrays


@needs_device
@each_way
def test_all_ways_to_write_kernels(prepared, way):
    """A processor runs kernels for groups of threads too: slowly, and to the same results."""
    executable, arrays = prepared
    ready = DeviceExecution(device_of(way), executable.program, executable.sources)
    expected = executable.run(arrays)
    for a, b in zip(ready.run(arrays), expected, strict=True):
        assert_agree(to_array(a), b, PROGRAM)


@needs_device
@each_way
def test_products_that_compute_their_operands(way):
    """Programs that were planned for the CPU have products with prologues; they run here too."""
    rng = np.random.default_rng(0)
    with wf.Graph() as graph:
        x = wf.placeholder((64, 256), wf.float32)
        w = wf.placeholder((256, 128), wf.float32)
        y = wf.relu(wf.relu(x) @ (w * 2) + 1)
        fetches = [y, y.sum(axis=0)]
    feeds = {s: rng.normal(size=s.shape).astype(np.float32) for s in (x, w)}
    analysis = wf.Session(graph).executable(fetches, feeds).analysis
    (product,) = (k for k in analysis.program.kernels if k.kind == "gemm")
    assert product.x_from is not None or product.y_from is not None
    ready = DeviceExecution(device_of(way), analysis.program, analysis.sources)
    expected = wf.Session(graph, device="reference").run(fetches, feeds)
    for a, b in zip(ready.run(list(feeds.values())), expected, strict=True):
        assert_agree(to_array(a), b, PROGRAM)


@needs_device
def test_texts_and_times(prepared):
    executable, arrays = prepared
    ready = backend_named("opencl:0").prepare(executable.program, executable.sources)
    assert ready.source().count("KERNEL void") == len({f.name for f in ready.code.functions})
    product = next(k for k in ready.program.kernels if k.kind == "gemm")
    assert "KERNEL void weft_gemm_" in ready.source(product.name)
    profile = ready.profile(arrays)
    assert len(profile.kernels) == len(ready.program.kernels)
    assert all(kernel.seconds > 0 for kernel in profile.kernels)
    assert "share" in repr(profile)


@needs_device
def test_operators_without_kernels_run_on_the_host():
    with wf.Graph() as graph:
        x = wf.placeholder((4, 4), wf.float32)
        y = wf.linalg.inv(wf.exp(x)) * 2
    array = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    session = wf.Session(graph, device="opencl")
    assert session.executable([y], {x: array}).on_host == ["inv"]
    expected = np.linalg.inv(np.exp(array)) * 2
    np.testing.assert_allclose(session.run(y, {x: array}), expected, rtol=1e-4)


@needs_device
def test_an_index_out_of_range_is_told_of():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32)
        i = wf.placeholder((2,), wf.int64)
        y = wf.take(x, i) * 2
    session = wf.Session(graph, device="opencl")
    with pytest.raises(IndexError, match="out of range"):
        session.run(y, {x: np.ones(3, np.float32), i: [0, 7]})
    assert session.run(y, {x: np.ones(3, np.float32), i: [0, 2]}).tolist() == [2, 2]


@needs_device
def test_rows_of_a_table_are_written():
    """A plan copies nothing where rows of a state change in place; on a device they are new."""
    tables = []
    for device in ("cpu", "opencl:0"):
        wf.manual_seed(0)
        table = wf.nn.Embedding(50, 4, sparse=True).to(device)
        optimizer = wf.optim.SGD(table.parameters(), 0.5)

        def step(i, table=table, optimizer=optimizer):
            loss = (table(i) ** 2).sum()
            optimizer.minimize(loss)
            return loss

        indices = wf.tensor([3, 7, 3]).to(device)
        compiled = wf.compile(step, indices)
        for _ in range(2):
            compiled(indices)
        tables.append(table.weight.numpy())
    np.testing.assert_allclose(tables[0], tables[1], rtol=1e-6)


@needs_device
def test_a_captured_step_copies_its_batch_and_nothing_else():
    """The weights stay there, and so does the loss until somebody reads it."""
    with wf.device("opencl:0"):
        net = wf.nn.Sequential(wf.nn.Linear(6, 5), wf.nn.ReLU(), wf.nn.Linear(5, 3))
    optimizer = wf.optim.Adam(net.parameters(), 0.01)

    @wf.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = wf.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    rng, counts = np.random.default_rng(0), memory_of("opencl:0").counts
    losses = []
    for number in range(6):
        x, y = rng.normal(size=(8, 6)).astype(np.float32), rng.integers(0, 3, 8)
        before = counts["copies in"], counts["copies out"]
        batch = [wf.tensor(array, device="opencl:0") for array in (x, y)]
        losses.append(step(*batch))
        if number > 2:  # the step is compiled
            # What is copied in beside the batch: the number of the step, which the host counts.
            assert counts["copies in"] - before[0] <= len(batch) + 1
            assert counts["copies out"] == before[1]
    assert all(np.isfinite(loss.item()) for loss in losses)
    assert counts["copies out"] == before[1] + len(losses)


# -- errors ----------------------------------------------------------------------------------------


@needs_device
def test_too_much_memory_is_refused_and_the_next_call_works():
    backend = backend_named("opencl:0")
    with pytest.raises(MemoryError, match="bytes"):
        backend.allocate((1 << 50,), np.dtype(np.float32))
    memory = backend.allocate((3,), np.dtype(np.float32))
    backend.copy_in(np.arange(3, dtype=np.float32), memory)
    assert backend.copy_out(memory).tolist() == [0, 1, 2]


@needs_device
def test_a_full_device_is_told_of_before_its_driver_crashes(monkeypatch):
    """PoCL counts no bytes: it would take more than the machine has, and be killed."""
    memory = memory_of("opencl:0")
    memory.release()
    driver = backend_named("opencl:0").driver
    held = wf.ones(1 << 16, device="opencl:0")
    monkeypatch.setattr(driver, "capacity", sum(driver._held.values()) + (1 << 20))
    more = [wf.zeros(1 << 17, device="opencl:0")]
    with pytest.raises(MemoryError, match=r"has no room for float32.*Nothing was changed"):
        more += [wf.zeros(1 << 17, device="opencl:0") for _ in range(2)]
    assert (held + 1).sum().item() == 2 << 16
    del more
    assert wf.zeros(1 << 17, device="opencl:0").sum().item() == 0


@needs_device
def test_double_precision_is_refused_where_there_is_none(monkeypatch):
    backend = SourceBackend("single", lambda: open_device(0))
    monkeypatch.setattr(backend.driver, "has_double", False)
    for dtype, refused in ((np.float32, False), (np.float64, True)):
        with wf.Graph() as graph:
            x = wf.placeholder((4,), dtype)
            y = wf.exp(x)
        program = wf.Session(graph, device="reference").executable([y], {x: np.ones(4)}).program
        if refused:
            with pytest.raises(DeviceError, match=r"computes in float64.*x\.float\(\)"):
                backend.compile(program)
        else:
            backend.compile(program)


@needs_device
def test_a_wrong_index_is_named_as_on_the_host():
    x, i = wf.ones(3), wf.tensor([0, 7])
    messages = []
    for device in ("cpu", "opencl:0"):
        with pytest.raises(IndexError) as caught:
            wf.take(x.to(device), i.to(device))
        messages.append(str(caught.value).partition(" (x from")[0])
    assert messages[0] == messages[1]
    compiled = wf.compile(wf.take, x.to("opencl:0"), wf.tensor([0, 1]).to("opencl:0"))
    assert compiled(x.to("opencl:0"), wf.tensor([0, 2]).to("opencl:0")).tolist() == [1, 1]
    with pytest.raises(IndexError, match="7"):
        compiled(x.to("opencl:0"), i.to("opencl:0"))
    assert compiled(x.to("opencl:0"), wf.tensor([0, 2]).to("opencl:0")).tolist() == [1, 1]


@needs_device
def test_a_lost_device_is_told_of(monkeypatch):
    """The driver's calls fail, as they do when a device is gone; when it is back, all goes on."""
    driver, cl = backend_named("opencl:0").driver, pytest.importorskip("pyopencl")
    weight = wf.nn.Parameter(wf.ones(3, device="opencl:0"))
    optimizer = wf.optim.SGD([weight], 0.5)

    def step():
        optimizer.zero_grad()
        (weight * weight).sum().backward()
        optimizer.step()

    step()
    assert weight.tolist() == [0, 0, 0]

    def lost(*given, **options):
        raise cl.RuntimeError("clEnqueueNDRangeKernel failed: DEVICE_NOT_AVAILABLE")

    with monkeypatch.context() as patch:
        patch.setattr(driver, "_enqueue", lost)
        with pytest.raises(DeviceError, match=r"stopped: .*DEVICE_NOT_AVAILABLE.*host are as they"):
            weight + 1
        with pytest.raises(DeviceError, match="NOT_AVAILABLE"):
            optimizer.step()
    assert weight.tolist() == [0, 0, 0]
    assert (weight + 1).tolist() == [1, 1, 1]

    class Lost:
        wait = lost

        def get_info(self, what):
            return -1  # an error, not a state

    monkeypatch.setattr(driver, "_last", Lost())
    with pytest.raises(DeviceError, match="stopped"):
        wf.device("opencl:0").synchronize()
    assert (weight + 1).tolist() == [1, 1, 1]


@needs_device
def test_no_memory_for_a_program_changes_nothing(monkeypatch):
    driver = backend_named("opencl:0").driver
    state = wf.nn.Parameter(wf.ones(4, device="opencl:0"))

    def update():
        state.assign(wf.softmax(state @ wf.ones(4, 4, device="opencl:0"), -1) + state)

    def full(nbytes):
        raise AllocationError(f"no {nbytes} bytes left")

    with monkeypatch.context() as patch:
        patch.setattr(driver, "allocate", full)
        memory_of("opencl:0").release()
        with pytest.raises(MemoryError, match=r"free some of them|bytes left"):
            update()
    assert state.tolist() == [1, 1, 1, 1]
    update()
    np.testing.assert_allclose(state.numpy(), 1.25)


@needs_device
def test_there_is_no_such_device():
    with pytest.raises(ValueError, match=r"no device opencl:99; there are opencl:0 \("):
        open_device(99)


def test_no_driver_is_told_of(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(ImportError, match=r'pip install "weft\[opencl\]"'):
        backend_named("opencl").count()
