"""Keys of structures, and whether they are as they were."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest

import weft as wf
from weft.dynamic.structure import OpaqueError, StructureWalk, is_cyclic


@dataclass
class Item:
    name: str
    parts: list = field(default_factory=list)


class Slotted:
    __slots__ = ("left", "right")

    def __init__(self, left):
        self.left = left


def key(x):
    return StructureWalk(x).key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ([1, 2], (1, 2)),
        ([[1], 2], [[1, 2]]),
        ({"a": 1}, {"b": 1}),
        ({"a"}, {"b"}),
        (Item("a"), Item("b")),
        (Item("a", [1]), Item("a", [2])),
        (Slotted(1), Slotted(2)),
        (np.array([1, 2]), np.array([1, 3])),
        (np.float32(1), np.float64(1)),
        (wf.ones(2), wf.ones(3)),
    ],
)
def test_what_differs_has_other_keys(one, other):
    assert key(one) != key(other)


def test_equal_structures_have_one_key():
    assert key(Item("a", [1, (2.5, None)])) == key(Item("a", [1, (2.5, None)]))
    assert key([wf.ones(2)]) == key([wf.zeros(2)])  # values of tensors are data
    shared = [1]
    assert key([shared, shared]) != key([[1], [1]])


def test_changes_are_seen():
    item = Item("a", [1, {"x": 2}, np.zeros(2)])
    walk = StructureWalk(item)
    assert walk.is_same()
    item.parts[2][0] = 5
    assert not walk.is_same()
    for change in (
        lambda: item.parts.append(3),
        lambda: item.parts[1].update(x=3),
        lambda: setattr(item, "name", "b"),
        lambda: setattr(item, "__dict__", {"name": "c", "parts": []}),
    ):
        walk = StructureWalk(item)
        change()
        assert not walk.is_same()


def test_what_hides_something_is_opaque():
    with pytest.raises(OpaqueError):
        StructureWalk(iter([1]))
    with pytest.raises(OpaqueError):
        StructureWalk([1, zip([1])])
    assert key(partial(max, 1)) != key(partial(max, 2))


def test_cycles():
    ring = []
    ring.append([ring])
    assert is_cyclic(ring)
    assert key(ring) == key(ring)
    shared = [1]
    assert not is_cyclic([shared, shared])
    deep = []
    for _ in range(5000):
        deep = [deep]
    assert not is_cyclic(deep)
    assert key(deep)


def test_the_order_of_an_ordered_dictionary_counts():
    given = OrderedDict(a=1, b=2)
    walk = StructureWalk([given])
    assert walk.is_same()
    given.move_to_end("a")
    assert not walk.is_same()


def test_names_and_boundaries_count():
    class Thing:
        pass

    one, other = Thing(), Thing()
    one.a, one.b, other.a = None, None, None
    walk = StructureWalk([one, other])
    del one.a
    one.c = None
    assert not walk.is_same()
    lists = [[None], [None, None]]
    walk = StructureWalk(lists)
    lists[0].append(lists[1].pop())
    assert not walk.is_same()
