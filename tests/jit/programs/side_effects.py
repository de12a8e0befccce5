"""What a step does besides computing: it prints, logs, counts, draws, reads clocks and files."""

from __future__ import annotations

import io
import itertools
import logging
import os
import random
import sys
import time
import warnings

import numpy as np

import weft as wf
from tests.jit.harness import Call, Case, program, rows

logger = logging.getLogger("tests.jit.side_effects")
TOTAL = 0


@program(falls_back=True)
def printing_a_tensor(jit):
    @jit
    def step(x):
        y = x * 2
        print("y is", y)  # falls back
        return y

    return Case(step, [(rows(3, seed=s),) for s in range(4)])


@program(falls_back=True)
def printing_a_number(jit):
    @jit
    def step(x):
        loss = (x**2).mean()
        print(f"loss {loss.item():.4f}")  # falls back
        return loss

    return Case(step, [(rows(3, seed=s),) for s in range(4)])


@program(falls_back=True)
def printing_text(jit):
    @jit
    def step(x):
        print("called")  # falls back
        return x + 1

    return Case(step, [(rows(3, seed=s),) for s in range(4)])


@program(falls_back=True)
def printing_now_and_then(jit):
    steps = [0]

    @jit
    def step(x):
        steps[0] += 1
        if steps[0] % 3 == 0:
            print("step", steps[0])  # falls back
        return x * 2

    return Case(step, [(rows(3, seed=s),) for s in range(7)], {"steps": steps})


@program()
def printing_that_is_off(jit):
    options = {"verbose": False}

    @jit
    def step(x):
        if options["verbose"]:
            print("never seen")
        return x * 2

    return Case(step, [(rows(3, seed=s),) for s in range(4)])


@program(falls_back=True)
def writing_to_a_file(jit):
    file = io.StringIO()

    @jit
    def step(x):
        file.write(f"{x.sum().item():.3f}\n")  # falls back
        return x * 2

    return Case(step, [(rows(3, seed=s),) for s in range(4)], {"text": file.getvalue})


@program(falls_back=True)
def writing_to_standard_output(jit):
    @jit
    def step(x):
        sys.stdout.write("working\n")  # falls back
        return x * 2

    return Case(step, [(rows(3, seed=s),) for s in range(4)])


@program(falls_back=True)
def logging_module(jit):
    records = []

    class Keep(logging.Handler):
        def emit(self, record):
            records.append(record.getMessage())

    logger.handlers[:] = [Keep()]
    logger.setLevel(logging.INFO)
    logger.propagate = False

    @jit
    def step(x):
        logger.info("sum %d", int(x.sum() > 0))  # falls back
        return x * 2

    return Case(step, [(rows(3, seed=s),) for s in range(4)], {"records": records})


@program()
def logging_to_a_list(jit):
    log = []

    @jit
    def step(x):
        loss = (x**2).mean()
        log.append({"loss": loss.item(), "n": len(log)})
        return loss

    return Case(step, [(rows(3, seed=s),) for s in range(5)], {"log": log})


@program()
def global_counter(jit):
    def reset():
        globals()["TOTAL"] = 0

    @jit
    def step(x):
        global TOTAL  # noqa: PLW0603  (what the program is about)
        TOTAL += len(x)
        return x * 2

    calls = [Call(rows(n), before=reset if i == 0 else None) for i, n in enumerate((3, 3, 4, 3, 4))]
    return Case(step, calls, {"total": lambda: TOTAL})


@program()
def counter_that_decides(jit):
    state = {"step": 0}

    @jit
    def step(x):
        state["step"] += 1
        if state["step"] % 2 == 0:
            return x * 2
        return x

    return Case(step, [(rows(3, seed=s),) for s in range(7)], {"state": state})


@program()
def counter_in_arithmetic(jit):
    state = {"step": 0}

    @jit
    def step(x):
        state["step"] += 1
        return x * 0.9 ** state["step"] + state["step"]

    return Case(step, [(rows(3, seed=s),) for s in range(6)], {"state": state})


@program(falls_back=True)
def random_of_python(jit):
    @jit
    def step(x):
        if random.random() < 0.5:  # falls back
            return x
        return x * 2

    return Case(step, [(rows(3, seed=s),) for s in range(6)])


