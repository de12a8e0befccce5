"""Errors raised, caught and passed on: what was done before stays done, and no more."""

from __future__ import annotations

import contextlib

import weft as wf
from tests.jit.harness import Case, program, rows

F = wf.nn.functional
GOOD, BAD = 1.0, float("nan")


class DivergedError(Exception):
    """Says at which step training diverged."""

    def __init__(self, step):
        super().__init__(f"diverged at step {step}")


def some_bad(n=6):
    """Return calls of which the fourth gets a NaN."""
    return [(rows(4, 3, seed=s) * (BAD if s == 3 else GOOD),) for s in range(n)]


def _parts():
    net = wf.nn.Sequential(wf.nn.Linear(3, 4, bias=False), wf.nn.BatchNorm1d(4), wf.nn.Linear(4, 1))
    return net, wf.optim.Adam(net.parameters(), lr=0.05)


@program()
def raise_before_the_step(jit):
    net, optimizer = _parts()
    done = []

    @jit
    def step(x):
        done.append("begun")
        optimizer.zero_grad()
        loss = net(x).square().mean()
        if not wf.isfinite(loss):
            raise ValueError("loss is not finite")
        loss.backward()
        optimizer.step()
        return loss

    return Case(step, some_bad(), {"net": net, "optimizer": optimizer, "done": done})


@program()
def raise_between_backward_and_step(jit):
    net, optimizer = _parts()

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        if wf.isnan(loss):
            raise DivergedError(optimizer.t)
        optimizer.step()

    return Case(step, some_bad(), {"net": net, "optimizer": optimizer})


@program()
def raise_after_the_step(jit):
    net = wf.nn.Linear(3, 1, bias=False)
    optimizer = wf.optim.SGD(net.parameters(), lr=0.001, momentum=0.9)
    log = []

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        if loss > 0.3:
            raise RuntimeError(f"loss too large in step {len(log)}")
        log.append(loss.item())
        return loss

    calls = [(rows(4, 3, seed=s) * (9 if s in (2, 4) else 0.1),) for s in range(6)]
    return Case(step, calls, {"net": net, "optimizer": optimizer, "log": log})


@program()
def raise_in_the_optimizer(jit):
    net, optimizer = _parts()

    def check(optimizer):
        for p in optimizer.parameters():
            if wf.isnan(p.grad).any():
                raise FloatingPointError("gradient is NaN")

    optimizer.register_step_pre_hook(check)

    @jit
    def step(x):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    return Case(step, some_bad(), {"net": net, "optimizer": optimizer})


@program()
def raise_in_a_hook_of_backward(jit):
    net, optimizer = _parts()

    def check(grad):
        if wf.isnan(grad).any():
            raise FloatingPointError("gradient is NaN")

    net[0].weight.register_hook(check)

    @jit
    def step(x):
        net(x).square().mean().backward()
        optimizer.step()

    return Case(step, some_bad(), {"net": net, "optimizer": optimizer})


@program()
def raise_in_the_middle_of_updates(jit):
    weights = [wf.zeros((3,)) for _ in range(4)]

    @jit
    def step(x):
        for i, w in enumerate(weights):
            if x[i] < 0:
                raise ValueError(f"negative at {i}")
            w.add_(x[i])
        return weights[0] + weights[-1]

    values = ([1, 2, 3, 4], [1, 2, 3, 4], [1, 2, -3, 4], [1, 1, 1, 1], [-1, 0, 0, 0])
    return Case(step, [(wf.tensor(v, dtype=wf.float32),) for v in values], {"weights": weights})


@program()
def caught_inside(jit):
    caught = []

    @jit
    def step(x):
        try:
            if x.sum() < 0:
                raise ValueError("negative")
            y = x.sqrt()
        except ValueError as error:
            caught.append(str(error))
            y = wf.zeros_like(x)
        return y

    x = rows(3).abs()
    return Case(step, [(x,), (-x,), (x,), (-x,), (x,)], {"caught": caught})


@program()
def finally_runs(jit):
    events = []

    @jit
    def step(x):
        try:
            if x.sum() > 0:
                raise KeyError("positive")
            return x * 2
        finally:
            events.append("done")

    x = rows(3).abs()
    return Case(step, [(x,), (-x,), (x,), (-x,)], {"events": events})


