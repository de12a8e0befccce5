"""Every node knows the user's line, and a debugger stops inside of hooks."""

import linecache
import subprocess
import sys
import traceback
from textwrap import dedent

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ShapeError, format_site


def leaf(*values):
    return wf.tensor(np.array(values), requires_grad=True)


def line(offset=0):
    """Return this file's name and the caller's line, as messages show them."""
    return f"test_sites.py:{sys._getframe(1).f_lineno + offset}"


def test_functions_operators_and_methods():
    x = leaf(1.0, 2.0)
    y = wf.exp(x)
    assert format_site(y.grad_fn.site) == line(-1)
    y = x * 2.0
    assert format_site(y.grad_fn.site) == line(-1)
    y = 2.0 * x
    assert format_site(y.grad_fn.site) == line(-1)
    y = x.sum()
    assert format_site(y.grad_fn.site) == line(-1)
    y = x[0]
    assert format_site(y.grad_fn.site) == line(-1)


def test_several_lines_of_one_function_differ():
    x = leaf(1.0)
    first = x + 1.0
    second = first + 1.0
    assert format_site(first.grad_fn.site) == line(-2)
    assert format_site(second.grad_fn.site) == line(-2)


def test_composites_name_the_line_that_called_them():
    x = leaf(1.0, 2.0)
    y = wf.var(x)
    expected = line(-1)
    stack, seen = [y.grad_fn], set()
    while stack:
        node = stack.pop()
        if hasattr(node, "parents"):
            seen.add(format_site(node.site))
            stack.extend(node.parents)
        elif node is not None:
            assert format_site(node.site) == f"test_sites.py:{leaf.__code__.co_firstlineno + 1}"
    assert seen == {expected}


def test_promoted_and_lifted_operands_keep_the_line():
    x = leaf(1.0, 2.0)
    y = x * np.ones(2, np.float32) + [1, 2]
    assert format_site(y.grad_fn.site) == line(-1)


def test_user_functions():
    class Double(wf.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

    y = Double.apply(leaf(1.0))
    assert format_site(y.grad_fn.site) == line(-1)


def test_errors_name_the_lines_of_both_operands():
    x = wf.tensor(np.ones(3))
    y = leaf(1.0, 2.0) * 2.0
    with pytest.raises(ShapeError) as caught:
        x + y
    assert f"x from {line(-4)}" in str(caught.value)
    assert f"y from {line(-4)}" in str(caught.value)


def test_pdb_stops_in_hooks():
    program = """
        import weft as wf

        def hook(g):
            twice = g * 2
            breakpoint()
            return twice

        x = wf.tensor([1.5], requires_grad=True)
        y = x * 3
        y.register_hook(hook)
        y.backward()
        print("gradient", x.grad.item())
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)],
        input="p twice.item()\nwhere\ncontinue\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "2.0" in done.stdout
    assert "hook" in done.stdout
    assert "gradient 6.0" in done.stdout


def test_tracebacks_show_generated_code():
    x = leaf(1.0)
    y = x * 2.0

    def fail(g):
        raise ValueError("from the hook")

    x.register_hook(fail)
    with pytest.raises(ValueError, match="from the hook") as caught:
        y.backward()
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[0] == "test_tracebacks_show_generated_code"
    assert frames[-1] == "fail"
    source = linecache.getlines(wf.mul.__code__.co_filename)
    assert any("def operation(x, y)" in text for text in source)
