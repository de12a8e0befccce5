"""The kernels of operators as text: functions that need NumPy and nothing else.

A kernel is a small function; what it uses of this package are small functions and constants too.
They are written out with it, each under a name of its own.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Sequence
from types import FunctionType, ModuleType
from typing import Any, TypeGuard

import numpy as np

from ...core.config import Config
from ...core.dim import Atom, Dim
from ...core.dim.expression import HOOK
from ...core.dtype import is_half
from ...core.errors import ArgumentError, WeftError
from ...core.op import random
from ...graph.text.expressions import Names

_PACKAGE = __name__.partition(".")[0] + "."
_LIBRARY = frozenset({"math", "operator", "itertools", "functools", "typing", "dataclasses"})
_NUMPY = {"np": np, "np.linalg": np.linalg, "np.lib.stride_tricks": np.lib.stride_tricks}
_PLAIN = (bool, int, float, str, bytes, type(None))
_METHODS = ("property", "staticmethod", "classmethod")


class KernelText:
    """Writes kernels and what they use, in the order in which they must stand."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.parts: list[str] = []
        self.imports = {"import numpy as np"}
        self._known: dict[int, str] = {}
        self._variants: dict[str, str] = {}  # by what they compute
        self._kept: list[Any] = []  # so that ids stay those of these objects
        self._classes: dict[type, str] = {}

    def call(self, op: Any, dtypes: Sequence[Any], attrs: Sequence[Any]) -> str:
        """Return the name under which an operator's kernel for given operands can be called."""
        known = _numpy_name(op.kernel)
        if known is not None:
            return known
        kernels, failure = [op.kernel], ""
        if op.lower_rule is not None and op.kind in ("elementwise", "reduction"):
            kernels.append(op.derived)  # if the other one is more than a function of NumPy's
        for kernel in kernels:
            try:
                return self._kernel(kernel, f"{op.name}_kernel", tuple(dtypes), attrs)
            except _CannotWriteError as error:
                failure = str(error)
        why = "it draws random numbers" if op.kind == random else f"its kernel uses {failure}"
        raise ArgumentError(f"the operator {op.name} cannot be written as NumPy: {why}")

    def helper(self, function: FunctionType) -> str:
        """Return the name of a function that is written out beside the program."""
        return self._function(function, function.__name__)

    def _kernel(
        self, kernel: Any, wanted: str, dtypes: tuple[Any, ...], attrs: Sequence[Any]
    ) -> str:
        if hasattr(kernel, "variant"):  # it follows from the operator's `lower` rule
            return self._variant(kernel.variant(dtypes, attrs, alone=True), wanted)
        kernel = getattr(kernel, "in_numpy", kernel)
        if hasattr(kernel, "__wrapped__") and any(d is not None and is_half(d) for d in dtypes):
            raise _CannotWriteError("what goes through another dtype")
        return _numpy_name(kernel) or self._function(inspect.unwrap(kernel), wanted)

    def _function(self, fn: FunctionType, wanted: str) -> str:
        if id(fn) in self._known:
            return self._known[id(fn)]
        name = self.names.give(wanted)
        self._known[id(fn)] = name
        self._kept.append(fn)
        tree = _Bare().visit(_definition(fn))
        around = {n: _lookup(fn, n) for n in _names_in(tree, fn)}
        self._renamed(tree, around, name)
        return name

    def _class(self, cls: type) -> str:
        """Write a class; what it takes from around it is its module's."""
        if cls not in self._classes:
            name = self._classes[cls] = self.names.give(cls.__name__)
            tree = _Bare().visit(_definition(cls))
            module = vars(sys.modules[cls.__module__])
            found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} & module.keys()
            self._renamed(tree, {n: module[n] for n in found}, name)
        return self._classes[cls]

    def _of_class(self, value: Any, name: str) -> str:
        """Return a class of this package's, or an object of one that has only named fields."""
        if isinstance(value, type):
            return self._class(value)
        if not isinstance(value, tuple):
            raise _CannotWriteError(f"{name} ({type(value).__name__})")
        inside = ", ".join(self._value(x, name) for x in value)
        return f"{self._class(type(value))}({inside})"

    def _renamed(self, tree: Any, around: dict[str, Any], name: str) -> None:
        """Add a definition under a name, with expressions that stand alone for names around it."""
        written = _Renamed(around, self._value)
        tree.body = _visited(written, tree.body)
        if isinstance(tree, ast.ClassDef):
            tree.bases = [written.visit(base) for base in tree.bases]
            tree.decorator_list = [written.visit(d) for d in tree.decorator_list]
        else:
            written.visit(tree.args)
        tree.name = name
        self.parts.append(ast.unparse(ast.fix_missing_locations(tree)))

    def _variant(self, variant: Any, wanted: str) -> str:
        if variant.text in self._variants:
            return self._variants[variant.text]
        name = self._variants[variant.text] = self.names.give(wanted)
        tree = ast.parse(variant.text).body[0]
        assert isinstance(tree, ast.FunctionDef)
        self._renamed(tree, variant.scope, name)
        return name

    def _value(self, value: Any, name: str) -> str:
        """Return how a global value of a kernel is written where the text stands alone."""
        value = getattr(value, "in_numpy", value)
        found = _numpy_name(value) or _builtin_type(value)
        if found is not None:
            return found
        if isinstance(value, ModuleType) or _module_of(value) in _LIBRARY:
            return self._from_library(value, name)
        if _is_own(value) or _is_own(type(value)):
            return self._of_class(value, name)
        if isinstance(inspect.unwrap(value), FunctionType):  # a cache around it is not needed
            return self._function(inspect.unwrap(value), name)
        if type(value) in (dict, set, frozenset, tuple, list):
            return self._container(value, name)
        if isinstance(value, np.ndarray) and value.ndim == 0:
            return f"np.{value.dtype.name}({literal(value.item())})"
        if isinstance(value, np.ndarray):
            return f"np.array({value.tolist()!r}, np.dtype({value.dtype.name!r}))"
        text = literal(value)
        if text is None:
            raise _CannotWriteError(f"{name} ({type(value).__name__})")
        return text

    def _from_library(self, value: Any, name: str) -> str:
        if value is np:
            return "np"
        module = value.__name__ if isinstance(value, ModuleType) else _module_of(value)
        if module not in _LIBRARY:
            raise _CannotWriteError(module)
        self.imports.add(f"import {module}")
        return module if isinstance(value, ModuleType) else f"{module}.{value.__name__}"

    def _container(self, value: Any, name: str) -> str:
        if isinstance(value, dict):
            pairs = (f"{self._value(k, name)}: {self._value(v, name)}" for k, v in value.items())
            return f"{{{', '.join(pairs)}}}"
        body = "".join(f"{self._value(v, name)}, " for v in value)
        if isinstance(value, (set, frozenset)):
            return f"frozenset(({body}))"
        return f"[{body}]" if isinstance(value, list) else f"({body})"


