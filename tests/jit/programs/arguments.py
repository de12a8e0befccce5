"""What steps are called with: sizes, dtypes, numbers, arrays, and the same buffer again."""

from __future__ import annotations

import math
import threading

import numpy as np

import weft as wf
from tests.jit.harness import Call, Case, array, program, rows

F = wf.nn.functional


@program()
def changing_batch_sizes(jit):
    net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.ReLU(), wf.nn.Linear(4, 1))
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    sizes = (8, 8, 5, 8, 5, 1, 7, 8)
    return Case(step, [(rows(n, 3, seed=n),) for n in sizes], {"net": net})


@program()
def size_used_as_a_number(jit):
    @jit
    def step(x):
        n = len(x)
        y = x.sum(axis=0) / n
        return y * (2 if n > 4 else 1), n

    return Case(step, [(rows(n, 3),) for n in (4, 4, 6, 6, 4, 9)])


@program()
def changing_dtypes(jit):
    @jit
    def step(x):
        return (x * 2 + 1).sum()

    dtypes = (np.float32, np.float64, np.int32, np.float32, np.int64, np.float64, np.float16)
    return Case(step, [(wf.tensor(np.arange(4).astype(d)),) for d in dtypes])


@program()
def changing_ranks(jit):
    @jit
    def step(x):
        return x.sum(axis=-1) if x.ndim > 1 else x.sum()

    shapes = ((3,), (2, 3), (3,), (2, 2, 3), (2, 3))
    return Case(step, [(rows(*shape),) for shape in shapes])


@program()
def changing_integer(jit):
    @jit
    def step(x, i):
        return x * i + i

    return Case(step, [(rows(3), i) for i in range(8)])


@program()
def changing_integer_as_an_index(jit):
    @jit
    def step(x, i):
        return x[i] + x[i : i + 2].sum()

    return Case(step, [(rows(6), i) for i in (0, 1, 1, 4, 0)])


@program()
def changing_integer_as_a_size(jit):
    @jit
    def step(x, n):
        return wf.zeros((n,)) + x.sum()

    return Case(step, [(rows(3), n) for n in (2, 2, 5, 2)])


@program()
def changing_float(jit):
    net = wf.nn.Linear(3, 1)

    @jit
    def step(x, weight):
        net.zero_grad()
        loss = net(x).square().mean() * weight
        loss.backward()
        return loss

    return Case(step, [(rows(2, 3), 1 / (i + 1)) for i in range(6)], {"net": net})


@program()
def float_in_a_branch(jit):
    @jit
    def step(x, t):
        if t > 0.5:
            return x * t
        return x - t

    return Case(step, [(rows(3), t) for t in (0.1, 0.9, 0.2, 0.8, 0.5)])


@program()
def one_and_true(jit):
    # Equal in Python, and different in what they mean: 1, 1.0, True, 0, -0.0, False.
    @jit
    def step(x, k):
        return x * k, k, str(k), type(k).__name__

    numbers = (1, 1.0, True, 1, True, 1.0, 0, -0.0, 0.0, False)
    return Case(step, [(wf.tensor([1, 2, 3]), k) for k in numbers])


@program()
def signed_zero_and_nan(jit):
    @jit
    def step(x, k):
        return wf.copysign(x, wf.tensor(float(k))), math.isnan(k)

    return Case(step, [(rows(3), k) for k in (0.0, -0.0, float("nan"), 0.0, float("nan"))])


@program()
def numpy_scalars(jit):
    @jit
    def step(x, k):
        return x * k

    scalars = (np.float32(2), np.float64(2), np.int64(2), 2.0, np.float32(3))
    return Case(step, [(rows(3), k) for k in scalars * 2])


@program()
def strings_choose(jit):
    @jit
    def step(x, name):
        return getattr(wf, name)(x)

    return Case(step, [(rows(3), n) for n in ("exp", "tanh", "exp", "sin", "tanh")])


@program()
def functions_as_arguments(jit):
    @jit
    def step(x, act):
        return act(x)

    double = lambda x: x * 2  # noqa: E731  (what the program is about)
    return Case(step, [(rows(3), f) for f in (wf.exp, double, wf.exp, F.relu, double)])


@program()
def modules_as_arguments(jit):
    first, second = wf.nn.Linear(3, 1), wf.nn.Linear(3, 1)

    @jit
    def step(net, x):
        net.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss

    calls = [(net, rows(2, 3)) for net in (first, first, second, first, second)]
    return Case(step, calls, {"first": first, "second": second})


@program()
def arrays_as_arguments(jit):
    net = wf.nn.Linear(3, 1)

    @jit
    def step(x, y):
        return ((net(wf.tensor(x)) - wf.tensor(y)) ** 2).mean()

    return Case(step, [(array(4, 3, seed=s), array(4, 1, seed=s + 9)) for s in range(3)])


