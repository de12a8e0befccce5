"""Random programs as cases for the harness, and smaller ones that still fail."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from tests.jit.harness import Call, Case, Jit, Run, check_equal, no_jit, rows, run
from tests.programs.python_expressions import SIZE
from tests.programs.python_text import draw_calls

_CODE = (FunctionType, BuiltinFunctionType, ModuleType, type)


Draw = Callable[[int], list[tuple[Any, Any]]]


def case_of(text: str, seed: int, draw: Draw = draw_calls) -> Callable[[Jit], Case]:
    """Return the factory of a case that runs the text of a program on drawn calls."""
    filename = f"<program {seed}>"
    code = compile(text, filename, "exec")
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)

    def make(jit: Jit) -> Case:
        world: dict[str, Any] = {"__name__": f"program_{seed}", "jit": jit}
        exec(code, world)
        calls = [
            Call(_argument(world, x), n, before=functools.partial(world["outside"], number))
            for number, (x, n) in enumerate(draw(seed))
        ]
        return Case(world["step"], calls, {"world": lambda: _data(world)})

    return make


def _argument(world: dict[str, Any], drawn: Any) -> Any:
    """Return a tensor by its seed, or one that the program has by then, by its name."""
    return rows(SIZE, seed=drawn) if isinstance(drawn, int) else eval(drawn, world)


def _data(world: dict[str, Any]) -> dict[str, Any]:
    """Return the globals of a program that are no code of its."""
    hidden = ("__", "jit", "step", "helper", "outside", "kept")  # __warningregistry__ is Python's
    return {n: x for n, x in world.items() if not (n.startswith(hidden) or isinstance(x, _CODE))}


# -- comparing ----------------------------------------------------------------------------------


def differs(text: str, seed: int, jit: Jit, draw: Draw = draw_calls) -> str | None:
    """Return how the jitted program differs from the eager one, or None."""
    make = case_of(text, seed, draw)
    try:
        check_equal(run(make, no_jit), _run_jitted(make, jit))
    except AssertionError as error:
        return str(error)
    return None


def _run_jitted(make: Callable[[Jit], object], jit: Jit) -> Run:
    try:
        return run(make, jit)
    except Exception as error:
        raise AssertionError(f"outside of calls: {type(error).__name__}: {error}") from error


# -- making a failing program smaller ------------------------------------------------------------


def shrink(text: str, fails: Callable[[str], bool]) -> str:
    """Leave out statements, or the blocks around them, as long as the program fails."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller_texts(text):
            if fails(candidate):
                text, smaller = candidate, True
                break
    return text


def _smaller_texts(text: str) -> Iterator[str]:
    count = sum(1 for _ in _bodies(ast.parse(text)))
    for index in range(count):
        for replace in (_dropped, _unwrapped):
            tree = ast.parse(text)
            body, at = list(_bodies(tree))[index]
            new = replace(body, at)
            if new is not None:
                body[:] = new
                yield ast.unparse(tree) + "\n"


def _bodies(tree: ast.AST) -> Iterator[tuple[list[ast.stmt], int]]:
    """Yield each statement as its list and its place there, the outer ones first."""
    for node in ast.walk(tree):
        for field in ("body", "orelse"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                yield from ((body, at) for at in range(len(body)))


def _dropped(body: list[ast.stmt], at: int) -> list[ast.stmt] | None:
    kept = body[:at] + body[at + 1 :]
    if isinstance(body[at], ast.Pass) and not kept:
        return None
    return kept or [ast.Pass()]


def _unwrapped(body: list[ast.stmt], at: int) -> list[ast.stmt] | None:
    statement = body[at]
    if not isinstance(statement, ast.If | ast.For | ast.While | ast.With | ast.Try):
        return None
    return body[:at] + statement.body + body[at + 1 :]
