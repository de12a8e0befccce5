"""Rewriting a module so that steps of its loops can be captured.

Every stretch of statements that may be captured becomes

    __weft_done = 0
    if __weft__.on:
        try:
            __weft_given = (a, b)                   # variables that it may need
        except (NameError, AttributeError):         # there is none yet
            pass
        else:
            __weft_done, __weft_values = __weft__.stretches[3](0, __weft_given)
            if "c" in __weft_values:
                c = __weft_values["c"]
    if __weft_done <= 0:
        (the first statement, and then the same for the rest)
    if __weft_done <= 1:
        (the second)

so that what is not captured is run where it stands and as it is written: tracebacks, debuggers,
`break`, `return` and `yield` are Python's own. Lines are those of the file.
"""

from __future__ import annotations
import __future__

import ast
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .names import NONE, Names, written_in
from .scopes import Scope
from .statements import holds_backward, holds_backward_outside_loops, may_be_captured
from .stretches import StepStretch

RUNNER = "__weft__"
_LOOPS = (ast.For, ast.While)
_FUNCTIONS = (ast.FunctionDef,)
_PARTS = ("body", "orelse", "finalbody")
_WORK = (ast.Call, ast.BinOp, ast.AugAssign)


class Rewritten(NamedTuple):
    """A module whose steps can be captured, and what these are."""

    tree: ast.Module
    flags: int
    stretches: list[StepStretch]


def rewrite(source: str | bytes, filename: str, *, is_program: bool) -> Rewritten | None:
    """Return a module with its steps marked; None if there are none.

    is_program   whether it is the script itself, whose variables nobody else reads
    """
    tree = ast.parse(source, filename)
    flags = _future_flags(tree)
    writer = _Rewriter(filename, flags)
    if not _imports_torch(tree):
        return None
    writer.scope(tree, Scope(tree, is_program=is_program))
    if not writer.stretches:
        return None
    return Rewritten(ast.fix_missing_locations(tree), flags, writer.stretches)


def _imports_torch(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [x.name for x in node.names]
        else:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if any("torch" in name.split(".")[:2] for name in names):
            return True
    return False


def _future_flags(tree: ast.Module) -> int:
    found = [x for x in tree.body if isinstance(x, ast.ImportFrom) and x.module == "__future__"]
    names = [name.name for node in found for name in node.names]
    return sum(getattr(__future__, name).compiler_flag for name in names)


class _Place(NamedTuple):
    """Where statements stand: in which scope, loop and statement of a stretch."""

    scope: Scope
    changing: Names = NONE
    parent: tuple[StepStretch, int] | None = None


class _Rewriter:
    """Rewrites the scopes of a module, one after the other."""

    def __init__(self, filename: str, flags: int) -> None:
        self._filename, self._flags = filename, flags
        self.stretches: list[StepStretch] = []

    def scope(self, node: Any, scope: Scope, *, in_class: bool = False) -> None:
        """Rewrite a module or a function, and what is defined in it."""
        inner = list(_definitions(node.body))
        for found in inner:
            if isinstance(found, ast.ClassDef):
                self._methods(found, scope)
            else:
                self.scope(found, Scope(found, scope, in_class=in_class), in_class=in_class)
        if scope.is_open:
            return
        if not scope.is_module and holds_backward_outside_loops(node.body):
            node.body = self._suite(node.body, _Place(scope))
        else:
            self._loops(node.body, scope)

    def _methods(self, kind: ast.ClassDef, around: Scope) -> None:
        for found in _definitions(kind.body):
            if isinstance(found, ast.ClassDef):
                self._methods(found, around)
            else:
                self.scope(found, Scope(found, around, in_class=True), in_class=True)

    def _loops(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        """Rewrite the outermost loops that go backward."""
        for node in body:
            if isinstance(node, _LOOPS) and holds_backward(node.body):
                node.body = self._suite(node.body, _Place(scope, written_in(node)))
            elif not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.AsyncFunctionDef)):
                for part in _bodies(node):
                    self._loops(part, scope)

    def _suite(self, body: Sequence[ast.stmt], place: _Place) -> list[ast.stmt]:
        """Return statements with their stretches marked."""
        made: list[ast.stmt] = []
        together: list[ast.stmt] = []
        for statement in body:
            if may_be_captured(statement, place.scope) and not _is_text(statement):
                together.append(statement)
                continue
            made += self._stretch(together, place)
            together = []
            made.append(self._inside(statement, place._replace(parent=None)))
        return [*made, *self._stretch(together, place)]

    def _inside(self, node: ast.stmt, place: _Place) -> ast.stmt:
        """Rewrite the statements inside of one that stays as it is."""
        if not isinstance(node, (*_LOOPS, ast.With)) and not _leads_on(node):
            return node
        for name in _PARTS:
            part = getattr(node, name, None)
            if isinstance(part, list) and part:
                setattr(node, name, self._suite(part, place))
        for handler in getattr(node, "handlers", ()):
            handler.body = self._suite(handler.body, place)
        return node

    def _stretch(self, statements: list[ast.stmt], place: _Place) -> list[ast.stmt]:
        if not any(isinstance(x, _WORK) for s in statements for x in ast.walk(s)):
            return statements
        number = len(self.stretches)
        # What is captured is as it is written; what is written here may be captured in parts.
        kept = [_copied(statement, place.scope) for statement in statements]
        stretch = StepStretch(
            number, kept, place.scope, place.changing, self._filename, self._flags, place.parent
        )
        self.stretches.append(stretch)
        made = _entering(stretch, 0)
        for i, statement in enumerate(statements):
            inside = self._inside(statement, place._replace(parent=(stretch, i)))
            rest = _entering(stretch, i + 1) if i + 1 < len(statements) else []
            test = _parsed(f"__weft_done <= {i}", statement)
            made.append(ast.copy_location(ast.If(test, [inside, *rest], []), statement))
        return made


