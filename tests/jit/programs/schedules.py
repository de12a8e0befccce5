"""Around the optimizer: accumulation, clipping, rates, schedules, scaling of the loss."""

from __future__ import annotations

import weft as wf
from tests.jit.harness import Call, Case, program, rows
from tests.jit.programs.training import mlp, regression

F = wf.nn.functional


@program()
def accumulation_over_calls(jit):
    net = mlp()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(x, y, last):
        loss = F.mse_loss(net(x), y) / 2
        loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
        return loss

    calls = [(x, y, i % 2 == 1) for i, (x, y) in enumerate(regression(8))]
    return Case(step, calls, {"net": net, "optimizer": optimizer})


@program()
def accumulation_by_a_counter(jit):
    net = mlp()
    optimizer = wf.optim.Adam(net.parameters(), lr=0.01)
    count = {"batches": 0}

    @jit
    def step(x, y):
        F.mse_loss(net(x), y).backward()
        count["batches"] += 1
        if count["batches"] % 3 == 0:
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)

    return Case(step, regression(9), {"net": net, "optimizer": optimizer, "count": count})


@program()
def accumulation_inside(jit):
    net = mlp()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(xs, ys):
        optimizer.zero_grad()
        losses = []
        for x, y in zip(xs, ys, strict=True):
            loss = F.mse_loss(net(x), y)
            loss.backward()
            losses.append(loss.detach())
        optimizer.step()
        return losses

    calls = [(rows(3, 4, 3, seed=s), rows(3, 4, 1, seed=s + 9)) for s in range(3)]
    return Case(step, calls, {"net": net})


@program()
def clipping_by_norm(jit):
    net = mlp()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        norm = wf.optim.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        return norm

    calls = [(x * s, y) for (x, y), s in zip(regression(), (0.1, 9, 0.1, 9, 1), strict=True)]
    return Case(step, calls, {"net": net})


@program()
def clipping_by_value(jit):
    net = mlp()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        wf.optim.clip_grad_value_(net.parameters(), 0.1)
        optimizer.step()
        return loss

    return Case(step, regression(), {"net": net})


@program()
def clipping_by_hand(jit):
    net = mlp()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        for p in net.parameters():
            p.grad = p.grad.clip(-0.05, 0.05) / (1 + p.grad.norm())
        optimizer.step()

    return Case(step, regression(), {"net": net})


@program()
def rate_changed_from_outside(jit):
    net = mlp()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.5)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()

    def set_rate(rate):
        def set_it():
            optimizer.param_groups[0]["lr"] = rate

        return set_it

    calls = [Call(x, y, before=set_rate(0.5 / (i + 1))) for i, (x, y) in enumerate(regression(6))]
    return Case(step, calls, {"net": net, "optimizer": optimizer})


@program()
def schedule_stepped_inside(jit):
    net = mlp()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
    schedule = wf.optim.lr.CosineAnnealingLR(optimizer, T_max=10)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
        schedule.step()

    return Case(step, regression(7), {"net": net, "optimizer": optimizer, "schedule": schedule})


@program()
def schedule_stepped_outside(jit):
    net = mlp()
    optimizer = wf.optim.Adam(net.parameters(), lr=0.5)
    schedule = wf.optim.lr.StepLR(optimizer, step_size=2, gamma=0.1)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()

    calls = [
        Call(x, y, before=schedule.step if i else None) for i, (x, y) in enumerate(regression(6))
    ]
    return Case(step, calls, {"net": net, "optimizer": optimizer, "schedule": schedule})


@program()
def warm_up_by_hand(jit):
    net = mlp()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.0)
    done = [0]

    @jit
    def step(x, y):
        done[0] += 1
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * min(1.0, done[0] / 3)
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()

    return Case(step, regression(6), {"net": net, "optimizer": optimizer, "done": done})


@program()
def loss_scaling(jit):
    net = mlp()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)
    scaler = wf.optim.LossScaler(optimizer, scale=1024.0, interval=2)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        optimizer.step()
        return loss

    data = regression(6)
    data[3] = (data[3][0] * float("inf"), data[3][1])  # a step that is left out
    state = {"net": net, "optimizer": optimizer, "scaler": scaler.state_dict}
    return Case(step, data, state)


@program()
def groups_with_their_own_rates(jit):
    net = mlp()
    groups = [{"params": net[0].parameters()}, {"params": net[2].parameters(), "lr": 0.01}]
    optimizer = wf.optim.SGD(groups, lr=0.1, momentum=0.9)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()

    return Case(step, regression(), {"net": net, "optimizer": optimizer})


@program()
def gradients_cleared_outside(jit):
    net = mlp()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(x, y):
        F.mse_loss(net(x), y).backward()
        optimizer.step()

    clear = (None, None, optimizer.zero_grad, None, optimizer.zero_grad, None)
    calls = [Call(*d, before=c) for d, c in zip(regression(6), clear, strict=True)]
    return Case(step, calls, {"net": net})


@program()
def rate_read_before_the_schedule_steps(jit):
    net = mlp()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.5)
    schedule = wf.optim.lr.StepLR(optimizer, 2, gamma=0.5)

    @jit
    def step(x, y):
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        return loss

    return Case(step, regression(7), {"net": net, "optimizer": optimizer, "schedule": schedule})


@program(falls_back=True)  # the step would use the rate of before the call
def schedule_stepped_before_the_optimizer(jit):
    net = mlp()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.5)
    schedule = wf.optim.lr.ExponentialLR(optimizer, 0.5)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        schedule.step()
        optimizer.step()  # falls back

    return Case(step, regression(4), {"net": net, "optimizer": optimizer, "schedule": schedule})


@program(falls_back=True)  # the rate is that of after the schedule's step
def rate_returned_after_the_schedule(jit):
    net = mlp()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.5)
    schedule = wf.optim.lr.ExponentialLR(optimizer, 0.5)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
        schedule.step()
        return schedule.get_last_lr()  # falls back

    return Case(step, regression(4), {"net": net, "optimizer": optimizer, "schedule": schedule})


@program(captured=False)
def schedule_of_a_user_stepped_inside(jit):
    net, seen = mlp(), []
    optimizer = wf.optim.SGD(net.parameters(), lr=0.5)

    class Halved(wf.optim.lr.LRScheduler):
        def next_lr(self, lr, base):
            seen.append(self.last_epoch)
            return lr * 0.5

    schedule = Halved(optimizer)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
        schedule.step()
        seen.append("end")

    return Case(step, regression(4), {"net": net, "seen": seen, "schedule": schedule})
