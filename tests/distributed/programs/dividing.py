"""Models whose state, layers or stages are divided among processes train as one process does."""

import numpy as np
import pytest

import weft as wf
from tests.distributed.divided import divided_losses, pipeline_losses
from tests.distributed.workloads import WORKLOADS, train
from weft import distributed as dist
from weft.distributed.launcher.heartbeat import pulse

STEPS = 3  # all workloads and ways take fifty in same_losses.py
RANK, SIZE = dist.rank(), dist.size()


def sharded_losses(name, mode, stage, **options):
    kept = {}

    def look(model, optimizer):
        kept.update(dist.memory_of(model.parameters(), optimizer))

    found = train(name, mode, steps=STEPS, zero=stage, look=look, **options)
    return found, kept, 8 * sum(p.numel() for p in WORKLOADS[name][0]().parameters())


def check_sharded_state():
    alone = train("mlp", "eager", steps=STEPS, alone=True)
    for mode, stage in (("eager", 3), ("jit", 3), ("jit", 2), ("static", 3)):
        found, memory, whole = sharded_losses("mlp", mode, stage)
        np.testing.assert_allclose(found, alone, rtol=1e-10, err_msg=f"{mode} {stage}")
        # Parameters, gradients and two slots of each process: a part of all, but for what is
        # filled up.
        assert memory["parameters"] <= whole / SIZE * 1.1 + 200
        assert memory["slots"] <= 2 * whole / SIZE * 1.1 + 400


def check_clipping_of_parts():
    alone = train("mlp", "eager", steps=STEPS, alone=True, clip=0.1)
    for mode in ("jit", "static"):
        found, *_ = sharded_losses("mlp", mode, 3, clip=0.1)
        np.testing.assert_allclose(found, alone, rtol=1e-10, err_msg=mode)


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


def check_divided_layers():
    alone, whole = divided_losses("gpt", "tensor parallel", "eager", steps=STEPS, alone=True)
    found, here = divided_losses("gpt", "tensor parallel", "jit", steps=STEPS)
    np.testing.assert_allclose(found, alone, rtol=1e-10)
    assert here < whole / SIZE + 50  # but for norms and biases that stay whole


def check_parts_of_a_tensor():
    x = wf.tensor(np.arange(4.0 * SIZE).reshape(2, -1), requires_grad=True)
    part = dist.local_part(x, axis=1)
    assert part.shape == (2, 2)
    whole = dist.join_parts(part * part, axis=1)
    whole.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * x.detach().numpy())
    with pytest.raises(ValueError, match="must divide axis 0"):
        dist.local_part(wf.ones(SIZE + 1))


def check_pipelines():
    alone = pipeline_losses("gpt", "", "eager", steps=STEPS, alone=True)
    for schedule in ("gpipe", "1f1b"):
        losses = pipeline_losses("gpt", schedule, "eager", steps=STEPS)
        np.testing.assert_allclose(losses, alone, rtol=1e-10, err_msg=schedule)


def check_stages_pass_values_of_any_dtype():
    """Send whole numbers, which have no gradient, and 16-bit floats through stages."""
    tokens, target = wf.tensor([[1, 2], [3, 0]]), wf.zeros(2, 2, 3)
    for table_at in (0, SIZE - 1):
        wf.manual_seed(7)
        table = wf.nn.Embedding(4, 3).to(wf.bfloat16)
        stage = table if table_at == RANK else wf.nn.Identity()
        whole = dist.Pipeline(stage, of_floats, parts=2).backward(tokens, target)
        assert (table.weight.grad is not None) == (table_at == RANK)
        if table_at == RANK:
            found, table.weight.grad = table.weight.grad.to(wf.float32).numpy(), None
            loss = of_floats(table(tokens), target)
            loss.backward()
            right = table.weight.grad.to(wf.float32).numpy()
            np.testing.assert_allclose(found, right, rtol=2e-2, atol=1e-3)
            np.testing.assert_allclose(float(whole), float(loss), rtol=1e-5)


def of_floats(output, target):
    return ((output.to(wf.float32) - target) ** 2).mean()


def check_placed_parameters():
    """Train a model that the compiler divides as one process does, and eagerly."""
    alone, whole = divided_losses("gpt", "placed", "eager", steps=STEPS, alone=True)
    for mode in ("jit", "eager"):
        found, here = divided_losses("gpt", "placed", mode, steps=STEPS)
        np.testing.assert_allclose(found, alone, rtol=1e-10, err_msg=mode)
        assert here < whole / SIZE + 50


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
