"""What a call changed is repeated, and can be taken back."""

import collections
import dataclasses
import datetime as dt
import types
from collections import OrderedDict, defaultdict, deque

import pytest

from tests.capture.watch.watching import (
    Leaf,
    Thing,
    check_repeated,
    check_unguarded,
    watched,
)

SCALE = 2.0


WRITES = {
    "attribute": lambda t: setattr(t, "alpha", 3),
    "new attribute": lambda t: setattr(t, "extra", [1]),
    "deleted": lambda t: delattr(t, "alpha"),
    "dictionary": lambda t: t.__dict__.update(alpha=5),
    "raw": lambda t: object.__setattr__(t, "alpha", 9),
    "item": lambda t: t.table.__setitem__("k", 4),
    "popped": lambda t: t.table.pop("k"),
    "default": lambda t: t.table.setdefault("m", []).append(1),
    "updated": lambda t: t.table.update(a=1, k=2),
    "cleared": lambda t: t.table.clear(),
    "appended": lambda t: t.items.append(3),
    "extended": lambda t: t.items.extend((3, 4)),
    "inserted": lambda t: t.items.insert(0, 3),
    "sorted": lambda t: t.items.sort(reverse=True),
    "element": lambda t: t.items.__setitem__(0, 3),
    "added": lambda t: t.tags.add(7),
    "discarded": lambda t: t.tags.discard(1),
    "nested": lambda t: setattr(t.other, "z", 4),
}


@pytest.mark.parametrize("case", WRITES)
def test_what_is_written_is_repeated_and_taken_back(case, thing):
    def pictured():
        return {**vars(thing), "other": dict(vars(thing.other))}

    check_repeated(WRITES[case], pictured, thing)


def test_containers_of_the_collections_module_are_written():
    counts, order, queue = defaultdict(int), OrderedDict(a=1, b=2), deque([1, 2], maxlen=2)

    def f():
        counts["n"] += 1
        order.move_to_end("a")
        queue.append(3)

    check_repeated(f, lambda: (counts, order, queue))


def test_globals_and_enclosing_variables_are_written():
    count = 0

    def f():
        global SCALE  # noqa: PLW0603  (is what is tested)
        nonlocal count
        count += 1
        SCALE = SCALE + 1

    check_repeated(f, lambda: (SCALE, count))


def test_what_is_only_added_to_needs_no_guard(thing):
    def f():
        thing.items.append(Leaf())
        thing.tags.add(5)

    watch = watched(f)
    thing.items.append("more")
    assert watch.guards.compile()()
    watch.effects.apply(lambda leaf: "leaf")
    assert thing.items[-1] == "leaf"


def test_what_is_written_before_it_is_read_needs_no_guard(thing):
    def f():
        thing.alpha = 3
        return thing.alpha

    check_unguarded(f, lambda: setattr(thing, "alpha", 9))


def test_recorded_values_are_resolved_in_new_containers(thing):
    def f(x):
        thing.last = [x, {"x": x}]
        thing.again = thing.last

    watch = watched(f, Leaf())
    watch.effects.apply(lambda leaf: 1)
    first = thing.last
    watch.effects.apply(lambda leaf: 2)
    assert (first, thing.last) == ([1, {"x": 1}], [2, {"x": 2}])
    assert thing.again is thing.last


def test_new_objects_are_made_again(thing):
    @dataclasses.dataclass
    class State:
        h: object
        steps: list = dataclasses.field(default_factory=list)

    def f(x):
        thing.state = State(x)
        thing.state.steps.append(thing.state)

    watch = watched(f, Leaf())
    assert watch.refusal is None
    watch.effects.apply(lambda leaf: 1)
    assert thing.state.h == 1
    assert thing.state.steps[0] is thing.state


def test_what_cannot_be_made_again_is_refused(thing):
    watch = watched(lambda: setattr(thing, "f", lambda: 1))
    assert watch.refusal.reason == "puts a function that it made into Thing.f"


def test_writing_into_an_argument_is_refused():
    def f(batch):
        batch["y"] = 1

    assert watched(f, {"x": 1}).refusal.reason == "writes into an argument"


def test_reading_arguments_needs_no_guard():
    batch = {"x": 1, "parts": [1, 2]}
    watch = watched(lambda batch: batch["x"] + sum(batch["parts"]), batch)
    batch["x"] = 5
    batch["parts"].append(1)
    assert watch.guards.compile()()


def test_default_arguments_that_are_changed_are_seen():
    def f(cache={}):  # noqa: B006  (is what is tested)
        cache["n"] = cache.get("n", 0) + 1
        return cache["n"]

    watch = check_repeated(f, lambda: f.__defaults__)
    assert not watch.guards.compile()()


def test_what_super_writes_is_repeated():
    class Loud:
        def __setattr__(self, name, value):
            super().__setattr__(name, value)

    class Doubling(list):
        def append(self, value):
            super().append(value * 2)

    loud, doubling = Loud(), Doubling([1])
    check_repeated(lambda: setattr(loud, "x", 5), lambda: vars(loud))
    check_repeated(lambda: doubling.append(3), lambda: doubling)


def test_containers_of_derived_classes_are_written():
    counts = collections.Counter("a")
    check_repeated(lambda: counts.update("xx"), lambda: counts)
    namespace = types.SimpleNamespace(a=1)
    check_repeated(lambda: setattr(namespace, "b", 3), lambda: namespace)


def test_what_a_metaclass_counts_is_repeated():
    class Counting(type):
        def __call__(cls, *args):
            cls.made += 1
            return super().__call__(*args)

    class Counted(metaclass=Counting):
        made = 0

    check_repeated(lambda: Counted() and None, lambda: Counted.made)


def test_attributes_of_functions_are_repeated():
    def f():
        f.calls += 1

    f.calls = 0
    check_repeated(f, lambda: f.calls)


def test_variables_of_text_that_is_run_are_repeated():
    names = {"a": 1}
    check_repeated(lambda: exec("b = a + 1", {"a": 3}, names), lambda: names)
    module = {}
    exec("x = 1\ndef f():\n    global x\n    del x\n", module)
    check_repeated(module["f"], lambda: "x" in module)


def test_immutable_values_are_replaced():
    thing = Thing(time=dt.timedelta(1), parts=(1,))

    def f():
        thing.time += dt.timedelta(1)
        thing.parts += (2,)

    check_repeated(f, lambda: vars(thing))


def test_named_tuples_are_made_again():
    pair = collections.namedtuple("pair", "a b")
    thing = Thing(pair=pair(1, [2]))
    check_repeated(lambda: setattr(thing, "pair", thing.pair._replace(a=5)), lambda: thing.pair)


def test_a_change_behind_a_long_way_is_made_once():
    lines = "".join(f"    a{i} = {i + 1000}.5\n" for i in range(300))
    names = {}
    exec(f"def f(thing):\n{lines}    thing.items.append(a299)\n", names)
    thing = Thing(items=[])
    check_repeated(names["f"], lambda: vars(thing), thing)


def test_what_code_that_is_not_followed_changes_is_repeated(thing):
    names = {}
    text = "def change(items, table, thing):\n    items.append(3)\n    table['n'] = 1\n"
    exec(compile(text + "    thing.alpha = 9\n", "<weft.tests>", "exec"), names)
    change = names["change"]

    def f():
        thing.items[0] = 7
        change(thing.items, thing.table, thing)

    check_repeated(f, lambda: vars(thing))
