"""Training on several processes gives what one process gives for the same global batches."""

import tempfile
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from tests.distributed.workloads import (
    MODES,
    batches,
    loss_of,
    mlp,
    train,
    train_by_shards,
    train_by_toml,
    write_data,
)
from weft import distributed as dist

STEPS = 3  # all workloads and ways take fifty in same_losses.py


def check_losses_are_those_of_one_process():
    for name, modes in {"mlp": MODES, "cnn": ("jit",)}.items():
        alone = train(name, "eager", steps=STEPS, alone=True)
        for mode in modes:
            found = train(name, mode, steps=STEPS, first_bucket_mib=0.0005, bucket_mib=0.002)
            np.testing.assert_allclose(found, alone, rtol=1e-10, err_msg=f"{name} {mode}")


def check_clipping_accumulation_and_schedules():
    options = {"clip": 0.1, "accumulate": 2, "schedule": True}
    alone = train("mlp", "eager", steps=STEPS, alone=True, **options)
    for mode in ("jit", "static"):
        found = train("mlp", mode, steps=STEPS, **options)
        np.testing.assert_allclose(found, alone, rtol=1e-10, err_msg=mode)


def check_runs_by_toml():
    folder = shared_folder()
    alone = train_by_toml("cnn", folder, "false", steps=STEPS, accumulate=2)
    found = train_by_toml("cnn", folder, "{ zero = 3 }", steps=STEPS, accumulate=2)
    np.testing.assert_allclose(found, alone, rtol=1e-10)


def shared_folder():
    """Return a folder with data that all processes see."""
    objects = dist.world().exchanges.transport.objects
    folder = Path(objects(tempfile.mkdtemp() if dist.rank() == 0 else None)[0])
    if dist.rank() == 0:
        write_data(folder)
    dist.barrier()
    return folder


def check_gradients_rounded_on_their_way_train_too():
    alone = train("mlp", "eager", alone=True)
    for mode in ("eager", "jit"):
        found = train("mlp", mode, compression="bfloat16")
        np.testing.assert_allclose(found, alone, rtol=2e-2)
        assert found != alone
    np.testing.assert_allclose(train("mlp", "eager", compression="topk"), alone, rtol=0.3)


def check_shards_give_the_same_bits():
    for name in ("mlp", "cnn"):
        losses = train_by_shards(name, "eager", STEPS)
        assert losses == train_by_shards(name, "eager", STEPS)
        everyone = dist.world().exchanges.transport.objects(losses)
        assert all(found == losses for found in everyone)


def check_accumulation():
    def gradients(accumulate):
        wf.manual_seed(1)
        model = wf.nn.Linear(6, 3)
        handle = dist.parallel(model)
        for x, y in list(batches("mlp", 3, "float32"))[:2]:
            rows = slice(dist.rank(), None, dist.size())
            given = wf.tensor(x[rows]), wf.tensor(y[rows])
            accumulate(handle, lambda given=given: loss_of(model, *given).backward())
        handle.averager.is_on = True
        loss_of(model, *given).backward()
        handle.close()
        return model.weight.grad.numpy()

    def held_back(handle, act):
        with handle.no_sync():
            act()

    held, at_once = gradients(held_back), gradients(lambda handle, act: act())
    np.testing.assert_allclose(held, at_once, rtol=1e-5, atol=1e-7)
    everyone = dist.all_gather(wf.tensor(held)).numpy().reshape(dist.size(), *held.shape)
    assert all(np.array_equal(held, other) for other in everyone)


def check_parameters_that_nobody_uses_have_no_gradient():
    model = Branches()
    handle = dist.parallel(model)
    model(wf.ones(2, 4), "left").sum().backward()
    assert model.right.weight.grad is None
    assert model.left.weight.grad is not None
    with pytest.raises(dist.MismatchError, match=r"gradients of 2 parameters, (left|right)"):
        model(wf.ones(2, 4), "left" if dist.rank() else "right").sum().backward()
    handle.close()


def check_processes_may_use_different_parameters():
    model = Branches()
    handle = dist.parallel(model, unused=True)
    side = "left" if dist.rank() == 0 else "right"
    for run in (lambda: model(wf.ones(2, 4), side).sum().backward(),):
        run()
        shares = [1 / dist.size(), (dist.size() - 1) / dist.size()]
        for layer, share in zip((model.left, model.right), shares, strict=True):
            np.testing.assert_allclose(layer.bias.grad.numpy(), [2 * share] * 2, rtol=1e-6)
    handle.close()


