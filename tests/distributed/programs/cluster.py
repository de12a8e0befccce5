"""Checkpoints, parameter servers and averages of three real processes."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from weft import distributed as dist
from weft.distributed import checkpoints
from weft.distributed.asynchronous.local import LocalUpdates
from weft.distributed.asynchronous.training import AsyncOptimizer
from weft.distributed.checkpoints import (
    DistributedCheckpointManager,
    consolidate,
    load_checkpoint,
    save_checkpoint,
)
from weft.io import ArrayPart, SaveError, load_state
from weft.train.parallel import own_batches

FOLDER = Path(os.environ.get("WEFT_TEST_FOLDER", "."))  # named by who starts the processes
FULL = np.arange(24 * 6, dtype=np.float32).reshape(24, 6)


def parted(rank, size):
    """Return the state of a rank: what all have, and parts by rows, by columns, in one line."""
    rows, columns, line = 24 // size, 6 // size, 144 // size
    return {
        "same": wf.tensor(np.arange(50_000, dtype=np.float32)),
        "small": {"bias": np.arange(3), "step": 4, "rate": 0.5},
        "rows": ArrayPart(
            wf.tensor(FULL[rank * rows : (rank + 1) * rows]), (24, 6), (rank * rows, 0)
        ),
        "columns": ArrayPart(
            FULL[:, rank * columns : (rank + 1) * columns].copy(), (24, 6), (0, rank * columns)
        ),
        "line": ArrayPart(
            FULL.reshape(-1)[rank * line : (rank + 1) * line].copy(), (24, 6), (rank * line,)
        ),
    }


def check_parts_are_written_together_and_read_whole():
    state = parted(dist.rank(), dist.size())
    save_checkpoint(FOLDER / "parts", state, {"epoch": 2})
    names = sorted(path.name for path in (FOLDER / "parts").iterdir())
    assert names[0] == "manifest.json"
    assert len(names) == 2 + dist.size(), names
    for found in (load_state(FOLDER / "parts"), load_checkpoint(FOLDER / "parts")):
        assert found["small"] == {**found["small"], "step": 4, "rate": 0.5}
        for name in ("rows", "columns", "line"):
            assert np.array_equal(np.asarray(found[name]), FULL), name
        assert np.array_equal(found["same"].numpy(), np.arange(50_000, dtype=np.float32))


def check_parts_are_read_by_another_number_of_ranks():
    # As rank 0 of two would: another division of each array.
    wanted = parted(0, 2)
    found = load_checkpoint(FOLDER / "parts", like=wanted)
    for name in ("rows", "columns", "line"):
        assert np.array_equal(np.asarray(found[name]), np.asarray(wanted[name].values)), name


def check_one_file_on_demand():
    consolidate(FOLDER / "parts", FOLDER / "whole")
    assert np.array_equal(load_state(FOLDER / "whole")["columns"], FULL)
    assert (FOLDER / "whole" / "state.safetensors").exists()


def check_managers_keep_the_last():
    manager = DistributedCheckpointManager(FOLDER / "run", keep_last=1)
    for step in (1, 2):
        manager.save(step, {"step": step, "w": wf.ones(5)})
    assert manager.latest().name == "step-00000002"
    assert manager.load()["step"] == 2
    assert [path.name for path in sorted((FOLDER / "run").iterdir())] == ["step-00000002"]


def check_errors_of_one_are_those_of_all():
    (FOLDER / "taken").touch(exist_ok=True)
    with pytest.raises(SaveError, match="rank 0 on"):
        save_checkpoint(FOLDER / "taken" / "inside", {"w": wf.ones(3)})
    with pytest.raises(RuntimeError, match=r"rank 1 have different arrays: w: float32\[3\]"):
        save_checkpoint(FOLDER / "differ", {"w": wf.ones(3 + dist.rank())})


def check_ranks_without_the_disk_hand_their_parts_over():
    """Rank 2 is led to a directory that it does not see, as on a host of its own."""
    folder = FOLDER / ("away" if dist.rank() == 2 else "here")
    if dist.rank() != 2:
        folder.mkdir(exist_ok=True)
    seen = checkpoints._meets
    checkpoints._meets = lambda path: dist.rank() != 2 and seen(path)
    state = parted(dist.rank(), dist.size())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save_checkpoint(FOLDER / "here" / "state", state)
    checkpoints._meets = seen
    found = load_checkpoint(folder / "state")
    assert np.array_equal(np.asarray(found["rows"]), FULL)
    found = load_checkpoint(folder / "state", like=state)
    assert np.array_equal(np.asarray(found["line"]), np.asarray(state["line"].values))


def spread_model(seed):
    wf.manual_seed(seed)
    layers = (wf.nn.Linear(5, 7), wf.nn.ReLU(), wf.nn.Linear(7, 2))
    model = dist.shard_parameters(wf.nn.Sequential(*layers))
    return model, wf.optim.Adam(model.parameters(), lr=0.05)


def take_steps(model, optimizer, count):
    x = wf.tensor(np.random.default_rng(3).normal(size=(6, 5)).astype(np.float32))
    for _ in range(count):
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()


def check_spread_models_go_on_where_they_were():
    model, optimizer = spread_model(0)
    take_steps(model, optimizer, 2)
    dist.save_sharded_state(FOLDER / "spread", model, optimizer)
    take_steps(model, optimizer, 2)
    for warm in (0, 1):  # with and without slots of its own
        other, its = spread_model(5)
        take_steps(other, its, warm)
        dist.load_sharded_state(FOLDER / "spread", other, its)
        take_steps(other, its, 2)
        ours, theirs = dist.full_state_dict(model), dist.full_state_dict(other)
        assert all(np.array_equal(ours[n].numpy(), theirs[n].numpy()) for n in ours)


def check_one_process_reads_what_several_spread():
    found = load_state(FOLDER / "spread")
    assert [x.size for x in found["model"].values()] == [42, 16]
    assert found["optimizer"]["state"]["0"]["exp_avg"].shape == (42,)


# -- asynchronous ----------------------------------------------------------------------------------


class Net(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = wf.nn.Embedding(200, 4, sparse=True)
        self.first = wf.nn.Linear(12, 16)
        self.last = wf.nn.Linear(16, 3)

    def forward(self, x, i):
        return self.last(wf.relu(self.first(wf.concatenate([x, self.table(i)], axis=1))))


def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 8)).astype(np.float32)
    i = rng.integers(0, 50, size=300)
    y = (x @ rng.normal(size=(8, 3)) + 0.2 * rng.normal(size=(50, 3))[i]).argmax(1)
    return x, i, y


def batches(seed, count):
    x, i, y = data()
    rng = np.random.default_rng(seed)
    for _ in range(count):
        j = rng.integers(0, len(x), 32)
        yield wf.tensor(x[j]), wf.tensor(i[j]), wf.tensor(y[j])


def loss_of(net, x, i, y):
    return wf.nn.functional.cross_entropy(net(x, i), y)


def accuracy(net):
    x, i, y = data()
    return float((net(wf.tensor(x), wf.tensor(i)).numpy().argmax(1) == y).mean())


def same_everywhere(net):
    sums = [float(p.numpy().astype(np.float64).sum()) for p in net.parameters()]
    return all(one == sums for one in dist.world().exchanges.transport.objects(sums))


def train(staleness, servers, count=80):
    wf.manual_seed(1)
    net = Net()
    optimizer = AsyncOptimizer(
        wf.optim.SGD(net.parameters(), lr=0.3), staleness=staleness, servers=servers
    )
    for x, i, y in optimizer.batches(batches(dist.rank(), count)):
        optimizer.zero_grad()
        loss_of(net, x, i, y).backward()
        optimizer.step()
    optimizer.finish()
    return net, optimizer


def check_servers_train_within_the_bound():
    for staleness, servers in ((3, 1), (0, 2)):
        net, optimizer = train(staleness, servers)
        assert same_everywhere(net)
        assert accuracy(net) > 0.85, accuracy(net)
        if optimizer.is_server:
            workers = dist.size() - servers
            assert sum(optimizer.counts.values()) == 80 * workers
            assert max(optimizer.counts) <= staleness
            assert optimizer.lost == []


def check_one_worker_is_one_process():
    """Without staleness, a worker's parameters are those of training alone, to the last bit."""
    net, _ = train(0, dist.size() - 1, 10)
    wf.manual_seed(1)
    alone = Net()
    optimizer = wf.optim.SGD(alone.parameters(), lr=0.3)
    for x, i, y in batches(dist.size() - 1, 10):
        optimizer.zero_grad()
        loss_of(alone, x, i, y).backward()
        optimizer.step()
    for p, q in zip(net.parameters(), alone.parameters(), strict=True):
        assert np.array_equal(p.numpy(), q.numpy())