@program(captured=False)
def arrays_meet_tensors(jit):
    w = rows(3)

    @jit
    def step(x):
        return x * w + w @ x[0]

    return Case(step, [(array(2, 3, seed=s),) for s in range(3)])


@program(captured=False)
def array_computed_with_numpy(jit):
    @jit
    def step(x):
        centred = x - np.mean(x, axis=0)
        return wf.tensor(centred).square().sum()

    return Case(step, [(array(4, 3, seed=s),) for s in range(4)])


@program()
def reused_buffer(jit):
    buffer = np.zeros((4, 3), np.float32)
    net = wf.nn.Linear(3, 1)

    @jit
    def step(x):
        return net(wf.tensor(x)).mean()

    def fill(seed):
        def fill_it():
            buffer[:] = array(4, 3, seed=seed)

        return fill_it

    return Case(step, [Call(buffer, before=fill(s)) for s in range(4)])


@program()
def outer_buffer_that_changes(jit):
    buffer = np.zeros(3, np.float32)

    @jit
    def step(x):
        return x + wf.tensor(buffer)

    def fill(value):
        def fill_it():
            buffer[:] = value

        return fill_it

    x = rows(3)
    return Case(step, [Call(x), Call(x), Call(x, before=fill(5)), Call(x), Call(x, before=fill(0))])


@program()
def outer_tensor_that_changes(jit):
    mask = wf.ones((3,))

    @jit
    def step(x):
        return x * mask

    def write():
        mask[1] = 0.0

    x = rows(3)
    return Case(step, [Call(x), Call(x), Call(x, before=write), Call(x)], {"mask": mask})


@program()
def same_tensor_twice(jit):
    @jit
    def step(x, y):
        x += 1
        return x is y, x * y

    a, b = rows(3), rows(3, seed=1)
    return Case(step, [(a, b), (a, a), (a, b), (b, b), (b, a)])


@program()
def views_and_strides(jit):
    @jit
    def step(x):
        return x @ x.T

    big = array(6, 8)
    layouts = [big[:3, :4], big.T[:3, :4], big[::2, ::2], big[::-1][:3, :4]]
    return Case(step, [(wf.tensor(layout),) for layout in layouts])


@program()
def empty_tensors(jit):
    @jit
    def step(x):
        return x.sum(axis=0), (x * 2).exp(), len(x)

    return Case(step, [(rows(n, 3),) for n in (0, 0, 2, 0, 2)])


@program()
def scalars_as_tensors(jit):
    @jit
    def step(x, t):
        return x * t if t > 1 else x / t

    return Case(step, [(rows(3), wf.tensor(v)) for v in (2.0, 0.5, 3.0, 0.25)])


@program()
def inputs_that_require_gradients(jit):
    @jit
    def step(x):
        return (x * x).sum()

    def with_grad(seed, flag):
        return rows(3, seed=seed).requires_grad_(flag)

    return Case(step, [(with_grad(s, s % 2 == 0),) for s in range(5)])


@program()
def tensors_of_half_precision(jit):
    @jit
    def step(x):
        return (x.to(wf.float32) * 2).to(wf.float16), x + 1

    return Case(step, [(rows(4, seed=s, dtype=np.float16),) for s in range(3)])


@program()
def boolean_and_integer_tensors(jit):
    @jit
    def step(x, flags):
        return x // 2, x % 3, ~flags, wf.where(flags, x, -x), (x > 1).sum()

    return Case(step, [(wf.arange(5) + s, (wf.arange(5) + s) % 2 == 0) for s in range(3)])


@program()
def several_threads(jit):
    net = wf.nn.Sequential(wf.nn.Linear(3, 8), wf.nn.Tanh(), wf.nn.Linear(8, 1))

    @jit
    def forward(x):
        with wf.no_grad():
            return net(x).sum()

    def step(xs):
        results = [None] * len(xs)

        def work(i):
            for _ in range(5):
                results[i] = forward(xs[i])

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(xs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    calls = [([rows(n + 1, 3, seed=n + s) for n in range(4)],) for s in range(3)]
    return Case(step, calls, {"net": net})


@program()
def threads_with_models_of_their_own(jit):
    nets = [wf.nn.Linear(3, 1) for _ in range(2)]

    @jit
    def train(net, x):
        loss = net(x).square().mean()
        loss.backward()
        with wf.no_grad():
            for p in net.parameters():
                p.sub_(0.1 * p.grad)
                p.grad = None

    def step(x):
        def work(net):
            for _ in range(4):
                train(net, x)

        threads = [threading.Thread(target=work, args=(net,)) for net in nets]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return Case(step, [(rows(4, 3, seed=s),) for s in range(3)], {"nets": nets})
