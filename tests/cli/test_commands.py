"""The commands from end to end, on small problems."""

import csv
import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from weft.cli import main, register
from weft.core.errors import ArgumentError
from weft.io import load
from weft.nn.models import MLP
from weft.train.names import LAYERS

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """\
name = "small"
seed = 3
loss = "cross_entropy"
metrics = ["accuracy"]

[data]
batch_size = 16
split = [0.6, 0.2, 0.2]

[data.source]
type = "blobs"
n = 150
std = 0.5

[model]
type = "mlp"
hidden = [16]
out_features = 3
dropout = 0.1

[optimizer]
type = "adam"
lr = 0.02

[schedule]
type = "cosine"

[trainer]
epochs = 4
plot = false
tensorboard = false
"""


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(CONFIG)
    return tmp_path


def weft(*arguments):
    return main([str(argument) for argument in arguments])


def weights(directory):
    return {name: x.numpy() for name, x in load(directory / "model.safetensors").items()}


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


# -- train ---------------------------------------------------------------------------------------


def test_train_makes_a_run_directory(work, capsys):
    assert weft("train", "small.toml") == 0
    run = work / "runs" / "small-001"
    out = capsys.readouterr().out
    assert "train 90, val 30, test 30" in out
    names = {entry.name for entry in run.iterdir()}
    assert names >= {"config.toml", "run.json", "log.jsonl", "checkpoints", "model.safetensors"}
    results = json.loads((run / "results.json").read_text())
    assert results["test"]["accuracy"] > 0.9
    assert len((run / "log.jsonl").read_text().splitlines()) == 4
    assert weft("train", "small.toml") == 0
    assert (work / "runs" / "small-002").is_dir()
    assert same(weights(run), weights(work / "runs" / "small-002"))


def test_the_resolved_configuration_runs_again_and_gives_the_same(work):
    assert weft("train", "small.toml", "--out", "a") == 0
    resolved = tomllib.loads((work / "a" / "config.toml").read_text())
    assert resolved["data"]["shuffle"] is True
    assert resolved["trainer"]["checkpoint"]["keep_last"] == 3
    assert weft("train", "a/config.toml", "--out", "b") == 0
    assert same(weights(work / "a"), weights(work / "b"))


@pytest.mark.parametrize("interval", ["every = 1", 'every = 1\nunit = "iteration"'])
def test_an_interrupted_run_ends_in_the_same_weights(work, interval, capsys):
    text = CONFIG + f"[trainer.checkpoint]\n{interval}\n"
    (work / "small.toml").write_text(text)
    assert weft("train", "small.toml", "--out", "whole") == 0
    half = ("small.toml", "--out", "half", "--set", "schedule.T_max=4")
    assert weft("train", *half, "--set", "trainer.epochs=1.5") == 0
    assert weft("train", *half, "--resume", "auto") == 0
    out = capsys.readouterr().out
    assert "resumed at epoch 1.5" in out
    assert "other settings than before: trainer.epochs" in out
    assert same(weights(work / "whole"), weights(work / "half"))


def test_resume_auto_finds_the_newest_run_or_starts(work, capsys):
    assert weft("train", "small.toml", "--resume", "auto", "--set", "trainer.epochs=1") == 0
    assert "starting at the beginning" in capsys.readouterr().out
    assert weft("train", "small.toml", "--resume", "auto") == 0
    assert "resumed at epoch 1" in capsys.readouterr().out
    assert not (work / "runs" / "small-002").exists()


def test_resume_from_a_path(work, capsys):
    assert weft("train", "small.toml", "--out", "a") == 0
    final = weights(work / "a")
    first = min((work / "a" / "checkpoints").iterdir())
    assert weft("train", "small.toml", "--resume", first) == 0
    assert same(final, weights(work / "a"))
    assert weft("train", "small.toml", "--resume", "a") == 0
    assert weft("train", "small.toml", "--resume", "nowhere") == 2
    assert "there is no directory nowhere" in capsys.readouterr().err


def test_a_run_is_not_overwritten(work, capsys):
    assert weft("train", "small.toml", "--out", "a") == 0
    assert weft("train", "small.toml", "--out", "a") == 2
    assert "holds a run already: continue it with --resume auto" in capsys.readouterr().err


def test_dry_run_writes_nothing(work, capsys):
    assert weft("train", "small.toml", "--dry-run") == 0
    assert "the configuration is good" in capsys.readouterr().out
    assert not (work / "runs").exists()


