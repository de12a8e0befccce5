"""States change together: a run that is interrupted changes all of them or none."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.backends.cpu.runtime.executable import Executable


class Counting:
    """A step that changes one array in place, copies another, and counts in a Python number."""

    def __init__(self):
        self.weight = wf.nn.Parameter(wf.ones(100))
        self.optimizer = wf.optim.Adam([self.weight], lr=0.5)
        self.order = wf.tensor([[2.0, 1.0], [3.0, 4.0]])
        with wf.Graph() as graph:
            loss = (self.weight * self.weight).sum()
            turned = self.order.assign(self.order.T)
            self.fetches = [loss, self.optimizer.minimize(loss), turned]
        self.session = wf.Session(graph)

    def step(self):
        return self.session.run(self.fetches)

    def state(self):
        slots = self.optimizer.state[self.weight]
        arrays = [self.weight.numpy(), self.order.numpy(), slots["exp_avg"]]
        return [a.copy() for a in arrays], self.optimizer.t


def interrupted(*_):
    raise KeyboardInterrupt


def assert_same(a, b):
    for x, y in zip(a[0], b[0], strict=True):
        np.testing.assert_array_equal(x, y)
    assert a[1] == b[1]


@pytest.mark.parametrize("method", ["_fetched", "_call_native"])
def test_an_interrupt_leaves_states_that_belong_together(monkeypatch, method):
    twin, program = Counting(), Counting()
    twin.step()
    program.step()
    original = getattr(Executable, method)

    def late(self, *args):
        original(self, *args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Executable, method, late)
        with pytest.raises(KeyboardInterrupt):
            program.step()
    twin.step()  # the code had come to its end, so the step counts
    assert_same(program.state(), twin.state())
    program.step()
    twin.step()
    assert_same(program.state(), twin.state())


def test_an_interrupt_before_the_code_runs_changes_nothing(monkeypatch):
    program = Counting()
    program.step()
    before = program.state()
    with monkeypatch.context() as patch:
        patch.setattr(Executable, "_call_native", interrupted)
        with pytest.raises(KeyboardInterrupt):
            program.step()
    assert_same(program.state(), before)
    program.step()


def test_somebody_who_holds_an_array_does_not_see_it_change():
    program = Counting()
    program.step()
    held = program.weight._value
    kept = held.copy()
    program.step()
    np.testing.assert_array_equal(held, kept)
    assert not np.array_equal(program.weight.numpy(), kept)
    view = program.weight._value[:10]
    kept = view.copy()
    program.step()
    np.testing.assert_array_equal(view, kept)


# -- arrays that are views -------------------------------------------------------------------------

BASE = np.arange(24, dtype=np.float32).reshape(4, 6)
VIEWS = {
    "itself": lambda: wf.from_numpy(BASE.copy()),
    "turned": lambda: wf.tensor(BASE.T).T,
    "reshaped": lambda: wf.tensor(BASE.ravel()).reshape(4, 6),
    "rows": lambda: wf.tensor(np.concatenate([BASE, BASE]))[:4],
    "columns": lambda: wf.tensor(np.concatenate([BASE, BASE], axis=1))[:, :6],
    "steps": lambda: wf.tensor(np.repeat(BASE, 2, axis=0))[::2],
    "drawn": lambda: wf.randn(4, 6, generator=wf.Generator(3)),
    "broadcast": lambda: wf.broadcast_to(wf.tensor(BASE[:1]), (4, 6)),
    "read_only": lambda: wf.tensor(np.frombuffer(BASE.tobytes(), np.float32).reshape(4, 6)),
}


def trained(weight, step_of):
    parameter = wf.nn.Parameter(weight)
    del weight  # what others hold is copied before code sees it
    optimizer = wf.optim.SGD([parameter], lr=0.5, momentum=0.5)
    step = step_of(lambda x: optimizer.minimize((x @ parameter).sum()))
    for _ in range(3):
        step(wf.ones(2, 4))
    return parameter.numpy()


@pytest.mark.parametrize("view", VIEWS)
def test_a_parameter_whose_array_is_a_view_trains(view):
    given = VIEWS[view]().numpy().copy()
    compiled = trained(VIEWS[view](), lambda step: wf.compile(step, wf.ones(2, 4)))
    eager = trained(wf.tensor(given), lambda step: step)
    np.testing.assert_allclose(compiled, eager, rtol=1e-6)


def test_whoever_shares_the_memory_of_a_parameter_does_not_see_it_change():
    whole = wf.tensor(BASE)
    trained(whole[:], lambda step: wf.compile(step, wf.ones(2, 4)))
    np.testing.assert_array_equal(whole.numpy(), BASE)
