"""Which variables may be read after a statement."""

from __future__ import annotations

import ast

import pytest

from weft.faces.steps.liveness import Liveness

# The statement behind which one looks assigns to `x`; what is read there.
CASES = {
    "x = 1\nprint(x)": "print x",
    "x = 1\nx = 2\nprint(x)": "print",
    "for i in ii:\n    x = 1\n    f(x)": "f ii x",
    "for i in ii:\n    f(x)\n    x = 1": "f ii x",
    "for i in ii:\n    x = 1\n    y = x": "ii x",
    "for i in ii:\n    x = 1\n    if i:\n        break\n    x = 2\nf(x)": "f i ii x",
    "for i in ii:\n    x = 1\n    if i:\n        continue\n    x = 2\nf(x)": "f i ii x",
    "while c:\n    x = 1\nelse:\n    f(x)": "c f x",
    "x = 1\nwith g():\n    x = 2\nf(x)": "f g x",
    "x = 1\ntry:\n    x = g()\nexcept E:\n    pass\nf(x)": "E f g x",
    "try:\n    x = 1\n    x = g()\nfinally:\n    f(x)": "f g x",
    "x = 1\nif c:\n    x = 2\nf(x)": "c f x",
    "x = 1\nif c:\n    x = 2\nelse:\n    x = 3\nf(x)": "c f",
    "x = 1\nfor x in ii:\n    f(x)": "f ii",
    "x = 1\nmatch c:\n    case 1:\n        x = 2\nf(x)": "c f x",
}


@pytest.mark.parametrize("text", CASES)
def test_what_is_read_later(text):
    tree = ast.parse(text)
    after = Liveness(frozenset()).of(tree.body)
    found = [x for x in ast.walk(tree) if isinstance(x, ast.Assign)]
    first = min(found, key=lambda x: x.lineno if _is_one(x) else 99)
    assert after[id(first)] == frozenset(CASES[text].split())


def _is_one(statement):
    return isinstance(statement.value, ast.Constant) and statement.value.value == 1


def test_what_is_always_read():
    tree = ast.parse("x = 1\nx = 2")
    assert Liveness(frozenset("x")).of(tree.body)[id(tree.body[0])] == {"x"}
