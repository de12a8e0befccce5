"""Functions from a seed that read and write Python objects in many ways, and their world.

`source(seed)` is a module: classes, variables and a function `f(x)`. Two modules made from one
source are two copies of one world. `disturb(module, choice)` changes a world from outside.
"""

import random
import types
from collections import OrderedDict, defaultdict, deque
from typing import Any

import numpy as np

WORLD = """
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from functools import lru_cache
import copy as copy_module
import math
import operator

SCALE = 3
NAMES = ["a", "b"]
TABLE = {"a": 1, "b": 2}
LIMITS = (1, 2.5, "x")
SEEN = set()
FLAG = False
NOTHING = None

class Inner:
    shared = 4
    def __init__(self, z):
        self.z = z
        self.parts = [z]
    def bump(self, by=1):
        self.z += by
        return self.z
    def __eq__(self, other):
        return isinstance(other, Inner) and self.z == other.z
    def __hash__(self):
        return 7

class Slotted:
    __slots__ = ("left", "right")
    def __init__(self):
        self.left = 1

@dataclass
class Point:
    x: object
    tags: list = field(default_factory=list)

class Config(dict):
    pass

class Row(list):
    def append(self, value):
        super().append(value)

class Loud:
    x = 0
    def __setattr__(self, name, value):
        super().__setattr__(name, value)

Pair = namedtuple("Pair", "left right")

@lru_cache
def kept_sum(n):
    return n + 1

class World:
    level = 2
    def __init__(self):
        self.a, self.b, self.on = 1, 0.5, True
        self.items = [1, 2, 3]
        self.table = {"k": 1}
        self.by_number = {1: "one"}
        self.groups = defaultdict(list)
        self.ordered = OrderedDict(p=1, q=2)
        self.tags = {1, 2}
        self.queue = deque([1, 2], maxlen=3)
        self.inner = Inner(5)
        self.inners = [Inner(1), Inner(2)]
        self.slotted = Slotted()
        self.last = None
        self.config = Config(k=1)
        self.row = Row([1])
        self.loud = Loud()
        self.pair = Pair(1, 2)
        self.raw = bytearray(b"ab")
    @property
    def double(self):
        return self.a * 2
    @double.setter
    def double(self, value):
        self.a = value
    def __getattr__(self, name):
        if name.startswith("auto_"):
            return len(name)
        raise AttributeError(name)
    def method(self, x):
        return self.a + x
    def grow(self, cache=[]):
        cache.append(self.a)
        return len(cache)
    @classmethod
    def of_class(cls):
        return cls.level
    def each(self):
        for item in self.items:
            yield item

def make():
    count = 0
    kept = []
    def next_count():
        nonlocal count
        count += 1
        return count
    def keep(v):
        kept.append(v)
    def total():
        return sum(map(number, kept)) + count
    return next_count, keep, total

def number(v):
    return v if type(v) in (int, float) else 1

next_count, keep, total = make()
w = World()
"""

