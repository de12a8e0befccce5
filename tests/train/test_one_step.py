"""A training step is one program, whoever writes it: one hash of its graph, the same weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from weft import nn
from weft.cli import main as weft_command
from weft.data import DataLoader, TensorDataset
from weft.optim import SGD, AdamW
from weft.train import Trainer, Updater

SEED, BATCH, STEPS = 3, 5, 100
ROWS = 50


class Block(nn.Module):
    """A layer of a transformer, and a class for each sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm = nn.Linear(6, 8), nn.LayerNorm(8)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.out = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        h = self.embed(x)
        n = self.norm(h)
        return self.out((h + self.attend(n, n, n)[0]).mean(1))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False),  # its gradient would be only rounding errors
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Flatten(),
        nn.Linear(144, 3),
    )


NETS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], Any]] = {
    "mlp": (mlp, (6,), lambda p: SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01)),
    "cnn": (cnn, (1, 6, 6), lambda p: AdamW(p, lr=0.01)),
    "block": (Block, (4, 6), lambda p: SGD(p, lr=0.05)),
}


class Case:
    """A network, its optimizer and its data, as every face is given them."""

    def __init__(self, name: str) -> None:
        make, shape, optimizer = NETS[name]
        wf.manual_seed(SEED)
        self.net = make()
        self.optimizer = optimizer(self.net.parameters())
        rng = np.random.default_rng(0)
        self.x = rng.normal(size=(ROWS, *shape)).astype(np.float32)
        self.y = rng.integers(0, 3, ROWS)
        self.loader = DataLoader(
            TensorDataset(self.x, self.y), batch_size=BATCH, shuffle=True, seed=SEED
        )
        wf.manual_seed(SEED)

    def batches(self) -> Iterator[Any]:
        """Yield the batches of all steps."""
        for _ in range(STEPS * BATCH // ROWS):
            yield from self.loader

    def step(self, x: Any, y: Any) -> Any:
        """Take a step, as one writes it."""
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.net(x), y)
        loss.backward()
        self.optimizer.step()
        return loss

    def graph(self) -> tuple[wf.Graph, Any, dict[str, Any]]:
        """Return the step as a graph, what takes it, and its placeholders."""
        with wf.Graph() as graph:
            x = wf.placeholder((BATCH, *self.x.shape[1:]), wf.float32, name="pictures")
            y = wf.placeholder((BATCH,), wf.int64, name="labels")
            train = self.optimizer.minimize(F.cross_entropy(self.net(x), y))
        return graph, train, {"x": x, "y": y}

    def weights(self) -> dict[str, bytes]:
        return {name: x.numpy().tobytes() for name, x in self.net.state_dict().items()}


def by_session(name: str) -> Case:
    case = Case(name)
    graph, train, fed = case.graph()
    session = wf.Session(graph)
    for x, y in case.batches():
        session.run(train, {fed["x"]: x, fed["y"]: y})
    return case


def by_loop(name: str, *, jit: bool) -> Case:
    case = Case(name)
    step = wf.jit(case.step) if jit else case.step
    for x, y in case.batches():
        step(x, y)
    return case


def by_trainer(name: str) -> Case:
    case = Case(name)
    updater = Updater(case.net, case.optimizer, F.cross_entropy, case.loader, compile=True)
    Trainer(updater, stop=(STEPS, "iteration"), out=None).run()
    return case


def by_fit(name: str) -> Case:
    case = Case(name)
    case.net.compile(case.optimizer, "cross_entropy", compile=True)
    case.net.fit(case.loader, epochs=STEPS * BATCH // ROWS, verbose=0)
    return case


@pytest.mark.parametrize("name", NETS)
def test_a_step_has_one_hash(name: str) -> None:
    case = Case(name)
    x, y = next(iter(case.loader))
    recorded = wf.jit(case.step).graph(x, y)
    assert recorded.step_hash() == Case(name).graph()[0].step_hash()
    jitted = wf.jit(case.step)
    jitted(x, y)
    assert jitted.graph().step_hash() == recorded.step_hash()


def test_other_steps_have_other_hashes() -> None:
    hashes = {name: Case(name).graph()[0].step_hash() for name in NETS}
    case = Case("mlp")
    case.optimizer.param_groups[0]["weight_decay"] = 0.0
    assert len({*hashes.values(), case.graph()[0].step_hash()}) == len(NETS) + 1


@pytest.mark.parametrize("name", NETS)
def test_all_compiled_faces_give_the_same_weights(name: str) -> None:
    expected = by_loop(name, jit=True)
    found = [by_session(name), by_trainer(name), by_fit(name)]
    assert [case.weights() for case in found] == [expected.weights()] * 3
    eager = by_loop(name, jit=False).net.state_dict()
    for key, value in expected.net.state_dict().items():
        np.testing.assert_allclose(value.numpy(), eager[key].numpy(), rtol=2e-2, atol=2e-3)


CONFIG = """
seed = {seed}
loss = "cross_entropy"

[data]
train = {{ type = "npz", path = "{path}" }}
batch_size = {batch}

[model]
layers = [
    {{ type = "Linear", out_features = 8 }}, {{ type = "ReLU" }},
    {{ type = "Linear", out_features = 3 }},
]

[optimizer]
type = "sgd"
lr = 0.05
momentum = 0.9
weight_decay = 0.01

[trainer]
epochs = {epochs}
plot = false
progress = false
tensorboard = false
"""


def test_the_command_gives_the_same_weights(tmp_path: Path) -> None:
    expected = by_loop("mlp", jit=True)
    data, config, run = tmp_path / "data.npz", tmp_path / "run.toml", tmp_path / "run"
    np.savez(data, x=expected.x, y=expected.y)
    epochs = STEPS * BATCH // ROWS
    text = CONFIG.format(seed=SEED, path=data.as_posix(), batch=BATCH, epochs=epochs)
    config.write_text(text, encoding="utf-8")
    assert weft_command(["train", str(config), "--out", str(run)]) == 0
    state = wf.load(run / "model.safetensors")
    found = [x.numpy().tobytes() for x in state.values()]  # under names of their layers
    assert sorted(found) == sorted(expected.weights().values())
