"""Which statements may be captured."""

from __future__ import annotations

import ast

import pytest

from weft.faces.steps.scopes import Scope
from weft.faces.steps.statements import (
    holds_backward,
    holds_backward_outside_loops,
    may_be_captured,
)

STAY = (
    "return x",
    "yield x",
    "y = yield",
    "break",
    "if c:\n    continue",
    "global g",
    "import os",
    "del x",
    "del x[0]",
    "def f():\n    pass",
    "class C:\n    pass",
    "try:\n    f()\nfinally:\n    g()",
    "raise E",
    "while c:\n    f()",
    "for i in range(3):\n    f(i)",
    "for i in itertools.count():\n    f(i)",
    "for i in ii:\n    f(i)\nelse:\n    g()",
    "for i in ii:\n    loss(i).backward()",
    "print(x)",
    "batch = next(it)",
    "match c:\n    case 1:\n        f()",
    "shared = 1",
)
MAY = (
    "x = f(y)",
    "x += 1",
    "loss.backward()",
    "with no_grad():\n    f()",
    "if c:\n    x = 1",
    "for p in ps:\n    if p:\n        break\n    f(p)",
    "f = [g(x) for x in xs]",
    "x[0] = 1",
)


@pytest.mark.parametrize("text", [*STAY, *MAY])
def test_which_statements_may_be_captured(text):
    body = indented(text)
    tree = ast.parse(f"def f():\n{body}\n    def g():\n        return shared\n")
    found = Scope(tree.body[0], Scope(tree))
    assert may_be_captured(tree.body[0].body[0], found) == (text in MAY)


def indented(text):
    return "\n".join(f"    {line}" for line in text.splitlines())


def test_private_names_of_a_class_stay():
    tree = ast.parse("def f(self):\n    self.__x = 1")
    assert not may_be_captured(tree.body[0].body[0], Scope(tree.body[0], in_class=True))
    assert may_be_captured(tree.body[0].body[0], Scope(tree.body[0]))


def test_where_backward_is_called():
    loop = ast.parse("for x in xs:\n    f(x).backward()").body
    assert holds_backward(loop)
    assert not holds_backward_outside_loops(loop)
    assert holds_backward_outside_loops(ast.parse("with c:\n    f(x).backward()").body)
    assert not holds_backward(ast.parse("def f():\n    x.backward()").body)
