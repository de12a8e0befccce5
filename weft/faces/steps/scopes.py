"""The scope that statements stand in: whose variables are whose, and which are read later on."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from .liveness import Liveness
from .names import NONE, Names, inner_scopes, own_nodes, read_in, written_in

# What reads or writes variables by their names at run time.
_DYNAMIC = frozenset(("locals", "vars", "globals", "eval", "exec", "dir", "__main__"))


class Scope:
    """A function, or a module.

    own        variables of a function, and of those around it
    globals    those that a function declares to be the module's
    nonlocals  those that it declares to be of functions around it
    shared     variables that functions inside may read or write at any time
    is_open    whether variables may be read and written in ways that are not seen
    """

    def __init__(
        self,
        node: ast.AST,
        around: Scope | None = None,
        *,
        in_class: bool = False,
        is_program: bool = False,
    ) -> None:
        self.body: Sequence[ast.stmt] = getattr(node, "body", ())
        self.name: str = getattr(node, "name", "module")
        self.in_class = in_class
        self.is_module = isinstance(node, ast.Module)
        nodes, inner = list(own_nodes(self.body)), inner_scopes(self.body)
        self.shared = NONE.union(*(_free_in(x) | _bound_inside(x) for x in inner))
        self.globals = _declared(nodes, ast.Global)
        self.nonlocals = _declared(nodes, ast.Nonlocal)
        written = NONE.union(*map(written_in, self.body))
        outer = NONE if around is None else around.own
        names = outer | written | _parameters(node)
        self.own: Names = NONE if self.is_module else names - self.globals
        read = NONE.union(*map(read_in, self.body))
        self.is_open = not _DYNAMIC.isdisjoint(read) or _imports_all(nodes)
        # What a module that others import has in the end is theirs to read.
        kept = written if self.is_module and not is_program else NONE
        self.live_after = dict(Liveness(self.shared | kept).of(self.body))

    def is_declared_elsewhere(self, name: str) -> bool:
        """Tell whether a captured part must write a variable to the module."""
        return name in (self.shared if self.is_module else self.globals)


def _free_in(scope: ast.AST) -> Names:
    """Return the variables from around a function or class that it may read."""
    if isinstance(scope, ast.ClassDef):
        return read_in(scope)
    body = [scope.body] if isinstance(scope, ast.Lambda) else getattr(scope, "body", ())
    nodes = list(own_nodes(body))
    bound = _parameters(scope).union(*map(written_in, body)) - _declared(nodes, ast.Global)
    own = [x for x in nodes if isinstance(x, (ast.Name, ast.AugAssign))]
    named = NONE.union(*(read_in(x) for x in own), *map(_free_in, inner_scopes(body)))
    outside = [x for x in ast.iter_child_nodes(scope) if x not in body]  # defaults, decorators
    return (named - bound).union(_declared(nodes, ast.Nonlocal), *map(read_in, outside))


def _bound_inside(scope: ast.AST) -> Names:
    """Return what a function inside writes of the variables around it."""
    if isinstance(scope, ast.Lambda):
        return NONE
    nodes = list(own_nodes(getattr(scope, "body", ())))
    deeper = [_bound_inside(x) for x in inner_scopes(getattr(scope, "body", ()))]
    return _declared(nodes, ast.Nonlocal).union(_declared(nodes, ast.Global), *deeper)


def _declared(nodes: Sequence[ast.AST], kind: type[Any]) -> Names:
    return frozenset(name for node in nodes if isinstance(node, kind) for name in node.names)


def _imports_all(nodes: Sequence[ast.AST]) -> bool:
    return any(x.names[0].name == "*" for x in nodes if isinstance(x, ast.ImportFrom))


def _parameters(node: ast.AST) -> Names:
    given = getattr(node, "args", None)
    return frozenset(x.arg for x in ast.walk(given) if isinstance(x, ast.arg)) if given else NONE
