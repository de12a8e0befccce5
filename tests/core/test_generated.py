"""Functions that are written as text: their names, and their lines in tracebacks."""

from __future__ import annotations

import gc
import linecache
import traceback

import pytest

from weft.core.errors import GENERATED_PREFIX
from weft.core.generated import ObjectNames, define, source_of

TEXT = "def half(x):\n    return x // two_0\n"


def test_a_written_function_shows_its_lines_in_tracebacks():
    half = define("half", TEXT, {"two_0": 2}, "half")
    assert half(7) == 3
    assert source_of(half) == TEXT
    assert half.__code__.co_filename.startswith(GENERATED_PREFIX)
    with pytest.raises(TypeError) as caught:
        half("x")
    assert "return x // two_0" in "".join(traceback.format_tb(caught.value.__traceback__))


def test_its_text_goes_with_it_and_no_collector_is_needed():
    half = define("half", TEXT, {"two_0": 2}, "half")
    filename = half.__code__.co_filename
    gc.disable()
    try:
        del half
        assert filename not in linecache.cache
    finally:
        gc.enable()


def test_things_have_one_name_each():
    names, a, b = ObjectNames(), [], []
    assert names.of(a) == names.of(a) == "list_0"
    assert names.of(b, "other") == "other_1"
    assert names.scope == {"list_0": a, "other_1": b}
    assert names.new("key", "list_0") == "list_0_"
    assert names.known("key") == "list_0_"
    assert names.new("odd", "no name") == "thing_3"
