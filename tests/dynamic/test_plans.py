"""Plans of examples: Python is not run again for a structure that was seen, and never stale."""

from __future__ import annotations

import copy
import operator
import pickle
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest

import weft as wf
from tests.dynamic.trees import TreeNet, random_trees
from weft.dynamic import plans, signatures

SCALE = 2.0
OPTIONS = {"power": 2}
weight = wf.tensor(np.arange(1.0, 4.0), requires_grad=True)


class Node:
    def __init__(self, value, children=()):
        self.value, self.children = value, list(children)


def total(node):
    """Return a number for a tree; reads globals, a parameter and the structure."""
    h = (weight * wf.tensor(node.value)).sum() * SCALE
    for child in node.children:
        h = h + total(child) ** OPTIONS["power"]
    return h


def tree():
    return Node(1.0, [Node(2.0), Node(0.5, [Node(3.0)])])


def test_a_structure_that_was_seen_goes_by_its_plan():
    function = wf.batched(total)
    example = tree()
    (first,) = function([example])
    assert function.plan().stats()["planned"] == 0
    (second,) = function([example])
    assert function.plan().stats()["planned"] == 1
    (other,) = function([tree()])  # equal, and another object
    assert function.plan().stats()["planned"] == 1
    assert float(first) == float(second) == float(other) == float(total(example))


def same(function, example):
    (result,) = function([example])
    np.testing.assert_allclose(float(result), float(function.fn(example)), rtol=1e-6)


def test_what_a_plan_was_made_from_may_change(monkeypatch):
    function, example = wf.batched(total), tree()
    same(function, example)
    same(function, example)
    example.children[1].value = 7.0
    same(function, example)
    example.children.append(Node(4.0))
    same(function, example)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    same(function, example)
    monkeypatch.setitem(OPTIONS, "power", 3)
    same(function, example)
    with wf.no_grad():
        weight.assign(weight * 2.0)
    same(function, example)
    monkeypatch.setattr(Node, "value", 1.0, raising=False)
    same(function, example)
    monkeypatch.setitem(globals(), "total", lambda node: wf.tensor(5.0))
    same(function, example)


def test_values_of_tensors_are_data():
    function = wf.batched(lambda pair: (pair[0] * weight).sum() * pair[1])
    x = wf.tensor([1.0, 2.0, 3.0], dtype=wf.float64)
    assert float(function([(x, 2)])[0]) == float((x * weight).sum() * 2)
    y = wf.tensor([3.0, 0.0, 1.0], dtype=wf.float64, requires_grad=True)
    (result,) = function([(y, 2)])
    assert function.plan().stats()["planned"] == 1
    assert float(result) == float((y * weight).sum() * 2)
    result.backward()
    np.testing.assert_array_equal(y.grad.numpy(), 2 * weight.numpy())


def test_gradient_modes_have_plans_of_their_own():
    function = wf.batched(total)
    with wf.no_grad():
        assert not function([tree()])[0].requires_grad
    assert function([tree()])[0].requires_grad


def test_dropout_draws_anew_in_each_call():
    drop = wf.batched(lambda x: wf.nn.functional.dropout(wf.ones(64) * x, 0.5))
    wf.manual_seed(3)
    first, second = drop([1.0])[0].tolist(), drop([1.0])[0].tolist()
    assert first != second
    wf.manual_seed(3)
    assert drop([1.0])[0].tolist() == first
    assert drop.plan().stats()["planned"] == 1


def test_example_i_draws_from_stream_i():
    draw = wf.batched(lambda x: wf.rand(3) * x)
    wf.manual_seed(1)
    together = [x.tolist() for x in draw([1.0, 1.0, 1.0])]
    wf.manual_seed(1)
    (alone,) = draw([1.0], start=2)
    assert alone.tolist() == together[2]
    assert together[0] != together[1]


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "impure", [lambda x: wf.tensor(RNG.normal()) * x, lambda x: print(x) or wf.tensor(x)]
)
def test_functions_that_cannot_be_known_run_again(impure, capsys):
    function = wf.batched(impure)
    function([1.0])
    function([1.0])
    assert function.plan().stats()["planned"] == 0
    assert function.plan().stats()["why not planned"]


def test_a_function_that_writes_is_run_again():
    seen = []

    def notes(x):
        seen.append(x)
        return wf.tensor(x) * 2.0

    function = wf.batched(notes)
    function([1.0])
    function([1.0])
    assert seen == [1.0, 1.0]