class _CannotWriteError(Exception):
    """Something that text without this package cannot refer to."""


class _Bare(ast.NodeTransformer):
    """Drops what only readers of the source need: decorators, annotations, docstrings."""

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Drop the annotation of a parameter."""
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Drop what stands around a function, unless it says what kind of a method it is."""
        kept: list[ast.expr] = [
            d for d in node.decorator_list if isinstance(d, ast.Name) and d.id in _METHODS
        ]
        node.decorator_list, node.returns = kept, None
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Keep the fields of a class, whose annotations make them such."""
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign):
                statement.annotation = ast.Name("object", ast.Load())
        kept = [x for x in node.body if isinstance(x, ast.AnnAssign)]
        others = [self.visit(x) for x in node.body if not _is_text(x) and x not in kept]
        node.body = [*kept, *others] or [ast.Pass()]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Drop the annotation of a variable."""
        if node.value is None:
            return None
        return self.generic_visit(ast.Assign([node.target], node.value, lineno=node.lineno))


class _Renamed(ast.NodeTransformer):
    """Puts expressions that stand alone in the places of names from around a definition."""

    def __init__(self, around: dict[str, Any], write: Callable[[Any, str], str]) -> None:
        self.around, self.write = around, write

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace a name."""
        if node.id not in self.around or not isinstance(node.ctx, ast.Load):
            return node
        return _expression(self.write(self.around[node.id], node.id))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Refuse to make sizes that are not known; make errors, here Python's, by words alone."""
        called = self.around.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if _is_size(called):
            raise _CannotWriteError("unknown sizes")
        if _is_error(called):
            node.keywords = []  # facts, which Weft's errors have beside their words
        return self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Leave out what is done with sizes that are not known."""
        if self._asks_for_size(node.test):
            kept: ast.AST = self.visit(node.orelse)
            return kept
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> Any:
        """Leave out what is done with sizes that are not known."""
        if self._asks_for_size(node.test):
            return _visited(self, node.orelse) or ast.Pass()
        return self.generic_visit(node)

    def _asks_for_size(self, test: ast.AST) -> bool:
        if not isinstance(test, ast.Call) or len(test.args) != 2:
            return False
        kind = test.args[1]
        return _is_name(test.func, "isinstance") and _is_size(
            self.around.get(kind.id) if isinstance(kind, ast.Name) else None
        )

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Replace what a kernel takes from a module of this package, or from its settings."""
        owner = self.around.get(node.value.id) if isinstance(node.value, ast.Name) else None
        ours = isinstance(owner, ModuleType) and owner.__name__.startswith(_PACKAGE)
        if ours or isinstance(owner, Config):
            return _expression(self.write(getattr(owner, node.attr), node.attr))
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Replace names in a function inside, but for its own."""
        node.decorator_list = []
        return self._within(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """Replace names in a function inside, but for its own."""
        return self._within(node)

    def _within(self, node: Any) -> ast.AST:
        arguments = node.args
        own = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        own |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None}
        own |= _stored(node)
        saved = self.around
        self.around = {name: value for name, value in saved.items() if name not in own}
        self.generic_visit(node)
        self.around = saved
        made: ast.AST = node
        return made


def _visited(change: ast.NodeTransformer, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return what statements become, each of which may be several."""
    found = (change.visit(statement) for statement in statements)
    return [x for made in found for x in (made if isinstance(made, list) else [made])]


