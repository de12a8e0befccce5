"""Rewrite a function so that each branch and loop of it is a call of flow.py.

    while r > tol:                  def body(x, r): ...; return x, r
        x, r = step(x)       ->     def test(x, r): return r > tol
                                    x, r = flow.repeat(test, body, ("x", "r"), flow.now(...))

The call decides, from what it is given, whether the loop runs now or becomes a node of a graph.
"""

from __future__ import annotations

import ast
import inspect
import sysconfig
import textwrap
from collections.abc import Sequence
from types import FunctionType, SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

from ...core.errors import PACKAGE_DIR
from . import flow, rows, sharing
from .jumps import JumpError, without_jumps
from .liveness import (
    Live,
    assigned,
    changed_in_place,
    live_before,
    live_in_loop,
    written_name,
)

FLOW = "_flow"
_PLACED = (ast.stmt, ast.expr, ast.arg, ast.keyword, ast.alias)
_REFUSED = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)


_LIBRARIES = (
    PACKAGE_DIR,
    sysconfig.get_path("stdlib"),
    sysconfig.get_path("purelib"),
    "<weft",
)
_known: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def rewritten(fn: Any) -> Any:
    """Return a function whose control flow is traced; the same one where that is not possible."""
    tree = _definition(fn)
    if tree is None:
        return fn
    try:
        without_jumps(tree)
    except JumpError:
        return fn
    tree.body = _Rewriter().block(tree.body, frozenset())
    return _made(fn, ast.fix_missing_locations(tree))


def _definition(fn: Any) -> ast.FunctionDef | None:
    if not isinstance(fn, FunctionType) or inspect.iscoroutinefunction(fn):
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn))).body[0]
    except (OSError, SyntaxError, TypeError, IndexError):
        return None
    if not isinstance(tree, ast.FunctionDef) or tree.name != fn.__name__:
        return None  # a lambda, or a name that stands for something else
    if any(isinstance(node, _REFUSED) for node in ast.walk(tree)):
        return None
    tree.decorator_list = []
    ast.increment_lineno(tree, fn.__code__.co_firstlineno - 1)
    return tree


def _made(fn: FunctionType, tree: ast.FunctionDef) -> Any:
    """Return the rewritten function with the surroundings of the original one."""
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    given = {name: cell.cell_contents for name, cell in cells.items() if not _is_empty(cell)}
    outer = ast.FunctionDef(
        "_outer",
        ast.arguments([], [ast.arg(name) for name in given], None, [], [], None, []),
        [tree, ast.Return(ast.Name(tree.name, ast.Load()))],
        [],
        lineno=tree.lineno,
    )
    module = ast.fix_missing_locations(ast.Module([outer], []))
    for node in ast.walk(module):
        if isinstance(node, _PLACED):  # put together from parts of different lines
            node.end_lineno, node.end_col_offset = node.lineno, node.col_offset
    scope = {**fn.__globals__, FLOW: _DOOR}
    exec(compile(module, fn.__code__.co_filename, "exec", dont_inherit=True), scope)
    made = scope["_outer"](**given)
    made.__defaults__, made.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
    made.__rewritten__ = True
    return made


def _is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018  (only to see whether there are any)
    except ValueError:
        return True
    return False


def called(fn: Any) -> Any:
    """Return what to call for a function: functions of the user's are rewritten too."""
    if fn.__class__ is not FunctionType:
        return _BUILTINS.get(fn, fn) if getattr(fn, "__module__", "") == "builtins" else fn
    if hasattr(fn, "__rewritten__") or fn.__code__.co_filename.startswith(_LIBRARIES):
        return fn
    if fn not in _known:
        _known[fn] = rewritten(fn)
    return _known[fn]


_BUILTINS: dict[Any, Any] = {
    range: rows.ranged,
    zip: rows.zipped,
    enumerate: rows.enumerated,
    reversed: rows.backwards,
    max: flow.largest,
    min: flow.smallest,
    bool: flow.truth,
}
_DOOR = SimpleNamespace(
    called=called,
    apart=sharing.apart,
    **{
        name: getattr(flow, name)
        for name in (
            *("branch", "each", "repeat", "choose", "both", "either", "negated"),
            *("now", "named", "put", "changing"),
        )
    },
)


