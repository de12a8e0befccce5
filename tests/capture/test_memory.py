"""Steps that are alike leave nothing behind: no objects, no entries of caches, no written text.

benchmarks/jit_memory.py looks at the memory of a process over ten thousand of them.
"""

from __future__ import annotations

import gc
import linecache

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F

WARM, STEPS = 24, 100
FEW = 20  # objects that come and go anyway


class Training:
    """A step, its network, and what a caller does with the results."""

    def __init__(self):
        wf.manual_seed(0)
        self.net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.ReLU(), wf.nn.Linear(4, 2))
        self.optimizer = wf.optim.Adam(self.net.parameters(), lr=1e-3)
        self.jitted = wf.jit(self.step)
        self.numbers = []

    def step(self, x, y, scale=1.0):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.net(x), y) * scale
        loss.backward()
        self.optimizer.step()
        return loss if x[0, 0] > 0 else {"loss": loss * 2, "item": loss.item()}

    def batch(self, i, rows=4):
        x = np.full((rows, 3), 1.0 + i % 7, np.float32)
        return wf.tensor(x), wf.tensor(np.arange(rows) % 2)


CALLS = {
    "alike": lambda t, i: t.jitted(*t.batch(i)),
    "sizes": lambda t, i: t.jitted(*t.batch(i, 2 + i % 3)),
    "numbers": lambda t, i: t.jitted(*t.batch(i), scale=1.0 + i),
    "values": lambda t, i: t.jitted(t.batch(i)[0] * (1.0 if i % 2 else -1.0), t.batch(i)[1]),
    "gradients": lambda t, i: (t.jitted(*t.batch(i)), [p.grad.sum() for p in t.net.parameters()]),
}


def kept(training):
    jitted = training.jitted
    gc.collect()
    return [
        jitted.stats()["recordings"],
        len(jitted._traces),
        len(jitted._entries._kept),
        len(jitted._signatures._first),
        len(linecache.cache),
    ]


@pytest.mark.parametrize("case", CALLS)
def test_steps_leave_nothing_behind(case):
    training = Training()
    for i in range(WARM):
        CALLS[case](training, i)
    before, objects = kept(training), len(gc.get_objects())
    for i in range(STEPS):
        CALLS[case](training, i)
    assert kept(training) == before
    assert len(gc.get_objects()) < objects + FEW


def test_functions_that_are_gone_take_their_programs_along():
    def live():
        gc.collect()
        return sum(type(x).__name__ in ("Trace", "Jitted") for x in gc.get_objects())

    before, texts = live(), len(linecache.cache)
    for _ in range(3):
        training = Training()
        for i in range(4):
            training.jitted(*training.batch(i))
        del training
    assert (live(), len(linecache.cache)) == (before, texts)