def _copied(statement: ast.stmt, scope: Scope) -> ast.stmt:
    """Return a copy of a statement, of which as much is known as of the statement."""
    copied: ast.stmt = _deep_copy(statement)
    for was, now in zip(ast.walk(statement), ast.walk(copied), strict=True):
        if id(was) in scope.live_after:
            scope.live_after[id(now)] = scope.live_after[id(was)]
    return copied


def _deep_copy(node: Any) -> Any:
    """Return a copy of a node: like copy.deepcopy, which takes many times as long."""
    if isinstance(node, list):
        return [_deep_copy(part) for part in node]
    if not isinstance(node, ast.AST):
        return node
    made = type(node)(**{name: _deep_copy(part) for name, part in ast.iter_fields(node)})
    return ast.copy_location(made, node)


def _entering(stretch: StepStretch, start: int) -> list[ast.stmt]:
    """Return the statements that try to run a stretch, from one of its statements on."""
    given = [*stretch.reads(start), *(ast.unparse(x) for x in _lists(stretch, start))]
    runs = f"{RUNNER}.stretches[{stretch.number}]"
    lines = [
        f"__weft_done = {start}",
        f"if {RUNNER}.on:",
        " try:",
        f"  __weft_given = ({''.join(f'{text}, ' for text in given)})",
        " except (NameError, AttributeError):",
        "  pass",
        " else:",
        f"  __weft_done, __weft_values = {runs}({start}, __weft_given)",
    ]
    for name in stretch.writes(start):
        lines += [f"  if {name!r} in __weft_values:", f"   {name} = __weft_values[{name!r}]"]
    made = ast.parse("\n".join(lines)).body
    for node in (x for statement in made for x in ast.walk(statement)):
        if hasattr(node, "lineno"):
            ast.copy_location(node, stretch.statements[start])
    return made


def _lists(stretch: StepStretch, start: int) -> Iterator[ast.expr]:
    for index in stretch.sinks(start):
        sink = stretch.sink(index)
        assert sink is not None
        yield sink


def _parsed(text: str, like: ast.stmt) -> ast.expr:
    made = ast.parse(text, mode="eval").body
    for node in ast.walk(made):
        if hasattr(node, "lineno"):
            ast.copy_location(node, like)
    return made


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _leads_on(node: ast.stmt) -> bool:
    """Tell whether a step is inside of a branch, of which most are for what happens seldom."""
    return isinstance(node, (ast.If, ast.Try)) and holds_backward([node])


def _bodies(node: ast.stmt) -> list[list[ast.stmt]]:
    parts = [getattr(node, name, None) for name in _PARTS]
    handlers = [handler.body for handler in getattr(node, "handlers", ())]
    cases = [case.body for case in getattr(node, "cases", ())]
    return [part for part in (*parts, *handlers, *cases) if isinstance(part, list)]


def _definitions(body: Sequence[ast.stmt]) -> Iterator[Any]:
    """Yield the functions and classes that statements define, at any depth."""
    for node in body:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield node
        elif not isinstance(node, ast.AsyncFunctionDef):
            for part in _bodies(node):
                yield from _definitions(part)
