"""Lay the nodes of two paths side by side: what both compute, and where they are apart."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from ..graph.node import Node, Value
from ..graph.special import STATE
from ..passes.rolling.alphabet import Alphabet

LEAST_COMMON = 8  # nodes between two differences: for fewer a branch is not left and taken again
MOST_COMPARED = 1_000  # nodes of each side that are searched for common ones, in quadratic time

Pair = tuple[Node, Node]


class Stretch(NamedTuple):
    """Nodes of both paths: the same ones, in pairs, or those that each has alone."""

    same: list[Pair]
    yes: list[Node]
    no: list[Node]


class NodeLetters(Alphabet):
    """Letters that only nodes have which may be one node of both paths.

    source   by which name both paths know a state

    Parameters count by which they are, so that branches with layers of their own stay apart: to
    choose between parameters is to copy them.
    """

    def __init__(self, source: Callable[[Value], Value]) -> None:
        super().__init__()
        self._source = source

    def _attrs(self, node: Node) -> Hashable:
        return self._exactly(node.attrs)

    def _key(self, node: Node) -> Hashable:
        taken = tuple([None if x is None else (x.type, self._root(x)) for x in node.inputs])
        return super()._key(node), taken

    def _root(self, value: Value) -> Value | None:
        """Return the state that a value is, or is a view of."""
        while value.node.op is not STATE:
            (first, *_) = value.node.inputs or (None,)
            if first is None or not value.node.op.is_view:
                return None
            value = first
        return self._source(value)


def align(
    yes: Sequence[Node], no: Sequence[Node], letters: NodeLetters, begun: Callable[[Pair], bool]
) -> Iterator[Stretch]:
    """Yield the nodes of two paths as stretches, in the order of both.

    begun   tells whether two nodes take the same values too, as they do before paths part
    """
    a, b = ([letters.letter(node) for node in nodes] for nodes in (yes, no))
    first = 0
    while first < min(len(a), len(b)) and a[first] == b[first] and begun((yes[first], no[first])):
        first += 1
    last = 0
    while last < min(len(a), len(b)) - first and a[-1 - last] == b[-1 - last]:
        last += 1
    yield Stretch(list(zip(yes[:first], no[:first], strict=True)), [], [])
    ends = len(a) - last, len(b) - last
    i, j = first, first
    for here, there, size in _islands(a[first : ends[0]], b[first : ends[1]]):
        yield Stretch([], list(yes[i : first + here]), list(no[j : first + there]))
        i, j = first + here + size, first + there + size
        yield Stretch(list(zip(yes[i - size : i], no[j - size : j], strict=True)), [], [])
    yield Stretch([], list(yes[i : ends[0]]), list(no[j : ends[1]]))
    yield Stretch(list(zip(yes[ends[0] :], no[ends[1] :], strict=True)), [], [])


def _islands(a: list[int], b: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield where two sequences have a long stretch in common: its starts and its length."""
    if max(len(a), len(b)) > MOST_COMPARED:
        return
    for found in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks():
        if found.size >= LEAST_COMMON:
            yield found.a, found.b, found.size
