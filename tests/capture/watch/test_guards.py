"""What a call read is guarded: it can be repeated until that changes."""

import collections
import copy
import dataclasses
import enum
import functools
import math
import operator
import os
import sys
import types

import numpy as np
import pytest

import weft as wf
from tests.capture.watch.watching import (
    Leaf,
    Thing,
    check_guarded,
    check_unguarded,
    watched,
)
from weft.capture.watch import Guards

SCALE = 2.0
TABLES = ({"a": 1},)
SETTINGS = types.ModuleType("settings")
SETTINGS.rate = 0.1


def helper(x, by=(1, 2)):
    return x + by[0]


def test_an_attribute_is_guarded_and_the_message_says_what_changed(thing):
    def f(self):
        return self.alpha

    failed = check_guarded(f, lambda: setattr(thing, "alpha", 0.7), thing)
    assert failed[0].startswith("self.alpha was 0.5, is 0.7 (test_guards.py:")


READS = {
    "attribute": (lambda t: t.alpha, lambda t: setattr(t, "alpha", 0.7)),
    "sign of zero": (lambda t: t.alpha, lambda t: setattr(t, "alpha", -0.5)),
    "type of number": (lambda t: t.table["k"], lambda t: t.table.update(k=True)),
    "nested": (lambda t: t.other.z, lambda t: setattr(t.other, "z", 3)),
    "replaced owner": (lambda t: t.other.z, lambda t: setattr(t, "other", Thing(z=1))),
    "getattr": (lambda t: getattr(t, "alpha"), lambda t: setattr(t, "alpha", 1)),  # noqa: B009  (is tested)
    "hasattr": (lambda t: hasattr(t, "extra"), lambda t: setattr(t, "extra", 1)),
    "default": (lambda t: getattr(t, "extra", 3), lambda t: setattr(t, "extra", 1)),
    "vars": (lambda t: vars(t)["alpha"], lambda t: setattr(t, "alpha", 1)),
    "dictionary": (lambda t: t.__dict__["alpha"], lambda t: setattr(t, "alpha", 1)),
    "attrgetter": (lambda t: t.other.z, lambda t: delattr(t.other, "z")),
    "item": (lambda t: t.table["k"], lambda t: t.table.update(k=2)),
    "get": (lambda t: t.table.get("k"), lambda t: t.table.pop("k")),
    "absent": (lambda t: t.table.get("m"), lambda t: t.table.update(m=2)),
    "in": (lambda t: "m" in t.table, lambda t: t.table.update(m=2)),
    "length": (lambda t: len(t.items), lambda t: t.items.append(1)),
    "truth": (lambda t: 1 if t.items else 2, lambda t: t.items.clear()),
    "not": (lambda t: not t.items, lambda t: t.items.clear()),
    "loop": (lambda t: [x for x in t.items], lambda t: t.items.reverse()),  # noqa: C416  (is tested)
    "sum": (lambda t: sum(t.items), lambda t: t.items.append(1)),
    "element": (lambda t: t.items[0], lambda t: t.items.__setitem__(0, 5)),
    "last element": (lambda t: t.items[-1], lambda t: t.items.append(5)),
    "slice": (lambda t: t.items[:1], lambda t: t.items.__setitem__(0, 5)),
    "unpacked": (lambda t: max(*t.items), lambda t: t.items.__setitem__(0, 5)),
    "keywords": (lambda t: dict(**t.table), lambda t: t.table.update(m=5)),
    "compared": (lambda t: t.items == [1, 2], lambda t: t.items.append(5)),
    "formatted": (lambda t: f"{t.items}", lambda t: t.items.append(5)),
    "set": (lambda t: 3 in t.tags, lambda t: t.tags.add(3)),
    "mapped": (lambda t: list(map(str, t.items)), lambda t: t.items.append(5)),
    "joined": (lambda t: [*t.items, 1], lambda t: t.items.append(5)),
    "keys": (lambda t: list(t.table), lambda t: t.table.update(m=5)),
    "values": (lambda t: list(t.table.values()), lambda t: t.table.update(k=5)),
    "itemgetter": (lambda t: operator.itemgetter("k")(t.table), lambda t: t.table.update(k=5)),
    "class attribute": (lambda t: t.shared, lambda t: setattr(t, "shared", 5)),
    "method hidden": (lambda t: t.method(), lambda t: setattr(t, "method", lambda: 5)),
    "isinstance": (lambda t: isinstance(t, Thing), lambda t: setattr(t, "__class__", Other)),
    "type": (lambda t: type(t).__name__, lambda t: setattr(t, "__class__", Other)),
    "class of object": (
        lambda t: type(t) and t.__class__,
        lambda t: setattr(t, "__class__", Other),
    ),
}


