"""Modules that replace their buffers in `forward`, and what is done to these between two calls."""

from __future__ import annotations

import copy

import weft as wf
from tests.jit.harness import Call, Case, program, rows

F = wf.nn.functional


class Centered(wf.nn.Module):
    """Subtracts a running mean, which is another tensor after each call."""

    def __init__(self, size=3, persistent=True):
        super().__init__()
        self.linear = wf.nn.Linear(size, size)
        self.register_buffer("mean", wf.zeros(size), persistent=persistent)

    def forward(self, x):
        x = self.linear(x)
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return x - self.mean


def _trained(jit, net, before=None, count=6):
    """Return a training step of a net, and what is done to the net before some calls."""
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    acts = {at: (lambda act=act: act(net)) for at, act in (before or {}).items()}
    calls = [Call(rows(4, 3, seed=s), before=acts.get(s)) for s in range(count)]
    return Case(step, calls, {"net": net, "saved": net.state_dict})


@program()
def running_mean_that_is_replaced(jit):
    return _trained(jit, Centered())


@program()
def running_mean_that_is_not_saved(jit):
    return _trained(jit, Centered(persistent=False))


@program()
def running_means_in_a_sequence(jit):
    return _trained(jit, wf.nn.Sequential(Centered(), wf.nn.Tanh(), Centered()))


