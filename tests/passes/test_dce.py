"""Dead-code elimination."""

from __future__ import annotations

import numpy as np

import weft as wf
from weft.core.op import F
from weft.core.rng import default_generator
from weft.graph.verify import verify
from weft.passes import optimize, remove_dead

from .helpers import ops


def test_only_what_outputs_need_stays():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        unused = wf.placeholder((2,), wf.float32, name="unused")
        y = wf.exp(x)
        wf.log(unused)
    made = remove_dead(graph, [y.value])
    assert ops(made) == ["exp"]
    assert made.inputs == [x.value, unused.value]
    assert made.outputs == [y.value]


def test_all_results_are_kept_by_default():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        wf.exp(x)
        wf.log(x)
    assert len(remove_dead(graph)) == len(graph)


def test_nodes_that_do_not_change_are_shared():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        y = wf.exp(x)
    made = remove_dead(graph, [y.value])
    assert all(a is b for a, b in zip(made, graph, strict=True))
    assert made is not graph


def test_what_tells_a_size_stays():
    with wf.Graph() as graph:
        x = wf.placeholder((None,), wf.float32, name="x")
        picked = x[x > 0]
        y = F.iota(picked.shape[0])
    made = remove_dead(graph, [y.value])
    verify(made)
    found = wf.Session(made).run(y, {x: np.array([1.0, -1.0, 2.0], np.float32)})
    assert found.tolist() == [0, 1]


def test_a_draw_that_is_made_moves_the_generator():
    with wf.Graph() as graph:
        first = wf.rand(3)
        second = wf.rand(3)
    for fetch in ([first], [second], [first, second]):
        made = remove_dead(graph, [s.value for s in fetch])
        verify(made)
        wf.manual_seed(3)
        expected = wf.Session(graph).run(fetch), default_generator.position()
        wf.manual_seed(3)
        found = wf.Session(made).run(fetch), default_generator.position()
        assert np.array_equal(expected[0], found[0])
        assert expected[1] == found[1]
        assert ops(made).count("random_uniform") == len(fetch)


def test_updates_that_are_fetched_stay():
    total = wf.tensor(0.0)
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float32, name="x")
        step = total.assign(total + x * 1.0)
    made = optimize(graph, [step])
    wf.Session(made).run(step, {x: 2.0})
    wf.Session(made).run(step, {x: 3.0})
    assert float(total) == 5.0


def test_names_of_dead_values_go():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        y = wf.exp(x)
        z = wf.log(x)
        graph.name_value(y.value, "alive")
        graph.name_value(z.value, "dead")
    made = remove_dead(graph, [y.value])
    assert made.names == {"alive": y.value}
    assert made.given_names == {y.value: "alive"}


def test_a_loop_and_its_extension_for_the_gradient_become_one():
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float32, name="x")
        y = wf.while_loop(lambda v: v < 10.0, lambda v: v * v + 1, x)
        (g,) = wf.gradients(y, [x])
    assert ops(graph).count("while_loop") >= 2
    feed = {x: 1.5}
    expected = wf.Session(graph).run([y, g], feed)
    for made in (remove_dead(graph, [y.value, g.value]), optimize(graph, [y, g])):
        verify(made)
        assert not made.extended
        assert ops(made).count("while_loop") < ops(graph).count("while_loop")
        found = wf.Session(made).run([y, g], feed)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