def test_an_example_that_is_written_to_is_run_again():
    def writes(node):
        node.state = wf.tensor(node.value) * 2.0
        return node.state

    function, node = wf.batched(writes), Node(1.0)
    function([node])
    node.state = None
    function([node])
    assert float(node.state) == 2.0


@dataclass
class DataNode:
    value: float
    children: list = field(default_factory=list)
    name: str = "node"


class NamedNode(NamedTuple):
    value: float
    children: tuple = ()


class SlottedNode:
    __slots__ = ("children", "value")

    def __init__(self, value, children=()):
        self.value, self.children = value, children


@pytest.mark.parametrize("kind", [DataNode, NamedNode, SlottedNode, Node])
def test_classes_of_every_kind_have_plans(kind):
    function = wf.batched(total)
    given = [kind(1.0, [kind(2.0), kind(0.5)]), kind(3.0)]
    first = [float(x) for x in function(given)]
    assert [float(x) for x in function(given)] == first == [float(total(x)) for x in given]
    stats = function.plan().stats()
    assert (stats["planned"], stats["why not planned"]) == (2, None)


def test_a_function_that_makes_its_nodes_has_plans():
    function = wf.batched(lambda x: total(DataNode(x)) + total(NamedNode(2.0 * x)))
    first, second = (float(function([1.5])[0]) for _ in range(2))
    assert first == second
    assert function.plan().stats()["why not planned"] is None


def test_getters_are_pure():
    value = operator.attrgetter("value")
    function = wf.batched(lambda node: (weight * wf.tensor(value(node))).sum())
    assert float(function([DataNode(2.0)])[0]) == 2 * float(weight.sum())
    function([DataNode(2.0)])
    assert function.plan().stats()["planned"] == 1


class Learner:
    """A model that holds its optimizer, what it has seen, and an option."""

    def __init__(self):
        self.weight = wf.tensor(np.arange(1.0, 4.0), requires_grad=True)
        self.optimizer = wf.optim.Adam([self.weight], lr=0.1)
        self.losses = []
        self.power = 2
        self.steps = 0
        self.function = wf.batched(self.loss, reduce="mean")

    def loss(self, node):
        return (self.weight * wf.tensor(node.value)).sum() ** self.power

    def step(self, nodes):
        self.optimizer.zero_grad()
        loss = self.function(nodes)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())
        self.steps += 1
        return self.function.plan().stats()


def test_a_model_that_holds_its_optimizer_keeps_its_plans():
    learner, nodes = Learner(), [Node(1.0), Node(2.0)]
    learner.step(nodes)
    stats = [learner.step(nodes) for _ in range(3)]
    assert [s["planned"] for s in stats] == [2, 2, 2]
    assert stats[-1]["why not planned"] is None
    assert learner.losses[-1] < learner.losses[0]


def test_attributes_that_code_names_are_watched():
    learner, nodes = Learner(), [Node(1.0)]
    learner.step(nodes)
    learner.power = 3
    expected = learner.loss(nodes[0]).item()
    learner.step(nodes)
    assert learner.losses[-1] == expected
    learner.weight = wf.tensor([1.0, 1.0, 1.0], dtype=wf.float64, requires_grad=True)
    learner.step(nodes)
    assert learner.losses[-1] == 27.0


class Layer(wf.nn.Module):
    """A module with parts that only its base class reads."""

    def __init__(self):
        super().__init__()
        self.inner = wf.nn.Linear(3, 2)
        self.history = []

    def forward(self, x):
        return self.inner(x).sum()


def test_modules_keep_plans_and_modes_are_watched():
    layer = Layer()
    function, given = wf.batched(layer), [wf.ones(3), wf.zeros(3)]
    for planned in (0, 2, 2):
        layer.history.append(len(layer.history))
        function(given)
        assert function.plan().stats()["planned"] == planned
    layer.eval()
    function(given)
    assert function.plan().stats()["planned"] == 0


class Copied:
    def __init__(self):
        self.factor, self.unnamed = 2.0, [1.0]

    def __call__(self, x):
        total = 0.0
        for value in copy.copy(self).parts():
            total = total + value * wf.tensor(x)
        return total

    def parts(self):
        match self:
            case Copied(unnamed=found):
                return found
        return []