def check_bad_arguments():
    net = Net()
    optimizer = wf.optim.SGD(net.parameters(), lr=1.0)
    with pytest.raises(TypeError, match="takes an optimizer"):
        AsyncOptimizer(net)
    with pytest.raises(ValueError, match="3 cannot be servers"):
        AsyncOptimizer(optimizer, servers=3)
    with pytest.raises(TypeError, match="of an optimizer"):
        LocalUpdates(net)
    with pytest.raises(ValueError, match="1 or more"):
        LocalUpdates(optimizer, every=0)


def check_local_updates_are_averaged():
    wf.manual_seed(dist.rank())  # the first rank's parameters are those of all
    net = Net()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.2, momentum=0.5)
    local = LocalUpdates(optimizer, every=4)
    assert same_everywhere(net)
    for step, (x, i, y) in enumerate(batches(dist.rank(), 42)):
        optimizer.zero_grad()
        loss_of(net, x, i, y).backward()
        optimizer.step()
        assert same_everywhere(net) == (step % 4 == 3), step
    local.finish()
    assert same_everywhere(net)
    assert local.averages == 11
    assert accuracy(net) > 0.85


# -- by trainers -----------------------------------------------------------------------------------


CROSS = wf.nn.functional.cross_entropy


def trained(mode, **options):
    """Return what a trainer has come to, at the own pace of each process: loss and parameters."""
    wf.manual_seed(0)
    x, _, y = data()
    model = wf.nn.Sequential(wf.nn.Linear(8, 16), wf.nn.ReLU(), wf.nn.Linear(16, 3))
    optimizer = wf.optim.Adam(model.parameters(), lr=0.02)
    loader = wf.data.DataLoader(wf.data.TensorDataset(x, y), 20, shuffle=True, seed=1)
    parallel = {"mode": mode, **options}
    mine = own_batches(loader, parallel) if mode == "async" else loader
    updater = wf.train.Updater(model, optimizer, CROSS, mine, parallel=parallel)
    trainer = wf.train.Trainer(updater, stop=(6, "epoch"), out=None)
    trainer.extend(wf.train.Evaluator(loader))
    trainer.run()
    with wf.no_grad():
        loss = float(wf.nn.functional.cross_entropy(model(wf.tensor(x)), wf.tensor(y)))
    return loss, [p.numpy() for p in model.parameters()], updater