@pytest.mark.parametrize("compile", ["true", "false"])
def test_the_same_model_in_a_loop_of_ones_own(work, compile):
    """A program that does what the file says gets the same weights, bit for bit."""
    assert weft("train", "small.toml", "--out", "a", "--compile", compile) == 0
    dataset = wf.data.make_blobs(150, std=0.5, seed=0)
    train, _, _ = wf.data.random_split(dataset, [0.6, 0.2, 0.2], seed=0)
    loader = wf.data.DataLoader(train, batch_size=16, shuffle=True, seed=3)
    wf.manual_seed(3)
    net = MLP(2, 3, [16], dropout=0.1)
    optimizer = wf.optim.Adam(net.parameters(), lr=0.02)
    schedule = wf.optim.lr.CosineAnnealingLR(optimizer, 4)

    def step(x, y):
        optimizer.minimize(wf.nn.functional.cross_entropy(net(x), y))

    run = wf.jit(step) if compile == "true" else step
    for _ in range(4):
        for x, y in loader:
            run(x, y)
        schedule.step()
    state = {name: x.numpy() for name, x in net.state_dict().items()}
    assert same(weights(work / "a"), state)


def test_what_cannot_be_compiled(work, capsys):
    arguments = ("train", "small.toml", "--set", "optimizer=lbfgs", "--out")
    assert weft(*arguments, "a", "--compile", "true") == 1
    assert "take_step cannot be compiled: LBFGS steps by values" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        weft(*arguments, "b", "--compile", "perhaps")
    assert "must be auto, true or false. Received: perhaps" in capsys.readouterr().err


def test_compiled_and_eager_commands_agree(work, capsys):
    assert weft("train", "small.toml", "--out", "a") == 0
    (work / "points.csv").write_text("x0,x1\n0.5,1.0\n-1.0,2.0\n")
    found = []
    for compile in ("true", "false"):
        assert weft("test", "a", "--compile", compile, "--out", f"{compile}.json") == 0
        capsys.readouterr()
        assert weft("predict", "a", "points.csv", "--compile", compile) == 0
        labels = [line.split(",")[1] for line in capsys.readouterr().out.split()]
        found.append((json.loads((work / f"{compile}.json").read_text()), labels))
    assert found[0][1] == found[1][1]
    assert found[0][0]["loss"] == pytest.approx(found[1][0]["loss"], rel=1e-4)


@pytest.mark.parametrize(
    "settings",
    [
        ["precision=float64"],
        ["precision=float16"],
        ["trainer.ema=0.9", "trainer.accumulate=2", "trainer.clip_norm=1.0"],
        ["data.standardize=true", "data.shuffle=false", "data.drop_last=true"],
        ["trainer.early_stopping={patience=1, restore_best=true}"],
        ["schedule={type='plateau', patience=1}"],
        ["schedule={type='one_cycle', max_lr=0.1, unit='iteration'}"],
        ["schedule={type='cosine', warmup=1, unit='epoch'}"],
        ["schedule={type='constant', then=[{type='exponential', gamma=0.5, after=1}]}"],
        ["optimizer={type='sgd', lr=0.1, groups=[{match='*.bias', lr_mult=2.0}]}"],
        ["optimizer={type='lbfgs'}", "trainer.epochs=1", "compile=false"],
        ["compile=true", "trainer.clip_norm=0.5", "trainer.accumulate=3"],
        ["optimizer={type='eve'}", "loss={type='cross_entropy', label_smoothing=0.1}"],
        ["data.batch_transforms=[{type='mix_up', num_classes=3}]", "metrics=[]"],
        ["metrics=['accuracy', 'f1', {type='top_k_accuracy', k=2}, 'confusion_matrix']"],
        ["trainer.iterations=7"],
        ["trainer.profile=true", "data.workers=2"],
        ["trainer.plot=true", "trainer.tensorboard=true", "trainer.histograms=1"],
        ["data.split=[1.0]", "trainer.test=false"],
        ["data.split_in_order=true", "data.eval_batch_size=7"],
    ],
    ids=str,
)
def test_options(work, settings):
    if "trainer.iterations=7" in settings:
        (work / "small.toml").write_text(CONFIG.replace("epochs = 4", ""))
    arguments = [part for setting in settings for part in ("--set", setting)]
    short = (
        [] if any("trainer.it" in s or "epochs" in s for s in settings) else ["trainer.epochs=2"]
    )
    arguments += [part for setting in short for part in ("--set", setting)]
    assert weft("train", "small.toml", *arguments, "--out", "run") == 0
    assert all(np.isfinite(x).all() for x in weights(work / "run").values())
    if "trainer.plot=true" in settings:
        assert (work / "run" / "curves.png").is_file()
        assert any((work / "run" / "tensorboard").iterdir())


