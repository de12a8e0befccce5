"""Stretches: statements that stand one after the other and may be captured, whole or in parts."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from ...core.cached_property import cached_property
from .names import NONE, Names, uses_of, written_in
from .scopes import Scope


@dataclass(frozen=True)
class StepStretch:
    """Statements of a loop, or of a function, between those that stay as they are.

    number       among all of its module
    statements   as they are written
    scope        that they stand in
    changing     variables of a module that the loop around it writes
    filename     of the module
    flags        of its compiler
    parent       the stretch, and the statement of it, that this one is inside of
    """

    number: int
    statements: Sequence[ast.stmt]
    scope: Scope
    changing: Names
    filename: str
    flags: int
    parent: tuple[StepStretch, int] | None = field(default=None, repr=False)

    @cached_property
    def variables(self) -> Names:
        """Return which variables captured parts are given, and give back."""
        if self.scope.is_module:
            return self.changing - self.scope.shared
        return self.scope.own - self.scope.nonlocals

    def live_after(self, end: int) -> Names:
        """Return which variables may be read when statements before a number have run."""
        return self.scope.live_after[id(self.statements[end - 1])]

    def reads(self, start: int) -> list[str]:
        """Return the variables that are needed to run statements from a number on, or parts."""
        later = self.statements[start:]
        found = uses_of(later).reads
        live = NONE.union(*(self.scope.live_after[id(x)] for x in later))
        for uses in (uses_of([statement]) for statement in later):
            found |= (uses.writes - uses.sets) & live
        return sorted(found & self.variables)

    def writes(self, start: int) -> list[str]:
        """Return the variables that running statements from a number on, or parts, may change."""
        found = NONE.union(*(self.results(start, end) for end in self._ends(start)))
        return sorted(found)

    def _ends(self, start: int) -> range:
        return range(start + 1, len(self.statements) + 1)

    def results(self, start: int, end: int) -> list[str]:
        """Return the variables that some statements give back."""
        written = NONE.union(*map(written_in, self.statements[start:end]))
        return sorted(written & self.live_after(end) & self.variables)

    def sink(self, index: int) -> ast.expr | None:
        """Return the list that a statement appends a value to, if it does nothing else."""
        statement = self.statements[index]
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or call.keywords or len(call.args) != 1:
            return None
        method = call.func
        if not isinstance(method, ast.Attribute) or method.attr != "append":
            return None
        holder = method.value
        owner = holder.value if isinstance(holder, ast.Attribute) else holder
        if not isinstance(owner, ast.Name) or isinstance(call.args[0], ast.Starred):
            return None
        return holder

    def sinks(self, start: int) -> list[int]:
        """Return the statements from a number on that append to a list that nothing rebinds."""
        written = NONE.union(*map(written_in, self.statements[start:]))
        found = [i for i in range(start, len(self.statements)) if self.sink(i) is not None]
        return [i for i in found if not written & _names(self.sink(i))]

    def line(self, index: int) -> int:
        """Return the line of a statement."""
        return self.statements[index].lineno

    def index_of(self, line: int, start: int, end: int) -> int | None:
        """Return which statement a line belongs to; None for another line."""
        for index in range(start, end):
            node = self.statements[index]
            if node.lineno <= line <= (node.end_lineno or node.lineno):
                return index
        return None

    def first_reader(self, name: str, start: int, end: int) -> int:
        """Return the first of some statements that reads a variable."""
        numbers = range(start, end)
        return next((i for i in numbers if name in uses_of([self.statements[i]]).reads), start)

    def function(self, start: int, end: int, module: dict[str, Any]) -> StretchFunction:
        """Return a function that does what some of the statements do."""
        sinks = [i for i in self.sinks(start) if i < end]
        uses, results = uses_of(self.statements[start:end]), self.results(start, end)
        unsure = frozenset(results) - uses.sets
        given = [
            name
            for name in sorted((uses.reads | unsure) & self.variables)
            if name in unsure or not self._is_only_sink(name, start, end, sinks)
        ]
        numbered = list(enumerate(self.statements))[start:end]
        body = [_stored(x, i) if i in sinks else x for i, x in numbered]
        declared = sorted(filter(self.scope.is_declared_elsewhere, uses.writes))
        before: list[ast.stmt] = [ast.Global(declared)] if declared else []
        made = [*results, *map(_sink_name, sinks)]
        code = self._compiled(given, [*before, *body, ast.Return(_tuple(made))], start)
        return StretchFunction(FunctionType(code, module), given, results, sinks)

    def _is_only_sink(self, name: str, start: int, end: int, sinks: Sequence[int]) -> bool:
        """Tell whether a variable is read for nothing but the list that it is."""
        others = [x for i, x in enumerate(self.statements[start:end], start) if i not in sinks]
        values = [self.statements[i].value.args[0] for i in sinks]  # type: ignore[attr-defined]  # a call
        wrapped = [ast.copy_location(ast.Expr(value), value) for value in values]
        return name not in uses_of([*others, *wrapped]).reads

    def _compiled(self, given: Sequence[str], body: list[ast.stmt], start: int) -> CodeType:
        module = ast.parse(f"def {self.scope.name}({', '.join(given)}): pass")
        function: Any = module.body[0]
        for node in (function, *ast.walk(function.args)):
            ast.copy_location(node, self.statements[start])
        function.body = body
        ast.fix_missing_locations(module)
        whole = compile(module, self.filename, "exec", self.flags, dont_inherit=True)
        return next(x for x in whole.co_consts if isinstance(x, CodeType))


@dataclass(frozen=True)
class StretchFunction:
    """What some statements of a stretch do, as a function.

    given     variables that it takes
    results   variables that it returns, in front of values that sinks are given
    sinks     the statements that append these
    """

    function: FunctionType
    given: Sequence[str]
    results: Sequence[str]
    sinks: Sequence[int]


def _names(node: ast.AST | None) -> Names:
    nodes = ast.walk(node) if node is not None else ()
    return frozenset(x.id for x in nodes if isinstance(x, ast.Name))


def _sink_name(index: int) -> str:
    return f"__weft_sink_{index}"


def _stored(statement: Any, index: int) -> ast.stmt:
    """Return a statement that keeps the value which another appends to a list."""
    target = ast.Name(_sink_name(index), ast.Store())
    return ast.copy_location(ast.Assign([target], statement.value.args[0]), statement)


def _tuple(names: Sequence[str]) -> ast.Tuple:
    return ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
