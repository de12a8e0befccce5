"""Control flow as Python's own: turns that carry and stack, and loops that never turn."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.autodiff.text.spelling import ATOM, SUM, Expression, within
from weft.autodiff.text.writer import constant
from weft.core.tree import tree_leaves


def run(function, *args):
    """Return what the text of a function gives for some tensors."""
    step = wf.compile(function, *args)
    scope = {}
    exec(step.source(), scope)
    name = function.__name__ if function.__name__.isidentifier() else "program"
    return scope[name](*(x.numpy() for x in args), step.states())[0]


X = wf.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

CASES = {
    "carries that change places": lambda x: wf.scan(
        lambda c, row: ((c[1], c[0] + row), c[0]), (x[0], x[1]), x
    ),
    "backwards": lambda x: wf.scan(lambda c, row: (c + row, c * row), x[0], x, reverse=True),
    "no rows": lambda x: wf.scan(lambda c, _: (c * 2, None), x, length=3)[0],
    "no turn": lambda x: wf.while_loop(lambda s: s.sum() < 0, lambda s: s + 1, x),
    "nested": lambda x: wf.while_loop(
        lambda s: s.sum() < 100,
        lambda s: wf.cond(s.sum() > 50, lambda: s + 10, lambda: wf.scan(_row, s, x)[0]),
        x,
    ),
    "branches that return several": lambda x: wf.cond(
        x.sum() > 100, lambda: (x, x + 1), lambda: (x * 2, x)
    ),
    "gradients of loops": lambda x: wf.gradients(
        wf.scan(lambda c, row: (wf.sin(c) * row, c), x[0], x)[0].sum(), x
    ),
}


def _row(carry, row):
    return carry + row, None


@pytest.mark.parametrize("name", CASES)
def test_control_flow(name):
    function = CASES[name]
    found, expected = run(function, X), wf.compile(function, X)(X)
    for a, b in zip(tree_leaves(found), tree_leaves(expected), strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-6)
        assert a.dtype == b.dtype


def test_constants_say_their_dtype_where_they_stand_alone():
    assert constant(np.array(0.1, np.float32)).text == "0.1"
    assert constant(np.array(0.1, np.float32), typed=True).text == "np.float32(0.1)"
    assert "int16" in constant(np.array([1, 2], np.int16)).text


def test_what_binds_less_is_put_in_parentheses():
    assert within(Expression("a + b", SUM), ATOM) == "(a + b)"
    assert within(Expression("a", ATOM), SUM) == "a"
