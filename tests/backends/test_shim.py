"""The text of kernels, run without a driver: by a C++ compiler, where there is one.

It is what CUDA devices would be given, and what OpenCL devices that are processors are given. The
first has never met a GPU: these are the runs by which its groups of work items are known to do what
they should. `python -m tests.backends.sweep shim:0` runs all that devices are held to.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.backends.conformance import Batch, DerivativeBatch, assert_as_reference, to_array
from tests.backends.cuda.test_nvrtc import all_kinds
from tests.backends.programs import CASES, SIGNED, assert_control_flow, assert_mixed, assert_smooth
from tests.backends.shim import MOST_GROUPS, needs_compiler
from tests.compile.agreement import PROGRAM, assert_agree
from tests.ops import conformance as c
from weft.backends import backend_named
from weft.backends.c_source.execution import DeviceExecution
from weft.backends.c_source.launch import LaunchText, Room
from weft.core.device_array import DeviceError

pytestmark = [needs_compiler, pytest.mark.usefixtures("shim")]
EVERY = 150  # which samples an ordinary run takes
NAMES = ["shim:0", "shim:1"]
each_shim = pytest.mark.parametrize("device", NAMES, ids=["CUDA", "OpenCL for processors"])


def prepared(build, arrays, device):
    """Return a program on a device, and what the reference finds."""
    with wf.Graph() as graph:
        given = [wf.placeholder(a.shape, a.dtype) for a in arrays]
        fetches = build(*given)
    executable = wf.Session(graph, device="reference").executable(
        fetches, dict(zip(given, arrays, strict=True))
    )
    ready = DeviceExecution(backend_named(device), executable.program, executable.sources)
    return ready, run(executable, arrays)


def run(executable, arrays):
    wf.manual_seed(0)
    return [to_array(value) for value in executable.run(arrays)]


@pytest.mark.parametrize("device", [*NAMES, "shim:2"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_kind_of_kernel(device, dtype):
    """The order in which work items run, within a group and group by group, changes no bit."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(dtype) for shape in ((64, 40), (40, 48))]
    arrays.append(rng.integers(0, 64, 9))
    ready, expected = prepared(all_kinds, arrays, device)
    driver = backend_named(device).driver
    found = run(ready, arrays)
    for a, b in zip(found, expected, strict=True):
        assert_agree(a, b, PROGRAM)
    functions = {launch.name for launch in ready.code.functions}
    assert functions <= driver.launched
    driver.backwards = True
    for a, b in zip(run(ready, arrays), found, strict=True):
        assert a.tobytes() == b.tobytes()


@each_shim
def test_samples_of_the_registry(device):
    assert_as_reference(Batch(CASES[EVERY // 3 :: EVERY], c.to_single), device)


@each_shim
def test_derivatives_of_samples_of_the_registry(device):
    assert_as_reference(DerivativeBatch(CASES[EVERY // 2 :: 2 * EVERY]), device)


@each_shim
def test_control_flow_and_random_graphs(device):
    assert_control_flow(device, len(SIGNED) // 2)
    assert_mixed(device, 3, 8)
    assert_smooth(device, 1)


@each_shim
def test_a_network_learns_as_on_the_cpu(device):
    """Tensors, gradients, an optimizer and a captured step on a device of C++."""
    losses = []
    for place in ("cpu", device):
        wf.manual_seed(0)
        net = wf.nn.Sequential(wf.nn.Linear(20, 33), wf.nn.GELU(), wf.nn.Linear(33, 5)).to(place)
        optimizer = wf.optim.Adam(net.parameters(), 0.01)
        rng = np.random.default_rng(0)
        x = wf.tensor(rng.normal(size=(16, 20)).astype(np.float32), device=place)
        y = wf.tensor(rng.integers(0, 5, 16), device=place)

        def step(x, y, net=net, optimizer=optimizer):
            loss = wf.nn.functional.cross_entropy(net(x), y)
            optimizer.minimize(loss)
            return loss

        compiled = wf.compile(step, x, y)
        losses.append([compiled(x, y).item() for _ in range(5)])
    assert losses[1][-1] < losses[1][0]
    np.testing.assert_allclose(*losses, rtol=1e-5)


# -- what the device notices -----------------------------------------------------------------------


def launched(body, device="shim:0", groups=(1,), items=4):
    """Launch a function of some lines on memory for four numbers; return these."""
    driver = backend_named(device).driver
    text = LaunchText("probe", driver.dialect)
    text.take(Room(np.dtype(np.float32), 4))
    for line in body:
        text.f.write(line)
    launch = text.finished(groups, items)
    driver.load([launch])
    memory = driver.allocate(16)
    driver.launch(launch, [(memory, 0)])
    return driver.read(memory, 0, np.dtype(np.float32), 4).tolist()


def test_work_items_wait_for_each_other():
    lines = ["LOCAL f32 all[4];", "all[ITEM] = ITEM;", "BARRIER;", "b0[ITEM] = all[3 - ITEM];"]
    assert launched(lines) == [3, 2, 1, 0]


@pytest.mark.parametrize("backwards", [False, True])
def test_a_barrier_that_is_missing_shows(backwards):
    """Whoever looks too early sees nothing that another group, or another run, has left."""
    lines = ["LOCAL f32 all[4];", "all[ITEM] = ITEM;", "b0[ITEM] = all[3 - ITEM];"]
    backend_named("shim:0").driver.backwards = backwards
    right = [3, 2, 1, 0]
    for _ in range(2):
        found = launched(lines)
        assert [a == b for a, b in zip(found, right, strict=True)] == [
            place < 2 if backwards else place >= 2 for place in range(4)
        ]


def test_work_items_that_do_not_meet_are_told_of():
    with pytest.raises(DeviceError, match="wait at line"):
        launched(["if (ITEM < 2) BARRIER;"])


def test_writing_beside_memory_is_told_of():
    with pytest.raises(DeviceError, match="beside its memory"):
        launched(["b0[16 + ITEM] = 0;"])


def test_text_that_is_none_is_told_of():
    with pytest.raises(DeviceError, match=r"do not compile: (?s:.*)nonsense"):
        launched(["nonsense;"])


def test_too_many_groups_are_refused():
    with pytest.raises(DeviceError, match="no device has"):
        launched(["b0[0] = 0;"], groups=(1, MOST_GROUPS[1] + 1))
