"""Programs of launches alone: asked for at once, with what changes from run to run."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

import weft as wf
from tests.backends.opencl.test_backend import needs_device
from tests.backends.shim import needs_compiler
from weft.backends import backend_named
from weft.backends.c_source.straight import StraightRun, is_straight
from weft.backends.device_memory import memory_of
from weft.core.errors import AllocationError

pytestmark = pytest.mark.usefixtures("shim")
PLACES = [
    pytest.param("opencl:0", marks=needs_device),
    pytest.param("shim:1", marks=needs_compiler),
]


@pytest.fixture(params=PLACES)
def place(request):
    return request.param


@pytest.fixture
def placed(place):
    """Return a function that puts arrays on the device."""
    return lambda *arrays: [wf.tensor(np.asarray(array, np.float32)).to(place) for array in arrays]


def test_several_launches_with_an_arena_and_constants(placed):
    table = np.arange(20.0, dtype=np.float32).reshape(4, 5)
    x, y = placed(table, table[::-1] - 3)

    def several(x, y):
        total = (x * wf.tensor(table)).sum()
        return total, [wf.softmax(x + y, axis=-1) * total, y.sum(axis=0)]

    compiled = wf.compile(several, x, y)
    assert isinstance(compiled.executable.straight, StraightRun)
    for first, second in ((x, y), (y, x), (y, y)):
        total, (rows, columns) = compiled(first, second)
        a, b = first.numpy(), second.numpy()
        e = np.exp(a + b - (a + b).max(axis=1, keepdims=True))
        np.testing.assert_allclose(total.numpy(), (a * table).sum(), rtol=1e-5)
        np.testing.assert_allclose(
            rows.numpy(), e / e.sum(axis=1, keepdims=True) * total.numpy(), rtol=1e-5, atol=1e-4
        )
        np.testing.assert_array_equal(columns.numpy(), b.sum(axis=0))


def test_results_in_two_shapes_share_memory(placed):
    (x,) = placed(np.arange(6.0))
    flat, table = wf.compile(lambda x: ((x * 2), (x * 2).reshape(2, 3)), x)(x)
    assert flat.tolist() == [0, 2, 4, 6, 8, 10]
    assert table.tolist() == [[0, 2, 4], [6, 8, 10]]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: wf.take(x, wf.cast(x, "int64")),  # a look at whether an index is out of range
        lambda x: x,  # the result is what is fed
        lambda x: wf.while_loop(lambda x: x.sum() < 9, lambda x: x + 1, x),
        lambda x: wf.linalg.inv(wf.exp(x).reshape(1, 1, 1) * wf.ones(2, 1, 1)),
    ],
    ids=["index", "feed", "loop", "host"],
)
def test_others_are_run_by_the_host(function, placed):
    (x,) = placed([0.0])
    compiled = wf.compile(function, x)
    assert not is_straight(compiled.executable.code)
    assert compiled.executable.straight is None


def test_states_are_the_hosts_too(place, placed):
    state = wf.nn.Parameter(wf.ones(2, device=place))
    compiled = wf.compile(lambda x: state.assign(state + x), *placed([1.0, 2.0]))
    assert not is_straight(compiled.executable.code)


def test_the_memory_of_a_run_is_not_held(place, placed):
    """What waits on the shelf, and is given back, is the device's again."""
    compiled = wf.compile(lambda x: x * 2, *placed(np.zeros(1000)))
    x, memory = placed(np.zeros(1000))[0], memory_of(place)
    y = compiled(x)
    handles = [t._value.block.memory.handle for t in (x, y)]
    del x, y
    memory.release()
    nobodys = [object(), object()]  # but this list's
    assert list(map(sys.getrefcount, handles)) == list(map(sys.getrefcount, nobodys))


def test_constants_are_its_own_as_long_as_it_runs(place, placed):
    """Eager operations keep nothing else of their programs: tables were written over."""
    table = np.arange(200.0, dtype=np.float32)
    x, zeros = placed(table, np.zeros(200))
    compiled = wf.compile(lambda x: x + wf.tensor(table), x)
    compiled(x)
    straight = compiled.executable.straight
    del compiled
    gc.collect()
    others = placed(*[np.full(200, -1.0)] * 3)
    (found,) = straight([zeros._value])
    assert memory_of(place).copy_out(found).tolist() == table.tolist()
    assert len(others) == 3


def test_a_full_device_changes_nothing(monkeypatch, place, placed):
    (x,) = placed(np.ones(777))
    compiled = wf.compile(lambda x: x * 2, x)

    def full(nbytes):
        raise AllocationError(f"no {nbytes} bytes left")

    with monkeypatch.context() as patch:
        patch.setattr(backend_named(place).driver, "allocate", full)
        memory_of(place).release()
        with pytest.raises(MemoryError, match="has no room for float32"):
            compiled(x)
    assert compiled(x).numpy().sum() == 2 * 777
