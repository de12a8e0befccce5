"""Trees: flatten, unflatten, map, registration, mismatches."""

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import ArgumentError, ArgumentTypeError
from weft.core.tree import (
    TreeMismatchError,
    flatten,
    flatten_with_paths,
    register,
    tree_leaves,
    tree_map,
    tree_structure,
    unflatten,
)

Point = namedtuple("Point", "x y")


@dataclass
class Config:
    weight: object
    bias: object = None
    calls: list = field(default_factory=list)

    def __post_init__(self):
        self.calls.append("made")


@dataclass(frozen=True, slots=True)
class Frozen:
    a: int


class Bag:
    def __init__(self, items, label):
        self.items, self.label = items, label


register(Bag, lambda bag: (bag.items, bag.label), lambda label, items: Bag(list(items), label))

keys = st.text(max_size=3)
trees = st.recursive(
    st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(keys, inner, max_size=3)
        | st.tuples(inner, inner)
    ),
)


@given(trees)
def test_unflatten_undoes_flatten(tree):
    leaves, structure = flatten(tree)
    again = unflatten(structure, leaves)
    assert again == tree
    assert tree_structure(again) == structure
    assert hash(tree_structure(again)) == hash(structure)
    assert structure.count == len(leaves)
    assert [leaf for _, leaf in flatten_with_paths(tree)] == leaves


def test_leaves_in_order():
    assert tree_leaves({"b": [1, (2, 3)], "a": None, "c": Point(4, 5)}) == [1, 2, 3, 4, 5]
    assert tree_leaves(7) == [7]
    assert tree_leaves([]) == []


def test_none_is_an_empty_container():
    assert flatten(None)[0] == []
    assert tree_map(str, [1, None]) == ["1", None]


def test_containers_come_back_as_what_they_were():
    tree = [Point(1, 2), OrderedDict(z=3, a=4), (5,), Frozen(6)]
    mapped = tree_map(lambda x: x * 10, tree)
    assert mapped == [Point(10, 20), OrderedDict(z=30, a=40), (50,), Frozen(60)]
    assert [type(part) for part in mapped] == [type(part) for part in tree]


def test_dataclasses_are_rebuilt_without_their_init():
    made = tree_map(lambda x: x, Config(1))
    assert (made.weight, made.bias, made.calls) == (1, None, ["made"])


def test_a_defaultdict_comes_back_as_one():
    tree = defaultdict(list, a=1)
    mapped = tree_map(lambda x: x + 1, tree)
    assert type(mapped) is defaultdict
    assert mapped == {"a": 2}


def test_registered_classes():
    bag = tree_map(lambda x: x + 1, Bag([1, [2]], "label"))
    assert (bag.items, bag.label) == ([2, [3]], "label")
    assert tree_structure(Bag([1], "a")) != tree_structure(Bag([1], "b"))
    with pytest.raises(ArgumentError, match="Bag is a container already"):
        register(Bag, None, None)
    with pytest.raises(ArgumentTypeError, match=r"must be a class. Received: 3"):
        register(3, None, None)


def test_key_order_does_not_matter_between_trees():
    first, second = {"a": 1, "b": 2}, {"b": 20, "a": 10}
    assert tree_structure(first) == tree_structure(second)
    assert tree_map(lambda a, b: (a, b), first, second) == {"a": (1, 10), "b": (2, 20)}
    assert list(tree_map(str, second)) == ["b", "a"]


def test_is_leaf_stops_the_descent():
    leaves, structure = flatten([(1, 2), (3, 4)], is_leaf=lambda x: isinstance(x, tuple))
    assert leaves == [(1, 2), (3, 4)]
    assert structure.unflatten("ab") == ["a", "b"]


def test_other_trees_may_be_deeper():
    assert tree_map(lambda a, b: (a, b), [1, 2], [[10, 11], {"x": 3}]) == [
        (1, [10, 11]),
        (2, {"x": 3}),
    ]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1, 2], [1, 2, 3], r"tree 1 must be \[\*, \*\]. Received: 3 element\(s\)"),
        ([1, [2]], [1, (2,)], r"tree 1\[1\] must be \[\*\]. Received: tuple \(\*,\)"),
        ({"a": [1]}, {"a": 3}, r"tree 1\['a'\] must be \[\*\]. Received: int 3"),
        ({"a": 1}, {"b": 1}, r"missing \['a'\], unexpected \['b'\]"),
        (Point([1], 2), Point(None, 2), r"tree 1.x must be \[\*\]. Received: NoneType None"),
        (Config([1]), Config(1), r"tree 1.weight must be \[\*\]"),
        (None, 1, "tree 1 must be None"),
        (Bag([1], "a"), Bag([1], "b"), r"must be Bag\(\*\)"),
    ],
)
def test_mismatches_name_the_place(first, second, message):
    with pytest.raises(TreeMismatchError, match=message):
        tree_map(lambda a, b: a, first, second)


def test_wrong_number_of_leaves():
    structure = tree_structure([1, {"a": 2}])
    with pytest.raises(TreeMismatchError, match=r"\[\*, \{'a': \*\}\] has 2 leaves. Received: 3"):
        structure.unflatten([1, 2, 3])


def test_structures_print_and_differ():
    assert repr(tree_structure((1, [2, None], {"k": Point(3, 4)}))) == (
        "(*, [*, None], {'k': Point(*, *)})"
    )
    assert tree_structure([1]) != tree_structure((1,))
    assert tree_structure([1]) != "[*]"
