"""Models whose state, layers or stages are divided among processes train as one process does."""

import os

import numpy as np
import pytest

import weft as wf
from tests.distributed.workloads import MODES, WORKLOADS, made_step, train
from weft import distributed as dist
from weft.distributed.launcher.heartbeat import pulse

LONG = os.environ.get("WEFT_TEST_LONG") == "1"
STEPS = 50 if LONG else 3
RANK, SIZE = dist.rank(), dist.size()


def sharded_losses(name, mode, stage, **options):
    kept = {}

    def look(model, optimizer):
        kept.update(dist.memory_of(model.parameters(), optimizer))

    found = train(name, mode, steps=STEPS, zero=stage, look=look, **options)
    return found, kept, 8 * sum(p.numel() for p in WORKLOADS[name][0]().parameters())


def check_sharded_state():
    for name in WORKLOADS if LONG else ("mlp",):
        alone = train(name, "eager", steps=STEPS, alone=True)
        for mode, stage in [(m, s) for m in MODES for s in (1, 2, 3)] if LONG else SOME:
            found, memory, whole = sharded_losses(name, mode, stage)
            np.testing.assert_allclose(found, alone, rtol=1e-10, err_msg=f"{name} {mode} {stage}")
            # Parameters, gradients and two slots of each process: a part of all, but for what is
            # filled up and for batch normalisation, which stays whole.
            assert memory["parameters"] <= whole / SIZE * 1.1 + 200
            assert memory["slots"] <= 2 * whole / SIZE * 1.1 + 400


SOME = (("eager", 3), ("jit", 3), ("jit", 2), ("static", 3))


def check_clipping_of_parts():
    for name in WORKLOADS if LONG else ("mlp",):
        alone = train(name, "eager", steps=STEPS, alone=True, clip=0.1)
        for mode in MODES if LONG else ("jit", "static"):
            found, *_ = sharded_losses(name, mode, 3, clip=0.1)
            np.testing.assert_allclose(found, alone, rtol=1e-10, err_msg=f"{name} {mode}")


def check_whole_states_come_and_go():
    wf.manual_seed(1)
    model = wf.nn.Sequential(wf.nn.Linear(5, 3), wf.nn.BatchNorm1d(3), wf.nn.Linear(3, 2))
    before = {name: x.numpy().copy() for name, x in model.state_dict().items()}
    dist.shard_parameters(model)
    state = dist.full_state_dict(model)
    assert set(state) == set(before)
    for name, x in before.items():
        np.testing.assert_array_equal(state[name].numpy(), x)
    dist.load_full_state_dict(model, {name: x * 2 for name, x in before.items()})
    np.testing.assert_array_equal(
        dist.full_state_dict(model)["0.weight"].numpy(), before["0.weight"] * 2
    )


class Block(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = wf.nn.Embedding(12, 8)
        self.attention = wf.nn.MultiheadAttention(8, 4, batch_first=True)
        self.norm = wf.nn.LayerNorm(8)
        self.up, self.down = wf.nn.Linear(8, 16), wf.nn.Linear(16, 8)
        self.head = wf.nn.Linear(8, 12)

    def forward(self, tokens):
        x = self.table(tokens)
        if isinstance(self.attention, wf.nn.MultiheadAttention):
            x = x + self.attention(x, x, x, need_weights=False)[0]
        else:
            x = x + self.attention(x)
        x = self.norm(x)
        return self.head(x + self.down(wf.nn.functional.gelu(self.up(x))))


PLAN = {
    "table": "table",
    "attention": "heads",
    "up": "column",
    "down": "row",
    "head": "column_to_all",
}


def check_divided_layers():
    for mode in MODES if LONG else ("jit",):
        found = []
        for plan in (None, PLAN):
            wf.manual_seed(5)
            model = Block().to(wf.float64)
            if plan is not None:
                dist.tensor_parallel(model, plan)
            optimizer = wf.optim.Adam(model.parameters(), lr=1e-2)
            step = made_step(model, optimizer, mode)
            rng = np.random.default_rng(0)
            losses = []
            for _ in range(STEPS):
                tokens = wf.tensor(rng.integers(0, 12, (4, 6)))
                losses.append(float(np.asarray(step(tokens, tokens))))
            found.append(losses)
        np.testing.assert_allclose(found[1], found[0], rtol=1e-10, err_msg=mode)
        counts = [p.numel() for p in model.parameters()]
        assert sum(counts) < 12 * 8 * 2 + 8 * 8 * 4 + 16 * 8 * 2  # less than the whole has


def check_parts_of_a_tensor():
    x = wf.tensor(np.arange(4.0 * SIZE).reshape(2, -1), requires_grad=True)
    part = dist.local_part(x, axis=1)
    assert part.shape == (2, 2)
    whole = dist.join_parts(part * part, axis=1)
    whole.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * x.detach().numpy())
    with pytest.raises(ValueError, match="must divide axis 0"):
        dist.local_part(wf.ones(SIZE + 1))


