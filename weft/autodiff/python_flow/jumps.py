"""Functions without jumps: `return`, `break` and `continue` become values and nested branches.

    for x in xs:                    broke = False
        if x > 3:                   for x in xs:
            break          ->           if x > 3: broke = True
        s = s + x                       else: s = s + x

What stands behind an `if` that may jump moves into the branches that do not. A `return` inside a
loop ends the loop, and the function behind it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

RESULT = "_result"
_JUMPS = (ast.Return, ast.Break, ast.Continue)


class JumpError(Exception):
    """A jump that has no such form."""


def without_jumps(function: ast.FunctionDef) -> ast.FunctionDef:
    """Return a function that assigns its result to RESULT and returns it at its end."""
    body = _Jumps().block([*function.body, ast.Return(ast.Constant(None))], "")
    function.body = [*body, ast.Return(ast.Name(RESULT, ast.Load()))]
    return ast.fix_missing_locations(function)


class _Jumps:
    """Rewrites one function; loops that may be left early are numbered."""

    def __init__(self) -> None:
        self.loops = 0

    def block(self, statements: Sequence[ast.stmt], flag: str) -> list[ast.stmt]:
        """Return statements without jumps; `flag` is set where the loop around them ends."""
        made: list[ast.stmt] = []
        for i, statement in enumerate(statements):
            rest = statements[i + 1 :]
            if isinstance(statement, _JUMPS):
                return [*made, *self._jump(statement, flag)]
            if isinstance(statement, (ast.While, ast.For)):
                loop, after = self._loop(statement)
                made += loop
                if after is not None:  # it may have returned
                    return [*made, *self.block([after, *rest], flag)]
            elif isinstance(statement, ast.If) and _jumps_in(statement):
                return [*made, self._branch(statement, rest, flag)]
            else:
                made.append(self._plain(statement, flag))
        return made

    def _plain(self, statement: ast.stmt, flag: str) -> ast.stmt:
        if isinstance(statement, ast.If):
            statement.body = self.block(statement.body, flag)
            statement.orelse = self.block(statement.orelse, flag)
        elif isinstance(statement, ast.With):
            if _jumps_in(statement):
                raise JumpError("a jump out of a `with`")
            statement.body = self.block(statement.body, flag)
        elif isinstance(statement, ast.FunctionDef):
            without_jumps(statement)
        elif isinstance(statement, (ast.Try, ast.Match)):
            raise JumpError(type(statement).__name__.lower())
        return statement

    def _branch(self, statement: ast.If, rest: Sequence[ast.stmt], flag: str) -> ast.stmt:
        yes = [*statement.body, *([] if _always_jumps(statement.body) else rest)]
        no = [*statement.orelse, *([] if _always_jumps(statement.orelse) else rest)]
        no = copy.deepcopy(no)  # what is rewritten in one branch stays in the other
        both = self.block(yes, flag) or [ast.Pass()], self.block(no, flag)
        return ast.If(statement.test, *both)

    def _jump(self, statement: ast.stmt, flag: str) -> list[ast.stmt]:
        if isinstance(statement, ast.Continue):
            return [ast.Pass()]
        if isinstance(statement, ast.Break):
            return [_assigned(flag, ast.Constant(True))]
        assert isinstance(statement, ast.Return)
        found = [_assigned(RESULT, statement.value or ast.Constant(None))]
        if not flag:
            return found
        return [
            *found,
            _assigned(_returned(flag), ast.Constant(True)),
            _assigned(flag, ast.Constant(True)),
        ]

    def _loop(self, loop: ast.While | ast.For) -> tuple[list[ast.stmt], ast.If | None]:
        """Return a loop without jumps, and the branch that returns if it has."""
        if loop.orelse:
            raise JumpError("the `else` of a loop")
        leaves, returns = _leaves(loop.body)
        flag = ""
        if leaves:
            flag = f"_broke_{self.loops}" if self.loops else "_broke"
            self.loops += 1
        loop.body = self.block(loop.body, flag) or [ast.Pass()]
        if not leaves:
            return [loop], None
        loop.leaves_by = flag  # type: ignore[union-attr]  # read by rewriting.py
        start = [_assigned(flag, ast.Constant(False))]
        if not returns:
            return [*start, loop], None
        start.append(_assigned(_returned(flag), ast.Constant(False)))
        found = ast.Name(RESULT, ast.Load())
        return [*start, loop], ast.If(
            ast.Name(_returned(flag), ast.Load()), [ast.Return(found)], []
        )


def _returned(flag: str) -> str:
    return flag.replace("_broke", "_returned")


def _assigned(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _jumps_in(statement: ast.stmt) -> bool:
    """Tell whether a statement may jump out of itself."""
    if isinstance(statement, _JUMPS):
        return True
    if isinstance(statement, (ast.While, ast.For)):
        return _leaves(statement.body)[1]
    if isinstance(statement, (ast.If, ast.With)):
        inside = [*statement.body, *getattr(statement, "orelse", [])]
        return any(map(_jumps_in, inside))
    return False


def _leaves(statements: Sequence[ast.stmt]) -> tuple[bool, bool]:
    """Tell whether the body of a loop may leave it, and whether it may return."""
    leaves = returns = False
    for statement in statements:
        if isinstance(statement, (ast.Break, ast.Return)):
            leaves, returns = True, returns or isinstance(statement, ast.Return)
        elif isinstance(statement, (ast.While, ast.For)):
            inner = _leaves(statement.body)[1]
            leaves, returns = leaves or inner, returns or inner
        elif isinstance(statement, (ast.If, ast.With)):
            inside = _leaves([*statement.body, *getattr(statement, "orelse", [])])
            leaves, returns = leaves or inside[0], returns or inside[1]
    return leaves, returns


def _always_jumps(statements: Sequence[ast.stmt]) -> bool:
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return _always_jumps(last.body) and _always_jumps(last.orelse)
    return isinstance(last, _JUMPS)
