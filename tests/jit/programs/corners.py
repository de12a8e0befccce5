"""Corners: identity and types of tensors, aliases of arguments, results that nobody uses."""

from __future__ import annotations

import copy

import weft as wf
from tests.jit.harness import Call, Case, array, program, rows


@program()
def random_numbers_not_used(jit):
    @jit
    def step(x):
        wf.rand(3)  # the next call draws behind these
        return x * 2

    return Case(step, [(rows(3, seed=s),) for s in range(4)])


@program(captured=False)
def error_in_an_unused_result(jit):
    table = rows(5, 2)

    @jit
    def step(x, index):
        table[index]
        return x * 2

    return Case(step, [(rows(3), wf.tensor(i)) for i in ([0, 1], [2, 3], [0, 9], [1, 1])])


@program(captured=False)
def backward_twice(jit):
    w = wf.tensor([1.0, 2.0], requires_grad=True)

    @jit
    def step(x):
        loss = (w * x).square().sum()
        loss.backward()
        loss.backward()

    return Case(step, [(rows(2, seed=s),) for s in range(3)], {"w": w})


@program()
def backward_twice_with_retained_graph(jit):
    w = wf.tensor([1.0, 2.0], requires_grad=True)

    @jit
    def step(x):
        w.grad = None
        loss = (w * x).square().sum()
        loss.backward(retain_graph=True)
        loss.backward()
        return loss

    return Case(step, [(rows(2, seed=s),) for s in range(3)], {"w": w})


@program()
def argument_is_an_outer_tensor(jit):
    memory = wf.zeros((3,))

    @jit
    def step(x):
        memory.add_(1.0)
        return x * 2, x is memory

    a = rows(3)
    return Case(step, [(a,), (a,), (memory,), (a,), (memory,)], {"memory": memory})


@program()
def argument_is_a_parameter(jit):
    net = wf.nn.Linear(3, 3, bias=False)

    @jit
    def step(w):
        net.zero_grad()
        loss = (net(w) * w).sum()
        loss.backward()
        return loss

    other = rows(3, 3).requires_grad_()
    return Case(step, [(other,), (net.weight,), (other,), (net.weight,)], {"net": net})


@program()
def input_whose_gradient_adds_up(jit):
    x = rows(3).requires_grad_()

    @jit
    def step(x, scale):
        (x * scale).sum().backward()
        return x.grad

    calls = [Call(x, 2.0), Call(x, 2.0), Call(x, 2.0), Call(x, 3.0)]
    return Case(step, [*calls, Call(x, 2.0, before=lambda: setattr(x, "grad", None))], {"x": x})


@program()
def types_of_tensors(jit):
    net = wf.nn.Linear(3, 1)

    @jit
    def step(x):
        kinds = [type(p).__name__ for p in net.parameters()]
        return kinds, isinstance(x, wf.Tensor), isinstance(net.weight, wf.nn.Parameter), x * 2

    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)])


@program()
def tensors_as_keys(jit):
    net = wf.nn.Linear(3, 1)
    scales = {net.weight: 2.0, net.bias: 0.5}

    @jit
    def step(x):
        net.zero_grad()
        net(x).mean().backward()
        with wf.no_grad():
            for p in net.parameters():
                p.sub_(p.grad * 0.1 * scales[p])

    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)], {"net": net})


@program(falls_back=True)  # a compiled step writes moments and counts at its end
def state_of_the_optimizer_read_inside(jit):
    net = wf.nn.Linear(3, 1)
    optimizer = wf.optim.Adam(net.parameters(), lr=0.01)

    @jit
    def step(x):
        optimizer.zero_grad()
        (net(x) * optimizer.param_groups[0]["lr"]).mean().backward()
        optimizer.step()
        moments = optimizer.state[net.weight]  # falls back
        return wf.tensor(moments["exp_avg"]).norm(), optimizer.t

    return Case(step, [(rows(2, 3, seed=s),) for s in range(4)], {"net": net, "fit": optimizer})


