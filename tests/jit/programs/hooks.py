"""Hooks of tensors, modules and optimizers, and gradients that are kept or replaced."""

from __future__ import annotations

import weft as wf
from tests.jit.harness import Call, Case, program, rows


@program()
def hook_that_replaces_a_gradient(jit):
    w = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)

    @jit
    def step(x):
        w.grad = None
        y = w * x
        y.register_hook(lambda g: g * 10)
        loss = y.square().sum()
        loss.backward()
        return loss

    return Case(step, [(rows(3, seed=s),) for s in range(3)], {"w": w})


@program()
def hook_that_logs_gradients(jit):
    net = wf.nn.Linear(3, 2)
    seen = []
    net.weight.register_hook(lambda g: seen.append(g.norm()))

    @jit
    def step(x):
        net.zero_grad()
        net(x).square().mean().backward()

    return Case(step, [(rows(4, 3, seed=s),) for s in range(4)], {"net": net, "seen": seen})


@program()
def hook_that_reads_a_value(jit):
    w = wf.tensor([1.0, -2.0], requires_grad=True)
    sizes = []

    @jit
    def step(x):
        w.grad = None
        y = w * x

        def clip(g):
            norm = g.norm().item()
            sizes.append(norm)
            return g / norm if norm > 1 else None

        y.register_hook(clip)
        y.square().sum().backward()

    calls = [(rows(2) * s,) for s in (0.1, 5, 0.1, 5)]
    return Case(step, calls, {"w": w, "sizes": sizes})


@program()
def hook_removed_between_calls(jit):
    w = wf.tensor([1.0, -2.0], requires_grad=True)
    handle = w.register_hook(lambda g: g * 100)

    @jit
    def step(x):
        w.grad = None
        (w * x).sum().backward()

    x = rows(2)
    return Case(step, [Call(x), Call(x), Call(x, before=handle.remove), Call(x)], {"w": w})


@program()
def hook_added_between_calls(jit):
    w = wf.tensor([1.0, -2.0], requires_grad=True)

    @jit
    def step(x):
        w.grad = None
        (w * x).sum().backward()

    x = rows(2)
    calls = [Call(x), Call(x), Call(x, before=lambda: w.register_hook(lambda g: -g)), Call(x)]
    return Case(step, calls, {"w": w})


@program()
def retained_gradient(jit):
    net = wf.nn.Linear(3, 2)

    @jit
    def step(x):
        net.zero_grad()
        h = net(x)
        h.retain_grad()
        h.square().sum().backward()
        return h.grad

    return Case(step, [(rows(4, 3, seed=s),) for s in range(3)], {"net": net})


@program()
def forward_hook_that_replaces(jit):
    net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.ReLU(), wf.nn.Linear(4, 1))
    net[0].register_forward_hook(lambda module, args, output: output * 2)

    @jit
    def step(x):
        return net(x)

    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)], {"net": net})


@program()
def forward_hook_that_collects(jit):
    net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.ReLU(), wf.nn.Linear(4, 1))
    features = {}
    for name, layer in net.named_children():
        layer.register_forward_hook(lambda m, a, out, name=name: features.update({name: out}))

    @jit
    def step(x):
        return net(x)

    state = {"net": net, "features": features}
    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)], state)


@program()
def hook_before_forward(jit):
    net = wf.nn.Linear(3, 1)
    net.register_forward_pre_hook(lambda module, args: (args[0] - args[0].mean(),))

    @jit
    def step(x):
        return net(x)

    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)], {"net": net})


@program()
def forward_hook_removed(jit):
    net = wf.nn.Linear(3, 1)
    handle = net.register_forward_hook(lambda module, args, output: output + 100)

    @jit
    def step(x):
        return net(x)

    x = rows(2, 3)
    return Case(step, [Call(x), Call(x), Call(x, before=handle.remove), Call(x)], {"net": net})


@program()
def backward_hook_of_a_module(jit):
    net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.Tanh(), wf.nn.Linear(4, 1))
    seen = []

    def halve(module, grad_input, grad_output):
        seen.append([g.shape for g in grad_output])
        return tuple(g * 0.5 if g is not None else None for g in grad_input)

    net[1].register_full_backward_hook(halve)

    @jit
    def step(x):
        net.zero_grad()
        net(x).square().mean().backward()

    return Case(step, [(rows(4, 3, seed=s),) for s in range(3)], {"net": net, "seen": seen})


@program()
def hooks_of_an_optimizer(jit):
    net = wf.nn.Linear(3, 1)
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)
    norms = []

    def shrink(optimizer):
        for p in optimizer.parameters():
            p.grad = p.grad * 0.5

    optimizer.register_step_pre_hook(shrink)
    optimizer.register_step_post_hook(lambda opt: norms.append(net.weight.norm().item()))

    @jit
    def step(x):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    return Case(step, [(rows(4, 3, seed=s),) for s in range(4)], {"net": net, "norms": norms})


@program()
def hook_inside_a_with_block(jit):
    net = wf.nn.Linear(3, 2)

    @jit
    def step(x):
        kept = []
        with net.register_forward_hook(lambda module, args, output: kept.append(output)):
            net(x)
        net(x + 1)
        return kept

    return Case(step, [(rows(2, 3, seed=s),) for s in range(3)], {"net": net})


@program()
def hook_with_a_counter(jit):
    class Counting(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.calls = wf.nn.Linear(3, 3), 0
            self.layer.register_forward_hook(self.count)

        def count(self, module, args, output):
            self.calls += 1
            return output / self.calls

        def forward(self, x):
            return self.layer(self.layer(x))

    net = Counting()
    return Case(jit(net), [(rows(2, 3, seed=s),) for s in range(4)], {"net": net})
