"""All ways in which Python defines and calls functions."""

from __future__ import annotations

import functools
import math

import weft as wf
from tests.jit.harness import Call, Case, program, rows

SCALE = 2.0
HELPERS = {"act": wf.tanh}


@program()
def closure_over_a_number(jit):
    def make(factor):
        @jit
        def step(x):
            return x * factor

        return step

    double, triple = make(2.0), make(3.0)
    return Case(lambda x: (double(x), triple(x)), [(rows(3, seed=s),) for s in range(3)])


@program()
def closure_that_changes(jit):
    rate = 0.5

    @jit
    def step(x):
        return x * rate

    def change(value):
        def change_it():
            nonlocal rate
            rate = value

        return change_it

    x = rows(3)
    calls = [Call(x), Call(x), Call(x, before=change(0.25)), Call(x), Call(x, before=change(0.5))]
    return Case(step, calls)


@program()
def global_that_changes(jit):
    @jit
    def step(x):
        return x * SCALE

    def change(value):
        def change_it():
            globals()["SCALE"] = value

        return change_it

    x = rows(3)
    calls = [Call(x, before=change(2.0)), Call(x), Call(x, before=change(5.0)), Call(x)]
    return Case(step, [*calls, Call(x, before=change(2.0))])


@program()
def global_dictionary_that_changes(jit):
    @jit
    def step(x):
        return HELPERS["act"](x)

    def change(function):
        return lambda: HELPERS.update(act=function)

    x = rows(3)
    calls = [Call(x, before=change(wf.tanh)), Call(x), Call(x, before=change(wf.exp)), Call(x)]
    return Case(step, [*calls, Call(x, before=change(wf.tanh))])


@program()
def global_written_inside(jit):
    def reset():
        globals()["SCALE"] = 1.0

    @jit
    def step(x):
        global SCALE  # noqa: PLW0603  (what the program is about)
        SCALE = SCALE * 2
        return x * SCALE

    x = rows(3)
    calls = [Call(x, before=reset), Call(x), Call(x), Call(x)]
    return Case(step, calls, {"scale": lambda: SCALE})


@program()
def nonlocal_counter(jit):
    count = 0

    @jit
    def step(x):
        nonlocal count
        count += 1
        return x / count

    return Case(step, [(rows(3, seed=s),) for s in range(5)], {"count": lambda: count})


@program()
def lambdas(jit):
    act = lambda x: x.relu() + 1  # noqa: E731  (what the program is about)
    step = jit(lambda x, k=3: act(x * k))
    return Case(step, [(rows(3),), (rows(3, seed=1),), (rows(3), 4), (rows(3), 4)])


@program()
def default_arguments(jit):
    @jit
    def step(x, scale=2.0, *, shift=1.0, act=wf.tanh):
        return act(x * scale + shift)

    x = rows(3)
    calls = [Call(x), Call(x), Call(x, 3.0), Call(x, shift=0.0), Call(x, act=wf.exp), Call(x)]
    return Case(step, calls)


@program(captured=False)
def mutable_default_argument(jit):
    def step(x, seen=[]):  # noqa: B006  (what the program is about)
        seen.append(len(seen))
        return x * len(seen)

    return Case(jit(step), [(rows(3),)] * 4, {"seen": step.__defaults__[0]})


@program()
def variable_arguments(jit):
    @jit
    def step(*xs, **named):
        total = sum(xs[1:], xs[0])
        for name in sorted(named):
            total = total + named[name] * len(name)
        return total

    a, b, c = rows(3), rows(3, seed=1), rows(3, seed=2)
    calls = [Call(a), Call(a, b), Call(a, b, c), Call(a, long=b), Call(a, b, c), Call(b, a, x=c)]
    return Case(step, calls)


@program()
def keyword_order(jit):
    @jit
    def step(**parts):
        return [parts[name] * i for i, name in enumerate(parts)]

    a, b = rows(2), rows(2, seed=1)
    return Case(step, [Call(a=a, b=b), Call(b=b, a=a), Call(a=a, b=b), Call(b=b, a=a)])


@program()
def partial_application(jit):
    net = wf.nn.Linear(3, 3)

    def forward(scale, x, shift=0.0):
        return net(x) * scale + shift

    step = jit(functools.partial(forward, 2.0, shift=1.0))
    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)], {"net": net})


@program()
def decorated_function(jit):
    def logged(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            """Call a function twice."""
            return function(*args, **kwargs) + function(*args, **kwargs)

        return wrapper

    @jit
    @logged
    def step(x):
        return x.exp()

    return Case(step, [(rows(3, seed=s),) for s in range(3)])


@program(captured=False)
def cached_helper(jit):
    calls = []

    @functools.lru_cache
    def table(n):
        calls.append(n)
        return math.sqrt(n)

    @jit
    def step(x, n):
        return x * table(n)

    return Case(step, [(rows(3), n) for n in (2, 2, 3, 3, 2)], {"calls": calls})


@program()
def recursion(jit):
    @jit
    def power(x, n):
        def rise(y, left):
            return y if left == 0 else rise(y * x, left - 1)

        return rise(wf.ones_like(x), n)

    return Case(power, [(rows(3), n) for n in (3, 3, 0, 5, 3)])


@program()
def recursion_on_values(jit):
    @jit
    def halve(x):
        return x if x.abs().max() < 1 else halve(x / 2)

    return Case(halve, [(rows(3) * s,) for s in (4, 4, 100, 0.1, 4)])


@program()
def generator_function(jit):
    net = wf.nn.Linear(3, 3)

    def layers(x):
        for _ in range(3):
            x = net(x).tanh()
            yield x

    @jit
    def step(x):
        return wf.stack(list(layers(x))).sum(axis=0)

    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)], {"net": net})


@program()
def generator_expression(jit):
    @jit
    def step(xs, limit):
        return sum(x * i for i, x in enumerate(xs) if i < limit)

    xs = [rows(2, seed=s) for s in range(4)]
    return Case(step, [(xs, 3), (xs, 3), (xs, 2), (xs[::-1], 3)])


@program(captured=False)
def function_that_yields(jit):
    # Calling it runs nothing: the caller decides when.
    @jit
    def parts(x):
        for row in x:
            yield row * 2

    return Case(lambda x: list(parts(x)), [(rows(3, 2, seed=s),) for s in range(3)])


@program()
def source_that_is_not_there(jit):
    names = {"wf": wf, "net": wf.nn.Linear(3, 1), "rate": 0.1}
    text = """
def step(x):
    loss = (net(x) ** 2).mean()
    if loss > 1:
        return loss * rate
    return loss
"""
    exec(text, names)
    calls = [(rows(4, 3) * s,) for s in (0.1, 9, 0.1, 9)]
    return Case(jit(names["step"]), calls, {"net": names["net"]})


@program()
def helper_that_is_replaced(jit):
    class Helpers:
        act = staticmethod(wf.relu)

    @jit
    def step(x):
        return Helpers.act(x)

    def replace():
        Helpers.act = staticmethod(wf.exp)

    return Case(step, [Call(rows(3)), Call(rows(3)), Call(rows(3), before=replace), Call(rows(3))])


@program()
def function_attribute(jit):
    @jit
    def step(x):
        return x * step_options.scale

    def step_options():
        """Hold options, as a function can."""

    step_options.scale = 2.0

    def change():
        step_options.scale = 3.0

    return Case(step, [Call(rows(3)), Call(rows(3)), Call(rows(3), before=change), Call(rows(3))])