class Other(Thing):
    pass


@pytest.mark.parametrize("case", READS)
def test_what_is_read_is_guarded(case, thing):
    read, change = READS[case]
    check_guarded(read, lambda: change(thing), thing)


def test_globals_and_functions_are_guarded(monkeypatch):
    def f():
        return helper(SCALE)

    module = sys.modules[__name__]
    check_guarded(f, lambda: monkeypatch.setattr(module, "SCALE", 3.0))
    check_guarded(f, lambda: monkeypatch.setattr(module, "helper", lambda x: x))


def test_a_builtin_that_becomes_a_global_is_seen(monkeypatch):
    def f():
        return abs(-1)

    module = sys.modules[__name__]
    check_guarded(f, lambda: monkeypatch.setattr(module, "abs", lambda x: x, raising=False))


def test_code_and_defaults_of_functions_are_guarded():
    def g(x=1):
        return x

    check_guarded(g, lambda: setattr(g, "__defaults__", (2,)))
    check_guarded(g, lambda: setattr(g, "__code__", (lambda x=1: 3).__code__))


def test_attributes_of_users_modules_are_guarded():
    check_guarded(lambda: SETTINGS.rate, lambda: setattr(SETTINGS, "rate", 0.2))


def test_variables_of_enclosing_functions_are_guarded():
    rate = 1

    def change():
        nonlocal rate
        rate = 2

    check_guarded(lambda: rate, change)


def test_variables_of_functions_that_are_called_are_guarded():
    def make():
        rate = 1

        def read():
            return rate

        def change():
            nonlocal rate
            rate = 2

        return read, change

    read, change = make()
    check_guarded(lambda: [read()], change)


def test_methods_of_users_classes_are_guarded(monkeypatch, thing):
    check_guarded(thing.method, lambda: monkeypatch.setattr(Thing, "method", lambda self: 5))


def test_attributes_of_classes_are_guarded(monkeypatch, thing):
    check_guarded(thing.method, lambda: monkeypatch.setattr(Thing, "shared", 5))
    check_guarded(lambda: Thing.shared, lambda: monkeypatch.setattr(Thing, "shared", 6))


def test_what_classes_do_not_have_is_guarded(monkeypatch, thing):
    def add():
        monkeypatch.setattr(Thing, "extra", 5, raising=False)

    check_guarded(lambda: getattr(thing, "extra", 3), add)
    monkeypatch.undo()
    check_guarded(lambda: getattr(Thing, "extra", 3), add)


def test_operators_of_users_classes_are_guarded(monkeypatch):
    class Vector:
        def __init__(self):
            self.x = 1

        def __add__(self, other):
            return self.x + other

    v = Vector()
    check_guarded(lambda: v + 1, lambda: setattr(v, "x", 2))
    check_guarded(lambda: v + 1, lambda: setattr(Vector, "__add__", lambda a, b: 3))


def test_what_super_finds_is_guarded():
    class Base:
        rate = 1

        def f(self):
            return 1

    class Derived(Base):
        def f(self):
            return super().f() + super().rate

    d = Derived()
    check_guarded(d.f, lambda: setattr(Base, "rate", 2))
    check_guarded(d.f, lambda: setattr(Base, "f", lambda self: 2))


def test_properties_and_getattr_are_seen_through():
    class Lazy:
        def __init__(self):
            self.held = {"a": 1}

        @property
        def a(self):
            return self.held["a"]

        def __getattr__(self, name):
            return self.held[name]

    lazy = Lazy()
    check_guarded(lambda: lazy.a, lambda: lazy.held.update(a=2))
    check_guarded(lambda: lazy.b, lambda: lazy.held.update(b=2)) if "b" in lazy.held else None
    lazy.held["b"] = 1
    check_guarded(lambda: lazy.b, lambda: lazy.held.update(b=2))
    check_guarded(lambda: lazy.b, lambda: setattr(lazy, "b", 2))


