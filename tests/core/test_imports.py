"""Imports that are no statements: slots, lazy names, optional packages."""

import subprocess
import sys
import types

import pytest

from weft.core import imports
from weft.core.errors import MissingDependencyError
from weft.core.imports import Injected, is_available, lazy_attributes, require


@pytest.fixture
def part(monkeypatch):
    """Return a module that nobody has imported yet, as far as anybody can tell."""
    made = types.ModuleType("weft_part")
    made.answer = lambda x, *, y: (x, y)
    monkeypatch.setitem(sys.modules, "weft_part", made)
    return made


def test_slot_finds_what_fills_it_when_first_used(part, monkeypatch):
    monkeypatch.setitem(imports._sources, "f", "weft_part:answer")
    slot = Injected("f")
    assert slot(1, y=2) == (1, 2)
    part.answer = None
    assert slot(3, y=4) == (3, 4)  # found once


def test_slot_may_be_filled_by_a_module(part, monkeypatch):
    monkeypatch.setitem(imports._sources, "f", "weft_part")
    assert Injected("f").get() is part


def test_lazy_names_are_kept_once_found(part):
    module = {"__name__": "there"}
    get = lazy_attributes(module, {"weft_part": ("answer",)})
    assert get("answer") is module["answer"] is part.answer
    with pytest.raises(AttributeError, match="module 'there' has no attribute 'other'"):
        get("other")


def test_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingDependencyError, match=r'x needs .* scikit-learn: .*"weft\[s\]"'):
        require("sklearn", "s", "x")
    assert not is_available("sklearn")
    assert require("json", "s", "x") is sys.modules["json"]


def test_what_a_package_misses_itself_is_said_as_it_is(monkeypatch):
    def broken(name):
        raise ModuleNotFoundError("No module named 'deep'", name="deep")

    monkeypatch.setattr(imports, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="deep") as caught:
        require("sklearn", "s", "x")
    assert not isinstance(caught.value, MissingDependencyError)


def test_import_weft_loads_nothing_that_most_programs_never_use():
    rare = [
        "numpy.typing",
        "weft.autodiff.check",
        "weft.autodiff.forward",
        "weft.autodiff.function",
        "weft.core.bytecode",
    ]
    program = f"import sys, weft; print([name for name in {rare} if name in sys.modules])"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert loaded.strip() == "[]"
