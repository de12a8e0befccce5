"""jit together with gradients, vmap, graphs, custom functions and jit itself."""

from __future__ import annotations

import weft as wf
from tests.jit.harness import Case, program, rows


class Cube(wf.Function):
    """x**3 with a derivative written by hand."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class StraightThrough(wf.Function):
    """Round, and let gradients pass."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


def vectors(count=3, n=3):
    return [(rows(n, seed=s),) for s in range(count)]


@program()
def jit_of_jit(jit):
    @jit
    def inner(x):
        return x.exp() + 1

    step = jit(jit(lambda x: inner(x) * inner(-x)))
    return Case(step, vectors())


@program()
def jitted_function_that_trains_inside_another(jit):
    net = wf.nn.Linear(3, 1)
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def update(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    @jit
    def step(x):
        return update(x) + update(x * 2)

    return Case(step, [(rows(4, 3, seed=s),) for s in range(3)], {"net": net})


@program(captured=False)
def grad_of_jit(jit):
    @jit
    def f(x):
        return (x.sin() * x).sum()

    return Case(wf.grad(f), vectors())


@program()
def jit_of_grad(jit):
    step = jit(wf.grad(lambda x: (x.sin() * x).sum()))
    return Case(step, vectors())


@program()
def jit_of_value_and_grad(jit):
    w = rows(3, seed=9)
    step = jit(wf.value_and_grad(lambda x, y: ((x * w - y) ** 2).sum(), argnums=(0, 1)))
    return Case(step, [(rows(3, seed=s), rows(3, seed=s + 5)) for s in range(3)])


@program(captured=False)
def grad_of_jit_of_grad(jit):
    first = jit(wf.grad(lambda x: (x**4).sum()))
    return Case(wf.grad(lambda v: first(v).sum()), vectors())


@program(captured=False)
def vmap_of_jit(jit):
    @jit
    def f(row):
        return row.softmax(0) * row.sum()

    return Case(wf.vmap(f), [(rows(4, 3, seed=s),) for s in range(3)])


@program()
def jit_of_vmap(jit):
    w = rows(3, seed=9)
    step = jit(wf.vmap(lambda row: (row * w).sum() + row.max()))
    return Case(step, [(rows(4, 3, seed=s),) for s in range(3)])


@program(captured=False)
def jvp_of_jit(jit):
    @jit
    def f(x):
        return x.tanh() * x

    return Case(lambda x, t: wf.jvp(f, (x,), (t,)), [(rows(3, seed=s), rows(3)) for s in range(3)])


@program()
def jit_of_hessian(jit):
    step = jit(wf.hessian(lambda x: (x**3).sum() + x.prod()))
    return Case(step, vectors())


@program()
def jit_of_jacobians(jit):
    f = lambda x: wf.stack([x.sum(), (x**2).sum()])  # noqa: E731
    step = jit(lambda x: (wf.jacrev(f)(x), wf.jacfwd(f)(x)))
    return Case(step, vectors())


@program()
def jit_of_checkpoint(jit):
    net = wf.nn.Sequential(wf.nn.Linear(3, 8), wf.nn.Tanh(), wf.nn.Linear(8, 1))

    @jit
    def step(x):
        net.zero_grad()
        loss = wf.checkpoint(net)(x).square().mean()
        loss.backward()
        return loss

    return Case(step, [(rows(4, 3, seed=s),) for s in range(3)], {"net": net})


@program(captured=False)
def jitted_function_in_a_graph(jit):
    @jit
    def f(x):
        return (x * 2).tanh()

    def step(x):
        graph = wf.Graph()
        with graph:
            feed = wf.placeholder((None,), wf.float32)
            out = f(feed) + 1
        with wf.Session(graph) as session:
            return session.run(out, {feed: x})

    return Case(step, [(rows(n).numpy(),) for n in (3, 4, 3)])


@program()
def backward_outside(jit):
    net = wf.nn.Linear(3, 2)

    @jit
    def forward(x):
        return net(x).tanh().sum()

    def step(x):
        net.zero_grad()
        loss = forward(x) * 3
        loss.backward()
        return loss

    return Case(step, [(rows(4, 3, seed=s),) for s in range(4)], {"net": net})


@program()
def backward_outside_twice(jit):
    net = wf.nn.Linear(3, 2)

    @jit
    def forward(x):
        y = net(x)
        return y.sum(), (y**2).mean()

    def step(x):
        net.zero_grad()
        a, b = forward(x)
        a.backward(retain_graph=True)
        b.backward()

    return Case(step, [(rows(4, 3, seed=s),) for s in range(3)], {"net": net})


@program()
def gradient_of_an_input(jit):
    net = wf.nn.Linear(3, 1)

    @jit
    def attack(x):
        loss = net(x).sum()
        loss.backward()
        return (x + 0.1 * wf.sign(x.grad)).detach()

    calls = [(rows(2, 3, seed=s).requires_grad_(),) for s in range(3)]
    return Case(attack, calls, {"net": net})


@program()
def gradient_of_an_input_made_inside(jit):
    net = wf.nn.Linear(3, 1)

    @jit
    def saliency(x):
        x = x.detach().requires_grad_()
        net(x).sum().backward()
        return x.grad.abs()

    return Case(saliency, [(rows(2, 3, seed=s),) for s in range(3)], {"net": net})


@program()
def double_backward(jit):
    w = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)

    @jit
    def step(x):
        w.grad = None
        loss = ((w * x) ** 3).sum()
        (g,) = wf.gradients(loss, [w], create_graph=True)
        (g.square().sum() + loss).backward()
        return g

    return Case(step, vectors(), {"w": w})