STATEMENTS = """
t = w.a
t = w.b * 2
t = number(w.last)
t = SCALE + 1
t = w.level
t = w.inner.shared
t = len(w.items)
t = len(w.table)
t = sum(w.items)
t = w.items[0] if w.items else 0
t = w.items[-1] if w.items else 0
t = w.table.get("k", 7)
t = w.table["k"] if "k" in w.table else 9
t = TABLE["a"]
t = w.inner.z
t = w.double
t = w.auto_thing
t = w.method(t)
t = w.grow()
t = w.of_class()
t = max(w.items, default=0)
t = total()
t = next_count()
t = w.inner.bump()
t = w.inner.bump(by=t)
t = number(getattr(w, "b"))
t = 1 if w.on else 2
t = 1 if w.tags else 2
t = 1 if 2 in w.tags else 3
t = len(LIMITS)
t = math.floor(w.b)
t = operator.add(w.a, 1)
t = sum(x for x in w.items)
t = sum(list(w.each()))
t = sum(v for v in w.table.values() if type(v) is int)
t = len(sorted(w.items))
t = len(f"{w.items}")
t = len(str(w.table))
t = vars(w)["a"]
t = w.__dict__["a"]
t = 1 if w.inner == w.inners[0] else 0
t = 1 if w.items == [1, 2, 3] else 0
t = hasattr(w, "extra")
t = number(w.ordered.get("p"))
t = w.slotted.left
t = number(w.by_number.get(1))
t = len(w.raw)
t = w.raw[0]
t = globals()["SCALE"]
t = [v for v in w.queue][0] if w.queue else 0
first, *rest = [*w.items, 0]
t = len(rest)
w.a = 3
w.a = t
w.a += 1
w.b = w.b + 0.5
w.on = not w.on
w.last = t
w.last = [t, [t]]
w.last = (t, {"t": t})
w.last = Point(t)
w.last = w.inner
w.last = {1, 2}
w.last = x
w.last = [x, {"x": x}]
w.last = Inner(x)
w.extra = t
w.double = 4
w.items.append(t)
w.items.append(x)
w.items.extend([t, 1])
w.items += [t]
w.items[0:1] = [t]
w.items.sort(key=number)
w.items.reverse()
w.items.clear()
w.items = list(w.items)
w.items = []
w.items[0] = t
w.items[-1] = x
w.items.pop()
w.items.insert(0, t)
w.table["k"] = t
w.table["n"] = t
w.table["x"] = x
w.table[t] = 1
w.table.pop("n", None)
w.table.setdefault("s", t)
w.table.setdefault("l", []).append(1)
w.table.update(u=t)
w.table.update({"k": 2, "v": t})
w.table.clear()
w.table = dict(w.table)
w.table = {**w.table, "m": 1}
w.groups[t % 3 if type(t) is int else 0].append(t)
w.ordered["q"] = t
w.ordered.move_to_end("p")
t = len(list(w.ordered))
t = copy_module.copy(w.inner).z
w.last = copy_module.deepcopy(w.inner)
t = kept_sum(w.a if type(w.a) is int else 0)
w.config["k"] = t
t = len(dict(**w.config))
t = w.config.get("k", 0)
w.row.append(t)
t = number(w.row[0])
w.loud.x = t
t = number(operator.attrgetter("inner.z")(w))
w.last = w.pair._replace(left=t)
del w.on; w.on = True
w.tags.add(t if type(t) is int else 0)
w.tags.discard(1)
w.tags |= {5}
w.tags = set(w.tags)
w.queue.append(t)
w.queue.appendleft(t)
w.queue.popleft()
w.inner.z = t
w.inner.parts.append(t)
w.inner.parts = w.items
w.inner = Inner(t)
w.inner = w.inners[0]
w.inners.append(Inner(3))
w.inners[0].z += 1
w.slotted.left = t
w.slotted.right = t
w.raw.append(7)
w.raw[0] = 9
Inner.shared = 5
Inner.shared += 1
w.level = 3
World.level = 6
SCALE = 4
SCALE += 1
TABLE["a"] = t
TABLE["a"] += 1
NAMES.append("c")
SEEN.add(2)
FLAG = not FLAG
NOTHING = [t]
setattr(w, "b", 2)
w.__dict__["b"] = 3
vars(w)["fresh"] = t
object.__setattr__(w, "a", 8)
keep(t)
keep(x)
local = [t]; local.append(2); t = len(local)
local = {}; local["a"] = t; local["a"] += 1; t = local["a"]
local = dict(a=1); local["a"] += 1; t = number(local["a"])
local = w.items; local.append(t)
local = w.table; local["via"] = t
local = Inner(1); local.bump(); t = local.z
local = w.inner; local.bump()
local = {}; w.table["deep"] = local; local["late"] = t
local = []; w.last = local; local.append(local and 1 or t)
a, b = w.a, w.b; t = a + b
copy = list(w.items); copy.append(1); t = len(copy)
copy = dict(w.table); copy["z"] = 1; t = len(copy)
alias = w.__dict__; alias["a"] = 2; t = w.a
y = x + t; w.b = 0.25
""".strip().splitlines()

FALLIBLE = """
del w.extra
del w.table["k"]
del w.items[0]
del TABLE["b"]
del w.slotted.right
""".strip().splitlines()

NESTED = """
for i in range(2):
for item in list(w.items)[:2]:
for key in list(w.table)[:2]:
if w.a > 2:
if w.on:
if FLAG:
if "n" in w.table:
if w.last is None:
if len(w.items) < 4:
while len(w.items) < 3:
with_value = [1 for _ in w.queue]
""".strip().splitlines()

RESULTS = """
t
w.last
w.items
[t, w.a]
(x, t)
w.inner
{"t": [t], "x": x}
w.table.get("deep")
x + t
""".strip().splitlines()