def test_a_class_that_finds_attributes_itself_is_seen_through():
    class Counting:
        def __init__(self):
            self.x = 1

        def __getattribute__(self, name):
            return object.__getattribute__(self, name)

    counting = Counting()
    check_guarded(lambda: counting.x, lambda: setattr(counting, "x", 2))


def test_slots_are_guarded():
    class Slotted:
        __slots__ = ("x", "y")

    slotted = Slotted()
    slotted.x = 1
    check_guarded(lambda: slotted.x, lambda: setattr(slotted, "x", 2))
    check_guarded(lambda: getattr(slotted, "y", 3), lambda: setattr(slotted, "y", 2))


def test_small_arrays_are_guarded_and_large_ones_refused():
    small, large = np.zeros(3), np.zeros(1 << 20)
    check_guarded(lambda: small + 1, lambda: small.__setitem__(0, 1))
    check_guarded(lambda: small[1:] + 1, lambda: small.__setitem__(2, 5))
    assert "pass it as one" in watched(lambda: large + 1).refusal.reason
    assert watched(lambda: np.zeros(1 << 20) + 1).refusal is None


def test_patterns_read_attributes():
    @dataclasses.dataclass
    class Point:
        x: int

    point = Point(1)

    def f():
        match point:
            case Point(x=1):
                return "one"
        return "other"

    check_guarded(f, lambda: setattr(point, "x", 2))


def test_the_environment_is_guarded(monkeypatch):
    monkeypatch.setenv("A_SETTING", "1")
    check_guarded(
        lambda: os.environ["A_SETTING"] + "", lambda: monkeypatch.setenv("A_SETTING", "2")
    )


def test_enum_members_and_constants_need_no_guard():
    class Mode(enum.Enum):
        FAST = 1

    watch = watched(lambda: (Mode.FAST.value, math.pi, 3))
    assert watch.refusal is None


def test_what_is_not_read_is_not_guarded(thing):
    check_unguarded(lambda: thing.alpha, lambda: setattr(thing, "extra", 1))
    check_unguarded(lambda: thing.table["k"], lambda: thing.table.update(m=1))


def test_what_is_made_in_the_call_is_not_guarded():
    def f():
        thing = Thing(a=1)
        thing.a += 1
        table = {"k": thing.a}
        table["k"] += 1
        items = [1]
        items.append(2)
        return thing.a + table["k"] + sum(items)

    watch = watched(f)
    assert watch.refusal is None
    assert len(watch.effects) == 0
    assert watch.guards.compile()()


def test_equal_numbers_and_strings_that_are_other_objects_hold(thing):
    thing.name = "ab" * int("1")
    thing.big = 10**6
    watch = watched(lambda: (thing.name, thing.big, thing.alpha))
    thing.name, thing.big, thing.alpha = "ab" * int("1"), int("1000000"), float("0.5")
    assert watch.guards.compile()()


def test_nan_is_as_it_was(thing):
    thing.alpha = math.nan
    watch = watched(lambda: thing.alpha)
    thing.alpha = float("nan")
    assert watch.guards.compile()()


def test_containers_of_derived_classes_are_guarded():
    class Config(dict):
        pass

    class Row(list):
        pass

    config, row = Config(a=1), Row([1, 2])
    check_guarded(lambda: dict(**config), lambda: config.update(b=1))
    check_guarded(lambda: [key for key in config], lambda: config.update(c=1))  # noqa: C416  (is tested)
    check_guarded(lambda: len(config) + 1, lambda: config.pop("c"))
    check_guarded(lambda: config["a"], lambda: config.update(a=5))
    check_guarded(lambda: sum(row) + 1, lambda: row.append(1))
    check_guarded(lambda: row[0], lambda: row.__setitem__(0, 9))


def test_what_is_missing_in_a_counter_is_guarded():
    counts = collections.Counter("aab")
    check_guarded(lambda: counts["z"], lambda: counts.update("z"))


def test_copies_read_all_attributes():
    thing = Thing(items=[1])
    copy.copy(thing)  # which notes the slots of the class, once
    check_guarded(lambda: copy.copy(thing) and 1, lambda: setattr(thing, "extra", 2))
    check_guarded(lambda: copy.deepcopy(thing).items, lambda: thing.items.append(2))


def test_attrgetter_reads_attributes(thing):
    read = operator.attrgetter("other.z")
    check_guarded(lambda: read(thing) + 1, lambda: setattr(thing.other, "z", 2))


