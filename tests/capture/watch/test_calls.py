"""Calls of functions in C: those that only compute pass, all others are refused."""

import array
import contextvars
import datetime as dt
import functools
import itertools
import math
import operator
import random
import sys
import threading
import time
import warnings
import weakref

import numpy as np
import pytest

from tests.capture.watch.watching import Thing, watched
from weft.capture.watch import Watch


class Shared:
    shared = 1


np.random.default_rng()  # NumPy loads it late
counter = itertools.count()
generator = (x for x in range(9))
local = threading.local()
local.x = 1


@functools.cache
def cached(n):
    return n + 1


REFUSED = {
    "print": lambda: print("hi"),
    "open": lambda: open(__file__).close(),
    "random": lambda: [random.random()],
    "numpy random": lambda: [np.random.rand()],  # noqa: NPY002  (refused)
    "generator": lambda: np.random.default_rng(0),
    "time": lambda: [time.time()],
    "sleep": lambda: time.sleep(0),
    "next": lambda: next(counter),
    "method next": lambda: [counter.__next__()],
    "old generator": lambda: next(generator),
    "old generator in a loop": lambda: [x for x in generator],  # noqa: C416  (is what is tested)
    "old generator summed": lambda: sum(generator),
    "thread": lambda: threading.Thread(target=int).start(),
    "thread local": lambda: local.x,
    "warning": lambda: warnings.warn("hm", stacklevel=1),
    "weak reference": lambda: [reference()],
    "map of print": lambda: list(map(print, ["hi"])),
    "lock": lambda: lock.__enter__() and lock.release(),
    "import": lambda: __import__("this_is_not_there_yet", fromlist=[]),
    "class dictionary": lambda: Shared.__dict__["shared"],
    "array": lambda: kept_array.__setitem__(0, 1),
    "array in place": lambda: np.add(kept_array, 1, out=kept_array),
    "now": lambda: [dt.datetime.now()],
    "array module": lambda: numbers[0],
    "array module in a loop": lambda: [x for x in numbers],  # noqa: C416  (is what is tested)
    "memory": lambda: memory[0],
    "context variable": lambda: [variable.get()],
    "pairs of an old iterator": lambda: list(zip(*[begun()] * 2, strict=False)),
    "chain of an old iterator": lambda: list(itertools.chain.from_iterable([begun()])),
    "searched iterator": lambda: 3 in begun(),
    "delegated iterator": lambda: list((lambda: (yield from begun()))()),  # noqa: PLC3002  (one line a case)
    "attributes by a key": lambda: sorted([Thing(a=1)], key=operator.attrgetter("a")),
    "method by name": lambda: operator.methodcaller("method")(Thing()),
    "another recording": lambda: Watch(len).__enter__().__exit__(None, None, None),
    "trace": lambda: sys.settrace(None),
}
lock = threading.Lock()
numbers = array.array("d", [1, 2])
memory = memoryview(b"abc")
variable = contextvars.ContextVar("variable", default=1)
iterators = [iter([1, 2, 3, 4]) for _ in range(8)]
begun = iterators.pop


reference = weakref.ref(Thing)
kept_array = np.zeros(2)


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_cannot_be_repeated_is_refused_with_its_line(case, capsys):
    watch = Watch(REFUSED[case])
    try:
        with watch:
            REFUSED[case]()
    except ModuleNotFoundError:
        pass
    line = REFUSED[case].__code__.co_firstlineno
    assert watch.refusal is not None
    assert watch.refusal.where == f"test_calls.py:{line}"


HARMLESS = {
    "mathematics": lambda: math.sqrt(2) + abs(-1) + round(1.5) + divmod(7, 2)[0],
    "text": lambda: "ab".upper().join(["x"]).split("x")[0] + f"{1:>3}",
    "containers": lambda: sorted({3, 1}) + list(zip([1], [2], strict=True)) + list(enumerate("ab")),
    "functools": lambda: functools.reduce(operator.add, [1, 2]) + functools.partial(max, 1)(2),
    "itertools": lambda: list(itertools.chain([1], itertools.repeat(2, 2))),
    "classes": lambda: isinstance(Thing(), Thing) and issubclass(bool, int) and super,
    "numpy": lambda: np.add(np.zeros(2), 1).sum() + np.concatenate([np.ones(1)])[0],
    "new iterators": lambda: next(iter([1])) + sum(x for x in range(3)),
    "new generator": lambda: list(map(str, (x for x in "ab"))),
    "exec": lambda: exec("a = 1 + 1", {}),
    "imported": lambda: __import__("math").pi,
    "comprehension": lambda: {k: [v] for k, v in dict(a=1).items()},  # noqa: C408  (a call is wanted)
    "exception": lambda: [caught()],
    "with": lambda: [inside()],
    "cached property": lambda: WithCache().value,
    "array made here": lambda: np.zeros(3).__setitem__(0, 1),
}


def caught():
    try:
        raise ValueError("hm")
    except ValueError as error:
        return str(error)


class Manager:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def inside():
    with Manager(), np.errstate(all="ignore"):
        return 1


class WithCache:
    @functools.cached_property
    def value(self):
        return 3


@pytest.mark.parametrize("case", HARMLESS)
def test_what_only_computes_is_not_refused(case):
    watch = watched(HARMLESS[case])
    assert watch.refusal is None
    assert watch.guards.compile()()
