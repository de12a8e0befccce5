"""States that live together are read and written together, numbers among them."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.errors import GraphError, WeftError
from weft.core.shape import TensorType
from weft.graph.state import Alone, State, kept_together, number_state, tensor_state


class Training:
    """Steps of two optimizers, whose slots are arrays and numbers of different kinds."""

    def __init__(self, *, compiled: bool) -> None:
        shapes = [(5,), (2, 3), (1,), (7,), ()]
        self.weights = [wf.nn.Parameter(wf.ones(shape)) for shape in shapes]
        optim = wf.optim
        self.optimizers = [optim.Adam(self.weights[:2]), optim.NAdam(self.weights[2:], lr=0.1)]
        with wf.Graph() as graph:
            self.x = wf.placeholder((5,), wf.float32, name="x")
            loss = (self.weights[0] * self.x).sum()
            loss = loss + sum((w * w).sum() for w in self.weights)
            self.fetches = [loss, *(o.minimize(loss) for o in self.optimizers)]
        self.session = wf.Session(graph, compiled=compiled)

    def step(self, x):
        return self.session.run(self.fetches, {self.x: x})[0]

    def numbers(self):
        slots = [(o.state[w], o.t) for o in self.optimizers for w in o.parameters()]
        return [
            ({k: v for k, v in s.items() if not isinstance(v, np.ndarray)}, t) for s, t in slots
        ]


def test_numbers_of_several_optimizers_stay_apart():
    code, reference = Training(compiled=True), Training(compiled=False)
    for k in range(4):
        x = np.full(5, k, np.float32)
        np.testing.assert_allclose(code.step(x), reference.step(x), rtol=1e-6)
        for found, expected in zip(code.numbers(), reference.numbers(), strict=True):
            assert found[1] == expected[1] == k + 1
            assert {n: type(v) for n, v in found[0].items()} == {
                n: type(v) for n, v in expected[0].items()
            }
            assert found[0] == pytest.approx(expected[0], rel=1e-12)
        code.optimizers[1].state[code.weights[3]]["step"] += 3  # seen by the next run
        reference.optimizers[1].state[reference.weights[3]]["step"] += 3
    for a, b in zip(code.weights, reference.weights, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    "unsuited",
    [
        np.arange(10, dtype=np.float32)[::2],
        [0.0, 2.0, 4.0, 6.0, 8.0],
        np.arange(0, 10, 2, dtype=np.float32).view(np.recarray),
        wf.tensor(np.arange(0, 10, 2, dtype=np.float32)),
        np.arange(0, 10, 2, dtype=np.float64),
    ],
    ids=["gaps", "list", "subclass", "tensor", "wide"],
)
def test_a_repeated_step_takes_whatever_the_first_one_takes(unsuited):
    program, twin = Training(compiled=True), Training(compiled=True)
    suited = np.arange(0, 10, 2, dtype=np.float32)
    for _ in range(2):
        program.step(suited)
        twin.step(suited)
    assert program.step(unsuited) == twin.step(suited)
    assert [o.t for o in program.optimizers] == [3, 3]


@pytest.mark.parametrize(
    "wrong", [np.ones(4, np.float32), np.ones(5, int), np.ones(5, bool), "x", None]
)
def test_a_repeated_step_refuses_what_is_wrong_and_changes_nothing(wrong):
    program = Training(compiled=True)
    for _ in range(2):
        program.step(np.ones(5, np.float32))
    before = [w.numpy().copy() for w in program.weights]
    with pytest.raises((WeftError, TypeError, ValueError), match="x"):
        program.step(wrong)
    assert [o.t for o in program.optimizers] == [2, 2]
    for weight, value in zip(program.weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)


def test_a_setting_that_changed_is_reported_in_a_repeated_step():
    program = Training(compiled=True)
    for _ in range(2):
        program.step(np.ones(5, np.float32))
    program.optimizers[0].param_groups[0]["eps"] = 0.5
    with pytest.raises(GraphError, match=r"eps of group 0 was 1e-08 .* build the step anew"):
        program.step(np.ones(5, np.float32))
    assert [o.t for o in program.optimizers] == [2, 2]


def test_neighbours_of_one_keeper_are_read_at_once():
    a, b = wf.ones(2), wf.zeros(3)
    box = {"n": 4}
    number = number_state(box, int, Alone(lambda: box["n"], lambda n: box.update(n=n)), name="n")
    groups = kept_together([tensor_state(a, "a"), tensor_state(b, "b"), number])
    assert [len(group.places) for group in groups] == [2, 1]
    assert [value.tolist() for value in groups[0].read()] == [[1, 1], [0, 0, 0]]
    groups[1].write([9])
    assert (number.read(), box["n"]) == (9, 9)
    assert number.read().dtype == np.int64


def test_a_state_that_is_read_only_is_not_written():
    kind = TensorType((), np.dtype(np.float32))
    state = State(object(), kind, Alone(lambda: np.float32(1)), name="s", writable=False)
    with pytest.raises(AssertionError, match="s is read-only"):
        state.write(np.zeros((), np.float32))