class _Rewriter:
    """Rewrites the statements of one function; functions that it makes are numbered."""

    def __init__(self) -> None:
        self.count = 0

    def block(self, statements: Sequence[ast.stmt], after: Live) -> list[ast.stmt]:
        """Return statements rewritten, given which variables matter behind them."""
        made: list[ast.stmt] = []
        for i, statement in enumerate(statements):
            live = live_before(statements[i + 1 :], after)
            made += [*_apart(statement, live), *self._statement(statement, live)]
        return made or [ast.Pass()]

    def _statement(self, statement: ast.stmt, live: Live) -> list[ast.stmt]:
        if isinstance(statement, ast.If):
            return self._branch(statement, live)
        if isinstance(statement, (ast.While, ast.For)):
            return self._loop(statement, live)
        if isinstance(statement, ast.With):
            statement.body = self.block(statement.body, live)
        elif isinstance(statement, ast.FunctionDef):
            statement.body = _Rewriter().block(statement.body, frozenset())
        elif isinstance(statement, ast.AugAssign):
            return [_plain_assignment(statement)]
        else:
            return _simple(statement)
        return [statement]

    # -- branches ----------------------------------------------------------------------------------

    def _branch(self, statement: ast.If, live: Live) -> list[ast.stmt]:
        changed = sorted(assigned([*statement.body, *statement.orelse]))
        results = [name for name in changed if name in live]
        inside = live_before(statement.body, live) | live_before(statement.orelse, live)
        taken = [name for name in changed if name in results or name in inside]
        number = self._number()
        functions = [
            self._function(f"_{kind}_{number}", taken, part, results, live)
            for kind, part in (("then", statement.body), ("else", statement.orelse))
        ]
        call = _call(
            "branch",
            _expression(statement.test),
            *(ast.Name(f.name, ast.Load()) for f in functions),
            _texts(results),
            _texts(taken),
            _now(taken),
        )
        return [*functions, _unpacked(results, call)]

    # -- loops -------------------------------------------------------------------------------------

    def _loop(self, loop: ast.While | ast.For, live: Live) -> list[ast.stmt]:
        flag = getattr(loop, "leaves_by", "")
        live = live | {flag} if flag else live
        at_end = live_in_loop(loop, live)
        changed = assigned([*loop.body, *([loop.target] if isinstance(loop, ast.For) else [])])
        before = live_before(loop.body, at_end) | at_end
        fresh = assigned([loop.target]) if isinstance(loop, ast.For) else frozenset()
        kept = sorted(n for n in changed if n in (before - fresh) or n in live)
        number = self._number()
        if isinstance(loop, ast.While):
            return self._while(loop, kept, at_end, number, flag)
        item = f"_item_{number}"
        taking = ast.Assign([loop.target], ast.Name(item, ast.Load()), lineno=loop.lineno)
        body = self._function(f"_body_{number}", [item, *kept], [taking, *loop.body], kept, at_end)
        label = ast.Constant(ast.unparse(loop.target))
        call = _call(
            "each",
            _expression(loop.iter),
            ast.Name(body.name, ast.Load()),
            _texts(kept),
            _now(kept),
            ast.Constant(flag),
            label,
        )
        return [body, _unpacked(kept, call)]

    def _while(
        self, loop: ast.While, kept: list[str], at_end: Live, number: int, flag: str
    ) -> list[ast.stmt]:
        test: ast.expr = loop.test
        if flag:
            going = ast.UnaryOp(ast.Not(), ast.Name(flag, ast.Load()))
            endless = isinstance(test, ast.Constant) and bool(test.value)
            test = going if endless else ast.BoolOp(ast.And(), [going, test])
        body = self._function(f"_body_{number}", kept, loop.body, kept, at_end)
        asks = ast.FunctionDef(
            f"_test_{number}",
            _parameters(kept),
            [ast.Return(_expression(test))],
            [],
            lineno=loop.lineno,
        )
        call = _call(
            "repeat",
            ast.Name(asks.name, ast.Load()),
            ast.Name(body.name, ast.Load()),
            _texts(kept),
            _now(kept),
        )
        return [asks, body, _unpacked(kept, call)]

    # -- functions ---------------------------------------------------------------------------------

    def _number(self) -> int:
        self.count += 1
        return self.count

    def _function(
        self,
        name: str,
        taken: Sequence[str],
        statements: Sequence[ast.stmt],
        results: Sequence[str],
        live: Live,
    ) -> ast.FunctionDef:
        body = self.block(statements, live)
        values = ast.Tuple([ast.Name(n, ast.Load()) for n in results], ast.Load())
        return ast.FunctionDef(name, _parameters(taken), [*body, ast.Return(values)], [])


def _apart(statement: ast.stmt, live: Live) -> list[ast.stmt]:
    """Return a check that what a statement changes in place goes by no other name that matters.

    What is traced has values, not memory: another name would not see the change.
    """
    changed = sorted(changed_in_place(statement))
    others = sorted(live_before([statement], live) | live)
    if not changed or not set(others) - set(changed[:1]):
        return []
    return [ast.Expr(_call("apart", _texts(changed), _now(changed), _texts(others), _now(others)))]


