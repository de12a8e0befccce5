"""Branches and loops in Python, on numbers and on values of tensors."""

from __future__ import annotations

import weft as wf
from tests.jit.harness import Case, array, program, rows


def both_signs():
    """Return calls whose sums are positive, negative, and each again."""
    x = wf.tensor(abs(array(4, 3)))
    return [(x,), (-x,), (x * 2,), (x * -3,), (x,), (-x,)]


@program()
def early_return(jit):
    net = wf.nn.Linear(3, 1)

    @jit
    def step(x):
        if x.sum() < 0:
            return net(-x)
        y = net(x)
        return y * 2

    return Case(step, both_signs(), {"net": net})


@program()
def return_of_other_types(jit):
    @jit
    def step(x):
        if x.mean() > 0:
            return None
        if x.mean() < -2:
            return {"mean": x.mean(), "rows": len(x)}
        return x.sum(axis=0), 7

    return Case(step, both_signs())


@program()
def break_on_a_value(jit):
    @jit
    def step(x):
        total = wf.zeros((3,))
        for row in x:
            if row.sum() > 2:
                break
            total = total + row
        return total

    return Case(step, [(rows(6, 3, seed=s),) for s in (0, 1, 2, 0, 1, 2)])


@program()
def continue_on_a_value(jit):
    @jit
    def step(x):
        kept = []
        for row in x:
            if row[0] < 0:
                continue
            kept.append(row * 2)
        return sum(kept, wf.zeros((3,))), len(kept)

    return Case(step, [(rows(5, 3, seed=s),) for s in (0, 1, 0, 1, 2, 2)])


@program()
def nested_loops(jit):
    @jit
    def step(x, n):
        y = x
        for i in range(n):
            for j in range(i):
                if (i + j) % 3 == 0:
                    continue
                y = y + x * (i - j)
            if i == 4:
                break
        return y

    return Case(step, [(rows(2, 3), 3), (rows(2, 3, seed=1), 3), (rows(2, 3), 6), (rows(2, 3), 6)])


@program()
def while_on_a_value(jit):
    @jit
    def step(x):
        trips = 0
        while (x * x).sum() > 1.0:
            x = x * 0.5
            trips += 1
        return x, trips

    return Case(step, [(rows(4) * s,) for s in (1, 1, 8, 8, 0.01, 1, 100)])


@program()
def while_else(jit):
    @jit
    def step(x):
        n = 0
        while n < 5:
            if x.max() > 10:
                label = "large"
                break
            x = x * 2
            n += 1
        else:
            label = "small"
        return x, label, n

    return Case(step, [(rows(4) * s,) for s in (1, 0.001, 1, 0.001, 100)])


@program()
def for_else(jit):
    net = wf.nn.ModuleList([wf.nn.Linear(3, 3) for _ in range(3)])

    @jit
    def step(x):
        for layer in net:
            x = layer(x).tanh()
            if x.abs().max() < 0.1:
                break
        else:
            x = x + 1
        return x

    return Case(step, [(rows(2, 3),), (rows(2, 3, seed=4),), (wf.zeros((2, 3)),)], {"net": net})


@program()
def variable_of_one_branch(jit):
    @jit
    def step(x):
        if x.sum() > 0:
            extra = x * 3
        y = x + 1
        if x.sum() > 0:
            y = y + extra
        return y

    return Case(step, both_signs())


@program()
def unbound_variable(jit):
    @jit
    def step(x):
        if x.sum() > 0:
            y = x * 2
        return y

    return Case(step, both_signs())


@program()
def list_append_in_a_loop(jit):
    cell = wf.nn.RNNCell(3, 4)

    @jit
    def step(xs):
        h, states = wf.zeros((2, 4)), []
        for x in xs:
            h = cell(x, h)
            states.append(h)
        return wf.stack(states), states[-1]

    return Case(step, [(rows(7, 2, 3, seed=s),) for s in range(3)], {"cell": cell})