def source(seed: int) -> str:
    """Return the text of a module with a function `f` drawn from a seed."""
    rng = random.Random(seed)
    lines = ["    global SCALE, FLAG, NOTHING", "    t = 0"]
    for _ in range(rng.randint(1, 6)):
        lines += _statement(rng, "    ")
    lines.append(f"    return {rng.choice(RESULTS)}")
    return WORLD + "\ndef f(x):\n" + "\n".join(lines) + "\n"


def _statement(rng: random.Random, indent: str) -> list[str]:
    kind = rng.random()
    if kind < 0.15:
        head = rng.choice(NESTED)
        if not head.endswith(":"):
            return [indent + head]
        body = _statement(rng, indent + "    ")
        grows = ["        w.items.append(1)".replace("        ", indent + "    ", 1)]
        return [indent + head, *body, *(grows if head.startswith("while") else [])]
    if kind < 0.22:
        return [
            f"{indent}try:",
            f"{indent}    {rng.choice(FALLIBLE)}",
            f"{indent}except Exception:",
            f"{indent}    t = 1",
        ]
    return [indent + rng.choice(STATEMENTS)]


def world(text: str) -> types.ModuleType:
    """Return a new module made from a source."""
    module = types.ModuleType("a_world")
    exec(compile(text, "a_world.py", "exec"), module.__dict__)
    return module


DISTURBANCES = """
w.a = 7
w.a += 1
w.b = -0.0
w.b = 0.0
w.on = 1
w.on = True
w.items.append(9)
w.items = [1, 2, 3]
w.items[:] = [True, 2]
w.table["k"] = 1.0
w.table["k"] = 1
w.table.pop("n", None)
w.table = {}
w.inner.z = 5
w.inner = Inner(5)
w.tags.add(3)
w.tags.clear()
w.last = None
w.__dict__.pop("extra", None)
w.level = 2
w.__dict__.pop("level", None)
w.queue.append(4)
Inner.shared = 4
TABLE["a"] = 1
globals().__setitem__("SCALE", 3)
globals().__setitem__("number", lambda v: 0)
globals().__setitem__("sum", lambda v: 42)
World.method = lambda self, x: 11
w.method = lambda x: 12
w.ordered["q"] = 2
w.ordered.move_to_end("q")
w.config.update(m=1)
w.row.insert(0, 7)
w.loud.x = 1
kept_sum.cache_clear()
w.pair = Pair(1, 2)
w.grow.__func__.__defaults__[0].clear()
keep(1)
w.inners.pop() if w.inners else None
""".strip().splitlines()


def disturb(module: types.ModuleType, choice: int) -> None:
    """Change a world from outside."""
    exec(DISTURBANCES[choice % len(DISTURBANCES)], module.__dict__)


# -- comparing worlds ------------------------------------------------------------------------------


def picture(*values: Any) -> Any:
    """Return values as nested tuples: equal ones look the same, and share the same parts."""
    return _picture(list(values), {})


def _picture(value: Any, known: dict[int, int]) -> Any:
    if isinstance(value, (int, float, str, bytes, type(None), complex)):
        return type(value).__name__, repr(value)
    if isinstance(value, (type, types.FunctionType, types.ModuleType, np.generic)):
        return getattr(value, "__name__", repr(value))
    if id(value) in known:
        return "again", known[id(value)]
    known[id(value)] = len(known)
    kind = type(value).__name__
    if isinstance(value, (dict, OrderedDict, defaultdict)):
        pairs = [(_picture(k, known), _picture(v, known)) for k, v in value.items()]
        return kind, tuple(pairs)
    if isinstance(value, (list, tuple, deque, bytearray)):
        return kind, tuple(_picture(v, known) for v in value)
    if isinstance(value, (set, frozenset)):
        return kind, tuple(sorted(map(repr, value)))
    names = [*getattr(value, "__dict__", {}), *getattr(type(value), "__slots__", ())]
    held = sorted(name for name in set(names) if hasattr(value, name))
    return kind, tuple((name, _picture(getattr(value, name), known)) for name in held)


def state(module: types.ModuleType) -> list[Any]:
    """Return everything of a world that a function may change."""
    names = ("SCALE", "NAMES", "TABLE", "SEEN", "FLAG", "NOTHING", "w")
    closures = [cell.cell_contents for cell in module.total.__closure__]
    classes = [module.Inner.shared, module.World.level]
    grown = module.World.grow.__defaults__
    return [*(getattr(module, name, "missing") for name in names), closures, classes, grown]