@program()
def else_of_try(jit):
    table = {"known": 2.0}

    @jit
    def step(x, key):
        try:
            scale = table[key]
        except KeyError:
            return x
        else:
            return x * scale

    return Case(step, [(rows(3), k) for k in ("known", "known", "unknown", "unknown", "known")])


@program()
def error_of_an_operator(jit):
    w = wf.ones((3, 2))

    @jit
    def step(x):
        return x @ w

    return Case(step, [(rows(2, 3),), (rows(2, 4),), (rows(2, 3),), (rows(2, 4),), (rows(5, 3),)])


@program()
def error_of_an_operator_is_caught(jit):
    w = wf.ones((3, 2))

    @jit
    def step(x):
        try:
            return x @ w
        except ValueError:
            return x.sum()

    return Case(step, [(rows(2, 3),), (rows(2, 4),), (rows(2, 3),), (rows(2, 4),)])


@program()
def index_out_of_range(jit):
    table = rows(5, 2)

    @jit
    def step(index):
        return table[index] * 2

    return Case(step, [(wf.tensor(i),) for i in ([0, 1], [4, 2], [0, 5], [1, 1])])


@program()
def raise_from(jit):
    @jit
    def step(x):
        try:
            if x.max() > 1:
                raise ValueError("too large")
        except ValueError as error:
            raise RuntimeError("bad input") from error
        return x

    return Case(step, [(wf.full((2,), v),) for v in (0.5, 2.0, 0.5, 2.0)])


@program()
def assertion_on_values(jit):
    @jit
    def step(x):
        assert (x >= 0).all(), f"found {x.min().item():.1f}"
        return x.sqrt()

    x = rows(3).abs()
    return Case(step, [(x,), (x * 2,), (-x,), (x,)])


@program()
def nan_raised_conditionally(jit):
    net = wf.nn.Linear(3, 1)
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(x, check):
        optimizer.zero_grad()
        loss = net(x).mean()
        loss.backward()
        if check and wf.isnan(loss).item():
            raise FloatingPointError("NaN")
        optimizer.step()
        return loss

    checks = (True, True, False, True, True, False)
    calls = [(x, check) for (x,), check in zip(some_bad(), checks, strict=True)]
    return Case(step, calls, {"net": net})


@program()
def suppressed(jit):
    counts = {"tries": 0, "done": 0}

    @jit
    def step(x):
        counts["tries"] += 1
        with contextlib.suppress(ZeroDivisionError):
            share = 1 / int(x.sum() > 0)
            counts["done"] += 1
            x = x * share
        return x

    x = rows(3).abs()
    return Case(step, [(x,), (-x,), (x,), (-x,)], {"counts": counts})


@program()
def context_manager_of_a_user(jit):
    events = []

    @contextlib.contextmanager
    def section(name):
        events.append(f"enter {name}")
        try:
            yield len(events)
        finally:
            events.append(f"leave {name}")

    @jit
    def step(x):
        with section("forward"):
            y = x * 2
            if y.sum() > 0:
                raise ValueError("positive")
        return y

    x = rows(3).abs()
    return Case(step, [(-x,), (-x,), (x,), (-x,)], {"events": events})


@program()
def class_as_context_manager(jit):
    class Scaled:
        depth = 1.0

        def __enter__(self):
            Scaled.depth *= 2
            return self

        def __exit__(self, *exc):
            Scaled.depth /= 2
            return False

    @jit
    def step(x):
        with Scaled(), Scaled():
            y = x * Scaled.depth
        return y * Scaled.depth

    return Case(step, [(rows(3, seed=s),) for s in range(3)], {"depth": lambda: Scaled.depth})


@program(captured=False)
def wrong_call(jit):
    @jit
    def step(x, y):
        return x + y

    return Case(step, [(rows(3),), (rows(3), rows(3)), (rows(3),), (rows(3), rows(3), rows(3))])


@program()
def state_after_a_failed_call(jit):
    net, optimizer = _parts()
    state = {"calls": 0, "finished": 0, "running": wf.zeros((3,))}

    @jit
    def step(x):
        state["calls"] += 1
        state["running"] = state["running"] + x.mean(axis=0)
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), wf.zeros((len(x), 1)))
        loss.backward()
        if state["running"].sum() > 3:
            state["running"] = wf.zeros((3,))
            raise OverflowError("started again")
        optimizer.step()
        state["finished"] += 1
        return loss

    calls = [(rows(4, 3, seed=s).abs(),) for s in range(7)]
    return Case(step, calls, {"net": net, "optimizer": optimizer, "state": state})