def test_text_that_is_run_is_followed():
    names = {"a": 1}
    check_guarded(lambda: exec("c = a", {}, dict(names)), lambda: names.update(a=9))
    check_guarded(lambda: eval("a", {}, names), lambda: names.update(a=19))


def test_names_that_are_imported_from_modules_are_guarded(monkeypatch):
    module = types.ModuleType("somewhere_else")
    module.rate = 1
    monkeypatch.setitem(sys.modules, "somewhere_else", module)

    def f():
        from somewhere_else import rate  # noqa: PLC0415  (is what is tested)

        return rate

    check_guarded(f, lambda: setattr(module, "rate", 2))


def test_tools_of_dataclasses_are_followed():
    @dataclasses.dataclass
    class Point:
        x: int = 1

    point = Point()
    check_guarded(lambda: dataclasses.asdict(point), lambda: setattr(point, "x", 2))
    check_guarded(lambda: point == Point(2), lambda: setattr(point, "x", 6))


def test_dictionaries_inside_of_tuples_are_guarded():
    check_guarded(lambda: TABLES[0]["a"], lambda: TABLES[0].update(a=3))
    thing = Thing(parts=({"a": [1]},))
    check_guarded(lambda: thing.parts[0]["a"][0], lambda: thing.parts[0]["a"].__setitem__(0, 4))


def test_an_attribute_that_is_not_there_is_guarded(thing):
    def f():
        try:
            return thing.missing
        except AttributeError:
            return 1

    check_guarded(f, lambda: setattr(thing, "missing", 1))


def test_objects_that_are_called_are_guarded():
    class Scaled:
        def __init__(self):
            self.by = 1

        def __call__(self):
            return self.by

    scaled = Scaled()
    check_guarded(lambda: [scaled()], lambda: setattr(scaled, "by", 2))
    check_guarded(lambda: [scaled()], lambda: setattr(Scaled, "__call__", lambda self: 3))


def test_lists_that_are_given_to_operators_are_guarded():
    parts = [wf.ones(2), wf.ones(2)]
    watch = watched(lambda: [wf.stack(parts)])
    assert watch.refusal is None
    holds = watch.guards.compile()
    assert holds()
    parts.append(wf.ones(2))
    assert not holds()


def test_a_function_with_a_cache_is_asked_again():
    made = []

    @functools.lru_cache
    def mask(n, kind=1):
        made.append(n)
        return [n]

    thing, leaf = Thing(n=3), Leaf()
    mask(3)
    check_guarded(lambda: [mask(thing.n)], mask.cache_clear)
    mask(3, kind=2)
    check_guarded(lambda: mask(3, kind=2) and mask(3, kind=2), mask.cache_clear)
    mask(leaf)
    assert "with a tensor" in watched(lambda: [mask(leaf)]).refusal.reason


def test_a_function_with_a_cache_that_misses_ends_the_recording():
    @functools.lru_cache(maxsize=1)
    def table(n):
        return [n]

    refusal = watched(lambda: [table(Thing())]).refusal
    assert "has not kept" in refusal.reason
    assert refusal.once
    table(1)
    check_guarded(lambda: [table(1)], lambda: table(2))  # which takes the only place
    assert "may call it" in watched(lambda: list(map(table, [2]))).refusal.reason


def test_long_functions_are_followed():
    reads = "".join(f"    a{i} = thing.x{i}\n" for i in range(400))
    names = {}
    exec(f"def f(thing):\n{reads}    return a399\n", names)
    thing = Thing(**{f"x{i}": i for i in range(400)})
    watch = watched(names["f"], thing)
    assert sum(guard.text.startswith("thing.x") for guard in watch.guards) == 400
    thing.x399 = 5
    assert watch.guards.failed() == ["thing.x399 was 399, is 5 (<string>:401)"]


def test_messages_show_containers(thing):
    failed = check_guarded(lambda: sum(thing.items) + 1, lambda: thing.items.append(3))
    assert failed[0].startswith("thing.items was [1, 2], is [1, 2, 3] (test_guards.py:")
    failed = check_guarded(lambda: len(thing.table) + 1, thing.table.clear)
    assert failed[0].startswith("the length of thing.table was 1, is 0 (test_guards.py:")


def test_no_guards_hold():
    assert Guards([]).compile()()