@program()
def running_means_in_a_loop_over_modules(jit):
    class Stack(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = wf.nn.ModuleList([Centered() for _ in range(3)])
            self.register_buffer("seen", wf.zeros(()))

        def forward(self, x):
            for part in self.parts:
                x = x + part(x).tanh()
            self.seen = self.seen + 1
            return x / self.seen

    return _trained(jit, Stack())


@program()
def buffers_set_by_their_names(jit):
    class Moments(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = wf.nn.Parameter(wf.ones(3))
            for name in ("first", "second"):
                self.register_buffer(name, wf.ones(3))

        def forward(self, x):
            for power, name in enumerate(("first", "second"), 1):
                new = (x.detach() ** power).mean(0)
                setattr(self, name, getattr(self, name).lerp(new, 0.1))
            return self.scale * (x - self.first) / (self.second + 0.1).sqrt()

    return _trained(jit, Moments())


@program()
def buffer_that_is_only_written(jit):
    class Last(Centered):
        def forward(self, x):
            self.mean = x.detach().mean(0)
            return self.linear(x)

    return _trained(jit, wf.nn.Sequential(Last(), Last()))


class Tracked(wf.nn.Linear):
    """A layer that was derived: its code is not followed all through."""

    def __init__(self):
        super().__init__(3, 3)
        self.register_buffer("largest", wf.zeros(3))

    def forward(self, x):
        y = super().forward(x)
        if self.training:
            self.largest = wf.maximum(self.largest, y.detach().abs().amax(0))
        return y / (self.largest + 1)


@program()
def buffer_of_a_layer_that_was_derived(jit):
    return _trained(jit, Tracked())


@program()
def buffers_read_by_one_function_and_written_by_another(jit):
    net = wf.nn.Sequential(Centered(), Tracked(), wf.nn.BatchNorm1d(3))

    @jit
    def train(x):
        return net.train()(x)

    @jit
    def evaluate(x):
        return net.eval()(x)

    def replace():
        net[2].running_mean = rows(3, seed=8)

    def step(x):
        return train(x), evaluate(x)

    calls = [Call(rows(4, 3, seed=s), before=replace if s % 3 == 2 else None) for s in range(9)]
    return Case(step, calls, {"net": net})


@program()
def module_with_a_buffer_is_jitted_itself(jit):
    net = Centered()
    return Case(jit(net), [(rows(4, 3, seed=s),) for s in range(6)], {"net": net})


@program()
def buffers_changed_in_place(jit):
    class Counted(Centered):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", wf.zeros(()))

        def forward(self, x):
            x = self.linear(x)
            with wf.no_grad():
                self.count += 1
                self.mean.copy_(self.mean + (x.mean(0) - self.mean) / self.count)
            return x - self.mean

    return _trained(jit, Counted())


@program()
def codebook_of_moving_averages(jit):
    class Quantizer(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = wf.nn.Linear(3, 2)
            self.register_buffer("codes", rows(4, 2, seed=9))
            self.register_buffer("sizes", wf.ones(4))
            self.register_buffer("sums", rows(4, 2, seed=9))

        def forward(self, x):
            z = self.encoder(x)
            distances = (z.detach().unsqueeze(1) - self.codes).square().sum(-1)
            chosen = F.one_hot(distances.argmin(1), 4).float()
            if self.training:
                self.sizes = 0.9 * self.sizes + 0.1 * chosen.sum(0)
                self.sums = 0.9 * self.sums + 0.1 * chosen.T @ z.detach()
                self.codes = self.sums / self.sizes.unsqueeze(1)
            quantized = chosen @ self.codes
            return z - quantized

    return _trained(jit, Quantizer())


@program()
def spectral_norm_by_hand(jit):
    class Spectral(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = wf.nn.Parameter(rows(3, 3, seed=5))
            self.register_buffer("u", F.normalize(rows(3, seed=6), dim=0))

        def forward(self, x):
            if self.training:
                with wf.no_grad():
                    v = F.normalize(self.weight.T @ self.u, dim=0)
                    self.u = F.normalize(self.weight @ v, dim=0)
            sigma = self.u @ self.weight @ F.normalize(self.weight.T @ self.u, dim=0).detach()
            return x @ (self.weight / sigma).T

    return _trained(jit, Spectral())


# -- changes from outside --------------------------------------------------------------------------


@program()
def buffer_given_another_value_between_calls(jit):
    def replace(net):
        net.mean = wf.ones(3)

    def load(net):
        net.load_state_dict({name: value + 1 for name, value in net.state_dict().items()})

    def fill(net):
        net.mean.fill_(5.0)

    return _trained(jit, Centered(), {2: replace, 4: load, 5: fill}, count=8)


@program()
def modes_changed_around_a_buffer(jit):
    modes = {2: lambda net: net.eval(), 4: lambda net: net.train(), 6: lambda net: net.eval()}
    return _trained(jit, Centered(), modes, count=8)


@program()
def buffer_of_another_kind_between_calls(jit):
    def shape(net):
        net.mean = wf.zeros(1, 3)

    def dtype(net):
        net.mean = wf.zeros(3, dtype=wf.float64)

    def parameter(net):
        net.mean = wf.nn.Parameter(wf.zeros(3))

    def plain(net):
        del net.mean
        net.mean = wf.ones(3)

    def nothing(net):
        net.mean = None

    changes = {2: shape, 4: dtype, 6: plain, 8: parameter, 9: nothing}
    return _trained(
        jit,
        wf.nn.Sequential(Centered()),
        {at: (lambda net, change=change: change(net[0])) for at, change in changes.items()},
        count=11,
    )


@program()
def weights_replaced_next_to_a_buffer(jit):
    def weight(net):
        net[0].linear.weight = wf.nn.Parameter(rows(3, 3, seed=7))

    def other(net):
        net[1].mean = net[0].mean

    def layer(net):
        net[1] = Centered()

    changes = {2: weight, 4: other, 6: layer}
    return _trained(jit, wf.nn.Sequential(Centered(), Centered()), changes, count=9)


@program()
def buffer_of_a_module_that_is_only_read(jit):
    net, statistics = Centered(), Centered()

    @jit
    def step(x):
        return net(x) + statistics.mean

    def replace():
        statistics.mean = wf.ones(3)

    def share():
        statistics.mean = net.mean

    acts = {2: replace, 4: share}
    calls = [Call(rows(4, 3, seed=s), before=acts.get(s)) for s in range(7)]
    return Case(step, calls, {"net": net, "statistics": statistics})


@program()
def copy_of_a_net_with_a_buffer(jit):
    net = Centered()
    kept = []

    @jit
    def step(x):
        return net(x)

    calls = [
        Call(rows(4, 3, seed=s), before=lambda: kept.append(copy.deepcopy(net))) for s in range(5)
    ]
    return Case(step, calls, {"net": net, "kept": kept})


@program()
def buffer_passed_as_an_argument(jit):
    net = Centered()
    passed = [rows(3, seed=8)]

    @jit
    def step(x, mean):
        return net(x) * mean

    class Now(Call):
        """A call with what the buffer is by then."""

        args = property(lambda self: (rows(4, 3), net.mean), lambda self, value: None)

    calls = [*(Call(rows(4, 3, seed=s), passed[0]) for s in range(3)), Now(), Now(), Now()]
    return Case(step, calls, {"net": net})


@program()
def average_of_a_buffer_that_is_replaced(jit):
    net = Centered()
    average = wf.optim.EMA(net, decay=0.5, use_buffers=True)

    @jit
    def step(x):
        y = net(x)
        average.update()
        return y

    calls = [(rows(4, 3, seed=s),) for s in range(6)]
    return Case(step, calls, {"net": net, "average": average.state_dict})


@program()
def buffer_kept_in_a_list_as_well(jit):
    net, history = Centered(), []

    @jit
    def step(x):
        y = net(x)
        history.append(net.mean)
        return y

    return Case(step, [(rows(4, 3, seed=s),) for s in range(5)], {"net": net, "history": history})
