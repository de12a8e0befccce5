"""Training and evaluation, gradients on and off, random numbers, settings of the process."""

from __future__ import annotations

import weft as wf
from tests.jit.harness import Call, Case, labels, program, rows

F = wf.nn.functional


@program()
def dropout_in_training(jit):
    net = wf.nn.Sequential(wf.nn.Linear(3, 16), wf.nn.Dropout(0.5), wf.nn.Linear(16, 1))
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Case(step, [(rows(4, 3, seed=s),) for s in range(4)], {"net": net})


@program()
def dropout_on_and_off(jit):
    net = wf.nn.Sequential(wf.nn.Linear(3, 16), wf.nn.Dropout(0.5))

    @jit
    def step(x):
        return net(x)

    x = rows(4, 3)
    calls = [Call(x), Call(x), Call(x, before=net.eval), Call(x), Call(x, before=net.train)]
    return Case(step, [*calls, Call(x, before=net.eval)], {"net": net})


@program()
def dropout_rate_changed(jit):
    net = wf.nn.Dropout(0.5)

    def change():
        net.p = 0.1

    @jit
    def step(x):
        return net(x)

    x = rows(8, 8)
    return Case(step, [Call(x), Call(x), Call(x, before=change), Call(x)], {"net": net})


@program()
def mode_switched_inside(jit):
    net = wf.nn.Sequential(wf.nn.Linear(3, 8, bias=False), wf.nn.Dropout(0.5), wf.nn.BatchNorm1d(8))

    @jit
    def step(x):
        net.train()
        noisy = net(x)
        net.eval()
        clean = net(x)
        return noisy, clean

    return Case(step, [(rows(6, 3, seed=s),) for s in range(3)], {"net": net})


@program()
def batch_norm_statistics(jit):
    net = wf.nn.Sequential(wf.nn.Linear(3, 4, bias=False), wf.nn.BatchNorm1d(4), wf.nn.Linear(4, 1))
    optimizer = wf.optim.Adam(net.parameters(), lr=0.01)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    @jit
    def evaluate(x):
        with wf.no_grad():
            return net(x)

    def both(x, train):
        net.train(train)
        return step(x) if train else evaluate(x)

    calls = [(rows(6, 3, seed=s), s % 3 != 2) for s in range(7)]
    return Case(both, calls, {"net": net})


@program()
def cumulative_batch_norm(jit):
    norm = wf.nn.BatchNorm1d(3, momentum=None)

    @jit
    def step(x):
        return norm(x)

    return Case(step, [(rows(6, 3, seed=s),) for s in range(4)], {"norm": norm})


@program()
def no_grad_outside(jit):
    net = wf.nn.Linear(3, 1)

    @jit
    def step(x):
        return net(x) * 2

    def call(x, flag):
        with wf.set_grad_enabled(flag):
            return step(x)

    return Case(call, [(rows(2, 3), f) for f in (True, True, False, False, True)], {"net": net})


@program()
def no_grad_inside(jit):
    net = wf.nn.Linear(3, 1)

    @jit
    def step(x):
        with wf.no_grad():
            base = net(x)
        with wf.enable_grad():
            y = net(x) - base
        return base, y

    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)], {"net": net})


@program()
def backward_under_no_grad(jit):
    net = wf.nn.Linear(3, 1)

    @jit
    def step(x):
        loss = net(x).sum()
        loss.backward()
        return loss

    def call(x, flag):
        with wf.set_grad_enabled(flag):
            return step(x)

    return Case(call, [(rows(2, 3), f) for f in (True, True, False, True)], {"net": net})


@program()
def default_dtype_changed(jit):
    @jit
    def step(n):
        return wf.ones((n,)) * 0.5 + wf.tensor([0.25])

    def default(dtype):
        return lambda: wf.set_default_dtype(dtype)

    calls = [Call(3), Call(3), Call(3, before=default(wf.float64)), Call(3)]
    return Case(step, [*calls, Call(3, before=default(wf.float32))])


@program(captured=False)
def default_dtype_changed_inside(jit):
    @jit
    def step(x):
        wf.set_default_dtype(wf.float64)
        y = wf.ones((2,)) * x
        wf.set_default_dtype(wf.float32)
        return y

    return Case(step, [(wf.tensor(2.0, dtype=wf.float64),)] * 3)