def stages():
    wf.manual_seed(7)
    layers = [wf.nn.Sequential(wf.nn.Linear(6, 6), wf.nn.Tanh()) for _ in range(SIZE)]
    return [layer.to(wf.float64) for layer in layers]


def check_pipelines():
    rng = np.random.default_rng(1)
    data = [(rng.standard_normal((8, 6)), rng.standard_normal((8, 6))) for _ in range(STEPS)]
    loss = wf.nn.functional.mse_loss
    whole = wf.nn.Sequential(*stages())
    optimizer = wf.optim.Adam(whole.parameters(), lr=1e-2)
    alone = []
    for x, y in data:
        optimizer.zero_grad()
        found = loss(whole(wf.tensor(x)), wf.tensor(y))
        found.backward()
        optimizer.step()
        alone.append(float(found))
    for schedule in ("gpipe", "1f1b"):
        stage = stages()[RANK]
        optimizer = wf.optim.Adam(stage.parameters(), lr=1e-2)
        pipeline = dist.Pipeline(stage, loss, parts=4, schedule=schedule)
        losses = []
        for x, y in data:
            optimizer.zero_grad()
            losses.append(float(pipeline.backward(wf.tensor(x), wf.tensor(y))))
            optimizer.step()
        np.testing.assert_allclose(losses, alone, rtol=1e-10, err_msg=schedule)


class PlainBlock(wf.nn.Module):
    """A transformer block whose queries, keys and values have layers of their own."""

    def __init__(self):
        super().__init__()
        self.table = wf.nn.Embedding(12, 8)
        self.looks = wf.nn.ModuleList([wf.nn.Linear(8, 8) for _ in range(3)])
        self.out, self.norm = wf.nn.Linear(8, 8), wf.nn.LayerNorm(8)
        self.up, self.down = wf.nn.Linear(8, 16), wf.nn.Linear(16, 8)
        self.head = wf.nn.Linear(8, 12)

    def forward(self, tokens):
        x = self.table(tokens)
        split = [look(x).reshape(*x.shape[:2], 4, 2).permute(0, 2, 1, 3) for look in self.looks]
        y = wf.nn.functional.scaled_dot_product_attention(*split, is_causal=True)
        x = self.norm(x + self.out(y.permute(0, 2, 1, 3).reshape(*x.shape)))
        return self.head(x + self.down(wf.nn.functional.gelu(self.up(x))))


PLACES = {
    **{f"looks.*.{name}": 0 for name in ("weight", "bias")},
    **{f"{layer}.{name}": 0 for layer in ("up", "head") for name in ("weight", "bias")},
    **{f"{layer}.weight": 1 for layer in ("out", "down")},
    "table.weight": 0,
}


def check_placed_parameters():
    """Train a model that the compiler divides as one process does, and eagerly."""
    for mode in MODES if LONG else ("jit", "eager"):
        found = []
        for plan in (None, PLACES):
            wf.manual_seed(5)
            model = PlainBlock().to(wf.float64)
            if plan is not None:
                dist.place_parameters(model, plan)
            optimizer = wf.optim.Adam(model.parameters(), lr=1e-2)
            step = made_step(model, optimizer, mode, "gpt", None)
            rng = np.random.default_rng(0)
            losses = []
            for _ in range(STEPS):
                tokens = wf.tensor(rng.integers(0, 12, (4, 6)))
                losses.append(float(np.asarray(step(tokens, tokens))))
            found.append((losses, sum(p.numel() for p in model.parameters())))
        np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-9, err_msg=mode)
        assert found[1][1] < found[0][1] / SIZE + 50  # but for norms and biases that stay whole


def check_placed_values():
    """Compare a jitted function whose values are placed with the same in eager code."""
    rng = np.random.default_rng(0)
    x, w, y = (wf.tensor(rng.standard_normal(s)) for s in ((4 * SIZE, 6), (6, 3), (4 * SIZE, 3)))

    def step(x, w, y):
        rows = dist.shard(x, axis=0)
        return ((rows @ w).tanh() - y).square().mean(), wf.sum(dist.shard(rows @ w, None), axis=0)

    fast = wf.jit(step)
    for found, right in zip(fast(x, w, y), step(x, w, y), strict=True):
        np.testing.assert_allclose(found.numpy(), right.numpy(), rtol=1e-12)
    before = pulse.count
    fast(x, w, y)
    assert pulse.count == before + (2 if SIZE > 1 else 0)  # the mean, and rows to all
    with pytest.raises(ValueError, match=r"must divide axis 0 of the shape"):
        dist.shard(wf.ones(SIZE + 1), 0)
