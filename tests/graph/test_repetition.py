"""Nodes that are copied rather than built again are those that the function would build."""

import numpy as np
import pytest

import weft as wf
from weft.graph.repetition import Repetition

SHAPES = [(4, 3), (4,), (4, 3), (2, 4), (4,), (4, 3), (2,)]
RULES = [
    lambda ps: wf.optim.SGD(ps, lr=0.1),
    lambda ps: wf.optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    lambda ps: wf.optim.Adam(ps, lr=0.1, amsgrad=True),
    lambda ps: wf.optim.AdamW(ps, lr=0.1),
    lambda ps: wf.optim.RMSprop(ps, lr=0.1, centered=True),
    lambda ps: wf.optim.Adadelta(ps, lr=0.1),
    lambda ps: wf.optim.LAMB(ps, lr=0.1),
]


def parameters():
    rng = np.random.default_rng(0)
    return [wf.nn.Parameter(rng.normal(size=shape).astype(np.float32)) for shape in SHAPES]


def loss_of(ps):
    return sum((p * p).sum() * (i + 1.0) for i, p in enumerate(ps))


def minimized(rule):
    ps = parameters()
    with wf.Graph() as graph:
        rule(ps).minimize(loss_of(ps))
    return graph


def described(graph):
    return [
        (
            n.name,
            n.op.name,
            [x and x.name for x in n.inputs],
            _attrs(n),
            [y.type for y in n.outputs],
        )
        for n in graph.nodes
    ]


def _names(values):
    return [value and value.name for value in values]


def _attrs(node):
    return [getattr(attr, "name", None) or repr(attr) for attr in node.attrs]


@pytest.fixture
def always_run(monkeypatch):
    def run():
        monkeypatch.setattr(Repetition, "__call__", lambda self, xs: self._function(xs))

    return run


@pytest.mark.parametrize("rule", RULES)
def test_steps_have_the_nodes_that_a_rule_builds(rule, always_run):
    copied = described(minimized(rule))
    always_run()
    assert copied == described(minimized(rule))


def trained(rule):
    ps = parameters()
    optimizer = rule(ps)

    def step(x):
        optimizer.zero_grad()
        loss = loss_of(ps) * x
        loss.backward()
        optimizer.step()
        return loss

    step = wf.jit(step)
    for x in (1.0, 0.5):
        step(wf.tensor(x))
    return step.graph(), [np.array(p.detach()) for p in ps]


@pytest.mark.parametrize("rule", RULES[1:4])
def test_recorded_steps_have_the_nodes_that_a_rule_builds(rule, always_run):
    graph, values = trained(rule)
    always_run()
    again, expected = trained(rule)
    assert described(graph) == described(again)
    for p, q in zip(values, expected, strict=True):
        np.testing.assert_array_equal(p, q)


def repeated(function, *calls):
    """Return the function's runs, and its results as the graph computes them."""
    ran = []

    def run(xs):
        ran.append(len(xs))
        return function(xs), len(ran)

    with wf.Graph() as graph:
        repetition = Repetition(graph.tracer, run)
        feeds = [[wf.placeholder(shape) for shape in shapes] for shapes in calls]
        made = [repetition(xs) for xs in feeds]
    rng = np.random.default_rng(0)
    given = {x: rng.normal(size=x.shape).astype(np.float32) for xs in feeds for x in xs}
    found = wf.Session(graph).run([ys for ys, _ in made], given)
    expected = [function([wf.tensor(given[x]) for x in xs]) for xs in feeds]
    for ys, wanted in zip(found, expected, strict=True):
        for y, z in zip(ys, wanted, strict=True):
            np.testing.assert_allclose(y, np.array(z), rtol=1e-6)
    return ran, [said for _, said in made]


def test_a_function_runs_once_for_equal_types():
    ran, said = repeated(lambda xs: [xs[0] * 2.0 + xs[1], xs[1]], *[[(3,), (3,)]] * 3, [(2,), (2,)])
    assert (len(ran), said) == (2, [1, 1, 1, 2])


def test_operands_that_are_one_make_another_call():
    with wf.Graph() as graph:
        x, y = wf.placeholder((2,)), wf.placeholder((2,))
        repetition = Repetition(graph.tracer, lambda xs: ([xs[0] - xs[1]], None))
        ((same,), _), ((other,), _) = repetition([x, x]), repetition([x, y])
    found = wf.Session(graph).run([same, other], {x: np.ones(2), y: np.full(2, 5.0)})
    np.testing.assert_array_equal(found, [[0.0, 0.0], [-4.0, -4.0]])


def test_values_computed_of_operands_before_are_not_taken_for_constants():
    with wf.Graph() as graph:
        xs = [wf.placeholder((2,)) for _ in range(2)]
        squares = {x.value: x * x for x in xs}
        repetition = Repetition(graph.tracer, lambda ops: ([ops[0] + squares[ops[0].value]], None))
        made = [repetition([x])[0][0] for x in xs]
    found = wf.Session(graph).run(made, {xs[0]: np.full(2, 2.0), xs[1]: np.full(2, 3.0)})
    np.testing.assert_array_equal(found, [[6.0, 6.0], [12.0, 12.0]])


def test_functions_that_draw_are_always_run():
    ran = []

    def run(xs):
        ran.append(1)
        return [xs[0] + wf.randn(2)], None

    with wf.Graph() as graph:
        xs = [wf.placeholder((2,)) for _ in range(3)]
        repetition = Repetition(graph.tracer, run)
        made = [repetition([x])[0][0] for x in xs]
    found = wf.Session(graph).run(made, dict.fromkeys(xs, np.zeros(2, np.float32)))
    assert len(ran) == 3
    assert not np.array_equal(found[0], found[1])


def test_operands_of_unknown_size_are_handed_on():
    with wf.Graph() as graph:
        ran = []
        repetition = Repetition(graph.tracer, lambda xs: (ran.append(1) or [xs[0] * 2.0], None))
        for _ in range(2):
            repetition([wf.placeholder((None, 2))])
    assert len(ran) == 2
