"""Random trees, parses and molecules: what they promise, for any seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.data import (
    ATOMS,
    DataLoader,
    arc_standard,
    make_molecules,
    make_parses,
    make_trees,
    replayed,
)

VALENCES = {"C": 4, "N": 3, "O": 2, "F": 1}
SEEDS = st.integers(0, 2**32)


@given(SEEDS)
def test_trees_have_the_words_and_the_arity_asked_for(seed: int) -> None:
    for tree in make_trees(3, leaves=(1, 12), arity=4, vocabulary=10, seed=seed):
        assert 1 <= len(tree.words()) <= 12
        assert all(len(node.children) in (0, 2, 3, 4) for node in tree.preorder())
        assert {node.label for node in tree.preorder()} <= {0, 1, 2}
    for tree in make_trees(2, leaves=9, seed=seed):
        assert len(tree) == 17


def test_balanced_trees_are_as_deep_as_they_must_be() -> None:
    assert [t.depth() for t in make_trees(2, leaves=128, balanced=True, seed=0)] == [8, 8]


def test_same_seed_same_data() -> None:
    assert make_trees(4, seed=5) == make_trees(4, seed=5) != make_trees(4, seed=6)
    assert make_parses(4, seed=5) == make_parses(4, seed=5) != make_parses(4, seed=6)
    first, second = (make_molecules(4, seed=5) for _ in range(2))
    assert all((a.atoms == b.atoms).all() for a, b in zip(first, second, strict=True))


@given(SEEDS)
def test_gold_transitions_build_the_gold_heads(seed: int) -> None:
    for parse in make_parses(4, seed=seed):
        assert replayed(len(parse), parse.transitions) == list(parse.heads)
        assert len(parse.transitions) == 2 * len(parse)
        assert len(parse.tags) == len(parse.words)


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([3, 4, 0, 3], "projective"),  # 1 <- 3 crosses 2 <- 4
        ([0, 0], "one word has head 0"),
        ([1, 0], "head of word 1 must be another.*Received: 1"),
        ([5, 0], "Received: 5"),
    ],
)
def test_arc_standard_refuses_what_it_cannot_build(heads: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        arc_standard(heads)


def test_impossible_steps_are_named() -> None:
    with pytest.raises(ValueError, match=r"step 1 is not possible\. Received: 1"):
        replayed(2, [0, 1])
    with pytest.raises(ValueError, match="step 2 is not possible"):
        replayed(1, [0, 2, 0])


@given(SEEDS)
def test_molecules_keep_valences_and_hang_together(seed: int) -> None:
    for molecule in make_molecules(4, atoms=(1, 10), seed=seed):
        used = np.zeros(len(molecule), int)
        np.add.at(used, molecule.bonds[:, 0], molecule.orders)
        np.add.at(used, molecule.bonds[:, 1], molecule.orders)
        assert all(n <= VALENCES[ATOMS[a]] for n, a in zip(used, molecule.atoms, strict=True))
        reached = {0}
        for _ in range(len(molecule)):
            reached |= {b for pair in molecule.bonds.tolist() if reached & {*pair} for b in pair}
        assert reached == set(range(len(molecule)))
        assert 1 <= len(molecule) <= 10


def test_labels_are_both_there() -> None:
    labels = [molecule.label for molecule in make_molecules(200, seed=0)]
    assert 0.2 < np.mean(labels) < 0.8


def test_a_loader_takes_lists_of_structures() -> None:
    trees = make_trees(10, leaves=(2, 5), seed=0)
    batches = [*DataLoader(trees, batch_size=4, shuffle=True, collate_fn=list)]
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert {id(tree) for batch in batches for tree in batch} == {id(tree) for tree in trees}


@pytest.mark.parametrize("make", [make_trees, make_parses, make_molecules])
def test_counts_are_checked(make: object) -> None:
    with pytest.raises(ValueError, match=r"n must be at least 1\. Received: 0"):
        make(0)  # type: ignore[operator]  # one of three functions


def test_bounds_are_checked() -> None:
    with pytest.raises(ValueError, match=r"make_trees: leaves must be ordered. Received: \(5, 2\)"):
        make_trees(leaves=(5, 2))
    with pytest.raises(ValueError, match=r"make_molecules: atoms must be .*Received: \(5, 2\)"):
        make_molecules(atoms=(5, 2))
