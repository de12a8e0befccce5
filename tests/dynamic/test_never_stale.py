"""A plan holds for nothing that the function could read differently: each kind of outside."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft as wf


class Square(wf.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g


class Table:
    """A class whose attributes are read, and change."""

    rows = (1.0, 2.0)
    numbers: list[float]
    options: dict[str, float]

    def first(self, x):
        return number(x) * self.numbers[0]


class Held:
    """An example that holds a tensor."""

    def __init__(self, value):
        self.tensor = wf.tensor([value])


class Case(NamedTuple):
    function: Callable[[Any], Any]
    change: Callable[[Any], Any]
    examples: Callable[[], list[Any]] = lambda: [1, 2]


weight = wf.tensor([2.0])
trained = wf.tensor([1.0], requires_grad=True)
table = Table()


def number(x):
    return wf.tensor(float(x))


def other_weight(examples):
    weight.fill_(3.0)


def other_gradient(examples):
    trained.grad = None
    (trained * 5).sum().backward()


def counted(x):
    return wf.tensor(float(len(wf.nonzero(x)[0])))


CASES = {
    "the value of a tensor": Case(
        lambda x: number(x) * (2 if weight.item() > 2.5 else 3), other_weight
    ),
    "what is computed of one": Case(lambda x: number(x) * (weight * 2).item(), other_weight),
    "its truth": Case(lambda x: number(x) * 2 if weight > 2.5 else number(x), other_weight),
    "its array": Case(lambda x: number(x) * float(weight.numpy()[0]), other_weight),
    "an array of it": Case(lambda x: number(x) * float(np.asarray(weight)[0]), other_weight),
    "an element in it": Case(lambda x: number(x) * (2 if 3.0 in weight else 1), other_weight),
    "its text": Case(lambda x: number(x) * len(f"{weight}"), lambda _: weight.fill_(333.25)),
    "how many elements fit": Case(
        lambda x: number(x) * float(len(wf.nonzero(weight - 2.0)[0])), other_weight
    ),
    "a mask": Case(lambda x: number(x) * float(weight[weight > 2.0].shape[0]), other_weight),
    "a function of the user's": Case(
        lambda x: (number(x) * Square.apply(weight)).sum(), other_weight
    ),
    "its value cut off": Case(lambda x: (number(x) * weight.detach()).sum(), other_weight),
    "a copy of it": Case(lambda x: (number(x) * copy.deepcopy(weight)).sum(), other_weight),
    "its gradient": Case(lambda x: (number(x) * trained.grad).sum(), other_gradient),
    "whether it is trained": Case(
        lambda x: number(x) * (2 if trained.requires_grad else 3),
        lambda _: trained.requires_grad_(False),
    ),
    "the value of a tensor in the example": Case(
        lambda x: x.tensor.sum() * x.tensor.item(),
        lambda examples: examples[0].tensor.fill_(9.0),
        lambda: [Held(1.0), Held(2.0)],
    ),
    "the truth of one in the example": Case(
        lambda x: x.tensor.sum() * (2 if x.tensor > 3 else 1),
        lambda examples: examples[0].tensor.fill_(9.0),
        lambda: [Held(1.0), Held(2.0)],
    ),
    "a list of a class": Case(
        lambda x: number(x) * Table.numbers[0], lambda _: Table.numbers.append(Table.numbers.pop(0))
    ),
    "a list of an object's class": Case(
        lambda x: table.first(x) * 1.0, lambda _: Table.numbers.append(Table.numbers.pop(0))
    ),
    "a dictionary of a class": Case(
        lambda x: number(x) * Table.options["power"], lambda _: Table.options.update(power=9.0)
    ),
}


@pytest.fixture(autouse=True)
def _as_it_was():
    weight.fill_(2.0)
    trained.requires_grad_(True)
    trained.grad = None
    (trained * 3).sum().backward()
    Table.numbers, Table.options = [1.0, 2.0], {"power": 2.0}


@pytest.mark.parametrize("name", CASES)
def test_what_was_read_may_change(name):
    case = CASES[name]
    examples = case.examples()
    function = wf.batched(case.function)
    for _ in range(2):
        assert values(function(examples)) == values(map(case.function, examples))
    case.change(examples)
    assert values(function(examples)) == values(map(case.function, examples))


def values(results):
    return [float(x) for x in results]


def test_what_keeps_plans_from_being_kept_is_told():
    function = wf.batched(CASES["the value of a tensor"].function)
    function([1, 2])
    assert "reads the value of a tensor" in function.plan().stats()["why not planned"]


def test_tensors_that_are_only_computed_with_have_plans():
    function = wf.batched(lambda x: (number(x) * (weight * 2) * Table.rows[0]).sum())
    function([1, 2])
    other_weight(None)
    assert values(function([1, 2])) == [6.0, 12.0]
    assert function.plan().stats()["planned"] == 2


def test_what_an_inner_function_reads_of_an_outer_one():
    inner = wf.batched(lambda x, h: x * 2.0 if h.sum() > 0 else x * 3.0)
    outer = wf.batched(lambda x: inner([number(1), number(2)], number(x))[1])
    for _ in range(3):
        assert values(outer([1.0, -1.0])) == [4.0, 6.0]
        assert values(outer([-1.0, 1.0])) == [6.0, 4.0]


def test_values_of_tensors_in_examples_are_part_of_their_structure():
    """Labels as tensors: each example has the plan of its own."""

    def loss(x):
        return (number(1.0) + [4.0, 5.0, 6.0][int(x.tensor)]) * weight * x.tensor.item()

    examples = [Held(1.0), Held(2.0), Held(1.0)]
    function = wf.batched(lambda x: loss(x).sum())
    for step in range(4):
        for given in (examples, [Held(2.0), Held(0.0)]):
            assert values(function(given)) == values(loss(x) for x in given)
        if step > 1:
            assert function.plan().stats()["planned"] in (1, 2)
            function(examples)
            assert function.plan().stats()["planned"] == 3
    examples[0].tensor.fill_(0.0)
    assert values(function(examples)) == values(loss(x) for x in examples)
    assert function.plan().stats()["planned"] == 2


def test_arguments_that_code_changes_are_changed_each_time():
    def noted(x, log):
        log["last"] = x
        log["all"].append(x)
        return number(x)

    function = wf.batched(noted)
    for _ in range(4):
        log = {"last": 0, "all": []}
        function([1, 2], log)
        assert log == {"last": 2, "all": [1, 2]}
    kept = wf.batched(lambda x, options: number(x) * options["scale"][0])
    for _ in range(3):
        assert values(kept([1, 2], {"scale": [3.0]})) == [3.0, 6.0]
    assert kept.plan().stats()["planned"] == 2
