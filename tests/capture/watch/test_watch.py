"""The context in which a call is watched: numbers that change, versions, errors, debuggers."""

import copy
import inspect
import sys

import pytest

from tests.capture.watch.watching import (
    Leaf,
    watched,
)
from weft.capture.watch import Listener, Watch

# -- numbers ---------------------------------------------------------------------------------------


def test_a_counter_is_a_number_place(thing):
    def f():
        thing.alpha += 1
        return thing.other.z

    watch = watched(f)
    names = [place.text for place in watch.number_places]
    assert names == ["thing.alpha", "Thing.z"]
    assert [place.text for place in watch.changing] == ["thing.alpha"]


def test_a_number_is_replaced_while_a_call_is_watched(thing):
    class Expression(Leaf):
        def __add__(self, other):
            return Expression()

    def f():
        thing.alpha += 1

    (place,) = watched(f).number_places
    thing.alpha = 0.5
    leaf = Expression()
    watch = watched(f, numbers={place: leaf})
    assert thing.alpha == 0.5
    final = watch.final(place)
    assert isinstance(final, Expression)
    assert final is not leaf
    thing.alpha = 7.5
    assert watch.guards.compile()()
    watch.effects.apply(lambda value: 8.5 if value is final else None)
    assert thing.alpha == 8.5
    thing.alpha = 3
    assert "the type of thing.alpha was float" in watch.guards.failed()[0]


class Sum(Leaf):
    """A recorded number that can be added to."""

    def __add__(self, other):
        return Sum()


COUNT = 0


def in_global():
    global COUNT  # noqa: PLW0603  (is what is tested)
    COUNT += 1


def in_item(held={"n": 0}):  # noqa: B006  (is what is tested)
    held["n"] += 1


def make_in_cell():
    count = 0

    def in_cell():
        nonlocal count
        count += 1

    return in_cell


@pytest.mark.parametrize("function", [in_global, in_item, make_in_cell()])
def test_numbers_anywhere_can_be_replaced(function):
    watch = watched(function)
    watch.undo()
    (place,) = watch.number_places
    leaf = Sum()
    watch = watched(function, numbers={place: leaf})
    assert watch.refusal is None
    assert place.get() == 0
    watch.undo()
    assert place.get() == 0
    place.put(4)
    assert watch.guards.compile()()
    watch.effects.apply(lambda value: 5)
    assert place.get() == 5


# -- versions --------------------------------------------------------------------------------------


def test_an_unchanged_version_stands_for_all_guards_of_its_objects(thing):
    changes = [0]
    watch = watched(
        lambda: thing.alpha, versioned=lambda owner: changes if owner is thing else None
    )
    holds = watch.guards.compile()
    assert holds()
    thing.alpha = 9
    assert holds()
    changes[0] += 1
    assert not holds()
    thing.alpha = 0.5
    assert holds()


def test_who_is_written_is_told(thing):
    told = []
    watch = watched(lambda: setattr(thing, "alpha", 1), told=Listener(wrote=told.append))
    watch.effects.apply(lambda leaf: leaf)
    assert told == [thing]


# -- the context -----------------------------------------------------------------------------------


def test_nothing_remains_of_a_watch():
    before = sys.gettrace()
    watched(lambda: 1)
    assert sys.gettrace() is before


def test_an_error_passes_through(thing):
    def f():
        thing.alpha = 3
        raise ValueError("hm")

    watch = Watch(f)
    with pytest.raises(ValueError, match="hm"), watch:
        f()
    watch.undo()
    assert thing.alpha == 0.5


def test_python_that_cannot_be_watched_is_refused(monkeypatch):
    monkeypatch.setattr("weft.capture.watch.watch.is_readable", lambda: False)
    assert "cannot be watched" in watched(lambda: 1).refusal.reason


def test_a_debugger_is_told_on(thing):
    lines = []

    def tell(frame, event, argument):
        if frame.f_code is f.__code__:
            lines.append((event, frame.f_lineno - f.__code__.co_firstlineno))
        return tell

    def f():
        thing.alpha += 1
        return thing.alpha

    sys.settrace(tell)
    try:
        watch = watched(f)
        assert sys.gettrace() is tell
    finally:
        sys.settrace(None)
    assert lines == [("call", 0), ("line", 1), ("line", 2), ("return", 2)]
    assert len(watch.effects) == 1


def test_modules_that_weft_loads_late_are_no_part_of_a_call(tmp_path, monkeypatch):
    (tmp_path / "loaded_late.py").write_text("import random\nvalue = random.random()\n")
    monkeypatch.syspath_prepend(tmp_path)
    names = {}
    text = "def load():\n    import loaded_late\n    return 1\n"
    exec(compile(text, "<weft.tests>", "exec"), names)
    load = names["load"]
    watch = watched(lambda: load() + 1)
    assert "loaded_late" in sys.modules
    assert watch.refusal is None


def test_what_weft_does_with_the_standard_library_is_its_own_business():
    names = {"inspect": inspect}
    exec(compile("def ask():\n    return inspect.stack()\n", "<weft.tests>", "exec"), names)
    ask = names["ask"]
    assert watched(lambda: len(ask()) + 1).refusal is None
    assert watched(lambda: len(inspect.stack()) + 1).refusal is not None


def test_a_function_of_the_standard_library_is_followed(thing):
    copy.copy(thing)
    watch = watched(copy.copy, thing)
    thing.alpha = 3
    assert not watch.guards.compile()()
