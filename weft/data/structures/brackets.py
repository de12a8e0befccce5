"""Treebanks in brackets: `(3 (2 It) (4 works))`, as the Penn Treebank and SST write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from ..checks import as_count, check_callable
from ..errors import DataFileError, check_file
from .tree import Tree

_TOKEN: Final = re.compile(r"[()]|[^\s()]+")
_ESCAPES: Final = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
}


def read_brackets(
    path: Any,
    *,
    label: Callable[[str], Any] | None = None,
    unescape: bool = False,
    max_depth: int = 100_000,
    encoding: str = "utf-8-sig",
) -> list[Tree]:
    """Read all trees of a file; each may stand on one line or on several.

    label      what becomes of labels, `int` for classes; text by default
    unescape   write -LRB- and its like as the brackets they stand for
    max_depth  how deep brackets may be nested

    Nodes have a word, or any number of children; words beside subtrees become leaves without a
    label. A pair of brackets without a label around one tree, as in the Penn Treebank, is left out.
    """
    shown = check_file(path)
    try:
        with open(shown, encoding=encoding) as lines:
            return list(_trees(shown, lines, label, unescape, max_depth))
    except UnicodeDecodeError as error:
        raise DataFileError(
            path, f"byte {error.start}", f"expected text in {encoding}; give encoding="
        ) from None


def parse_brackets(
    text: str,
    *,
    label: Callable[[str], Any] | None = None,
    unescape: bool = False,
    max_depth: int = 100_000,
) -> list[Tree]:
    """Return the trees that stand in a text, see `read_brackets`.

    >>> from weft.data import parse_brackets
    >>> parse_brackets("(3 (2 It) (4 works))", label=int)
    [<Tree (3 (2 It) (4 works))>]
    """
    if not isinstance(text, str):
        raise TypeError(f"parse_brackets: text must be a string. Received: {type(text).__name__}")
    return list(_trees("<text>", text.splitlines(), label, unescape, max_depth))


class _Open:
    """A bracket that waits for its end."""

    __slots__ = ("children", "label", "line")

    def __init__(self, line: int) -> None:
        self.line = line
        self.label: str | None = None
        self.children: list[Tree | str] = []


def _trees(
    path: str,
    lines: Iterable[str],
    label: Callable[[str], Any] | None,
    unescape: bool,
    max_depth: int,
) -> Iterator[Tree]:
    if label is not None:
        check_callable("read_brackets", "label", label)
    limit = as_count("read_brackets", "max_depth", max_depth)
    close = _Closer(path, label, unescape)
    opened: list[_Open] = []
    for number, line in enumerate(lines, start=1):
        for token in _TOKEN.findall(line):
            if token == "(":
                _check_depth(path, number, len(opened), limit)
                opened.append(_Open(number))
            elif token == ")":
                yield from close(opened, number)
            else:
                _add_word(path, opened, token, number)
    if opened:
        raise DataFileError(
            path, f"line {opened[-1].line}", "this bracket is not closed before the end"
        )


def _check_depth(path: str, line: int, depth: int, limit: int) -> None:
    if depth >= limit:
        raise DataFileError(
            path, f"line {line}", f"brackets are nested deeper than max_depth={limit}"
        )


def _add_word(path: str, opened: list[_Open], token: str, line: int) -> None:
    if not opened:
        raise DataFileError(path, f"line {line}", f"expected '(', found {token!r:.40}")
    node = opened[-1]
    if node.label is None and not node.children:
        node.label = token
    else:
        node.children.append(token)


class _Closer:
    """Makes trees of brackets that end."""

    def __init__(self, path: str, label: Callable[[str], Any] | None, unescape: bool) -> None:
        self.path = path
        self.label = label
        self.escapes = _ESCAPES if unescape else {}

    def __call__(self, opened: list[_Open], line: int) -> Iterator[Tree]:
        if not opened:
            raise DataFileError(self.path, f"line {line}", "')' closes nothing")
        node = self._made(opened.pop(), line)
        if opened:
            opened[-1].children.append(node)
        else:
            yield node

    def _made(self, node: _Open, line: int) -> Tree:
        given = node.children
        if not given:
            found = "nothing" if node.label is None else f"the label {node.label!r:.40} alone"
            raise DataFileError(
                self.path, f"line {line}", f"expected a word or subtrees in brackets, found {found}"
            )
        if node.label is None and len(given) == 1 and isinstance(given[0], Tree):
            return given[0]
        if len(given) == 1 and isinstance(given[0], str):
            return Tree(self._label(node), self._word(given[0]))
        children = [x if isinstance(x, Tree) else Tree(None, self._word(x)) for x in given]
        return Tree(self._label(node), None, children)

    def _word(self, text: str) -> str:
        return self.escapes.get(text, text)

    def _label(self, node: _Open) -> Any:
        if node.label is None or self.label is None:
            return node.label
        try:
            return self.label(node.label)
        except (ValueError, KeyError) as error:
            raise DataFileError(
                self.path, f"line {node.line}", f"the label {node.label!r:.40} is refused: {error}"
            ) from error
