"""Trees with labels at their nodes and words at their leaves.

Everything here walks with a list of its own instead of calling itself: a tree may be deeper than
Python's stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ...core.errors import ArgumentError, ArgumentTypeError


class Tree:
    """A node: its label, its word if it is a leaf, and its children.

    >>> from weft.data import Tree
    >>> tree = Tree(3, children=[Tree(2, "It"), Tree(4, "works")])
    >>> tree.words(), len(tree), tree.depth()
    (['It', 'works'], 3, 2)
    >>> print(tree)
    (3 (2 It) (4 works))
    """

    __slots__ = ("children", "label", "word")

    def __init__(
        self, label: Any = None, word: str | None = None, children: Iterable[Tree] = ()
    ) -> None:
        self.label = label
        self.word = word
        self.children: tuple[Tree, ...] = tuple(children)
        if word is not None and self.children:
            raise ArgumentError(
                f"Tree: a node has a word or children. Received: {word!r} and "
                f"{len(self.children)} children"
            )
        for child in self.children:
            if not isinstance(child, Tree):
                raise ArgumentTypeError(f"Tree: children are trees. Received: {child!r:.60}")

    @property
    def is_leaf(self) -> bool:
        """Tell whether the node has no children."""
        return not self.children

    @property
    def left(self) -> Tree:
        """Return the first child."""
        return self.children[0]

    @property
    def right(self) -> Tree:
        """Return the last child."""
        return self.children[-1]

    # -- walks ----------------------------------------------------------------------------------

    def preorder(self) -> Iterator[Tree]:
        """Yield every node before its children, from left to right."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def postorder(self) -> Iterator[Tree]:
        """Yield every node after its children, from left to right."""
        waiting = [(self, False)]
        while waiting:
            node, opened = waiting.pop()
            if opened or not node.children:
                yield node
                continue
            waiting.append((node, True))
            waiting.extend((child, False) for child in reversed(node.children))

    def leaves(self) -> list[Tree]:
        """Return the leaves from left to right."""
        return [node for node in self.preorder() if not node.children]

    def words(self) -> list[str]:
        """Return the words of the leaves from left to right."""
        return [leaf.word for leaf in self.leaves() if leaf.word is not None]

    def __len__(self) -> int:
        return sum(1 for _ in self.preorder())

    def __bool__(self) -> bool:
        return True

    def depth(self) -> int:
        """Return how many nodes the longest way from here to a leaf has."""
        most, waiting = 0, [(self, 1)]
        while waiting:
            node, level = waiting.pop()
            most = max(most, level)
            waiting.extend((child, level + 1) for child in node.children)
        return most

    # -- other trees ------------------------------------------------------------------------------

    def fold(self, combine: Callable[[Tree, list[Any]], Any]) -> Any:
        """Return combine(node, results of its children) of the root, from the leaves upward.

        >>> from weft.data import Tree
        >>> tree = Tree(3, children=[Tree(2, "It"), Tree(4, "works")])
        >>> tree.fold(lambda node, below: node.label + sum(below))
        9
        """
        results: list[Any] = []
        for node in self.postorder():
            count = len(node.children)
            below = results[len(results) - count :]
            del results[len(results) - count :]
            results.append(combine(node, below))
        return results[0]

    def map_labels(self, function: Callable[[Any], Any]) -> Tree:
        """Return the tree with each label replaced by a function of it."""
        return self._rebuilt(lambda n, below: Tree(function(n.label), n.word, below))

    def binarized(self, label: Any = None) -> Tree:
        """Return the tree with two children at most: the first ones are joined from the left.

        label   of nodes that are added; None: that of the node whose children they join
        """

        def join(node: Tree, below: list[Tree]) -> Tree:
            added = node.label if label is None else label
            while len(below) > 2:
                below = [Tree(added, None, below[:2]), *below[2:]]
            return Tree(node.label, node.word, below)

        return self._rebuilt(join)

    def without_unary(self) -> Tree:
        """Return the tree without nodes of one child; that child takes the label and the place."""

        def skip(node: Tree, below: list[Tree]) -> Tree:
            if len(below) != 1:
                return Tree(node.label, node.word, below)
            return Tree(node.label, below[0].word, below[0].children)

        return self._rebuilt(skip)

    def _rebuilt(self, make: Callable[[Tree, list[Tree]], Tree]) -> Tree:
        built: Tree = self.fold(make)
        return built

    # -- as text ----------------------------------------------------------------------------------

    def __str__(self) -> str:
        parts: list[str] = []
        waiting: list[Tree | str] = [self]
        while waiting:
            item = waiting.pop()
            if isinstance(item, str):
                parts.append(item)
                continue
            parts.append(f" ({'' if item.label is None else item.label}")
            if item.word is not None:
                parts.append(f" {item.word}")
            waiting.append(")")
            waiting.extend(reversed(item.children))
        return "".join(parts).strip()

    def __repr__(self) -> str:
        text = str(self)
        return f"<Tree {text if len(text) <= 60 else text[:57] + '...'}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return _signature(self.preorder()) == _signature(other.preorder())

    def __hash__(self) -> int:
        return hash(tuple(_signature(self.preorder())))

    def __reduce__(self) -> Any:
        # Pickle would call itself for every level.
        return _restored, (_signature(self.postorder()),)


def _signature(nodes: Iterable[Tree]) -> list[tuple[Any, str | None, int]]:
    return [(node.label, node.word, len(node.children)) for node in nodes]


def _restored(nodes: Sequence[tuple[Any, str | None, int]]) -> Tree:
    built: list[Tree] = []
    for label, word, count in nodes:
        children = built[len(built) - count :]
        del built[len(built) - count :]
        built.append(Tree(label, word, children))
    return built[0]
