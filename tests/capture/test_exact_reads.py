"""Floats that Python reads make a function run eagerly, unless calls have them in common."""

from __future__ import annotations

import pytest

import weft as wf


@pytest.mark.parametrize(
    "read",
    [
        lambda x: float(x.sum()),
        lambda x: x.tolist(),
        lambda x: f"{x.mean().item():.2f}",
        lambda x: round(x.sum().item(), 1),
    ],
)
def test_a_float_that_follows_arguments_is_not_read(read):
    jitted = wf.jit(read)
    with pytest.warns(RuntimeWarning, match=r"runs eagerly: (reads floats|needs the value)"):
        assert jitted(wf.ones(2)) == read(wf.ones(2))
    assert jitted(wf.zeros(2)) == read(wf.zeros(2))
    assert jitted.stats()["recordings"] == 0


def test_neither_is_one_of_a_parameter_or_of_what_is_drawn():
    w = wf.tensor(2.0, requires_grad=True)
    for read in (lambda: float(w), lambda: float(wf.rand(()))):
        with pytest.warns(RuntimeWarning, match=r"x\.item\(\), which follows the value"):
            wf.jit(read)()


def test_one_of_a_tensor_from_outside_is_tested_in_each_call():
    scale = wf.tensor(2.0)
    jitted = wf.jit(lambda x: x * float(scale))
    assert jitted(wf.ones(1)).tolist() == [2.0]
    assert jitted(wf.ones(1)).tolist() == [2.0]
    scale.fill_(3.0)
    assert jitted(wf.ones(1)).tolist() == [3.0]
    assert jitted.stats()["recordings"] == 2


def test_unless_the_function_writes_it():
    total = wf.zeros(())

    @wf.jit
    def f(x):
        before = float(total)
        total.add_(x.sum())
        return before

    with pytest.warns(RuntimeWarning, match=r"reads floats out of a tensor.*test_exact_reads"):
        assert f(wf.ones(2)) == 0.0
    assert f(wf.ones(2)) == 2.0


def test_integers_are_read_each_a_path_of_its_own():
    table = wf.tensor([[1.0], [2.0], [3.0]])
    jitted = wf.jit(lambda x: table[int(x.argmax())] * 2)
    for i in (0, 1, 2, 0, 1, 2):
        assert jitted(wf.eye(3)[i]).tolist() == [2.0 * (i + 1)]
    assert jitted.stats()["recordings"] == 3


def test_more_integers_than_paths_are_kept_for_are_slow_but_right():
    table = wf.tensor([float(i) for i in range(20)])
    jitted = wf.jit(lambda x: table[int(x)] * 2)
    with pytest.warns(RuntimeWarning, match="is recorded anew in each call") as told:
        found = [jitted(wf.tensor(i)).item() for i in (*range(20), *range(20))]
    assert found == [2.0 * i for i in (*range(20), *range(20))]
    assert len(told) == 1
    assert jitted.stats()["eager_calls"] == 0
    assert jitted.stats()["paths"] == 16


def test_a_number_outside_that_changes_is_fed():
    settings = {"scale": 1.0, "shift": 1}

    @wf.jit
    def f(x):
        return x * settings["scale"] + settings["shift"]

    for i in range(5):
        settings["scale"], settings["shift"] = 0.5 * i, i
        assert f(wf.ones(1)).tolist() == [1.5 * i]
    assert f.stats()["recordings"] == 2
