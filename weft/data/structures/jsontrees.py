"""Trees in JSON: a file with one of them, with a list, or with one on each line."""

from __future__ import annotations

import json
from typing import Any

from ..checks import as_count
from ..errors import DataFileError, check_file
from .tree import Tree


def read_json_trees(
    path: Any,
    *,
    label: str = "label",
    word: str = "word",
    children: str = "children",
    max_depth: int = 100_000,
    encoding: str = "utf-8-sig",
) -> list[Tree]:
    """Read trees whose nodes are objects; `label`, `word` and `children` name their keys.

    A file that ends in .jsonl holds a tree on each line; others hold one tree or a list of them.
    A leaf has a word and no children; what else stands in an object is left out.
    """
    shown = check_file(path)
    limit = as_count("read_json_trees", "max_depth", max_depth)
    build = _Builder(shown, (label, word, children), limit)
    try:
        with open(shown, encoding=encoding) as file:
            if shown.endswith(".jsonl"):
                return [
                    build(_loaded(shown, line, number), f"line {number}")
                    for number, line in enumerate(file, start=1)
                    if line.strip()
                ]
            content = _loaded(shown, file.read(), 1)
    except UnicodeDecodeError as error:
        raise DataFileError(
            path, f"byte {error.start}", f"expected text in {encoding}; give encoding="
        ) from None
    if isinstance(content, list):
        return [build(item, f"tree {i}") for i, item in enumerate(content)]
    return [build(content, "the tree")]


def _loaded(path: str, text: str, first: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {first + error.lineno - 1}, column {error.colno}"
        raise DataFileError(path, where, f"no JSON: {error.msg}") from None
    except RecursionError:
        raise DataFileError(
            path, f"line {first}", "nested deeper than Python's JSON reader goes; use brackets"
        ) from None


class _Builder:
    """Makes trees of nested objects."""

    def __init__(self, path: str, keys: tuple[str, str, str], limit: int) -> None:
        self.path, self.limit = path, limit
        self.label, self.word, self.children = keys

    def __call__(self, root: Any, where: str) -> Tree:
        order: list[tuple[Any, str]] = []
        waiting = [(root, where, 1)]
        while waiting:
            item, place, depth = waiting.pop()
            below = self._below(item, place, depth)
            order.append((item, place))
            waiting += [(x, f"{place}, child {i}", depth + 1) for i, x in enumerate(below)]
        built: list[Tree] = []
        for item, place in reversed(order):  # from the left, each node after its children
            count = len(item.get(self.children) or ())
            below = built[len(built) - count :]
            del built[len(built) - count :]
            built.append(self._node(item, place, below))
        return built[0]

    def _below(self, item: Any, place: str, depth: int) -> list[Any]:
        if not isinstance(item, dict):
            raise self._problem(place, f"a node is an object. Received: {item!r:.60}")
        if depth > self.limit:
            raise self._problem(place, f"nested deeper than max_depth={self.limit}")
        below = item.get(self.children) or []
        if not isinstance(below, list):
            raise self._problem(place, f"{self.children!r} must be a list. Received: {below!r:.60}")
        if bool(below) == (item.get(self.word) is not None):
            wanted = f"{self.word!r} or {self.children!r}"
            raise self._problem(place, f"a node has {wanted}. Received: {item!r:.60}")
        return below

    def _problem(self, place: str, text: str) -> DataFileError:
        return DataFileError(self.path, place, text)

    def _node(self, item: Any, place: str, below: list[Tree]) -> Tree:
        word = item.get(self.word)
        if word is not None and not isinstance(word, str):
            raise self._problem(place, f"{self.word!r} must be text. Received: {word!r}")
        return Tree(item.get(self.label), word, below)