def test_nan_is_an_error_with_a_hint(work, capsys):
    assert weft("train", "small.toml", "--set", "optimizer={type='sgd', lr=1e30}") == 1
    assert "lower the learning rate" in capsys.readouterr().err


def test_a_run_directory_that_cannot_be_made(work, capsys):
    (work / "file").write_text("")
    assert weft("train", "small.toml", "--out", "file/run") == 2
    assert "cannot write to the run directory" in capsys.readouterr().err


def test_ctrl_c_saves_and_says_so(work):
    program = "import sys; from weft.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "train", "small.toml", "--out", "a"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [*command, "--set", "trainer.epochs=100000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=work,
    )
    for line in process.stdout:
        if line.split()[:1] == ["2"]:
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "stopped by Ctrl-C" in errors
    assert "Traceback" not in errors
    assert any((work / "a" / "checkpoints").iterdir())


# -- test, predict -------------------------------------------------------------------------------


@pytest.fixture
def trained(work):
    assert weft("train", "small.toml", "--out", "run") == 0
    return work


def test_test_prints_what_training_found(trained, capsys):
    results = json.loads((trained / "run" / "results.json").read_text())["test"]
    assert weft("test", "run", "--out", "test.json") == 0
    assert json.loads((trained / "test.json").read_text()) == pytest.approx(results)
    for choice in ("last", "best", "final", "run/model.safetensors"):
        assert weft("test", "run", "--weights", choice, "--split", "val") == 0
    assert weft("test", "small.toml", "--weights", "run/model.safetensors") == 0
    capsys.readouterr()
    assert weft("test", "small.toml") == 2
    assert "has no weights" in capsys.readouterr().err
    assert weft("test", "run", "--set", "data.split=[0.8, 0.2]") == 2
    assert "no test part; it has: train, val" in capsys.readouterr().err


def test_weights_that_do_not_fit(trained, capsys):
    assert weft("test", "run", "--set", "model.hidden=[8]") == 2
    assert "do not fit the configuration" in capsys.readouterr().err
    (trained / "bad.pt").write_bytes(b"\x80\x02.")
    assert weft("test", "run", "--weights", "bad.pt") == 2
    assert "pickle" in capsys.readouterr().err


def test_predict_arrays(trained, capsys):
    dataset = wf.data.make_blobs(150, std=0.5, seed=0)
    x, y = (column.numpy() for column in dataset.tensors)
    np.savez("new.npz", x=x, y=y)
    np.save("new.npy", x)
    capsys.readouterr()
    assert weft("predict", "run", "new.npz", "--out", "out.csv", "--top", "2") == 0
    rows = list(csv.DictReader((trained / "out.csv").read_text().splitlines()))
    assert len(rows) == 150
    assert list(rows[0]) == ["input", "label", "probability", "label_2", "probability_2"]
    found = np.array([int(row["label"]) for row in rows])
    assert (found == y).mean() > 0.9
    assert weft("predict", "run", "new.npy", "--format", "json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["label"] for row in listed] == found.tolist()


def test_predict_refuses_what_does_not_fit(trained, capsys):
    np.save("wide.npy", np.zeros((3, 5), np.float32))
    np.save("scalar.npy", np.float32(1.0))
    (trained / "text.txt").write_text("x")
    (trained / "empty").mkdir()
    cases = {
        "wide.npy": "do not fit",
        "scalar.npy": "one row for each sample",
        "text.txt": "cannot predict from text.txt",
        "empty": "there are no images in empty",
        "nothing.csv": "there is no file nothing.csv",
    }
    for name, message in cases.items():
        assert weft("predict", "run", name) == 2, name
        assert message in capsys.readouterr().err


def test_tables_with_text_targets(work, capsys):
    generator = np.random.default_rng(0)
    points = generator.normal(size=(80, 2)).round(3)
    rows = [f"{a},{b},{'up' if a > b else 'down'}" for a, b in points]
    (work / "t.csv").write_text("\n".join(["a,b,kind", *rows]))
    config = CONFIG.replace('"blobs"\nn = 150\nstd = 0.5', '"csv"\npath = "t.csv"\ntarget = "kind"')
    config = config.replace("out_features = 3\n", "").replace("epochs = 4", "epochs = 20")
    config = config.replace("batch_size = 16", "batch_size = 16\nstandardize = true")
    (work / "table.toml").write_text(config)
    assert weft("train", "table.toml", "--out", "run", "--set", "model.out_features=2") == 0
    (work / "new.csv").write_text("a,b\n2.0,-1.0\n-1.0,2.0\n")
    capsys.readouterr()
    assert weft("predict", "run", "new.csv") == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["class"] for row in rows] == ["up", "down"]
    (work / "other.csv").write_text("a,c\n2.0,-1.0\n")
    assert weft("predict", "run", "other.csv") == 2
    assert "the model was trained on ['a', 'b']" in capsys.readouterr().err


