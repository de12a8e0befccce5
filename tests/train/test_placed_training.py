"""Training on a device by every face: the losses of the CPU, and the model stays there."""

from __future__ import annotations

import json

import numpy as np
import pytest

import weft as wf
from tests.opaque import no_copies, opaque  # noqa: F401  (opaque is a fixture)
from weft.cli.main import main
from weft.data import DataLoader, TensorDataset
from weft.nn.places import beside, device_of
from weft.train import Evaluator, Trainer, Updater

pytestmark = pytest.mark.usefixtures("opaque")
PLACE = "opaque:0"
X = np.linspace(-1, 1, 48, dtype=np.float32).reshape(16, 3)
Y = (X.sum(1) > 0).astype(np.int64)
PLACES = ("cpu", PLACE)


def make_net():
    wf.manual_seed(0)
    return wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.Tanh(), wf.nn.Linear(4, 2))


def test_the_trainer():
    losses = []
    for place in PLACES:
        net = make_net()
        loader = DataLoader(TensorDataset(X, Y), batch_size=4, seed=0)
        loss = wf.nn.functional.cross_entropy
        updater = Updater(net, wf.optim.Adam(net.parameters(), 0.05), loss, loader)
        trainer = Trainer(updater, stop=(2, "epoch"), out=None, device=place)
        trainer.extend(Evaluator(loader))
        seen = losses.append
        found = []

        @trainer.extend(trigger=(1, "epoch"), priority=-1000)
        def note(trainer, found=found):
            found.append([v for v in trainer.observation.values() if np.ndim(v) == 0])

        trainer.run()
        seen([float(v) for values in found for v in values])
        assert {p.device for p in net.parameters()} == {place}
    assert len(losses[0]) == len(losses[1]) > 2
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)


def test_fit_evaluate_and_predict():
    found = []
    for place in PLACES:
        net = make_net()
        net.compile("adam", "cross_entropy", metrics=["accuracy"])
        history = net.fit(X, Y, batch_size=4, epochs=2, verbose=0, seed=0, device=place)
        scores = net.evaluate(X, Y, verbose=0)
        outputs = net.predict(X)
        assert net[0].weight.device == place
        found.append([*history.history["loss"], *scores, *outputs.ravel()])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-5)


def test_estimators():
    pytest.importorskip("sklearn")
    found = []
    for place in (None, PLACE):
        model = wf.train.WeftClassifier(
            hidden_layer_sizes=(4,), epochs=2, random_state=0, dtype="float32", device=place
        )
        found.append(model.fit(X, Y).predict_proba(X))
    assert model.module_[0].weight.device == PLACE
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"prefetch": 2}, {"num_workers": 1}])
def test_a_loader_brings_batches_to_the_device(options):
    loader = DataLoader(TensorDataset(X, Y), batch_size=5, device=PLACE, **options)
    with no_copies():
        batches = list(loader)
    assert [x.device for x, _ in batches] == [PLACE] * 4
    np.testing.assert_array_equal(np.concatenate([x.numpy() for x, _ in batches]), X)


def test_batches_go_where_a_model_is():
    net = make_net()
    assert device_of(net) is None
    batch = {"x": wf.ones(2), "name": "a"}
    assert beside(net, batch) is batch
    net.to(PLACE)
    assert device_of(net) == PLACE
    assert device_of(lambda x: x) is None
    moved = beside(net, batch)
    assert (moved["x"].device, moved["name"]) == (PLACE, "a")


def test_only_a_module_can_be_moved():
    w = wf.nn.Parameter(wf.ones(1))
    updater = Updater(lambda x: x * w, wf.optim.SGD([w], 0.1), lambda y: y.sum(), [wf.ones(1)])
    with pytest.raises(TypeError, match="device= moves a Module"):
        Trainer(updater, out=None, device=PLACE)


CONFIG = """
name = "small"
device = "{device}"
[data]
source = "blobs"
batch_size = 32
[model]
type = "mlp"
hidden = [4]
out_features = 3
[loss]
type = "cross_entropy"
[optimizer]
type = "adam"
[trainer]
epochs = 1
"""


def test_configurations_and_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = []
    for place, written, options in (("cpu", "cpu", []), (PLACE, "cpu", ["--device", PLACE])):
        (tmp_path / "run.toml").write_text(CONFIG.format(device=written))
        out = tmp_path / f"out{len(found)}"
        assert main(["train", "run.toml", "--out", str(out), *options]) == 0
        found.append(wf.load(out / "model.safetensors"))
        config = (out / "config.toml").read_text()
        assert f'device = "{place}"' in config
    for name, value in found[0].items():
        for other in found[1:]:
            np.testing.assert_allclose(other[name].numpy(), value.numpy(), rtol=1e-3, atol=1e-5)
    (tmp_path / "run.toml").write_text(CONFIG.format(device=PLACE))
    assert main(["train", "run.toml", "--out", str(tmp_path / "dry"), "--dry-run"]) == 0
    assert main(["test", str(out), "--out", "found.json"]) == 0
    assert "loss" in json.loads((tmp_path / "found.json").read_text())
    assert main(["train", "run.toml", "--device", "abacus:3"]) != 0
    assert "abacus:3" in capsys.readouterr().err


def test_layers_are_timed_there(tmp_path, capsys):
    (tmp_path / "run.toml").write_text(CONFIG.format(device=PLACE))
    assert main(["time", str(tmp_path / "run.toml"), "--repeat", "1"]) == 0
    assert "Linear" in capsys.readouterr().out