@program()
def gradient_penalty(jit):
    critic = wf.nn.Sequential(wf.nn.Linear(3, 8), wf.nn.Tanh(), wf.nn.Linear(8, 1))
    optimizer = wf.optim.Adam(critic.parameters(), lr=0.01)

    @jit
    def step(x):
        optimizer.zero_grad()
        x = x.detach().requires_grad_()
        out = critic(x)
        (g,) = wf.gradients(out.sum(), [x], create_graph=True)
        penalty = ((g.norm(axis=1, ord=2) - 1) ** 2).mean()
        (out.mean() + 10 * penalty).backward()
        optimizer.step()
        return penalty

    return Case(step, [(rows(4, 3, seed=s),) for s in range(4)], {"critic": critic})


@program()
def backward_with_a_gradient(jit):
    w = wf.tensor([1.0, 2.0], requires_grad=True)

    @jit
    def step(x, g):
        w.grad = None
        (w * x).backward(g)
        return w.grad

    return Case(step, [(rows(2, seed=s), rows(2, seed=s + 4)) for s in range(3)], {"w": w})


@program()
def custom_function(jit):
    w = wf.tensor([1.0, 2.0, -1.0], requires_grad=True)

    @jit
    def step(x):
        w.grad = None
        loss = Cube.apply(w * x).sum()
        loss.backward()
        return loss

    return Case(step, vectors(), {"w": w})


@program()
def straight_through(jit):
    w = wf.tensor([0.4, 1.6, -1.2], requires_grad=True)

    @jit
    def step(x):
        w.grad = None
        loss = (StraightThrough.apply(w) * x).square().sum()
        loss.backward()
        return loss

    return Case(step, vectors(), {"w": w})


@program()
def custom_rule(jit):
    @wf.custom_vjp
    def clipped(x):
        return x * 1.0

    clipped.defvjp(lambda x: (x * 1.0, None), lambda kept, g: (g.clip(-0.1, 0.1),))
    w = wf.tensor([0.4, 1.6, -1.2], requires_grad=True)

    @jit
    def step(x):
        w.grad = None
        (clipped(w) * x).sum().backward()

    return Case(step, vectors(), {"w": w})


@program()
def control_flow_of_graphs(jit):
    @jit
    def step(x):
        y = wf.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x)
        z, sums = wf.scan(lambda c, r: (c * 0.5 + r, c.sum()), wf.zeros(()), y)
        return wf.while_loop(lambda v: v.abs() > 1, lambda v: v / 2, z), sums

    return Case(step, [(rows(3) * s,) for s in (1, -1, 5, 1)])


@program()
def meta_learning(jit):
    w = wf.tensor([[0.1], [0.2], [0.3]], requires_grad=True)

    @jit
    def step(x, y):
        w.grad = None
        (g,) = wf.gradients(((x @ w - y) ** 2).mean(), [w], create_graph=True)
        fast = w - 0.1 * g
        loss = ((x @ fast - y) ** 2).mean()
        loss.backward()
        return loss

    return Case(step, [(rows(4, 3, seed=s), rows(4, 1, seed=s + 5)) for s in range(3)], {"w": w})