@program(falls_back=True)  # a compiled step writes its count at its end
def steps_of_the_optimizer_decide(jit):
    net = wf.nn.Linear(3, 1)
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        if optimizer.t % 2:  # falls back
            loss = loss * 0.5
        loss.backward()
        optimizer.step()
        return loss

    return Case(step, [(rows(2, 3, seed=s),) for s in range(6)], {"net": net, "fit": optimizer})


@program()
def missing_gradient_decides(jit):
    net = wf.nn.Linear(3, 1)

    @jit
    def step(x):
        first = net.weight.grad is None
        net(x).mean().backward()
        return "first" if first else net.weight.grad.norm()

    acts = (None, None, None, net.zero_grad, None)
    calls = [Call(rows(2, 3, seed=s), before=act) for s, act in enumerate(acts)]
    return Case(step, calls, {"net": net})


@program(falls_back=True)  # the copy of a parameter is a parameter, which no symbol is
def copies_inside(jit):
    net = wf.nn.Linear(3, 1)

    @jit
    def step(x):
        y = copy.copy(x)
        y += 1
        return y, x, copy.deepcopy(net.weight) * 2  # falls back

    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)], {"net": net})


@program()
def items_deleted(jit):
    table = {"a": 1.0, "b": 2.0, "c": 3.0}
    queue = [1.0, 2.0, 3.0, 4.0]

    @jit
    def step(x):
        scale = queue.pop() if queue else 0.5
        if len(table) > 2:
            del table["c"]
        return x * scale * len(table)

    return Case(step, [(rows(3),)] * 6, {"table": table, "queue": queue})


@program()
def no_tensors_at_all(jit):
    total = [0]

    @jit
    def step(n):
        total[0] += n
        return n + 1, total[0] * 2

    return Case(step, [(n,) for n in (1, 1, 2, 2.5, 1)], {"total": total})


@program()
def no_arguments(jit):
    w = wf.tensor([3.0, -2.0], requires_grad=True)
    optimizer = wf.optim.SGD([w], lr=0.1, momentum=0.9)

    @jit
    def step():
        optimizer.zero_grad()
        loss = (w**2).sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    return Case(step, [()] * 5, {"w": w, "optimizer": optimizer})


@program()
def penalty_over_parameters(jit):
    net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.Tanh(), wf.nn.Linear(4, 1))
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        for name, p in net.named_parameters():
            if name.endswith("weight"):
                loss = loss + 0.01 * p.abs().sum()
        loss.backward()
        optimizer.step()
        return loss

    return Case(step, [(rows(4, 3, seed=s),) for s in range(3)], {"net": net})


@program(captured=False)
def epoch_over_a_loader(jit):
    net = wf.nn.Linear(3, 1)
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)
    data = wf.data.TensorDataset(array(12, 3), array(12, 1, seed=1))
    loader = wf.data.DataLoader(data, batch_size=4)

    @jit
    def epoch():
        losses = []
        for x, y in loader:
            optimizer.zero_grad()
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    return Case(epoch, [()] * 3, {"net": net})


@program()
def large_matrices(jit):
    net = wf.nn.Sequential(wf.nn.Linear(128, 256), wf.nn.ReLU(), wf.nn.Linear(256, 10))
    optimizer = wf.optim.SGD(net.parameters(), lr=0.01)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Case(step, [(rows(64, 128, seed=s),) for s in range(3)], {"net": net})


@program()
def decorator_with_parentheses(jit):
    @jit()
    def step(x):
        return x.exp()

    return Case(step, [(rows(3, seed=s),) for s in range(3)])


@program()
def sorted_by_value(jit):
    @jit
    def step(xs):
        return sorted(xs, key=lambda x: x.sum().item())[1] * 2

    orders = ((0, 1, 2), (2, 1, 0), (0, 1, 2), (1, 0, 2), (2, 1, 0))
    return Case(step, [([rows(2, seed=s) for s in order],) for order in orders])


@program()
def function_used_by_two_jits(jit):
    seen = []

    def forward(x, k):
        seen.append(k)
        return x * k

    one, two = jit(forward), jit(forward)
    return Case(lambda x: (one(x, 2), two(x, 3), one(x, 2)), [(rows(3),)] * 4, {"seen": seen})
