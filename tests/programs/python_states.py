"""Random programs whose state lives in many places: more of what a function may read and change.

Besides what `python_text` writes they keep counters in classes, closures and default arguments,
tuples, lists and windows of tensors, sets, objects with slots, functions with caches; they compare
tensors by identity, and are called with tensors that they also hold themselves.
"""

from __future__ import annotations

import random
from typing import Any

from .python_expressions import SIZE
from .python_text import CALLS, Writer

_STATE = f"""\
import collections
import functools


class Counter:
    total = 0
    limit = 3


class Slotted:
    __slots__ = ("h", "n")

    def __init__(self):
        self.n, self.h = 0, wf.zeros(({SIZE},))


def counted():
    n = 0

    def count(by=1, seen=[]):
        nonlocal n
        n += by
        seen.append(n)
        return len(seen) % 5

    return count


@functools.lru_cache(maxsize=2)
def kept(n):
    LOG.append(("kept", n))
    return wf.ones(({SIZE},)) * (n + 1)


slotted = Slotted()
count = counted()
PAIR = {{"hc": (wf.zeros(({SIZE},)), wf.ones(({SIZE},)))}}
WINDOW = collections.deque([wf.zeros(({SIZE},))] * 2, maxlen=2)
ITEMS = [1.0, 2, wf.zeros(({SIZE},))]
SEEN = set()
"""
_OUTSIDE = (
    "Counter.total = 5",
    "Counter.limit = 1",
    "slotted.n = 0.5",
    "slotted.h = MEMORY",
    'TABLE["h"] = MEMORY',
    'PAIR["hc"] = (MEMORY, MEMORY)',
    'PAIR["hc"] = PAIR["hc"][::-1]',
    f"WINDOW.append(wf.ones(({SIZE},)).requires_grad_())",
    "WINDOW.reverse()",
    "ITEMS[0] = 3",
    "ITEMS.append(1)",
    "SEEN.clear()",
    "kept.cache_clear()",
    "count(3)",
    "wf.set_grad_enabled(False)",
    "wf.set_grad_enabled(True)",
)


def write_state_program(seed: int) -> str:
    """Return the text of a program."""
    return _StateWriter(random.Random(f"states of {seed}")).program()


def draw_state_calls(seed: int) -> list[tuple[Any, Any]]:
    """Return for each call what it gets: a seed or the name of a tensor, and a number."""
    rng = random.Random(f"calls of states of {seed}")
    numbers = rng.choice(([1, 2], [0.5, 1.5], [0, 1, 2, 3], [2], [3, 2, 5]))
    held = ["MEMORY", 'TABLE["h"]', 'PAIR["hc"][0]'] if rng.random() < 0.4 else []
    return [(rng.choice([0, 1, 2, 3, *held]), rng.choice(numbers)) for _ in range(CALLS)]


class _StateWriter(Writer):
    outside = (*Writer.outside, *_OUTSIDE)

    def head(self) -> list[str]:
        return [*super().head(), *_STATE.splitlines()]

    def effect(self) -> None:
        """Change something that outlives the call, or depend on it."""
        if "n" not in self.names.numbers or self.rng.random() < 0.3:
            super().effect()
            return
        self.write(
            self.rng.choice(
                (
                    "Counter.total += 1",
                    "slotted.n += 1",
                    f"slotted.h = (slotted.h + {self.vector()}.detach()).tanh()",
                    "STEPS += count()",
                    'PAIR["hc"] = PAIR["hc"][1], (PAIR["hc"][0] * 0.5 + x).detach()',
                    f'PAIR["hc"] = PAIR["hc"][0], {self.vector()}.detach()',
                    'PAIR["old"] = PAIR["hc"]',
                    f"WINDOW.append({self.vector()}.detach())",
                    "ITEMS[0] += 0.5",
                    "ITEMS[1] = len(ITEMS) + ITEMS[1] % 3",
                    f"ITEMS[2] = {self.vector()}.detach() + ITEMS[2] * 0.5",
                    "ITEMS[2].mul_(0.5)",
                    "SEEN.add(STEPS % 4)",
                    'LOG.append(x is MEMORY or x is TABLE["h"])',
                    'LOG.append(PAIR["hc"][0] is PAIR["hc"][1])',
                    "LOG.append(kept(int(abs(n)) % 4).sum().item())",
                    "LOG.append(kept(1).sum().item())",
                    "if len(LOG) > 6: del LOG[:3]",
                    "LOG.insert(0, len(LOG))",
                    "LOG.append(sum(v for v in ITEMS[:2]))",
                    "STEPS = STEPS // (Counter.limit - 1 + STEPS % 2)",
                    f'{{"a": x}}.get("a").add_({self.factor()})',
                )
            )
        )

    def new_number(self) -> None:
        name = self.name("k")
        numbers = ("Counter.total % 4", "slotted.n % 3", "ITEMS[0] / 2", "len(SEEN)", "len(WINDOW)")
        made = self.rng.choice(numbers) if self.rng.random() < 0.5 else self.number()
        self.write(f"{name} = {made}")
        self.names.numbers.append(name)

    def new_vector(self) -> None:
        name = self.name("v")
        held = ("slotted.h", "PAIR['hc'][1]", "WINDOW[0]", "sum(WINDOW)", "ITEMS[2]")
        made = f"{self.rng.choice(held)} + {self.vector()}" if self.rng.random() < 0.4 else ""
        self.write(f"{name} = {made or self.vector()}")
        self.names.vectors.append(name)
