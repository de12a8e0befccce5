"""Models whose state, layers or stages are divided among processes train as one process does."""

import os

import numpy as np
import pytest

import weft as wf
from tests.distributed.workloads import MODES, WORKLOADS, made_step, train
from weft import distributed as dist

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
    part = dist.shard(x, axis=1)
    assert part.shape == (2, 2)
    whole = dist.unshard(part * part, axis=1)
    whole.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * x.detach().numpy())
    with pytest.raises(ValueError, match="must divide the size"):
        dist.shard(wf.ones(SIZE + 1))


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
