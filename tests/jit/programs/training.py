"""Steps of training: optimizers, averages, two networks, kinds of layers."""

from __future__ import annotations

import copy

import weft as wf
from tests.jit.harness import Call, Case, labels, program, rows

F = wf.nn.functional


def regression(count=5, n=4):
    """Return calls with a batch of three features and one target each."""
    return [(rows(n, 3, seed=s), rows(n, 1, seed=s + 50)) for s in range(count)]


def mlp():
    return wf.nn.Sequential(wf.nn.Linear(3, 8), wf.nn.Tanh(), wf.nn.Linear(8, 1))


@program()
def classification_with_adam(jit):
    net = wf.nn.Sequential(wf.nn.Linear(5, 16), wf.nn.ReLU(), wf.nn.Linear(16, 3))
    optimizer = wf.optim.Adam(net.parameters(), lr=0.01)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        logits = net(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        return loss, (logits.argmax(axis=1) == y).sum()

    calls = [(rows(8, 5, seed=s), labels(8, 3, seed=s)) for s in range(5)]
    return Case(step, calls, {"net": net, "optimizer": optimizer})


def _with_optimizer(jit, make):
    """Return a plain training step with some optimizer."""
    net = mlp()
    optimizer = make(net.parameters())

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return Case(step, regression(), {"net": net, "optimizer": optimizer})


@program()
def momentum_with_decay(jit):
    return _with_optimizer(
        jit,
        lambda ps: wf.optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    )


@program()
def decoupled_decay(jit):
    return _with_optimizer(jit, lambda ps: wf.optim.AdamW(ps, lr=0.01, weight_decay=0.1))


@program()
def rmsprop(jit):
    return _with_optimizer(jit, lambda ps: wf.optim.RMSprop(ps, lr=0.01, momentum=0.5))


@program()
def lamb(jit):
    return _with_optimizer(jit, lambda ps: wf.optim.LAMB(ps, lr=0.01))


@program()
def minimize(jit):
    net = mlp()
    optimizer = wf.optim.Adam(net.parameters(), lr=0.01)

    @jit
    def step(x, y):
        loss = F.mse_loss(net(x), y)
        optimizer.minimize(loss)
        return loss

    return Case(step, regression(), {"net": net, "optimizer": optimizer})


@program(captured=False)
def line_search(jit):
    net = wf.nn.Linear(3, 1)
    optimizer = wf.optim.LBFGS(net.parameters(), lr=0.5, max_iter=3)

    @jit
    def step(x, y):
        def closure():
            optimizer.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            return loss

        return optimizer.step(closure)

    return Case(step, regression(3, n=8), {"net": net})


@program()
def two_optimizers(jit):
    generator, critic = wf.nn.Linear(2, 3), mlp()
    g_optimizer = wf.optim.Adam(generator.parameters(), lr=0.01)
    c_optimizer = wf.optim.Adam(critic.parameters(), lr=0.02)

    @jit
    def step(real, noise):
        c_optimizer.zero_grad()
        fake = generator(noise)
        c_loss = F.softplus(-critic(real)).mean() + F.softplus(critic(fake.detach())).mean()
        c_loss.backward()
        c_optimizer.step()
        g_optimizer.zero_grad()
        g_loss = F.softplus(-critic(fake)).mean()
        g_loss.backward()
        g_optimizer.step()
        return c_loss, g_loss

    calls = [(rows(4, 3, seed=s), rows(4, 2, seed=s + 9)) for s in range(4)]
    state = {"generator": generator, "critic": critic, "g": g_optimizer, "c": c_optimizer}
    return Case(step, calls, state)


@program()
def soft_target_network(jit):
    online = mlp()
    target = copy.deepcopy(online)
    optimizer = wf.optim.SGD(online.parameters(), lr=0.1)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        with wf.no_grad():
            goal = y + 0.9 * target(x)
        loss = F.mse_loss(online(x), goal)
        loss.backward()
        optimizer.step()
        with wf.no_grad():
            for t, p in zip(target.parameters(), online.parameters(), strict=True):
                t.copy_(0.95 * t + 0.05 * p)
        return loss

    return Case(step, regression(), {"online": online, "target": target})


@program()
def hard_target_network(jit):
    online, target = mlp(), mlp()
    optimizer = wf.optim.SGD(online.parameters(), lr=0.1)
    steps = {"n": 0}

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(online(x), y + target(x).detach())
        loss.backward()
        optimizer.step()
        steps["n"] += 1
        if steps["n"] % 3 == 0:
            target.load_state_dict(online.state_dict())
        return loss

    return Case(step, regression(7), {"online": online, "target": target, "steps": steps})


@program()
def layer_frozen_midway(jit):
    net = mlp()
    optimizer = wf.optim.Adam(net.parameters(), lr=0.05)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()

    def freeze(flag):
        return lambda: net[0].requires_grad_(flag)

    data = regression(7)
    calls = [Call(*data[0]), Call(*data[1]), Call(*data[2], before=freeze(False)), Call(*data[3])]
    calls += [Call(*data[4]), Call(*data[5], before=freeze(True)), Call(*data[6])]
    return Case(step, calls, {"net": net, "optimizer": optimizer})


@program()
def tied_weights(jit):
    encoder, decoder = wf.nn.Linear(3, 2, bias=False), wf.nn.Linear(2, 3, bias=False)
    tied = wf.nn.Linear(3, 2, bias=False)
    tied.weight = encoder.weight
    optimizer = wf.optim.SGD(encoder.parameters(), lr=0.1)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = F.mse_loss(encoder(x) @ tied.weight, x) + decoder(tied(x)).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    state = {"encoder": encoder, "tied": tied, "decoder": decoder}
    return Case(step, [(rows(4, 3, seed=s),) for s in range(4)], state)


@program()
def averaged_weights(jit):
    net = mlp()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)
    ema = wf.optim.EMA(net, decay=0.9, warmup=True)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
        ema.update()

    return Case(step, regression(6), {"net": net, "ema": ema, "average": lambda: ema.values})