def check_trainers_at_their_own_pace():
    for mode, options in (("async", {"staleness": 2}), ("local", {"every": 4})):
        loss, params, updater = trained(mode, **options)
        assert loss < 0.6, (mode, loss)
        for p in params:
            everyone = dist.all_gather(wf.tensor(p)[None]).numpy()
            assert all(np.array_equal(everyone[0], other) for other in everyone), mode
        assert updater.serves == (mode == "async" and dist.rank() == 0)
        assert updater.writes == (dist.rank() == (1 if mode == "async" else 0))
        assert updater.iteration == (0 if updater.serves else 6 * len(updater.loader))


def check_resumed_servers_have_their_slots():
    """Stop one worker in the middle: its servers go on with the moments that Adam had."""

    def trainer(folder, epochs):
        wf.manual_seed(0)
        x, _, y = data()
        model = wf.nn.Sequential(wf.nn.Linear(8, 16), wf.nn.ReLU(), wf.nn.Linear(16, 3))
        loader = wf.data.DataLoader(wf.data.TensorDataset(x, y), 60, seed=1)
        optimizer = wf.optim.Adam(model.parameters(), lr=0.02)
        parallel = {"mode": "async", "staleness": 0, "servers": dist.size() - 1}
        updater = wf.train.Updater(model, optimizer, CROSS, loader, parallel=parallel)
        made = wf.train.Trainer(updater, stop=(epochs, "epoch"), out=FOLDER / folder)
        made.extend(wf.train.Checkpoint())
        return made

    found = []
    for folder, pieces in (("served", (3,)), ("served pieces", (1, 3))):
        for epochs in pieces:
            made = trainer(folder, epochs)
            made.run(resume="auto")
            dist.barrier()
        found.append([p.numpy() for p in made.model.parameters()])
    for whole, resumed in zip(*found, strict=True):
        np.testing.assert_array_equal(resumed, whole)
    kept = made.updater.optimizer.state_dict()
    if made.updater.writes:
        assert len(kept["state"]) == 4
        assert kept["t"] == 15


def check_spread_trainers_go_on_at_their_checkpoint():
    """Save in the middle, with parts of parameters, and continue in another trainer."""

    def trainer(folder, epochs):
        wf.manual_seed(0)
        x, _, y = data()
        model = wf.nn.Sequential(wf.nn.Linear(8, 16), wf.nn.ReLU(), wf.nn.Linear(16, 3))
        handle = dist.parallel(model, zero=3)
        loader = wf.data.DataLoader(wf.data.TensorDataset(x, y), 30, seed=1, shard=True)
        optimizer = wf.optim.Adam(model.parameters(), lr=0.02)
        updater = wf.train.Updater(model, optimizer, CROSS, loader, parallel=handle)
        made = wf.train.Trainer(updater, stop=(epochs, "epoch"), out=FOLDER / folder)
        made.extend(wf.train.Checkpoint())
        return made

    states = []
    for folder, pieces in (("whole", (2,)), ("pieces", (1, 2))):
        for epochs in pieces:
            made = trainer(folder, epochs)
            made.run(resume="auto")
            made.updater.parallel.close()
        states.append(dist.full_state_dict(made.model))
    for name, x in states[0].items():
        np.testing.assert_array_equal(x.numpy(), states[1][name].numpy())
    assert states[0]["0.weight"].shape == (16, 8)
