"""Functions with Python's control flow, traced: what is kept, and what runs now."""

from __future__ import annotations

import ast
import inspect
import textwrap

import numpy as np
import pytest

import weft as wf
from weft.autodiff.python_flow.flow import MOST_TRIPS
from weft.autodiff.python_flow.jumps import without_jumps
from weft.autodiff.python_flow.kinds import CannotKeepError, joined, kind_of
from weft.autodiff.python_flow.liveness import assigned, live_before
from weft.autodiff.python_flow.rewriting import called, rewritten
from weft.autodiff.python_flow.rows import enumerated, ranged, rows_of, zipped
from weft.core.errors import GraphError


def tree(fn):
    return ast.parse(textwrap.dedent(inspect.getsource(fn))).body[0]


def program(fn, *args, **options):
    """Return the text of a function for float64 arguments; it has been compared with it."""
    return wf.autodiff.source(fn, *(wf.tensor(np.float64(a)) for a in args), **options)


# -- jumps and variables ---------------------------------------------------------------------------


def test_functions_without_jumps_return_at_their_ends():
    def jumping(xs):
        total = 0
        for x in xs:
            if x < 0:
                continue
            if x > 10:
                return -1
            while True:
                x = x - 1  # noqa: PLW2901  (what is tested)
                if x < 3:
                    break
            total += x
        return total

    made = without_jumps(tree(jumping))
    kinds = {type(node) for node in ast.walk(made)}
    assert not kinds & {ast.Break, ast.Continue}
    assert sum(isinstance(node, ast.Return) for node in ast.walk(made)) == 1


def test_variables_that_matter():
    statements = ast.parse(
        "a = b\nif a > 0:\n    c = a\nelse:\n    c = d\nfor e in c:\n    f = e"
    ).body
    assert live_before(statements, frozenset({"f"})) == {"b", "d", "f"}
    assert assigned(statements) == {"a", "c", "e", "f"}


@pytest.mark.parametrize("xs", [[], [1.0, -2.0, 5.0], [12.0], [4.0, 20.0]])
def test_rewritten_functions_compute_the_same_on_values(xs):
    def jumping(xs):
        total = 0
        for i, x in enumerate(xs):
            if x < 0:
                continue
            if x > 10:
                return -1, i
            while True:
                x = x - 1  # noqa: PLW2901  (what is tested)
                if x < 3:
                    break
            total += x
        return (total, len(xs)) if total > 1 and xs else (0, 0)

    assert rewritten(jumping)(xs) == jumping(xs)


# -- kinds -----------------------------------------------------------------------------------------


def test_variables_are_what_all_their_values_are():
    vector = kind_of(wf.ones(3))
    assert joined(kind_of(0.0), vector, "x") == vector
    assert joined(kind_of("a"), kind_of("a"), "x").leaves == ("a",)
    assert joined(kind_of(1), kind_of(2.5), "x").types[0].dtype == np.float64
    with pytest.raises(CannotKeepError, match="x is a tensor in one place and 'a'"):
        joined(kind_of("a"), vector, "x")
    with pytest.raises(CannotKeepError, match="in one place and"):
        joined(kind_of((1, 2)), kind_of([1, 2]), "x")


def test_what_loops_run_over():
    assert rows_of(zipped(range(3), wf.ones(3, 2))).length == 3
    assert rows_of([1, 2]) is None
    assert list(enumerated("ab")) == [(0, "a"), (1, "b")]
    assert ranged(2, 5) == range(2, 5)
    assert called(len) is len


# -- loops -----------------------------------------------------------------------------------------


def test_loops_over_objects_of_pythons_are_written_trip_by_trip():
    def layers(x):
        for f in (wf.sin, wf.cos):
            x = f(x)
        return x

    assert "return np.cos(np.sin(x))" in program(layers, 0.3, mode="value")


def test_lists_that_grow_are_written_trip_by_trip():
    def collected(x):
        out = []
        for i in range(3):
            out.append(x * i)  # noqa: PERF401  (what is tested)
        return wf.stack(out).sum()

    text = program(collected, 0.3)
    assert "for " not in text


def test_loops_whose_shapes_change_are_written_trip_by_trip():
    def growing(x):
        y = wf.stack([x, x])
        for _ in range(2):
            y = wf.concat([y, y])
        return y.sum()

    assert "for " not in program(growing, 0.3)


def test_a_range_whose_end_is_a_value():
    def repeated(x, n):
        for i in range(n):
            x = x * 0.5 + i
        return x

    text = wf.autodiff.source(repeated, wf.tensor(np.float64(3.0)), wf.tensor(4))
    assert "while count < n" in text or "while " in text
    scope = {}
    exec(text, scope)
    assert scope["repeated"](3.0, 2)[0] == 0.5 * (0.5 * 3.0) + 1


def test_functions_that_are_called_are_rewritten_too():
    def clipped(x):
        if x > 1:
            return x * 0 + 1
        return x

    def outer(x):
        def shifted(y):
            return clipped(y + 1) if y > 0 else -y

        return shifted(x) * clipped(x)

    assert "if " in program(outer, 0.4)


def test_variables_of_one_branch_only():
    def partly(x):
        if x > 0:
            y = x * 2
        else:
            x = -x
        return x if not x > 1 else y

    assert program(partly, 3.0)


def test_what_cannot_be_kept_is_explained():
    def endless(x):
        rows = []
        while x > 0:
            rows.append(x)
            x = x - 1
        return x

    with pytest.raises(CannotKeepError, match="the body changes an object of Python's"):
        program(endless, 2.0)

    def other(x):
        return x if x > 0 else "none"

    with pytest.raises(CannotKeepError, match="'none' in another"):
        program(other, 2.0)

    def longer(x):
        n, seen = 0, []
        while n < MOST_TRIPS + 5:
            n += 1
            seen.append(n)
        return x

    with pytest.raises(CannotKeepError, match="cannot be written out"):
        program(longer, 2.0)


def test_a_function_whose_text_is_not_known_is_explained():
    scope = {}
    exec("def hidden(x):\n    if x > 0:\n        return x\n    return -x\n", scope)
    with pytest.raises(GraphError, match="define it in a file"):
        program(scope["hidden"], 2.0)


def test_tensors_of_two_names_that_change_in_place_are_refused():
    def aliased(x):
        y = x
        x += 1
        return x * y

    with pytest.raises(CannotKeepError, match="same tensor as y"):
        program(aliased, 2.0)

    def maybe(x, y):
        z = max(y, x)
        z += 1
        return x * y + z

    with pytest.raises(CannotKeepError, match="may be, the same tensor"):
        program(maybe, 2.0, 1.0)

    def apart(x, y):
        z = max(y, x)
        z = z + 1
        x += y
        return x * y + z

    assert program(apart, 2.0, 1.0)


def test_numbers_of_python_compute_as_there():
    def counted(x):
        for i in range(3):
            x = x + 0.1 * i
        return x

    text = program(counted, 2.0)  # in float64, whatever the default float is
    scope = {}
    exec(text, scope)
    assert scope["counted"](2.0)[0] == counted(wf.tensor(np.float64(2.0))).item()