def test_images_in_folders(work, capsys):
    config = CONFIG.replace('"blobs"\nn = 150\nstd = 0.5', '"shapes_folder"\nn = 48\nsize = 16')
    start, end = config.index("[model]"), config.index("[optimizer]")
    layers = """[model]
layers = [
    {type = "Conv2d", out_channels = 4, kernel_size = 3, stride = 2},
    {type = "ReLU"}, {type = "Flatten"}, {type = "Linear", out_features = 4},
]
"""
    (work / "folder.toml").write_text(config[:start] + layers + config[end:])
    assert weft("train", "folder.toml", "--out", "run", "--set", "trainer.epochs=1") == 0
    capsys.readouterr()
    assert weft("predict", "run", "runs/shapes-48") == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert len(rows) == 48
    assert {row["class"] for row in rows} <= {"circle", "square", "triangle", "cross"}


def test_regression_and_binary_outputs(work, capsys):
    base = CONFIG.replace('metrics = ["accuracy"]', "").replace(
        "out_features = 3", "out_features = 1"
    )
    regression = base.replace('"cross_entropy"', '"mse"')
    regression = regression.replace('"blobs"\nn = 150\nstd = 0.5', '"regression"\nfeatures = 2')
    (work / "regression.toml").write_text(regression)
    binary = base.replace('"cross_entropy"', '"bce_with_logits"')
    binary = binary.replace('"blobs"\nn = 150\nstd = 0.5', '"moons"')
    (work / "binary.toml").write_text(binary)
    np.save("x.npy", np.zeros((2, 2), np.float32))
    for name, columns in (("regression", "output"), ("binary", "label,probability")):
        assert weft("train", f"{name}.toml", "--out", name) == 0
        capsys.readouterr()
        assert weft("predict", name, "x.npy") == 0
        assert capsys.readouterr().out.splitlines()[0] == f"input,{columns}"


# -- time, info ----------------------------------------------------------------------------------


def test_time_lists_every_layer(work, capsys):
    assert weft("time", "small.toml", "--repeat", "1", "--batch-size", "4") == 0
    out = capsys.readouterr().out
    assert "layers.0 (Linear)" in out
    assert "all layers:" in out
    assert weft("time", "small.toml", "--repeat", "1", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["type"] for row in found["layers"]] == ["Linear", "ReLU", "Dropout", "Linear"]
    assert found["layers"][0]["backward"] > 0


def test_info(trained, capsys):
    assert weft("info", "--json") == 0
    assert json.loads(capsys.readouterr().out)["numpy"] == np.__version__
    for target, expected in {
        "layers": "Conv2d",
        "Conv2d": "out_channels",
        "adam": "betas",
        "small.toml": "Parameters: 99",
        "run": "Parameters: 99",
        "run/model.safetensors": "layers.0.weight",
    }.items():
        assert weft("info", target) == 0
        assert expected in capsys.readouterr().out
    assert weft("info", "Conv2") == 2
    assert "did you mean 'Conv2d'?" in capsys.readouterr().err


# -- the door for extensions ---------------------------------------------------------------------


class Scale(wf.nn.Module):
    """Multiply by a number."""

    def __init__(self, factor: float = 2.0):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


def test_registered_layers_can_be_named(work, monkeypatch):
    monkeypatch.setattr(LAYERS, "entries", dict(LAYERS.entries))
    register("layers", "Scale", Scale)
    start, end = CONFIG.index("[model]"), CONFIG.index("[optimizer]")
    layers = (
        '[model]\nlayers = [{type = "Scale", factor = 0.5}, {type = "Linear", out_features = 3}]\n'
    )
    (work / "own.toml").write_text(CONFIG[:start] + layers + CONFIG[end:])
    assert weft("train", "own.toml", "--dry-run") == 0
    with pytest.raises(ArgumentError, match="there is a layer named 'Scale' already"):
        register("layers", "Scale", Scale)
    with pytest.raises(ArgumentError, match="did you mean 'layers'"):
        register("layer", "Other", Scale)
    with pytest.raises(ArgumentError, match="letters, digits"):
        register("layers", "os.system", Scale)
    with pytest.raises(ArgumentError, match="must be a class or function"):
        register("layers", "Three", 3)
