"""Which variables statements read and write, told from their syntax.

What is read too little here costs speed and nothing else: a captured part that misses a variable
raises NameError while it is recorded, and then runs as it is written. What is written must be all.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Names = frozenset[str]
NONE: Names = frozenset()


class Uses(NamedTuple):
    """What some statements do with variables.

    reads    those whose value from before may be read
    writes   those that may be written
    sets     those that are written for sure, if all goes well
    """

    reads: Names = NONE
    writes: Names = NONE
    sets: Names = NONE

    def then(self, later: Uses) -> Uses:
        """Return what these statements and later ones do."""
        reads = self.reads | (later.reads - self.sets)
        return Uses(reads, self.writes | later.writes, self.sets | later.sets)

    def maybe(self) -> Uses:
        """Return what statements do that may not be run."""
        return Uses(self.reads, self.writes)


def uses_of(statements: Sequence[ast.stmt]) -> Uses:
    """Return what statements do with variables, one after the other."""
    found = Uses()
    for statement in statements:
        found = found.then(_uses(statement))
    return found


def _uses(node: ast.stmt) -> Uses:
    if isinstance(node, ast.AugAssign):
        target = written_in(node.target)
        return Uses(read_in(node) | target, written_in(node), target)
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        sets = NONE.union(*map(_named_by, targets)) if node.value is not None else NONE
        return Uses(read_in(node), written_in(node), sets)
    if isinstance(node, ast.If):
        either, other = uses_of(node.body), uses_of(node.orelse)
        both = Uses(either.reads | other.reads, written_in(node), either.sets & other.sets)
        return Uses(read_in(node.test)).then(both)
    if isinstance(node, ast.For):
        inside = Uses(sets=_named_by(node.target)).then(uses_of(node.body))
        return Uses(read_in(node.iter), written_in(node)).then(inside.maybe())
    if isinstance(node, ast.With):
        items = [read_in(item.context_expr) for item in node.items]
        named = [_named_by(x.optional_vars) for x in node.items if x.optional_vars is not None]
        before = Uses(NONE.union(*items), written_in(node), NONE.union(*named))
        return before.then(uses_of(node.body))
    return Uses(read_in(node), written_in(node))


def _named_by(target: ast.expr) -> Names:
    """Return the variables that an assignment to a target sets."""
    if isinstance(target, ast.Name):
        return frozenset((target.id,))
    if isinstance(target, (ast.Tuple, ast.List)):
        return NONE.union(*map(_named_by, target.elts))
    return _named_by(target.value) if isinstance(target, ast.Starred) else NONE


def read_in(node: ast.AST) -> Names:
    """Return the variables that are read anywhere in a node, also by what it defines."""
    return frozenset(_loads(node))


def _loads(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Store):
            yield part.id
        elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            yield part.target.id


def written_in(node: ast.AST) -> Names:
    """Return the variables of this scope that are written anywhere in a node."""
    return frozenset(_stores(node))


def _stores(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    yield from _bound_by(node)
    if isinstance(node, SCOPES):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(node, COMPREHENSIONS):
            yield from (x.target.id for x in ast.walk(child) if isinstance(x, ast.NamedExpr))
        else:
            yield from _stores(child)


def _bound_by(node: ast.AST) -> Iterator[str]:
    """Yield variables that a node binds without a Name node."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((x.asname or x.name).partition(".")[0] for x in node.names)
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of a scope, without what is in functions and classes inside it."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, SCOPES):
            pending += ast.iter_child_nodes(node)


def inner_scopes(nodes: Iterable[ast.AST]) -> list[ast.AST]:
    """Return the functions and classes in a scope, at any depth of its statements."""
    return [node for node in own_nodes(nodes) if isinstance(node, SCOPES)]
