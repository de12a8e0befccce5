"""Which variables may be read after a statement: those that it must leave as they are to be.

The usual backward analysis, over statements as they are nested. Where it is not sure it says that a
variable is read.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from .names import NONE, Names, read_in, uses_of

Live = Mapping[int, Names]


class Liveness:
    """Finds, for every statement of a scope, which variables may be read behind it.

    always   variables that may be read at any time, and in the end
    """

    def __init__(self, always: Names) -> None:
        self._always = always
        self._after: dict[int, Names] = {}
        self._breaks: list[tuple[Names, Names]] = []  # what `break` and `continue` lead to

    def of(self, body: Sequence[ast.stmt]) -> Live:
        """Return which variables are read after each statement of a scope, by its id."""
        self._before_all(body, self._always)
        return self._after

    def _before_all(self, body: Sequence[ast.stmt], after: Names) -> Names:
        for statement in reversed(body):
            self._after[id(statement)] = self._after.get(id(statement), NONE) | after
            after = self._before(statement, after) | self._always
        return after

    def _before(self, node: ast.stmt, after: Names) -> Names:
        if isinstance(node, (ast.Break, ast.Continue)):
            return after.union(*(self._breaks[-1] if self._breaks else ()))
        if isinstance(node, ast.If):
            either = self._before_all(node.body, after) | self._before_all(node.orelse, after)
            return read_in(node.test) | either
        if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
            return self._before_loop(node, after)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            # An exception may end the body anywhere, and go no further than this.
            return NONE.union(*map(read_in, node.items), self._before_any([node.body], after))
        if isinstance(node, (ast.Try, ast.TryStar)):
            handlers = [handler.body for handler in node.handlers]
            parts = [node.body, *handlers, node.orelse, node.finalbody]
            return self._before_any(parts, after | read_in(node))
        if isinstance(node, ast.Match):
            return self._before_any([case.body for case in node.cases], after | read_in(node))
        return (after - uses_of([node]).sets) | read_in(node)

    def _before_loop(self, node: ast.For | ast.While | ast.AsyncFor, after: Names) -> Names:
        head = read_in(node.test if isinstance(node, ast.While) else node.iter)
        left = after | self._before_all(node.orelse, after)
        start = left | head
        while True:  # it grows until it stays
            self._breaks.append((after, start))
            body = self._before_all(node.body, start)
            self._breaks.pop()
            if not isinstance(node, ast.While):
                body -= uses_of([ast.Assign([node.target], ast.Constant(None))]).sets
            if body <= start:
                return start
            start |= body

    def _before_any(self, parts: Sequence[Sequence[ast.stmt]], after: Names) -> Names:
        """Return what is read if any statement of some parts may be the last that is run."""
        outside, self._always = self._always, self._always | after
        found = [self._before_all(part, self._always) for part in parts]
        self._always = outside
        return after.union(*found)
