"""Python numbers that change from call to call behave as Python's, at their limits too."""

from __future__ import annotations

from tests.jit.harness import Case, program, rows


@program()
def numbers_of_all_sizes(jit):
    @jit
    def step(x, n):
        return x * n, n * 2, n + 1, n - 1, n / 2, -n

    numbers = (1, 2, 3, 2**40, 2**62, 2**63, 2**70, -(2**63), 4, 1.0, 1e308, float("inf"), -0.0)
    return Case(step, [(rows(3), n) for n in numbers])


@program(captured=False)
def counter_that_doubles(jit):
    state = {"n": 2**29}

    @jit
    def step(x):
        state["n"] *= 2
        return x, state["n"], state["n"] ** 2, state["n"] << 3

    return Case(step, [(rows(3),)] * 6, {"state": state})


@program()
def divisor_becomes_zero(jit):
    state = {"n": 5}

    @jit
    def step(x):
        state["n"] -= 1
        return x, 10 / state["n"], 10 // state["n"], 10 % state["n"]

    return Case(step, [(rows(3),)] * 7, {"state": state})


@program()
def power_becomes_complex(jit):
    @jit
    def step(x, a):
        return x * 2, a**0.5, a**2

    return Case(step, [(rows(3), a) for a in (1.0, 2.0, 3.0, -4.0, 1e200, 5.0)])


@program()
def integers_of_both_signs(jit):
    state = {"n": -4}

    @jit
    def step(x):
        state["n"] += 1
        n = state["n"]
        return x, n // 3, n % 3, -n // 2, n & 5, n | 1, n ^ 3, n << 2, n >> 1, abs(n), n**2

    return Case(step, [(rows(3),)] * 8, {"state": state})


@program()
def items_are_whole_numbers(jit):
    @jit
    def step(x):
        k = x.argmax().item()
        return k + 1, k * k, k - 5, 7 - k, k // 2, k / 2

    return Case(step, [(rows(5, seed=s),) for s in range(5)])
