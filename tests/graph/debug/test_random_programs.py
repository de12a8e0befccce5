"""Random programs with effects in random places: every mode shows what eager code does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pytest

import weft as wf
from tests.graph.watching import MODES, shown_by

Step = Callable[[Any], Any]
MODES_TRIED = ("interpreted", "compiled", "ahead", "jit again")


class Writer:
    """Makes random functions of a vector; numbers in them are small and exact."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.RandomState(seed)
        self.names = (f"v{i}" for i in count())

    def program(self, depth: int) -> Step:
        steps = [self.step(depth) for _ in range(self.rng.randint(2, 5))]

        def run(x: Any) -> Any:
            for step in steps:
                x = step(x)
            return x

        return run

    def step(self, depth: int) -> Step:
        kinds = [self.arithmetic, self.shown, self.shown, self.checked, self.called]
        if depth:
            kinds += [self.branch, self.loop, self.scan, self.gradient, self.batch]
        return kinds[self.rng.randint(len(kinds))](depth)

    def arithmetic(self, depth: int) -> Step:
        a, b = (float(v) for v in self.rng.randint(-2, 3, 2))
        return lambda x: wf.clip(x * a + b, -8.0, 8.0)

    def shown(self, depth: int) -> Step:
        name, grad = next(self.names), bool(self.rng.randint(2))
        return lambda x: wf.debug.print(x, name, grad=grad)

    def checked(self, depth: int) -> Step:
        def check(x: Any) -> Any:
            wf.debug.check(x < 1000, "never")
            return x

        return check

    def called(self, depth: int) -> Step:
        name = next(self.names)

        def call(x: Any) -> Any:
            wf.debug.callback(lambda v: print(name, wf.debug.trips(), v.tolist()), x + 1)
            return x

        return call

    def branch(self, depth: int) -> Step:
        yes, no = self.program(depth - 1), self.program(depth - 1)
        return lambda x: wf.cond(x.sum() > 0, yes, no, x)

    def loop(self, depth: int) -> Step:
        body, trips = self.program(depth - 1), int(self.rng.randint(0, 4))

        def run(x: Any) -> Any:
            def step(state: Any) -> Any:
                return state[0] + 1, body(state[1])

            return wf.while_loop(lambda state: state[0] < trips, step, (wf.tensor(0), x))[1]

        return run

    def scan(self, depth: int) -> Step:
        body, reverse = self.program(depth - 1), bool(self.rng.randint(2))

        def run(x: Any) -> Any:
            def step(carry: Any, row: Any) -> Any:
                carry = wf.clip(body(carry) + row, -8.0, 8.0)
                return carry, carry.sum()

            last, sums = wf.scan(step, x, x, reverse=reverse)
            return wf.clip(last + sums, -8.0, 8.0)

        return run

    def gradient(self, depth: int) -> Step:
        body = self.program(depth - 1)
        return lambda x: wf.clip(wf.grad(lambda v: (body(v) * v).sum())(x), -8.0, 8.0)

    def batch(self, depth: int) -> Step:
        body = self.program(0)
        return lambda x: wf.vmap(body)(wf.stack([x, x + 1.0]))[0]


def compare(seed: int) -> None:
    program, x = Writer(seed).program(2), wf.tensor([1.0, -2.0, 2.0])
    expected = shown_by(partial(program, x))
    for mode in MODES_TRIED:
        assert shown_by(partial(MODES[mode], program, (x,))) == expected, mode


@pytest.mark.parametrize("seed", range(6))
def test_every_mode_shows_the_same(seed: int) -> None:
    compare(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 400))
def test_every_mode_shows_the_same_in_many_programs(seed: int) -> None:
    compare(seed)