@program()
def conditional_expression(jit):
    @jit
    def step(x, scale):
        y = x * 2 if scale > 1 else x / 2
        return y if y.sum() > 0 else -y

    calls = [(rows(3), 2), (rows(3), 0), (rows(3) * -1, 2), (rows(3), 2), (rows(3) * -1, 0)]
    return Case(step, calls * 2)


@program()
def boolean_operators(jit):
    @jit
    def step(x, flag):
        if flag and x.sum() > 0:
            return x + 1
        if not flag or (x < -1).any():
            return x - 1
        return x

    x = wf.tensor(abs(array(3)))
    return Case(step, [(x, True), (x, False), (-x, True), (x, True), (-x * 5, True), (-x, False)])


@program()
def chained_comparison(jit):
    @jit
    def step(x):
        if 0 < x.sum() < 3:
            return x.sum() * 10
        return x.sum()

    return Case(step, [(wf.full((3,), v),) for v in (0.5, 2.0, -1.0, 0.5, 2.0, -1.0)])


@program()
def match_statement(jit):
    @jit
    def step(x, mode):
        match mode:
            case "double":
                return x * 2
            case ("scale", factor):
                return x * factor
            case {"shift": shift}:
                return x + shift
            case _:
                return x

    modes = ["double", ("scale", 3.0), {"shift": 1.0}, None, "double", ("scale", 4.0)]
    return Case(step, [(rows(3), mode) for mode in modes])


@program()
def comprehensions(jit):
    net = wf.nn.Linear(3, 2)

    @jit
    def step(x):
        outputs = [net(row) for row in x if row[0] > 0]
        by_name = {f"row{i}": y.sum() for i, y in enumerate(outputs)}
        return outputs, by_name

    return Case(step, [(rows(4, 3, seed=s),) for s in (0, 0, 1, 1)], {"net": net})


@program()
def newton_to_convergence(jit):
    @jit
    def square_root(a):
        x, old = a, a + 1
        for steps in range(50):
            if (x - old).abs().max() < 1e-6:
                return x, steps
            x, old = 0.5 * (x + a / x), x
        raise RuntimeError("no convergence")

    return Case(square_root, [(wf.tensor([2.0, 9.0]) * s,) for s in (1, 1, 50, 1)])


@program()
def loop_over_batches(jit):
    net = wf.nn.Linear(3, 1)
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def epoch(x, y):
        total = 0.0
        for i in range(0, len(x), 4):
            optimizer.zero_grad()
            loss = ((net(x[i : i + 4]) - y[i : i + 4]) ** 2).mean()
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total

    calls = [(rows(12, 3, seed=s), rows(12, 1, seed=s + 9)) for s in range(3)]
    return Case(epoch, calls, {"net": net, "optimizer": optimizer})


@program()
def branch_in_forward(jit):
    class Gated(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.small, self.large = wf.nn.Linear(3, 2), wf.nn.Linear(3, 2)

        def forward(self, x):
            if x.norm() > 4:
                return self.large(x)
            return self.small(x)

    net = Gated()
    optimizer = wf.optim.Adam(net.parameters(), lr=0.01)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    calls = [(rows(2, 3) * s,) for s in (0.1, 9, 0.2, 7, 0.1)]
    return Case(step, calls, {"net": net, "optimizer": optimizer})


@program()
def long_loop(jit):
    w = wf.tensor(array(4, 4) * 0.3, requires_grad=True)

    @jit
    def step(x):
        w.grad = None
        h = x
        for _ in range(60):
            h = (h @ w).tanh() + x
        loss = h.square().mean()
        loss.backward()
        return loss

    return Case(step, [(rows(2, 4, seed=s),) for s in range(3)], {"w": w})


@program()
def number_is_matched_by_its_class(jit):
    @jit
    def step(x, n):
        match n:
            case int(k) if k > 1:
                return x - k
            case _:
                return -x

    return Case(step, [(rows(3), n) for n in (3, 1, 2, 2, 1, 3)])
