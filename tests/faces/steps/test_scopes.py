"""Whose variables are whose."""

from __future__ import annotations

import ast

from weft.faces.steps.scopes import Scope


def scope_of(text, **options):
    tree = ast.parse(text)
    module = Scope(tree, **options)
    functions = [x for x in tree.body if isinstance(x, ast.FunctionDef)]
    return Scope(functions[0], module) if functions else module


def test_variables_of_a_function_and_of_the_module():
    found = scope_of("def f(a, *b, c=1, **d):\n    global g\n    g = e = a\n    return h")
    assert found.own == {"a", "b", "c", "d", "e"}
    assert found.globals == {"g"}
    assert found.is_declared_elsewhere("g")
    assert not found.is_open


def test_variables_that_functions_inside_share():
    found = scope_of(
        "def f():\n    a = b = c = 1\n    def g(a):\n        nonlocal c\n        c = b"
    )
    assert found.shared == {"b", "c"}
    assert scope_of("x = 1\nf = lambda y: x + y\n").shared == {"x"}
    assert scope_of("class C:\n    a = x\n").shared >= {"x"}


def test_variables_that_are_read_by_name():
    for text in ("locals()", "exec(t)", "vars()", "import os\nfrom os import *"):
        assert scope_of(text).is_open


def test_what_is_left_of_a_module():
    text = "x = 1\ny = 2"
    program, imported = (scope_of(text, is_program=flag) for flag in (True, False))
    assert set().union(*program.live_after.values()) == set()
    assert set().union(*imported.live_after.values()) == {"x", "y"}