def test_attributes_that_are_read_without_a_name_in_code_are_watched():
    copied = Copied()
    function = wf.batched(copied)
    assert float(function([3.0])[0]) == 3.0
    copied.unnamed = [2.0]
    assert float(function([3.0])[0]) == 6.0
    copied.unnamed.append(1.0)
    assert float(function([3.0])[0]) == 9.0


def test_first_and_later_calls_are_the_same_to_the_last_bit():
    net = TreeNet(40, words=50, cells=True, dtype="float32")
    mean = wf.batched(net.loss, reduce="mean")
    trees = random_trees(12, 3, 20)

    def found():
        total = mean(trees)
        return [x.numpy() for x in (total, *wf.gradients(total, list(net.parameters)))]

    first = found()
    assert mean.plan().planned == 0
    for _ in range(2):
        for x, y in zip(found(), first, strict=True):
            np.testing.assert_array_equal(x, y)
    assert mean.plan().planned == len(trees)


def test_arguments_that_are_others_in_each_call_are_forgotten(monkeypatch):
    monkeypatch.setattr(plans, "MOST_CONTEXTS", 4)
    function = wf.batched(lambda x, temperature, given: given(wf.tensor(float(x)) * temperature))
    for step in range(24):
        given = lambda h, step=step: h + step  # noqa: E731  (another one in each call)
        assert [float(x) for x in function([1, 2], 2.0, given)] == [2.0 + step, 4.0 + step]
        held = function._plans
        assert len(held._contexts) <= 5
        assert len(held.outside._met) < 60
    for _ in range(2):
        function([1, 2], 2.0, given)
    assert function.plan().stats()["planned"] == 2


class Coder(wf.nn.Module):
    """A model that holds batched functions of its own methods."""

    def __init__(self):
        super().__init__()
        self.weight = wf.nn.Parameter(wf.ones(3))
        self.encode = wf.batched(self.encode_one, reduce="stack")
        self.decode = wf.batched(self.decode_one)

    def encode_one(self, x):
        return self.weight * wf.tensor(float(x))

    def decode_one(self, h):
        return h["h"].sum() * 2.0 if h["h"].sum() > 1.0 else h["h"].sum()

    def forward(self, xs):
        return self.decode([{"h": h} for h in self.encode(xs)])


def test_models_that_hold_batched_functions_have_plans():
    model = Coder()
    for _ in range(3):
        assert [float(x) for x in model([1, 2])] == [6.0, 12.0]
    assert model.encode.plan().stats()["planned"] == 2
    assert model.decode.plan().stats()["planned"] == 2
    whole = wf.batched(lambda xs: model(xs)[0])
    for _ in range(3):
        assert [float(x) for x in whole([[1, 2], [2]])] == [6.0, 12.0]
    assert "calls a batched function" in whole.plan().stats()["why not planned"]
    assert whole.plan().stats()["planned"] == 0


class Stepping(wf.nn.Module):
    """A model that holds a batched function, and a cell, which have seen calls."""

    def __init__(self):
        super().__init__()
        self.linear = wf.nn.Linear(8, 8)
        self.step = wf.cell(self.linear)
        self.run = wf.batched(self.one, reduce="stack")

    def one(self, x):
        h = self.step(wf.ones(8) * wf.tensor(float(x)))
        return self.step(h).sum() if h.sum() > 0 else h.sum()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("calls", [0, 1, 4])
def test_models_are_copied_without_what_calls_have_left(copied, calls):
    model = Stepping()
    for _ in range(calls):
        model.run([1, -2, 3])
    other = copied(model)
    other.linear.weight.assign(other.linear.weight * -0.5)
    for _ in range(3):
        for held in (model, other):
            expected = [float(held.one(x)) for x in [1, -2, 3]]
            np.testing.assert_allclose(held.run([1, -2, 3]).numpy(), expected, rtol=1e-5)
    assert other.run.plan().stats()["planned"] == 3


def test_attributes_that_are_others_in_each_call_are_forgotten(monkeypatch):
    """A limit that follows from what is read, say: each is a signature of its own."""
    monkeypatch.setattr(signatures, "MOST_SIGNATURES", 40)
    limit = wf.tensor(1.0, dtype=wf.float64)

    def clipped(x):
        h = wf.tensor([float(x), -3.0]) * limit
        return wf.clip(h, -1.0, abs(h[0].item())).sum()

    function = wf.batched(clipped)
    for step in range(24):
        limit.fill_(1.0 + step / 32)
        assert [float(x) for x in function([1, 2])] == [float(clipped(x)) for x in [1, 2]]
        assert len(function._table.all) < 60