@program(falls_back=True)
def random_of_numpy(jit):
    @jit
    def step(x):
        noise = np.random.standard_normal(3).astype("float32")  # noqa: NPY002  # falls back
        return x + wf.tensor(noise)

    return Case(step, [(rows(3, seed=s),) for s in range(5)])


@program(falls_back=True)
def generator_of_numpy(jit):
    generator = np.random.default_rng(3)

    @jit
    def step(x):
        order = generator.permutation(3)  # falls back
        return x[order]

    return Case(step, [(rows(3, seed=s),) for s in range(5)], {"generator": generator})


@program(falls_back=True)
def generator_of_python(jit):
    generator = random.Random(3)

    @jit
    def step(x):
        return x * generator.choice([1.0, 2.0, 3.0])  # falls back

    return Case(step, [(rows(3, seed=s),) for s in range(5)], {"generator": generator})


@program(falls_back=True)
def reading_the_clock(jit):
    times = []

    @jit
    def step(x):
        times.append(time.perf_counter())  # falls back
        return x * 2

    calls = [(rows(3, seed=s),) for s in range(5)]
    growing = {"count": lambda: len(times), "growing": lambda: times == sorted(set(times))}
    return Case(step, calls, growing)


@program(falls_back=True)
def next_of_an_outer_iterator(jit):
    numbers = iter([1.0, 2.0, 3.0, 4.0, 5.0])

    @jit
    def step(x):
        return x * next(numbers)  # falls back

    return Case(step, [(rows(3),)] * 6)


@program(falls_back=True)
def next_of_a_counter(jit):
    numbers = itertools.count(1)

    @jit
    def step(x):
        return x * next(numbers)  # falls back

    return Case(step, [(rows(3),)] * 4, {"numbers": lambda: repr(numbers)})


@program(falls_back=True)
def next_of_an_outer_generator(jit):
    def rates():
        rate = 1.0
        while True:
            yield rate
            rate /= 2

    schedule = rates()

    @jit
    def step(x):
        return x * next(schedule)  # falls back

    return Case(step, [(rows(3),)] * 5)


@program(falls_back=True)
def loop_over_an_outer_zip(jit):
    # A zip is used up by the first call: the second finds it empty.
    pairs = zip([1.0, 2.0], [3.0, 4.0], strict=True)

    @jit
    def step(x):
        for a, b in pairs:  # falls back
            x = x * a + b
        return x

    return Case(step, [(rows(3),)] * 4)


@program(captured=False)
def reading_the_environment(jit):
    def choose(value):
        return lambda: os.environ.update(WEFT_TEST_PROGRAM=value)

    @jit
    def step(x):
        scale = float(os.environ["WEFT_TEST_PROGRAM"])
        return x * scale

    x = rows(3)
    calls = [Call(x, before=choose("1")), Call(x), Call(x, before=choose("2")), Call(x)]
    return Case(step, calls)


@program(captured=False)
def warning_of_the_user(jit):
    @jit
    def step(x):
        if x.sum() < 0:
            warnings.warn("negative", UserWarning, stacklevel=2)
        return x

    x = rows(3).abs()
    return Case(step, [(x,), (-x,), (x,), (-x,)])


@program(captured=False)
def import_inside(jit):
    @jit
    def step(x):
        import math  # noqa: PLC0415  (what the program is about)

        return x * math.pi

    return Case(step, [(rows(3, seed=s),) for s in range(3)])


@program()
def callback_of_the_caller(jit):
    seen = []

    @jit
    def step(x, callback):
        y = x * 2
        callback(y)
        return y

    def other(value):
        seen.append(("other", value.sum()))

    calls = [(rows(3, seed=s), other if s > 2 else seen.append) for s in range(6)]
    return Case(step, calls, {"seen": seen})


@program()
def best_so_far(jit):
    best = {"loss": float("inf"), "epoch": None}

    @jit
    def step(x, epoch):
        loss = (x**2).mean()
        if loss < best["loss"]:
            best["loss"], best["epoch"] = loss.item(), epoch
        return loss

    calls = [(rows(3) * s, e) for e, s in enumerate((3, 4, 2, 2.5, 1, 5))]
    return Case(step, calls, {"best": best})