@program(captured=False)
def anomaly_detected(jit):
    w = wf.tensor([1.0, 4.0], requires_grad=True)

    @jit
    def step(x):
        w.grad = None
        loss = wf.sqrt(w * x).sum()
        loss.backward()
        return loss

    def call(x):
        with wf.detect_anomaly():
            return step(x)

    good, bad = wf.tensor([1.0, 2.0]), wf.tensor([1.0, -2.0])
    return Case(call, [(good,), (good,), (bad,), (good,)], {"w": w})


@program(captured=False)
def anomaly_detected_inside(jit):
    @jit
    def step(x):
        with wf.detect_anomaly():
            return wf.log(x).sum()

    good, bad = wf.tensor([1.0, 2.0]), wf.tensor([1.0, -2.0])
    return Case(step, [(good,), (good,), (bad,), (good,)])


@program()
def random_numbers(jit):
    @jit
    def step(x):
        noisy = x + 0.1 * wf.randn(*x.shape)
        order = wf.randperm(len(x))
        return noisy[order], wf.rand(2), wf.randint(0, 10, (3,))

    return Case(step, [(rows(4, 3, seed=s),) for s in range(4)])


@program()
def random_numbers_used_in_between(jit):
    @jit
    def step(x):
        return x * wf.rand(*x.shape)

    calls = [Call(rows(3), before=lambda n=n: wf.rand(n) if n else None) for n in (0, 0, 3, 0, 50)]
    return Case(step, calls)


@program()
def generator_of_its_own(jit):
    generator = wf.Generator(7)

    @jit
    def step(x):
        return x + wf.randn(3, generator=generator)

    return Case(step, [(rows(3, seed=s),) for s in range(4)], {"generator": generator})


@program()
def seed_set_between_calls(jit):
    @jit
    def step(x):
        return x * wf.rand(3)

    def seed(n):
        return lambda: wf.manual_seed(n)

    calls = [Call(rows(3)), Call(rows(3)), Call(rows(3), before=seed(5)), Call(rows(3))]
    return Case(step, [*calls, Call(rows(3), before=seed(5))])


@program(captured=False)
def seed_set_inside(jit):
    @jit
    def step(x, seed):
        wf.manual_seed(seed)
        return x * wf.rand(3)

    return Case(step, [(rows(3), s) for s in (1, 1, 2, 2, 1)])


@program()
def random_state_restored(jit):
    @jit
    def step(x):
        return x * wf.rand(3)

    kept = {}
    keep = lambda: kept.update(state=wf.get_rng_state())  # noqa: E731
    back = lambda: wf.set_rng_state(kept["state"])  # noqa: E731
    x = rows(3)
    calls = [Call(x), Call(x, before=keep), Call(x), Call(x, before=back), Call(x)]
    return Case(step, calls)


@program()
def sampling_decides_a_branch(jit):
    @jit
    def step(x):
        if wf.rand(()) < 0.5:
            return x + wf.rand(3)
        return x * 2

    return Case(step, [(rows(3),)] * 8)


@program()
def stochastic_depth(jit):
    layers = wf.nn.ModuleList([wf.nn.Linear(3, 3) for _ in range(3)])
    optimizer = wf.optim.SGD(layers.parameters(), lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        for layer in layers:
            keep = (wf.rand(len(x), 1) < 0.7).to(x.dtype)
            x = x + keep * layer(x)
        loss = x.square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Case(step, [(rows(4, 3, seed=s),) for s in range(4)], {"layers": layers})


@program()
def label_smoothing_by_mode(jit):
    net = wf.nn.Linear(3, 4)

    @jit
    def loss_of(x, y):
        return F.cross_entropy(net(x), y, label_smoothing=0.1 if net.training else 0.0)

    x, y = rows(5, 3), labels(5, 4)
    calls = [Call(x, y), Call(x, y), Call(x, y, before=net.eval), Call(x, y)]
    return Case(loss_of, [*calls, Call(x, y, before=net.train)], {"net": net})
