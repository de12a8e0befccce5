"""Statements that are captured together, as functions."""

from __future__ import annotations

from weft.faces.steps.rewriting import rewrite

SCRIPT = """\
import torch
seen = []
def f():
    return shared
for i in numbers:
    a = i + 1
    seen.append(a * 2)
    shared = a + b
    if a > 2:
        c = a
    print(c)
    (a - 1).backward()
"""


def stretch_of(text):
    found = rewrite(text, "script.py", is_program=True)
    assert found is not None
    return found.stretches[0]


def test_a_function_of_statements():
    stretch = stretch_of(SCRIPT)
    module = {"b": 10, "shared": 0}
    made = stretch.function(0, 4, module)
    assert (made.given, made.results, made.sinks) == (["c", "i"], ["a", "c"], [1])
    assert made.function(c=0, i=1) == (2, 0, 4)
    assert made.function(c=0, i=2) == (3, 3, 6)
    assert module["shared"] == 13
    assert made.function.__code__.co_firstlineno == 6


def test_parts_take_and_give_what_the_others_need():
    stretch = stretch_of(SCRIPT)
    made = stretch.function(2, 4, {})
    assert (made.given, made.results, made.sinks) == (["a", "c"], ["c"], [])
    assert stretch.reads(0) == ["c", "i"]
    assert stretch.writes(2) == ["c"]
    assert stretch.index_of(9, 0, 4) == stretch.index_of(10, 0, 4) == 3
    assert stretch.index_of(11, 0, 4) is None
    assert stretch.first_reader("a", 0, 4) == 1


def test_a_list_that_is_rebound_is_no_sink():
    assert stretch_of(SCRIPT).sinks(0) == [1]
    assert stretch_of(SCRIPT.replace("c = a", "seen = []")).sinks(0) == []
    assert stretch_of(SCRIPT.replace("seen.append(a * 2)", "seen.append(*a)")).sinks(0) == []
