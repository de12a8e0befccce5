"""Read the imports of a module, also those that are hidden.

A hidden import is still a dependency. Imports inside functions and under `TYPE_CHECKING` count like
any other, and so do calls that import by name (`import_module`, `load`, `lazy_attributes` ...),
names of modules in strings, and imports in text that is run later. Names made at run time cannot be
read, and are told as such.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from .layers import BY_NAME, CHAIN, DOORS, PACKAGE, SIBLINGS, WIRING

_LAYER = rf"{PACKAGE}\.(?:{'|'.join((*CHAIN, *SIBLINGS, *DOORS, *WIRING[1:]))})\b[\w.]*"
NAMES = re.compile(rf"^{_LAYER}(?=:\w+$|$)")
STATEMENTS = re.compile(rf"\b(?:from|import)\s+({_LAYER})")


@dataclass(frozen=True)
class Import:
    """One imported name: `from weft.ops import exp` has target `weft.ops` and name `exp`."""

    target: str
    name: str | None
    line: int
    at_import_time: bool
    unlocked: bool = False  # a statement in a function, without the lock of deferred imports


@dataclass
class ImportCollector(ast.NodeVisitor):
    """Collect the imports of one module, resolving relative ones against its package.

    unreadable   lines with imports whose names are made at run time
    slots        names that the module asks from above, with their lines
    """

    package: tuple[str, ...]
    found: list[Import] = field(default_factory=list)
    unreadable: list[int] = field(default_factory=list)
    slots: list[tuple[str, int]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=lambda: {name: name for name in BY_NAME[:2]})
    function_depth: int = 0
    under_lock: bool = False
    read: set[int] = field(default_factory=set)  # strings that need no second look

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, None, node.lineno, statement=True)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        target = self._absolute(node.level, node.module or "")
        by_name = target in {"importlib", "pkgutil", f"{PACKAGE}.core.imports"}
        for alias in node.names:
            self._add(target, alias.name, node.lineno, statement=True)
            if by_name:
                self.names[alias.asname or alias.name] = alias.name

    def visit_Call(self, node: ast.Call) -> None:
        called = self._called(node.func)
        if called in BY_NAME:
            self._by_name(node)
        elif called == "lazy_attributes":
            self._lazy(node)
        elif called == "injected":
            self._slot(node)
        if isinstance(node.func, ast.Name):
            self.read.add(id(node.func))
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        passed_on = isinstance(node.ctx, ast.Load) and id(node) not in self.read
        if passed_on and self.names.get(node.id) in BY_NAME:
            self.unreadable.append(node.lineno)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Take names of the package's modules, and text that imports them, for imports."""
        if not isinstance(node.value, str) or id(node) in self.read:
            return
        for name in [*NAMES.findall(node.value), *STATEMENTS.findall(node.value)]:
            self._add(name, None, node.lineno)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Look into text only: half of a name may be a label."""
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part)
            elif id(part) not in self.read:
                for name in STATEMENTS.findall(str(part.value)):
                    self._add(name, None, node.lineno)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # else a docstring, which may name anything
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._visit_deferred(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_deferred(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_deferred(node)

    def visit_With(self, node: ast.With) -> None:
        before = self.under_lock
        self.under_lock |= any(
            ast.unparse(item.context_expr) == "deferred_imports" for item in node.items
        )
        self.generic_visit(node)
        self.under_lock = before

    def _visit_deferred(self, node: ast.AST) -> None:
        self.function_depth += 1
        self.generic_visit(node)
        self.function_depth -= 1

    def _called(self, function: ast.expr) -> str | None:
        """Return what is called: a name that imports, by its name where it is defined."""
        if isinstance(function, ast.Attribute):
            return function.attr if function.attr in {"import_module", "__import__"} else None
        return self.names.get(function.id) if isinstance(function, ast.Name) else None

    def _by_name(self, node: ast.Call) -> None:
        argument = node.args[0] if node.args else None
        if argument is not None and ast.unparse(argument).startswith("f'{__name__}."):
            return  # a part of the package itself
        head = argument.values[0] if isinstance(argument, ast.JoinedStr) else argument
        text = head.value if isinstance(head, ast.Constant) else None
        outside = isinstance(text, str) and "." in text and text.split(".")[0] != PACKAGE
        if not isinstance(text, str) or (argument is not head and not outside):
            self.unreadable.append(node.lineno)
            return
        self.read.add(id(head))
        name = text.lstrip(".")
        self._add(self._absolute(len(text) - len(name), name), None, node.lineno)

    def _lazy(self, node: ast.Call) -> None:
        """Read the modules and packages that public names are taken from."""
        sources = node.args[1] if len(node.args) > 1 else None
        keys = sources.keys if isinstance(sources, ast.Dict) else [None]
        self.read |= set(map(id, keys))
        names = [getattr(key, "value", None) for key in keys]
        packages = [ast.literal_eval(k.value) for k in node.keywords if k.arg == "packages"]
        own = [".".join((*self.package, name)) for name in sum(packages, ())]
        for name in (*names, *own):
            if isinstance(name, str):
                self._add(name, None, node.lineno)
            else:
                self.unreadable.append(node.lineno)

    def _slot(self, node: ast.Call) -> None:
        name = node.args[0].value if isinstance(node.args[0], ast.Constant) else "?"
        self.slots.append((name, node.lineno))

    def _absolute(self, level: int, name: str) -> str:
        base = self.package[: max(0, len(self.package) - level + 1)] if level else ()
        return ".".join([*base, name] if name else base)

    def _add(self, target: str, name: str | None, line: int, *, statement: bool = False) -> None:
        at_import_time = self.function_depth == 0
        unlocked = statement and not (at_import_time or self.under_lock)
        self.found.append(Import(target, name, line, at_import_time, unlocked))