class Branches(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = wf.nn.Linear(4, 2), wf.nn.Linear(4, 2)

    def forward(self, x, side):
        return getattr(self, side)(x)


def check_rows_of_a_table():
    table = wf.nn.Embedding(10, 3, sparse=True)
    handle = dist.parallel(table)
    places = wf.tensor([dist.rank(), 7])
    table(places).sum().backward()
    dense = table.weight.grad.to_dense().numpy()
    assert dense[7, 0] == 1.0
    assert dense[dist.rank(), 0] == pytest.approx(1 / dist.size())
    handle.close()


def check_different_models_are_named():
    model = wf.nn.Linear(3, 2 + dist.rank())
    with pytest.raises(dist.MismatchError, match="rank 1: parallel of 2 parameters"):
        dist.parallel(model)


def check_different_programs_are_named_at_the_first_step():
    """Have the same exchanges on all processes: what differs stands behind them."""
    model = wf.nn.Linear(3, 2)
    handle = dist.parallel(model)
    optimizer = wf.optim.SGD(model.parameters(), lr=0.1)
    activation = wf.tanh if dist.rank() == 0 else wf.sin

    def step(x):
        optimizer.zero_grad()
        loss = activation(model(x)).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    expected = r"do not run the same program: .* part at operation \d+: rank 0: tanh\(.*: sin\("
    with pytest.raises(dist.MismatchError, match=expected):
        wf.jit(step, strict=True)(wf.ones(2, 3))
    handle.close()


def check_programs_for_other_lengths_are_the_same():
    model = wf.nn.Linear(3, 2)
    handle = dist.parallel(model)

    @wf.jit(strict=True)
    def step(x):
        model.zero_grad()
        model(x).mean().backward()

    step(wf.ones(2, 4 + dist.rank(), 3))
    step(wf.ones(2, 4 + dist.rank(), 3))
    handle.close()


def check_an_optimizer_is_enough():
    wf.manual_seed(dist.rank())
    model = mlp()
    optimizer = wf.optim.SGD(model.parameters(), lr=0.1)
    handle = dist.parallel(optimizer)
    weights = dist.all_gather(model[0].weight.detach()[None]).numpy()
    assert all(np.array_equal(weights[0], other) for other in weights)
    handle.close()


def check_trainers_take_steps_together():
    """Losses, accumulated and clipped, are those of one process, compiled and not."""
    alone = updated(None, False)
    for compile in (True, False):
        np.testing.assert_allclose(updated(True, compile), alone, rtol=1e-5)


def updated(parallel, compile):
    wf.manual_seed(2)
    model = wf.nn.Sequential(wf.nn.Linear(4, 6), wf.nn.BatchNorm1d(6), wf.nn.Linear(6, 1))
    wf.manual_seed(6)
    data = wf.data.TensorDataset(wf.randn(24, 4), wf.randn(24, 1))
    loader = wf.data.DataLoader(data, 8, shuffle=True, seed=1, shard=bool(parallel))
    updater = wf.train.Updater(
        model,
        wf.optim.Adam(model.parameters(), lr=0.1),
        wf.nn.functional.mse_loss,
        loader,
        accumulate=2,
        clip_norm=0.5,
        compile=compile,
        parallel=parallel,
    )
    losses = [updater.update()["train/loss"] for _ in range(4)]
    if updater.parallel is not None:
        updater.parallel.close()
    return losses


def check_processes_share_an_evaluation():
    """Every batch is computed once, by one process, and all have what one process would have."""
    model = wf.nn.Linear(4, 3)
    for p in model.parameters():
        wf.nn.init.constant_(p, 0.1)
    wf.manual_seed(1)
    data = wf.data.TensorDataset(wf.randn(22, 4), wf.randint(0, 3, (22,)))
    objective = wf.train.Objective(model, wf.nn.functional.cross_entropy)
    metrics = ["accuracy", "confusion_matrix", "f1"]
    for loader in (wf.data.DataLoader(data, 4), list(wf.data.DataLoader(data, 4))):
        alone = evaluated(objective, loader, metrics, None)[0]
        found, count = evaluated(objective, loader, metrics, dist.world())
        for name, value in alone.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-6, err_msg=name)
        assert count == -(-6 // dist.size())
        few = evaluated(objective, loader, metrics, dist.world(), max_batches=1)
        assert (
            few[0]["loss"] == evaluated(objective, loader, metrics, None, max_batches=1)[0]["loss"]
        )


def evaluated(objective, loader, metrics, group, **options):
    counted = []

    def run(batch):
        counted.append(1)
        return objective(batch)

    made = wf.train.metrics.named_metrics(metrics)
    found = wf.train.evaluate(run, loader, made, model=objective.model, group=group, **options)
    return found, len(counted)


def check_fit_trains_and_validates_together():
    histories = []
    for parallel in (None, True):
        wf.manual_seed(2)
        model = wf.nn.Sequential(wf.nn.Linear(4, 6), wf.nn.BatchNorm1d(6), wf.nn.Linear(6, 1))
        rng = np.random.default_rng(3)
        x, y = rng.normal(size=(32, 4)).astype("f4"), rng.normal(size=(32, 1)).astype("f4")
        model.compile("sgd", "mse", metrics=["mae"])
        history = model.fit(x, y, 8, 2, verbose=0, validation_split=0.25, seed=1, parallel=parallel)
        histories.append(history.history)
    for name, values in histories[0].items():
        np.testing.assert_allclose(histories[1][name], values, rtol=1e-4, err_msg=name)


def check_shards_in_a_trainer():
    found = updated({"shards": 4}, False)
    np.testing.assert_allclose(found, updated(None, False), rtol=1e-4)


def check_loaders_agree_on_a_seed():
    wf.manual_seed(dist.rank())
    data = wf.data.TensorDataset(wf.arange(8))
    loader = wf.data.DataLoader(data, 8, shuffle=True, shard=True)
    (mine,) = loader
    everyone = dist.all_gather(mine).numpy()
    np.testing.assert_array_equal(np.sort(everyone), np.arange(8))


def check_gradients_that_travel_in_rows_are_means():
    wf.manual_seed(0)
    model = wf.nn.Sequential(wf.nn.Linear(1100, 1000, bias=False))
    handle = dist.parallel(model)
    assert [b.rows is not None for b in handle.averager.buckets] == [True] * 4
    x = wf.tensor(np.full((3, 1100), dist.rank() + 1.0, np.float32))

    def gradient(x):
        model[0].weight.grad = None
        (model(x) * wf.arange(1000)).sum().backward()
        return model[0].weight.grad

    right = 3 * np.arange(1000.0)[:, None] * (dist.size() + 1) / 2 * np.ones(1100)
    for run in (gradient, wf.jit(gradient)):
        np.testing.assert_allclose(run(x).numpy(), right, rtol=1e-6)
    handle.close()
