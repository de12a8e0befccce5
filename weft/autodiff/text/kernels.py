"""The kernels of operators as text: functions that need NumPy and nothing else.

A kernel is a small function; what it uses of this package are small functions and constants too.
They are written out with it, each under a name of its own.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ...core.dim import Dim
from ...core.dim.expression import HOOK
from ...core.errors import ArgumentError, WeftError
from ...graph.text.expressions import Names

_PACKAGE = __name__.partition(".")[0] + "."
_LIBRARY = frozenset({"math", "operator", "itertools", "functools"})
_NUMPY = {"np": np, "np.linalg": np.linalg, "np.lib.stride_tricks": np.lib.stride_tricks}
_PLAIN = (bool, int, float, str, bytes, type(None))


class KernelText:
    """Writes kernels and what they use, in the order in which they must stand."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.parts: list[str] = []
        self.imports = {"import numpy as np"}
        self._known: dict[int, str] = {}
        self._variants: dict[str, str] = {}  # by what they compute
        self._kept: list[Any] = []  # so that ids stay those of these objects

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
        raise ArgumentError(
            f"the operator {op.name} cannot be written as NumPy: its kernel uses {failure}"
        )

    def _kernel(
        self, kernel: Any, wanted: str, dtypes: tuple[Any, ...], attrs: Sequence[Any]
    ) -> str:
        if hasattr(kernel, "variant"):  # it follows from the operator's `lower` rule
            return self._variant(kernel.variant(dtypes, attrs, alone=True), wanted)
        return self._function(kernel, wanted)

    def _function(self, fn: FunctionType, wanted: str) -> str:
        if id(fn) in self._known:
            return self._known[id(fn)]
        name = self.names.give(wanted)
        self._known[id(fn)] = name
        self._kept.append(fn)
        tree = _Bare().visit(_definition(fn))
        around = {n: _lookup(fn, n) for n in _names_in(tree, fn)}
        renamed = _Renamed(around, self._value).visit(tree)
        renamed.name = name
        self.parts.append(ast.unparse(ast.fix_missing_locations(renamed)))
        return name

    def _variant(self, variant: Any, wanted: str) -> str:
        if variant.text in self._variants:
            return self._variants[variant.text]
        name = self._variants[variant.text] = self.names.give(wanted)
        tree = ast.parse(variant.text).body[0]
        assert isinstance(tree, ast.FunctionDef)
        written = _Renamed(variant.scope, self._value).visit(tree)
        written.name = name
        self.parts.append(ast.unparse(ast.fix_missing_locations(written)))
        return name

    def _value(self, value: Any, name: str) -> str:
        """Return how a global value of a kernel is written where the text stands alone."""
        value = getattr(value, "in_numpy", value)
        found = _numpy_name(value) or _builtin_type(value)
        if found is not None:
            return found
        if isinstance(value, ModuleType) or _module_of(value) in _LIBRARY:
            return self._from_library(value, name)
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
        """Drop what stands around a function."""
        node.decorator_list, node.returns = [], None
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Drop the annotation of a variable."""
        if node.value is None:
            return None
        return self.generic_visit(ast.Assign([node.target], node.value, lineno=node.lineno))


class _Renamed(ast.NodeTransformer):
    """Puts expressions that stand alone in the places of names from around a function."""

    def __init__(self, around: dict[str, Any], write: Callable[[Any, str], str]) -> None:
        self.around, self.write = around, write

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace a name."""
        if node.id not in self.around:
            return node
        return _expression(self.write(self.around[node.id], node.id))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Refuse to make sizes that are not known."""
        if isinstance(node.func, ast.Name) and self.around.get(node.func.id) is Dim:
            raise _CannotWriteError("unknown sizes")
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Replace what a kernel takes from a module of this package."""
        module = self.around.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if isinstance(module, ModuleType) and module.__name__.startswith(_PACKAGE):
            return _expression(self.write(getattr(module, node.attr), node.attr))
        return self.generic_visit(node)


def _expression(text: str) -> ast.AST:
    return ast.parse(text, mode="eval").body


def _module_of(value: Any) -> str:
    # _functools is the part of functools that is not written in Python.
    return (getattr(value, "__module__", None) or "").removeprefix("_")


def _definition(fn: FunctionType) -> ast.FunctionDef:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn))).body[0]
    except (OSError, SyntaxError, TypeError):
        raise _CannotWriteError(f"{fn.__name__}, whose source is not known") from None
    if not isinstance(tree, ast.FunctionDef):
        raise _CannotWriteError(f"{fn.__name__}, which is no plain function")
    return tree


def _names_in(tree: ast.AST, fn: FunctionType) -> list[str]:
    """Return the names that a function takes from around it."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    around = {*fn.__globals__, *fn.__code__.co_freevars}
    return sorted((names & around) - _locals(fn.__code__))


def _locals(code: CodeType) -> set[str]:
    found = {*code.co_varnames, *code.co_cellvars}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= _locals(inner)
    return found


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


def _builtin_type(value: Any) -> str | None:
    """Return the builtin for a type that a kernel tests or raises."""
    if value is Dim:
        return "()"  # no size is unknown where arrays are at hand,
    if value is HOOK:
        return "None"  # so nothing is decided about one
    if isinstance(value, type) and issubclass(value, WeftError):
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