# -- expressions -----------------------------------------------------------------------------------


class _Expressions(ast.NodeTransformer):
    """Lets calls, choices and truth values in expressions go through flow.py."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node  # it is rewritten as a function

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return _call("choose", node.test, _later(node.body), _later(node.orelse))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        name = "both" if isinstance(node.op, ast.And) else "either"
        return _call(name, *map(_later, node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _call("negated", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        lefts = [node.left, *node.comparators]
        pairs = zip(lefts, node.ops, node.comparators, strict=False)
        return _call("both", *(_later(ast.Compare(a, [op], [b])) for a, op, b in pairs))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.func = _call("called", node.func)
        return node


def _expression(node: ast.expr) -> ast.expr:
    made: ast.expr = _Expressions().visit(node)
    return made


def _expressions(statement: ast.stmt) -> ast.stmt:
    made: ast.stmt = _Expressions().visit(statement)
    return made


def _simple(statement: ast.stmt) -> list[ast.stmt]:
    """Return a statement without statements inside it, rewritten."""
    if isinstance(statement, ast.Assign):
        return [_assignment(statement)]
    if isinstance(statement, ast.AnnAssign):
        return [] if statement.value is None else [_annotated(statement)]
    if isinstance(statement, ast.Assert):
        return []
    if isinstance(statement, ast.Expr):
        return [ast.Expr(_effect(statement.value))]
    return [_expressions(statement)]


def _assignment(statement: ast.Assign) -> ast.stmt:
    """Return an assignment whose value is named, or that puts a value into an array."""
    name = written_name(statement)
    (target, *others) = statement.targets
    if name is not None:
        assert isinstance(target, ast.Subscript)
        put = _call(
            "put",
            ast.Name(name, ast.Load()),
            _index(_expression(target.slice)),
            _expression(statement.value),
        )
        return ast.Assign([ast.Name(name, ast.Store())], put, lineno=statement.lineno)
    value = _expression(statement.value)
    if not others and isinstance(target, ast.Name):
        value = _call("named", ast.Constant(target.id), value)
    return ast.Assign(statement.targets, value, lineno=statement.lineno)


def _plain_assignment(statement: ast.AugAssign) -> ast.stmt:
    """Return `x = x + y` for `x += y`: what is traced has values, not memory."""
    read = ast.parse(ast.unparse(statement.target), mode="eval").body
    value = ast.BinOp(read, statement.op, statement.value)
    return _assignment(ast.Assign([statement.target], value, lineno=statement.lineno))


def _annotated(statement: ast.AnnAssign) -> ast.stmt:
    assert statement.value is not None
    return _assignment(ast.Assign([statement.target], statement.value, lineno=statement.lineno))


def _effect(value: ast.expr) -> ast.expr:
    """Return an expression that stands alone: a call of a method changes its object."""
    made = _expression(value)
    if isinstance(value, ast.Call) and isinstance(made, ast.Call):
        inner = made.func
        if isinstance(inner, ast.Call) and isinstance(inner.args[0], ast.Attribute):
            inner.func = ast.Attribute(ast.Name(FLOW, ast.Load()), "changing", ast.Load())
    return made


def _index(node: ast.expr) -> ast.expr:
    """Return what stands between brackets as an expression."""
    if isinstance(node, ast.Slice):
        ends = [x or ast.Constant(None) for x in (node.lower, node.upper, node.step)]
        return ast.Call(ast.Name("slice", ast.Load()), ends, [])
    if isinstance(node, ast.Tuple):
        return ast.Tuple([_index(x) for x in node.elts], ast.Load())
    return node


def _call(name: str, *args: ast.expr) -> ast.Call:
    function = ast.Attribute(ast.Name(FLOW, ast.Load()), name, ast.Load())
    return ast.Call(function, list(args), [])


def _later(value: ast.expr) -> ast.expr:
    return ast.Lambda(_parameters(()), value)


def _now(names: Sequence[str]) -> ast.expr:
    """Return the values that variables have, those without one too."""
    return ast.Tuple([_call("now", _later(ast.Name(n, ast.Load()))) for n in names], ast.Load())


def _parameters(names: Sequence[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def _texts(names: Sequence[str]) -> ast.expr:
    return ast.Tuple([ast.Constant(n) for n in names], ast.Load())


def _unpacked(names: Sequence[str], call: ast.expr) -> ast.stmt:
    if not names:
        return ast.Expr(call)
    target = ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())
    return ast.Assign([target], call)
