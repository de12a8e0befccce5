"""Values that Python reads out of tensors, and shapes that depend on values."""

from __future__ import annotations

import math

import numpy as np

import weft as wf
from tests.jit.harness import Case, array, labels, program, rows


@program()
def item_as_result(jit):
    net = wf.nn.Linear(3, 1)

    @jit
    def step(x):
        loss = net(x).square().mean()
        return loss.item()

    return Case(step, [(rows(4, 3, seed=s),) for s in range(4)])


@program(falls_back=True)
def float_and_int(jit):
    @jit
    def step(x):
        return float(x.sum()), int(x.max()), bool(x[0] > 0)  # falls back

    return Case(step, [(rows(3, seed=s) * 3,) for s in (0, 1, 2, 0, 1)])


@program()
def number_goes_back_into_tensors(jit):
    @jit
    def step(x):
        scale = 1 / (1 + x.abs().max().item())
        return x * scale + math.sqrt(2) * wf.tensor(scale)

    return Case(step, [(rows(3, seed=s),) for s in range(4)])


@program(falls_back=True)
def mathematics_on_a_number_read(jit):
    @jit
    def step(x):
        return x - math.log(math.exp(x.mean().item()) + 1)  # falls back

    return Case(step, [(rows(3, seed=s),) for s in range(4)])


@program(falls_back=True)
def tolist(jit):
    @jit
    def step(x):
        return x.tolist(), [round(v, 2) for v in x.sum(axis=0).tolist()]  # falls back

    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)])


@program(captured=False)
def numpy_as_result(jit):
    @jit
    def step(x):
        return (x * 2).numpy(), np.asarray(x.sum(axis=0))

    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)])


@program(falls_back=True)
def numpy_in_the_middle(jit):
    @jit
    def step(x):
        order = np.argsort(x.numpy())  # falls back
        return x[order] * 2

    return Case(step, [(rows(4, seed=s),) for s in range(4)])


@program()
def index_read_from_a_value(jit):
    table = rows(4, 3)

    @jit
    def step(x):
        i = int(x.argmax())
        return table[i] * x[i]

    return Case(step, [(rows(4, seed=s),) for s in (0, 1, 2, 3, 0, 1)])


@program()
def index_by_a_tensor(jit):
    table = rows(4, 3)

    @jit
    def step(x):
        return table[x.argmax()] + table[x.argsort()[:2]].sum(axis=0)

    return Case(step, [(rows(4, seed=s),) for s in range(4)])


@program(captured=False)
def boolean_mask(jit):
    @jit
    def step(x):
        return x[x > 0], x[x > 0].sum(), len(x[x > 0])

    return Case(step, [(rows(6, seed=s),) for s in (0, 1, 2, 0)])


@program()
def boolean_mask_written(jit):
    @jit
    def step(x):
        y = x.clone()
        y[y < 0] = 0.0
        return y

    return Case(step, [(rows(6, seed=s),) for s in range(3)])


@program(captured=False)
def nonzero(jit):
    @jit
    def step(x):
        where = wf.nonzero(x > 0)
        return where, x[where]

    return Case(step, [(rows(6, seed=s),) for s in (0, 1, 2, 0)])


@program(captured=False)
def unique(jit):
    @jit
    def step(y):
        classes = wf.unique_values(y)
        return classes, len(classes)

    return Case(step, [(labels(6, 4, seed=s),) for s in (0, 1, 2, 0)])


@program(captured=False)
def mask_and_train(jit):
    net = wf.nn.Linear(3, 1)
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        kept = y[:, 0] > 0
        loss = ((net(x[kept]) - y[kept]) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    calls = [(rows(6, 3, seed=s), rows(6, 1, seed=s + 9)) for s in range(4)]
    return Case(step, calls, {"net": net})


@program(falls_back=True)
def formatted_text(jit):
    @jit
    def step(x):
        loss = (x**2).mean()
        return f"loss {loss.item():.3f} of {len(x)}", f"{loss:.2f}"  # falls back

    return Case(step, [(rows(3, seed=s),) for s in range(4)])


@program(captured=False)
def repr_of_a_tensor(jit):
    @jit
    def step(x):
        return repr(x.sum() > 0), str(x.shape)

    return Case(step, [(rows(3, seed=s),) for s in range(4)])


@program(captured=False)
def dictionary_of_metrics(jit):
    @jit
    def step(x, y):
        error = x - y
        return {
            "mse": (error**2).mean().item(),
            "mae": error.abs().mean().item(),
            "worst": int(error.abs().argmax()),
            "n": len(x),
        }

    return Case(step, [(rows(5, seed=s), rows(5, seed=s + 9)) for s in range(4)])


@program()
def minimum_and_maximum_of_python(jit):
    @jit
    def step(x):
        largest = max(x[0], x[1], x[2])
        return largest, min(v.item() for v in x), sorted(v.item() for v in x)

    return Case(step, [(rows(3, seed=s),) for s in (0, 1, 2, 0, 1)])


@program()
def membership(jit):
    @jit
    def step(y, k):
        if k in y:
            return y + k
        return y

    calls = [(labels(4, 6, seed=s), k) for s, k in ((0, 3), (1, 3), (0, 5), (1, 5), (0, 3))]
    return Case(step, calls * 2)


@program(captured=False)
def beam_of_best(jit):
    @jit
    def step(scores):
        best, at = wf.topk(scores, 2)
        chosen = [int(i) for i in at]
        return best.sum(), chosen

    return Case(step, [(rows(5, seed=s),) for s in range(5)])


@program()
def greedy_decoding(jit):
    table = rows(5, 5)

    @jit
    def decode(start):
        token, out = start, []
        for _ in range(6):
            token = int(table[token].argmax())
            out.append(token)
            if token == 2:
                break
        return out

    return Case(decode, [(s,) for s in (0, 1, 3, 0, 4)])


@program()
def value_read_after_a_write(jit):
    total = wf.zeros(())

    @jit
    def step(x):
        total.add_(x.sum())
        if total > 2:
            total.zero_()
            return "over"
        return total.item()

    return Case(step, [(wf.tensor(abs(array(3, seed=s))),) for s in range(6)], {"total": total})


@program(captured=False)
def convergence_of_power_iteration(jit):
    @jit
    def largest(matrix):
        v = wf.ones((3,))
        old = 0.0
        trips = 0
        while trips < 100:
            trips += 1
            v = matrix @ v
            norm = v.norm().item()
            v = v / norm
            if abs(norm - old) < 1e-4:
                break
            old = norm
        return v, trips

    matrices = [rows(3, 3, seed=s) for s in range(3)]
    return Case(largest, [(m @ m.T,) for m in matrices])
