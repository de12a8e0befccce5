"""One reverse engine behind four front ends: the tape, recordings, graphs and loops in graphs."""

import numpy as np
import pytest

import weft as wf
from weft.autodiff.engine import ReverseWalk, leading_to, nodes_behind
from weft.core.op import find_op
from weft.core.tape import Leaf, make_node

X = np.array([0.0, 0.5, 2.0])


def masked(x):
    return wf.where(x > 0.0, wf.log(x) * x, x * x)


def by_tape(fn, x):
    leaf = wf.tensor(x, requires_grad=True)
    fn(leaf).sum().backward()
    return leaf.grad.numpy()


def by_recording(fn, x):
    return wf.vmap(wf.grad(fn))(wf.tensor(x)).numpy()


def by_graph(fn, x):
    with wf.Graph() as graph:
        place = wf.placeholder(x.shape, wf.float64, name="x")
        found = wf.gradients(fn(place).sum(), place)
    return wf.Session(graph).run(found, {place: x})


def by_loop(fn, x):
    with wf.Graph() as graph:
        place = wf.placeholder(x.shape, wf.float64, name="x")
        total, _ = wf.scan(
            lambda c, row: (c + fn(row), None), wf.tensor(0.0, dtype=wf.float64), place
        )
        found = wf.gradients(total, place)
    return wf.Session(graph).run(found, {place: x})


FRONT_ENDS = [by_tape, by_recording, by_graph, by_loop]


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_the_side_of_a_where_that_was_not_taken_makes_no_nan(front_end):
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.where(X > 0.0, np.log(X) + 1.0, 2.0 * X)
    np.testing.assert_allclose(front_end(masked, X), expected)


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_cotangents_of_several_uses_and_outputs_add_up(front_end):
    def fn(x):
        pair = wf.split(wf.stack([x * x, x]), 1)  # of which one result is used twice
        return (pair[0][0] * x + pair[0][0]) * 1.0

    np.testing.assert_allclose(front_end(fn, X), 3.0 * X**2 + 2.0 * X)


def node(*parents, rule):
    return make_node(find_op("positive"), parents, rule)


def test_a_node_is_visited_once_after_all_its_consumers():
    visited = []

    def rule(name, *factors):
        def pull_back(g):
            visited.append(name)
            return [factor * g for factor in factors]

        return pull_back

    leaf = Leaf()
    first = node(leaf, rule=rule("first", 1.0))
    second = node(first, first, rule=rule("second", 2.0, 3.0))
    last = node(second, first, rule=rule("last", 1.0, 10.0))
    found = ReverseWalk().run([last, None, first], [1.0, 1.0, 100.0])
    assert visited == ["last", "second", "first"]
    assert found == {leaf: 115.0}


def test_only_what_leads_to_wanted_nodes_is_visited():
    def refuse(g):
        raise AssertionError("nothing wanted lies behind it")

    kept, other = Leaf(), Leaf()
    wanted = node(kept, rule=refuse)
    aside = node(other, rule=refuse)
    root = node(wanted, aside, rule=lambda g: [g, g])
    assert leading_to({wanted}, [root]) == {wanted, root}
    assert nodes_behind([root, None]) == {root, wanted, aside, kept, other}
    assert ReverseWalk().run([root], [2.0], {wanted}) == {wanted: 2.0}
