"""Whether collections hold what they held, by native loops."""

from __future__ import annotations

import pytest

from weft.backends.cpu.runtime import unchanged
from weft.backends.cpu.runtime.calls import native_calls_work

pytestmark = pytest.mark.skipif(not native_calls_work(), reason="needs objects as CPython's are")


class Node:
    """An object with attributes."""

    def __init__(self, word, left):
        self.word = word
        self.left = left


def saved(owners, live):
    """Return dictionaries as they are now, and everything that must live with that."""
    names = [name for held in live for name in held]
    values = [value for held in live for value in held.values()]
    lengths = [len(held) for held in live]
    made = unchanged.record_of_dictionaries(owners, live, lengths, names, values)
    return made, (names, values)


@pytest.fixture
def nodes():
    return [Node(1000 + i, object()) for i in range(5)]


def test_attributes_that_stay(nodes):
    record, _alive = saved(nodes, [vars(node) for node in nodes])
    assert unchanged.are_same_dictionaries([record]) is True
    assert unchanged.are_same_dictionaries([record, record]) is True
    assert unchanged.are_same_dictionaries([]) is True


def test_an_equal_value_is_another(nodes):
    record, _alive = saved(nodes, [vars(node) for node in nodes])
    nodes[3].word = int("1003")
    assert unchanged.are_same_dictionaries([record]) is False


@pytest.mark.parametrize("change", ["add", "remove", "rename"])
def test_names_that_change(nodes, change):
    record, _alive = saved(nodes, [vars(node) for node in nodes])
    node = nodes[4]
    if change == "add":
        node.right = None
    else:
        left = node.left
        del node.left
        if change == "rename":
            node.right = left
    assert not unchanged.are_same_dictionaries([record])


def test_another_dictionary_of_attributes_cannot_be_told_here(nodes):
    record, _alive = saved(nodes, [vars(node) for node in nodes])
    nodes[2].__dict__ = dict(vars(nodes[2]))
    assert unchanged.are_same_dictionaries([record]) is None


def test_dictionaries_that_nobody_owns():
    held = [{"a": 1.5, 7: object()}, {}]
    record, _alive = saved(held, held)
    assert unchanged.are_same_dictionaries([record]) is True
    held[1]["b"] = 1
    assert unchanged.are_same_dictionaries([record]) is False


def test_lists():
    held = [[1.5, object()], [], [3.5]]
    items = [item for each in held for item in each]
    record = unchanged.record_of_lists(held, [2, 0, 1], items)
    assert unchanged.are_same_lists([record]) is True
    held[1].append(1)
    assert unchanged.are_same_lists([record]) is False
    held[1].clear()
    assert unchanged.are_same_lists([record, record]) is True
    held[2][0] = float("3.5")
    assert unchanged.are_same_lists([record]) is False
