"""Random trees of words, with labels that follow from the words by a rule a network can learn."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ...core.errors import ArgumentError
from ..checks import as_count, as_range
from .choices import Choices
from .tree import Tree


def make_trees(
    n: int = 100,
    *,
    leaves: int | tuple[int, int] = (5, 39),
    arity: int = 2,
    vocabulary: int = 100,
    balanced: bool = False,
    seed: int | None = None,
) -> list[Tree]:
    """Make random trees whose labels 0, 1, 2 say negative, neutral, positive.

    leaves      how many words a tree has, or the least and the most
    arity       children of a node at most, and exactly where 2
    vocabulary  how many words there are: "w0", "w1", ...
    balanced    split words in equal parts; otherwise anywhere

    Words w0, w3, w6, ... are negative, w1, w4, ... neutral, w2, w5, ... positive. A node has the
    sign of its children's sum, but the last word of the vocabulary, "w99", turns the sign of what
    stands beside it.

    >>> from weft.data import make_trees
    >>> tree = make_trees(1, leaves=4, seed=0)[0]
    >>> len(tree.words()), len(tree)
    (4, 7)
    """
    low, high = _bounds(leaves)
    arity = as_count("make_trees", "arity", arity, 2)
    vocabulary = as_count("make_trees", "vocabulary", vocabulary, 4)
    draws = Choices(seed)
    return [
        _signed(_shape(draws, draws.integer(low, high), arity, vocabulary, balanced), vocabulary)
        for _ in range(as_count("make_trees", "n", n))
    ]


def _bounds(leaves: Any) -> tuple[int, int]:
    pair = leaves if isinstance(leaves, tuple) else (leaves, leaves)
    if len(pair) != 2:
        raise ArgumentError(f"make_trees: leaves must be a number or a pair. Received: {leaves!r}")
    low, high = (as_count("make_trees", "leaves", x) for x in pair)
    as_range("make_trees", "leaves", (low, high))
    return low, high


def _shape(draws: Choices, words: int, arity: int, vocabulary: int, balanced: bool) -> Tree:
    """Return a tree of so many words: spans are split until each holds one."""
    order: list[int] = []  # how many children each node has, before its children
    waiting = [words]
    while waiting:
        size = waiting.pop()
        parts = _parts(draws, size, arity, balanced) if size > 1 else []
        order.append(len(parts))
        waiting.extend(reversed(parts))
    built: list[Tree] = []
    for count in reversed(order):  # from the right, each node after its children
        below = built[len(built) - count :][::-1]
        del built[len(built) - count :]
        word = None if count else f"w{draws.integer(0, vocabulary - 1)}"
        built.append(Tree(None, word, below))
    return built[0]


def _parts(draws: Choices, size: int, arity: int, balanced: bool) -> list[int]:
    count = 2 if arity == 2 else draws.integer(2, min(arity, size))
    if balanced:
        return [size * (i + 1) // count - size * i // count for i in range(count)]
    cuts: set[int] = set()
    while len(cuts) < count - 1:
        cuts.add(draws.integer(1, size - 1))
    edges = [0, *sorted(cuts), size]
    return [b - a for a, b in pairwise(edges)]


def _signed(tree: Tree, vocabulary: int) -> Tree:
    turns = f"w{vocabulary - 1}"

    def label(node: Tree, below: list[Tree]) -> Tree:
        if node.word is not None:
            sign = 0 if node.word == turns else int(node.word[1:]) % 3 - 1
            return Tree(sign + 1, node.word)
        total = sum(child.label - 1 for child in below)
        if any(child.word == turns for child in below):
            total = -total
        return Tree((total > 0) - (total < 0) + 1, None, below)

    labelled: Tree = tree.fold(label)
    return labelled
