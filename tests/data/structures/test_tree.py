"""Trees: walks, other trees made of them, text, and depths beyond Python's stack."""

import copy
import pickle

import pytest

from weft.data import Tree, parse_brackets


def tree(text: str) -> Tree:
    return parse_brackets(text)[0]


def chain(depth: int) -> Tree:
    node = Tree("a", "w")
    for _ in range(depth - 1):
        node = Tree("a", None, [node])
    return node


def test_walks_go_from_left_to_right() -> None:
    t = tree("(a (b x) (c (d y) (e z)))")
    assert [n.label for n in t.preorder()] == ["a", "b", "c", "d", "e"]
    assert [n.label for n in t.postorder()] == ["b", "d", "e", "c", "a"]
    assert t.words() == ["x", "y", "z"]
    assert t.left.label == "b"
    assert t.right.label == "c"
    assert (len(t), t.depth(), t.is_leaf, t.left.is_leaf) == (5, 3, False, True)


def test_fold_gives_each_node_the_results_below_it() -> None:
    t = tree("(a (b x) (c (d y) (e z)))")
    assert t.fold(lambda n, below: n.label + "".join(below)) == "abcde"


def test_binarized_joins_the_first_children_first() -> None:
    t = tree("(a (b x) (c y) (d z))")
    assert str(t.binarized()) == "(a (a (b x) (c y)) (d z))"
    assert str(t.binarized("@")) == "(a (@ (b x) (c y)) (d z))"
    assert t.binarized().words() == t.words()


def test_nodes_of_one_child_are_left_out() -> None:
    assert str(tree("(a (b (c x)))").without_unary()) == "(a x)"
    assert str(tree("(a (b (c x) (d y)))").without_unary()) == "(a (c x) (d y))"


def test_trees_deeper_than_the_stack() -> None:
    t = chain(20_000)
    assert len(t) == t.depth() == 20_000
    assert parse_brackets(str(t)) == [t]
    assert pickle.loads(pickle.dumps(t)) == t
    assert hash(copy.copy(t)) == hash(t)
    assert t.map_labels(str.upper).label == "A"
    assert t.without_unary() == Tree("a", "w")
    assert len(repr(t)) < 80


def test_equality_is_of_the_whole_tree() -> None:
    assert tree("(a (b x))") == tree("(a (b x))")
    assert tree("(a (b x))") != tree("(a (b y))")
    assert tree("(a (b x) (c y))") != tree("(a (b x (c y)))")
    assert Tree("a", "x") != "a"


def test_what_a_node_is_made_of_is_checked() -> None:
    with pytest.raises(ValueError, match=r"a word or children\. Received: 'x' and 1 children"):
        Tree("a", "x", [Tree("b", "y")])
    with pytest.raises(TypeError, match=r"children are trees\. Received: 'y'"):
        Tree("a", children=["y"])  # type: ignore[list-item]  # what is refused
