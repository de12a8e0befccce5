"""Functions that keep their results: only a miss runs them."""

from __future__ import annotations

import functools

import weft as wf
from tests.jit.harness import Call, Case, program, rows


@program()
def mask_with_a_cache(jit):
    @functools.lru_cache
    def mask(n):
        return wf.tril(wf.ones((n, n)))

    @jit
    def step(x):
        return (x @ mask(x.shape[0])).sum()

    calls = [(rows(n, n, seed=s),) for s, n in enumerate((3, 3, 3, 2, 2, 3))]
    return Case(step, calls, {"mask": lambda: mask(3)})


@program()
def cached_tensor_is_forgotten(jit):
    w = rows(3)

    @functools.cache
    def scaled():
        return w * 2

    @jit
    def step(x):
        return x * scaled()

    calls = [Call(rows(3, seed=s)) for s in range(3)]
    calls += [Call(rows(3), before=lambda: w.mul_(3)), Call(rows(3), before=scaled.cache_clear)]
    return Case(step, [*calls, Call(rows(3))])


@program()
def cache_of_one_result(jit):
    calls = []

    @functools.lru_cache(maxsize=1)
    def table(n):
        calls.append(n)
        return float(n)

    @jit
    def step(x, n):
        return x * table(n)

    return Case(step, [(rows(3), n) for n in (2, 2, 2, 3, 2, 3, 3, 3, 2, 2)], {"calls": calls})


@program()
def method_with_a_cache(jit):
    calls = []

    class Table:
        @functools.lru_cache  # noqa: B019  (users do that)
        def at(self, n):
            calls.append(n)
            return n * 2.0

    table = Table()

    @jit
    def step(x):
        return x * table.at(2)

    return Case(step, [(rows(3),)] * 4, {"calls": calls})


@program(falls_back=True)  # whether each call of `map` is a hit is not seen
def cached_function_is_mapped(jit):
    calls = []

    @functools.lru_cache
    def table(n):
        calls.append(n)
        return float(n)

    @jit
    def step(x):
        return x * sum(map(table, [1, 2, 3]))  # falls back

    return Case(step, [(rows(3),)] * 4, {"calls": calls})


@program()
def property_with_a_cache(jit):
    calls, base = [], rows(3)

    class Table:
        @functools.cached_property
        def scale(self):
            calls.append(1)
            return base * 2

    table = Table()

    @jit
    def step(x):
        return x * table.scale

    forget = Call(rows(3), before=lambda: table.__dict__.pop("scale"))
    steps = [(rows(3, seed=s),) for s in range(4)]
    return Case(step, [*steps, forget, (rows(3),)], {"calls": calls, "table": table})