def _stored(tree: ast.AST) -> set[str]:
    """Return the names that a piece of code gives values to."""
    names = (x for x in ast.walk(tree) if isinstance(x, ast.Name))
    return {x.id for x in names if isinstance(x.ctx, ast.Store)}


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_size(value: Any) -> bool:
    """Tell whether something is the type of sizes that are not known."""
    return isinstance(value, type) and issubclass(value, (Dim, Atom))


def _is_own(cls: Any) -> bool:
    """Tell whether something is a plain class of this package's."""
    ours = isinstance(cls, type) and cls.__module__.startswith(_PACKAGE)
    return ours and not issubclass(cls, (WeftError, Config, Dim, Atom))


def _expression(text: str) -> ast.AST:
    return ast.parse(text, mode="eval").body


def _module_of(value: Any) -> str:
    # _functools is the part of functools that is not written in Python.
    return (getattr(value, "__module__", None) or "").removeprefix("_")


def _definition(fn: Any) -> ast.FunctionDef | ast.ClassDef:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn))).body[0]
    except (OSError, SyntaxError, TypeError):
        raise _CannotWriteError(f"{fn.__name__}, whose source is not known") from None
    if not isinstance(tree, (ast.FunctionDef, ast.ClassDef)):
        raise _CannotWriteError(f"{fn.__name__}, which is no plain function")
    return tree


def _names_in(tree: ast.AST, fn: FunctionType) -> list[str]:
    """Return the names that a function takes from around it."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    around = {*fn.__globals__, *fn.__code__.co_freevars}
    return sorted((names & around) - {*fn.__code__.co_varnames, *fn.__code__.co_cellvars})


def _lookup(fn: FunctionType, name: str) -> Any:
    if name in fn.__code__.co_freevars:
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        return cells[name].cell_contents
    return fn.__globals__[name]


def _numpy_name(value: Any) -> str | None:
    """Return how NumPy calls one of its functions or types."""
    name = getattr(value, "__name__", "")
    if isinstance(value, ModuleType) or not isinstance(name, str):
        return None
    for path, module in _NUMPY.items():
        if getattr(module, name, None) is value:
            return f"{path}.{name}"
    return None


def _is_error(value: Any) -> TypeGuard[type[WeftError]]:
    return isinstance(value, type) and issubclass(value, WeftError)


def _builtin_type(value: Any) -> str | None:
    """Return the builtin for a type that a kernel tests or raises."""
    if _is_size(value):
        return "()"  # no size is unknown where arrays are at hand,
    if value is HOOK:
        return "None"  # so nothing is decided about one
    if _is_error(value):
        return next(base.__name__ for base in value.__mro__ if base.__module__ == "builtins")
    return None


def literal(value: Any) -> str | None:
    """Return a value as an expression, or None if it has none."""
    if isinstance(value, np.dtype):
        return f"np.dtype({value.name!r})"
    if isinstance(value, float) and not np.isfinite(value):
        return "np.nan" if np.isnan(value) else f"{'-' if value < 0 else ''}np.inf"
    if isinstance(value, np.generic):
        return literal(value.item())
    if isinstance(value, _PLAIN) or value is Ellipsis:
        return repr(value)
    if isinstance(value, slice):
        ends = (value.start, value.stop, value.step)
        return f"slice({', '.join(literal(v) or 'None' for v in ends)})"
    if type(value) in (tuple, list):
        return _sequence(value)
    return None


def _sequence(values: Any) -> str | None:
    parts = [literal(v) for v in values]
    if any(part is None for part in parts):
        return None
    body = ", ".join(part for part in parts if part is not None)
    if isinstance(values, list):
        return f"[{body}]"
    return f"({body},)" if len(parts) == 1 else f"({body})"