@program()
def averaged_weights_by_hand(jit):
    net = mlp()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)
    shadow = {name: p.detach().clone() for name, p in net.named_parameters()}

    @jit
    def step(x, y):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
        for name, p in net.named_parameters():
            shadow[name] = 0.9 * shadow[name] + 0.1 * p.detach()

    return Case(step, regression(), {"net": net, "shadow": shadow})


@program()
def update_by_hand(jit):
    w = wf.tensor([[0.5], [0.1], [-0.2]], requires_grad=True)

    @jit
    def step(x, y):
        loss = ((x @ w - y) ** 2).mean()
        loss.backward()
        with wf.no_grad():
            w.sub_(0.1 * w.grad)
            w.grad.zero_()
        return loss

    return Case(step, regression(), {"w": w})


@program()
def gradients_without_backward(jit):
    net = mlp()
    params = list(net.parameters())

    @jit
    def step(x, y):
        loss = F.mse_loss(net(x), y)
        grads = wf.gradients(loss, params)
        with wf.no_grad():
            for p, g in zip(params, grads, strict=True):
                p.copy_(p - 0.1 * g)
        return loss, grads

    return Case(step, regression(), {"net": net})


@program()
def convolutions(jit):
    net = wf.nn.Sequential(
        wf.nn.Conv2d(1, 4, 3),
        wf.nn.ReLU(),
        wf.nn.MaxPool2d(2),
        wf.nn.Flatten(),
        wf.nn.Linear(36, 3),
    )
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    calls = [(rows(4, 1, 8, 8, seed=s), labels(4, 3, seed=s)) for s in range(3)]
    return Case(step, calls, {"net": net})


@program()
def embedding_and_recurrence(jit):
    embedding, lstm, head = wf.nn.Embedding(11, 4), wf.nn.LSTM(4, 6), wf.nn.Linear(6, 11)
    modules = wf.nn.ModuleList([embedding, lstm, head])
    optimizer = wf.optim.Adam(modules.parameters(), lr=0.01)

    @jit
    def step(tokens):
        optimizer.zero_grad()
        h, _ = lstm(embedding(tokens[:-1]))
        loss = F.cross_entropy(head(h).reshape(-1, 11), tokens[1:].reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    calls = [(labels(18, 11, seed=s).reshape(6, 3),) for s in range(3)]
    return Case(step, calls, {"modules": modules})


@program()
def early_stopping(jit):
    net = mlp()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)
    best = {"loss": float("inf"), "weights": None, "bad": 0}

    @jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        if loss.item() < best["loss"]:
            best["loss"] = loss.item()
            best["weights"] = {k: v.clone() for k, v in net.state_dict().items()}
            best["bad"] = 0
        else:
            best["bad"] += 1
        return best["bad"] >= 2

    return Case(step, regression(7), {"net": net, "best": best})
