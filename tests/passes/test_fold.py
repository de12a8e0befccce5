"""Constant folding."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.programs.strategies import equal_bits
from weft.core.errors import WeftError
from weft.core.op import F
from weft.passes import fold_constants, remove_dead

from .helpers import ops, run, trace

X = np.array([1.0, -0.0, np.nan], np.float32)


def folded(fn, *arrays):
    graph = trace(fn, *arrays)
    return graph, remove_dead(fold_constants(graph))


def test_constants_are_computed_once():
    graph, made = folded(lambda x: x * wf.exp(wf.tensor([1.0, 2.0, 3.0]) + 1), X)
    assert ops(made) == ["mul"]
    assert equal_bits(run(graph, X), run(made, X))


def test_several_outputs():
    values = np.array([[3.0, 1.0], [1.0, 2.0]], np.float32)
    graph, made = folded(lambda x: x[0] * F.split(values, (1, 1), 0)[1], X)
    assert "split" not in ops(made)
    assert equal_bits(run(graph, X), run(made, X))


def test_known_sizes_fold():
    _, made = folded(lambda x: x * F.size_value(x.shape[0], "float32"), X)
    assert ops(made) == ["mul"]


def test_unknown_sizes_stay():
    with wf.Graph() as graph:
        x = wf.placeholder((None,), wf.float32, name="x")
        y = x * F.size_value(x.shape[0], "float32")
    assert "size_value" in ops(fold_constants(graph, [y.value]))


def test_results_whose_size_only_a_run_tells_stay():
    _, made = folded(lambda x: F.nonzero(wf.tensor([0.0, 1.0, 2.0]))[0].sum() + x, X)
    assert "nonzero" in ops(made)


@pytest.mark.parametrize("size", [(100_000,), (300, 300)])
def test_broadcast_scalars_stay_lazy(size):
    _, made = folded(lambda x: x.sum() * wf.broadcast_to(wf.tensor(2.0), size), X)
    assert "broadcast_to" in ops(made)


def test_large_results_stay():
    big = np.ones((600, 600), np.float32)
    _, made = folded(lambda x: x[0] + wf.exp(big), X)
    assert "exp" in ops(made)


def test_draws_stay():
    state = np.array([1, 0, 0], np.uint64)
    _, made = folded(
        lambda x: x + F.random_uniform(wf.tensor(state), (3,), 0.0, 1.0, np.dtype("f4")), X
    )
    assert "random_uniform" in ops(made)


def test_errors_wait_for_the_run():
    _, made = folded(lambda x: x + wf.tensor([2, 3, 4]) ** wf.tensor([-1, 0, 1]), X)
    assert "pow" in ops(made)
    with pytest.raises(WeftError, match="negative integers"):
        run(made, X)


def test_warnings_stay_silent():
    with np.errstate(all="raise"):
        _, made = folded(lambda x: x + wf.log(wf.zeros(3)), X)
    assert ops(made) == ["add"]


def test_states_are_not_constants():
    weight = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)
    _, made = folded(lambda x: x + weight * 2, X)
    assert ops(made) == ["mul", "add"]


def test_bodies_fold():
    def fn(x):
        return wf.cond(wf.any(x > 0), lambda v: v * wf.exp(wf.tensor(1.0)), wf.neg, x)

    graph, made = folded(fn, X)
    (node,) = (n for n in made if n.op.name == "cond")
    assert ops(remove_dead(node.attrs[0])) == ["mul"]
    assert equal_bits(run(graph, X), run(made, X))


def test_the_layout_of_a_folded_constant_is_kept():
    values = np.arange(6.0).reshape(2, 3)
    _, made = folded(lambda x: x.sum() + wf.exp(wf.permute(values, (1, 0))), X)
    (node,) = (n for n in made if n.op.name == "constant")
    assert node.attrs[0].array.flags.f_contiguous
    assert not node.attrs[0].array.flags.writeable
