"""Which statements may be part of a captured step, and which stay as they are from the outset."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from .names import own_nodes, written_in
from .scopes import Scope

_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_STAYING = (
    *(ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.While),
    *(ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef),
    *(ast.AsyncFunctionDef, ast.Try, ast.TryStar, ast.Match, ast.Raise, ast.Delete),
)
_UNSEEN = frozenset(("super", "__class__", "breakpoint", "input", "print", "next"))
_COUNTING = frozenset(("range", "count", "trange"))


def holds_backward(nodes: Iterable[ast.AST]) -> bool:
    """Tell whether `backward` is called in statements of one scope."""
    return any(_is_backward(node) for node in own_nodes(nodes))


def _is_backward(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == "backward"


def holds_backward_outside_loops(nodes: Iterable[ast.AST]) -> bool:
    """Tell whether `backward` is called in statements that no loop among them repeats."""
    return any(
        not isinstance(node, _LOOPS) and (_is_backward_alone(node) or _inside(node))
        for node in nodes
    )


def _is_backward_alone(node: ast.AST) -> bool:
    return isinstance(node, (ast.Expr, ast.Assign)) and holds_backward([node])


def _inside(node: ast.AST) -> bool:
    parts = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
    bodies = [part for part in parts if isinstance(part, list)]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        return False
    return any(holds_backward_outside_loops(body) for body in bodies)


def may_be_captured(statement: ast.stmt, scope: Scope) -> bool:
    """Tell whether a statement may be part of a captured step; recording it may find otherwise."""
    nodes = list(own_nodes([statement]))
    if any(isinstance(node, _STAYING) or _leaves_loop(node) for node in nodes):
        return False
    if _ends_trip(statement) or any(map(_is_repeated, nodes)):
        return False
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    if not names.isdisjoint(_UNSEEN) or not names.isdisjoint(scope.nonlocals):
        return False
    if scope.in_class and _has_private_names(statement):
        return False
    return scope.is_module or written_in(statement).isdisjoint(scope.shared)


def _leaves_loop(node: ast.AST) -> bool:
    """Tell whether a loop with an `else`, or with another step in it, is among the nodes."""
    return isinstance(node, _LOOPS) and (bool(node.orelse) or holds_backward(node.body))


def _is_repeated(node: ast.AST) -> bool:
    """Tell whether a loop counts its trips: its body is a step of its own."""
    if not isinstance(node, ast.For):
        return False
    called = [x.func for x in ast.walk(node.iter) if isinstance(x, ast.Call)]
    names = {getattr(x, "id", getattr(x, "attr", "")) for x in called}
    return not names.isdisjoint(_COUNTING)


def _ends_trip(statement: ast.AST, in_loop: bool = False) -> bool:
    """Tell whether a statement may end a trip of the loop around it, or all of them."""
    if isinstance(statement, (ast.Break, ast.Continue)):
        return not in_loop
    inside = in_loop or isinstance(statement, _LOOPS)
    return any(
        _ends_trip(node, inside)
        for node in ast.iter_child_nodes(statement)
        if isinstance(node, (ast.stmt, ast.ExceptHandler))
    )


def _has_private_names(statement: ast.stmt) -> bool:
    """Tell whether names are used that Python writes otherwise inside of a class."""
    named = [getattr(x, "id", getattr(x, "attr", "")) for x in ast.walk(statement)]
    named += [x.arg or "" for x in ast.walk(statement) if isinstance(x, ast.keyword)]
    return any(name.startswith("__") and not name.endswith("__") for name in named)
