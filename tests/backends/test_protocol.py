"""Back ends: found by their folders, and run through the functions of one protocol."""

from __future__ import annotations

import re
import textwrap
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from tests.backends.conformance import Batch, assert_as_reference
from tests.backends.programs import CASES, assert_control_flow, assert_mixed
from tests.programs.mixed import MixedProgram
from weft import backends
from weft.backends import backend_named, backend_names
from weft.backends.execution import Execution

DOCUMENTED = Path(__file__).parents[2] / "docs" / "backends.md"
TOY = """
    '''A back end whose memory nobody else can read: boxes of bytes, the last one first.'''

    import numpy as np

    from weft.backends.execution import Execution
    from weft.plan.device import Device
    from weft.backends.reference.backend import ReferenceBackend


    class Box:
        def __init__(self, array):
            self.type = array.dtype, array.shape
            self.fill(array)

        def fill(self, array):
            self.hidden = array.tobytes()[::-1]

        def array(self):
            dtype, shape = self.type
            return np.frombuffer(self.hidden[::-1], dtype).reshape(shape).copy()


    class Toy:
        runs = 0

        def describe(self):
            return Device("toy", 1, "boxes")

        def compile(self, program):
            return ReferenceBackend().compile(program)

        def allocate(self, shape, dtype):
            return Box(ReferenceBackend().allocate(shape, dtype))

        def copy_in(self, array, memory):
            memory.fill(array)

        def copy_out(self, memory):
            return memory.array()

        def run(self, code, memories):
            Toy.runs += 1
            arrays = {number: self.copy_out(memory) for number, memory in memories.items()}
            ReferenceBackend().run(code, arrays)
            memories.update((number, Box(array)) for number, array in arrays.items())

        def synchronize(self):
            pass

        def prepare(self, program, sources):
            return Execution(self, program, sources)


    BACKEND = Toy()
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Make a third back end: a new folder, and nothing else."""
    for name in ("toy", "other_toy"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "backend.py").write_text(textwrap.dedent(TOY))
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(tmp_path)])
    return backend_named("toy")


def test_back_ends_are_folders():
    assert backend_names() == ("cpu", "cuda", "opencl", "reference")
    for name in map(str, wf.devices()):
        assert backend_named(name).describe().name == name


def test_a_third_back_end_is_a_folder(toy):
    assert {"cpu", "other_toy", "reference", "toy"} <= set(wf.devices())
    x = np.linspace(-1, 1, 12).reshape(3, 4)
    with wf.Graph() as graph:
        a = wf.placeholder((3, 4), wf.float64)
        y = wf.softmax(a @ a.T, axis=-1).sum(axis=0)
    runs = type(toy).runs
    found = wf.Session(graph, device="toy").run(y, {a: x})
    assert type(toy).runs == runs + 1
    np.testing.assert_allclose(found, wf.Session(graph).run(y, {a: x}), rtol=1e-14)


def test_the_back_end_of_the_documentation_is_one(tmp_path, monkeypatch):
    """What docs/backends.md says to put into a folder is all that it takes."""
    (text,) = re.findall(r"```python\n(.*?)```", DOCUMENTED.read_text(), re.DOTALL)
    folder = tmp_path / "yours"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "backend.py").write_text(text)
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(tmp_path)])
    assert "yours" in wf.devices()
    assert_as_reference(Batch(CASES[::100]), "yours")
    assert_control_flow("yours", 0)
    assert_mixed("yours", 15)


def test_functions_and_tensors_on_a_third_back_end(toy):
    with wf.device("toy"):
        double = wf.compile(lambda x: x * 2, wf.ones(3))
        made = wf.ones(3)
    assert (double(made) + made).device == "toy"
    assert double(made).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match=r"'cpu', .*'other_toy', 'reference', 'toy'"):
        wf.device("trinket")


def test_states_are_written_through_the_protocol(toy):
    losses = []
    for place in ("cpu", "toy"):
        wf.manual_seed(0)
        net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.Tanh(), wf.nn.Dropout(0.5))
        net.to(place)
        optimizer = wf.optim.Adam(net.parameters(), 0.1)

        def step(x, net=net, optimizer=optimizer):
            loss = (net(x) ** 2).mean()
            optimizer.minimize(loss)
            return loss

        compiled = wf.compile(step, wf.ones(2, 3))
        losses.append([float(compiled(wf.ones(2, 3))) for _ in range(4)])
        assert net[0].weight.device == place
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    assert losses[0][0] > losses[0][3]


def test_a_program_runs_on_several_devices_or_on_one(toy):
    with wf.Graph() as graph:
        x = wf.placeholder((2,), name="x")
        with wf.device("toy"):
            y = wf.exp(x)
        with wf.device("reference"):
            z = wf.add(y, 1.0)
    session = wf.Session(graph)
    assert session.run(z, {x: np.zeros(2)}).tolist() == [2, 2]
    assert [copy[1:] for copy in session.executable(z, {x: np.zeros(2)}).copies] == [
        ("toy", "reference")
    ]
    for name in ("cpu", "reference", "toy"):
        session = wf.Session(graph, device=name)
        assert session.run(z, {x: np.zeros(2)}).tolist() == [2, 2]


def test_an_index_out_of_range_is_told_of_as_elsewhere(toy):
    with wf.Graph() as graph:
        x = wf.placeholder((3,), name="x")
        i = wf.placeholder((2,), wf.int64, name="i")
        y = wf.take(x, i) * 2
    session = wf.Session(graph, device="toy")
    feeds = {x: np.ones(3), i: [0, 7]}
    with pytest.raises(IndexError, match="7 is out of range"):
        session.run(y, feeds)
    assert session.run(y, feeds | {i: [0, 2]}).tolist() == [2, 2]


@pytest.mark.parametrize("seed", range(12))
def test_the_cpu_by_the_protocol_is_the_cpu(seed):
    """Machine code through memory of a device gives the bits that it gives on arrays."""
    results, cpu = [], backend_named("cpu")
    for prepare in (None, cpu.prepare, partial(Execution, cpu)):
        program = MixedProgram(seed, 4 + seed, states=True)
        fetches = [program.fetches, program.updates]
        executable = wf.Session(program.graph).executable(fetches, program.feeds)
        if prepare is not None:
            analysis = executable.analysis
            executable = prepare(analysis.program, analysis.sources)
        arrays = list(program.feeds.values())
        fetched = [array for _ in range(2) for array in executable.run(arrays)]
        results.append([*fetched, *(state.numpy() for state in program.states)])
    for a, b, c in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


@pytest.mark.parametrize("name", [str(d) for d in wf.devices()])
def test_what_is_prepared_tells_what_it_is(name):
    with wf.Graph() as graph:
        x = wf.placeholder((3, 3), wf.float32)
        y = wf.exp(x) + wf.linalg.inv(x)
    analysis = wf.Session(graph).executable([y], {x: np.eye(3)}).analysis
    ready = backend_named(name).prepare(analysis.program, analysis.sources)
    assert ready.stats()["library"] == ["inv"]
    assert "row" in repr(ready)
