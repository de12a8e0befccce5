"""Modules whose steps are marked: what they are, and that lines stay where they are."""

from __future__ import annotations

import ast

from weft.faces.steps.rewriting import rewrite

SCRIPT = """\
import torch

for epoch in range(2):
    for x in data:
        y = f(x)
        loss = y.sum()
        if loss > 3:
            break
        loss.backward()
        losses.append(loss.item())
"""


def test_stretches_end_where_statements_stay():
    found = rewrite(SCRIPT, "script.py", is_program=True)
    assert found is not None
    lines = [[s.lineno for s in stretch.statements] for stretch in found.stretches]
    assert lines == [[5, 6], [9, 10]]


def test_lines_are_those_of_the_file():
    found = rewrite(SCRIPT, "script.py", is_program=True)
    assert found is not None
    code = compile(found.tree, "script.py", "exec")
    assert {line for _, _, line in code.co_lines() if line} <= set(range(11))
    calls = [x for x in ast.walk(found.tree) if isinstance(x, ast.Call)]
    assert {x.lineno for x in calls if ast.unparse(x) == "y.sum()"} == {6}


def test_modules_without_steps_are_left_alone():
    for text in ("x = 1", "import torch\nfor x in y:\n    print(x)", SCRIPT.replace("torch", "os")):
        assert rewrite(text, "script.py", is_program=True) is None
    dynamic = SCRIPT.replace("y = f(x)", "y = f(locals())")
    assert rewrite(dynamic, "script.py", is_program=True) is None


def test_steps_in_functions_and_methods():
    text = (
        "import torch\nclass T:\n    def step(self, x):\n        y = f(x)\n        y.backward()\n"
    )
    found = rewrite(text + "        return y\n", "script.py", is_program=False)
    assert found is not None
    (stretch,) = found.stretches
    assert stretch.reads(0) == ["x"]
    assert stretch.results(0, 2) == ["y"]


def test_future_imports_hold_for_captured_parts():
    found = rewrite(f"from __future__ import annotations\n{SCRIPT}", "s.py", is_program=True)
    assert found is not None
    assert found.flags
