"""Equal programs have equal hashes, whatever order and names they were built with; others not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
from tests.graph.identity.canonical_form import canonical_form
from tests.graph.processes import printed_in_every_process
from tests.programs.graphs import control_flow, mlp_training, programs, registry_graphs, shuffled
from tests.programs.strategies import random_graphs
from weft.core.errors import ArgumentTypeError, GraphError
from weft.graph.graph import Graph
from weft.graph.identity.canonical import canonical_hash
from weft.graph.run import Program
from weft.graph.text.printer import to_source
from weft.graph.verify import verify

PROGRAMS = dict(programs())


def hashed(build) -> str:
    with Graph() as graph:
        build()
    return canonical_hash(graph)


def x(shape=(3,), name="x", dtype=None):
    return wf.placeholder(shape, dtype or wf.float32, name=name)


# -- what is immaterial ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_order_and_names_are_immaterial(name):
    graph = PROGRAMS[name]
    for seed in range(5):
        other = shuffled(graph, seed)
        verify(other)
        assert canonical_hash(other) == canonical_hash(graph)
        assert_same_form(other, graph)


def assert_same_form(a: Graph, b: Graph) -> None:
    forms = [canonical_form(graph) for graph in (a, b)]
    for form in forms:
        verify(form)
        assert canonical_hash(form) == canonical_hash(a)
    sources = [to_source(form) for form in forms]
    assert sources[0].text == sources[1].text
    assert sources[0].constants.keys() == sources[1].constants.keys()


@given(random_graphs(), st.integers(0, 99))
def test_random_graphs_do_not_depend_on_order(program, seed):
    other = shuffled(program.graph, seed)
    assert canonical_hash(other) == canonical_hash(program.graph)
    assert_same_form(other, program.graph)


def test_registry_graphs_have_forms_that_print_alike():
    for graphs in registry_graphs().values():
        for graph in graphs[:1]:
            assert_same_form(shuffled(graph, 1), graph)


def test_two_models_written_in_different_order_agree():
    assert canonical_hash(mlp_training(True)) == canonical_hash(mlp_training(False))


def test_two_models_created_apart_agree():
    assert canonical_hash(control_flow()) == canonical_hash(control_flow())


def test_operands_of_commutative_operators():
    assert hashed(lambda: x() * 2.0 + x(name="y")) == hashed(lambda: x(name="y") + 2.0 * x())


def test_equal_nodes_count_as_one():
    def apart():
        a = x()
        return wf.exp(a) * wf.exp(a)

    def shared():
        e = wf.exp(x())
        return e * e

    assert hashed(apart) == hashed(shared)


def test_scopes_names_and_lines():
    def scoped():
        with wf.name_scope("deep/inside"):
            wf.exp(a).name = "result"

    with Graph() as first:
        a = x()
        scoped()
    with Graph() as second:
        wf.exp(x())
    assert canonical_hash(first) == canonical_hash(second)


def test_names_of_unknown_sizes():
    assert hashed(lambda: x(("rows", "columns")).T) == hashed(lambda: x((None, None)).T)


def test_values_of_states_are_not_part_of_the_program():
    def build(value):
        w = wf.tensor(np.full(3, value, np.float32))
        return hashed(lambda: x() * w)

    assert build(1.0) == build(2.0)


def test_order_in_which_a_body_captures():
    a, b = wf.ones(3), wf.zeros(3)

    def loop(step):
        return hashed(lambda: wf.scan(lambda h, r: (step(h, r), h), wf.zeros(3), x((5, 3))))

    def one(h, r):
        left = wf.exp(h * a)
        return left - wf.tanh(r * b)

    def other(h, r):
        right = wf.tanh(b * r)
        return wf.exp(h * a) - right

    assert loop(one) == loop(other)


def test_states_that_differ_only_in_their_use():
    """Two states are used alike except for one operation that tells them apart."""

    def build(order):
        states = [wf.ones(3), wf.ones(3)]
        with Graph() as graph:
            towers = [wf.exp(states[i]) for i in order]
            del towers
            states[0] - states[1]
        return canonical_hash(graph)

    assert build((0, 1)) == build((1, 0))


def test_symmetric_states():
    def build(order):
        states = [wf.ones(3) for _ in range(4)]
        with Graph() as graph:
            for i in order:
                wf.exp(states[i] - states[(i + 1) % 4])
        return canonical_hash(graph)

    assert len({build(order) for order in ((0, 1, 2, 3), (2, 0, 3, 1), (3, 2, 1, 0))}) == 1


def test_hash_is_the_same_in_every_process():
    code = (
        "import weft as wf\n"
        "with wf.Graph() as g:\n"
        "    x = wf.placeholder((None, 3), wf.float32, name='x')\n"
        "    wf.scan(lambda h, r: (wf.tanh(h + r), h), wf.zeros(3), x * wf.ones(3))\n"
        "print(g.hash())"
    )
    assert len(printed_in_every_process(code)) == 64


# -- what is not -----------------------------------------------------------------------------------

DIFFERENT = {
    "operator": lambda: wf.exp(x()),
    "another operator": lambda: wf.sin(x()),
    "name of an input": lambda: wf.exp(x(name="z")),
    "type of an input": lambda: wf.exp(x(dtype=wf.float64)),
    "unknown size": lambda: wf.exp(x((None,))),
    "order of operands": lambda: x() - x(name="y"),
    "other order of operands": lambda: x(name="y") - x(),
    "zero": lambda: wf.maximum(x(), 0.0),
    "zero on the other side": lambda: wf.maximum(0.0, x()),
    "negative zero": lambda: wf.maximum(x(), -0.0),
    "nan": lambda: wf.maximum(x(), float("nan")),
    "attribute": lambda: x((2, 3)).sum(axis=0),
    "another attribute": lambda: x((2, 3)).sum(axis=1),
    "keepdims": lambda: x((2, 3)).sum(axis=1, keepdims=True),
    "two results": lambda: (wf.exp(x()), wf.sin(x(name="y"))),
    "one draw": lambda: wf.rand(2),
    "two draws": lambda: wf.rand(2) + wf.rand(2),
    "two generators": lambda: wf.rand(2) + wf.rand(2, generator=wf.Generator(1)),
    "loop": lambda: wf.scan(lambda h, r: (h + r, h), wf.zeros(3), x((5, 3))),
    "loop backwards": lambda: wf.scan(
        lambda h, r: (h + r, h), wf.zeros(3), x((5, 3)), reverse=True
    ),
    "carries exchanged": lambda: wf.scan(
        lambda h, r: ((h[1], h[0] + r), None), (wf.zeros(3), wf.zeros(3)), x((5, 3))
    ),
    "carries not exchanged": lambda: wf.scan(
        lambda h, r: ((h[0] + r, h[1]), None), (wf.zeros(3), wf.zeros(3)), x((5, 3))
    ),
}


def test_different_programs_have_different_hashes():
    found = {name: hashed(build) for name, build in DIFFERENT.items()}
    w, v = wf.ones(3).requires_grad_(), wf.ones(3).requires_grad_()
    found["one state"] = hashed(lambda: w - w)
    found["two states"] = hashed(lambda: w - v)
    assert len(set(found.values())) == len(found)


def test_order_of_explicit_outputs_counts():
    with Graph() as graph:
        a = x()
        y, z = wf.exp(a), wf.sin(a)
    assert canonical_hash(graph, [y, z]) != canonical_hash(graph, [z, y])
    assert canonical_hash(graph, [y]) != canonical_hash(graph, [z])


def test_what_outputs_do_not_need_does_not_count():
    with Graph() as graph:
        a = x()
        y = wf.exp(a)
        before = canonical_hash(graph, [y])
        wf.sin(a) + wf.rand(3)
    assert canonical_hash(graph, [y]) == before


# -- the form --------------------------------------------------------------------------------------


def test_form_computes_the_same():
    with Graph() as graph:
        a = x((None, 3))
        y = wf.scan(lambda h, r: (h * 2.0 + r, h), wf.zeros(3), a)[1] + a.shape[0]
    form = canonical_form(graph)
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = wf.Session(graph).run(y, {a: value})
    found = Program(form, [form.aliases[y.value]], [form.aliases[a.value]]).run([value]).fetched[0]
    np.testing.assert_array_equal(found, expected)


def test_form_keeps_outputs_and_numbers_states():
    w = wf.ones(3)
    with Graph() as graph:
        a = x()
        y, z = wf.exp(a * w), wf.sin(a)
    form = canonical_form(graph, [z, y])
    assert [value.node.op.name for value in form.outputs] == ["sin", "exp"]
    assert [state.name for state in form.states()] == ["state_0"]
    assert form.states()[0].owner is w


def test_long_chain():
    with Graph() as graph:
        y = x()
        for _ in range(3_000):
            y = -y
    assert canonical_hash(graph) == canonical_hash(canonical_form(graph))


@pytest.mark.long
def test_very_long_chain():
    with Graph() as graph:
        y = x()
        for _ in range(100_000):
            y = -y
    assert len(canonical_hash(graph)) == 64


# -- bad input -------------------------------------------------------------------------------------


def test_bad_input():
    with pytest.raises(ArgumentTypeError, match=r"expected a wf\.Graph"):
        canonical_hash("graph")
    with Graph() as graph:
        x()
    with pytest.raises(ArgumentTypeError, match="outputs must be symbols"):
        canonical_hash(graph, ["x"])
    with Graph():
        foreign = x()
    with pytest.raises(GraphError, match="does not belong"):
        canonical_hash(graph, [foreign])


def test_what_a_gradient_begins_like_is_immaterial_to_a_step() -> None:
    """A loss that is a mean, and one that is a sum divided, have steps of one hash."""

    def hash_of(loss: Any) -> str:
        w = wf.nn.Parameter(wf.ones(3))
        optimizer = wf.optim.SGD([w], lr=0.1)

        def step(x: Any) -> None:
            optimizer.zero_grad()
            loss(wf.square(x * w)).backward()
            optimizer.step()

        return wf.jit(step).graph(wf.ones(4, 3)).optimize().step_hash()

    assert hash_of(wf.mean) == hash_of(lambda x: wf.sum(x) / 12)
    assert hash_of(wf.mean) != hash_of(lambda x: wf.sum(x) / 13)
