"""Which variables are read later: what a loop carries and what a branch hands on."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

Live = frozenset[str]


def assigned(statements: Iterable[ast.AST]) -> Live:
    """Return the variables that statements give values, without those of functions inside."""
    found: set[str] = set()
    pending = list(statements)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif not isinstance(node, (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            if isinstance(node, ast.Assign) and (name := written_name(node)) is not None:
                found.add(name)
            pending += ast.iter_child_nodes(node)
    return frozenset(found)


def reads(node: ast.AST | None) -> Live:
    """Return the variables that an expression reads, or a function inside may."""
    if node is None:
        return frozenset()
    names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    return frozenset(n.id for n in names if isinstance(n.ctx, ast.Load))


def live_before(statements: Sequence[ast.stmt], after: Live) -> Live:
    """Return the variables whose values matter before statements, given those that do after."""
    for statement in reversed(statements):
        after = _before(statement, after)
    return after


def live_in_loop(loop: ast.While | ast.For, after: Live) -> Live:
    """Return the variables whose values matter at the end of a trip."""
    live = after | reads(loop.test if isinstance(loop, ast.While) else None)
    while True:
        grown = live | (live_before(loop.body, live) - _own(loop))
        if grown == live:
            return live
        live = grown


def written_name(statement: ast.Assign) -> str | None:
    """Return x if a statement is `x[...] = value`."""
    (target, *others) = statement.targets
    if others or not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return None
    return target.value.id


def changed_in_place(statement: ast.AST) -> Live:
    """Return the variables whose objects a statement, or one inside it, writes to."""
    found: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign) and (name := written_name(node)) is not None:
            found.add(name)
    return frozenset(found)


def _own(loop: ast.While | ast.For) -> Live:
    return assigned([loop.target]) if isinstance(loop, ast.For) else frozenset()


def _before(statement: ast.stmt, after: Live) -> Live:
    if isinstance(statement, ast.If):
        both = live_before(statement.body, after) | live_before(statement.orelse, after)
        return both | reads(statement.test)
    if isinstance(statement, ast.While):
        return live_in_loop(statement, after) | reads(statement.test)
    if isinstance(statement, ast.For):
        return live_in_loop(statement, after) | reads(statement.iter)
    if isinstance(statement, ast.With):
        inside = live_before(statement.body, after)
        return inside | frozenset().union(*(reads(item) for item in statement.items))
    if isinstance(statement, ast.AugAssign):
        return after | reads(statement.value) | assigned([statement.target])
    killed = assigned([statement]) - reads(statement)
    return (after - killed) | reads(statement)
