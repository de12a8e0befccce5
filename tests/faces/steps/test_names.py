"""Which variables statements read and write."""

from __future__ import annotations

import ast

import pytest

from weft.faces.steps.names import inner_scopes, own_nodes, uses_of, written_in

CASES = {
    "x = y + z": ("y z", "x", "x"),
    "x += y": ("x y", "x", "x"),
    "x: int = y": ("int y", "x", "x"),
    "x: int": ("int", "x", ""),
    "x = 1\ny = x": ("", "x y", "x y"),
    "(a, [b, *c]), d.e = f": ("d f", "a b c", "a b c"),
    "if p:\n    x = 1\nelse:\n    x = y": ("p y", "x", "x"),
    "if p:\n    x = 1": ("p", "x", ""),
    "for p in ps:\n    q = p": ("ps", "p q", ""),
    "with f() as g:\n    x = g": ("f", "g x", "g x"),
    "x = [y for y in ys if (z := y)]": ("y ys", "x z", "x"),
    "f(x := y)": ("f y", "x", ""),
    "x[i] = y.z": ("i x y", "", ""),
    "del x": ("x", "x", ""),
    "import a.b, c as d": ("", "a d", ""),
    "try:\n    x = 1\nexcept E as e:\n    y = 2": ("E", "e x y", ""),
    "match m:\n    case [a, *b]:\n        c = 1\n    case {'k': d, **e}:\n        pass": (
        "m",
        "a b c d e",
        "",
    ),
}


@pytest.mark.parametrize("text", CASES)
def test_uses(text):
    reads, writes, sets = (frozenset(names.split()) for names in CASES[text])
    found = uses_of(ast.parse(text).body)
    assert (found.reads, found.writes, found.sets) == (reads, writes, sets)


def test_functions_write_their_own_variables():
    tree = ast.parse("def f(a):\n    b = a\nclass C:\n    d = 1\ng = lambda h: h")
    assert written_in(tree) == {"f", "C", "g"}
    assert len(inner_scopes(tree.body)) == 3
    assert not any(isinstance(x, ast.arg) and x.arg == "a" for x in own_nodes(tree.body))
