"""`weft export`: trained runs as libraries."""

import sys

import numpy as np
import pytest

import weft as wf
from tests.exported import Model
from weft.cli import main

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libraries are for Linux")

CONFIG = """\
name = "small"
seed = 3
loss = "cross_entropy"

[data]
batch_size = 16
split = [0.6, 0.2, 0.2]

[data.source]
type = "blobs"
n = 150

[model]
[[model.layers]]
type = "Linear"
out_features = 8
[[model.layers]]
type = "ReLU"
[[model.layers]]
type = "Linear"
out_features = 3

[optimizer]
type = "adam"

[trainer]
epochs = 1
plot = false
tensorboard = false
"""


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(CONFIG)
    return tmp_path


def test_a_trained_run_becomes_a_library(work, capsys):
    assert main(["train", "small.toml", "--out", "run"]) == 0
    assert main(["export", "run", "-o", "model.so", "--batches", "1,4-6", "--beside"]) == 0
    assert "model.safetensors" in capsys.readouterr().out
    model = Model(str(work / "model.so"))
    assert [t.name for t in model.info.inputs[: model.info.input_count]] == [b"input"]
    trained = [np.asarray(value) for value in wf.io.load("run/model.safetensors").values()]
    assert sorted(w.tobytes() for w in trained) == sorted(
        w.tobytes() for w in model.states.values()
    )
    for n in (1, 4, 6):
        assert model(np.ones((n, 2), np.float32))[0].shape == (n, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "small.toml"], "a configuration alone has no weights"),
        (["export", "small.toml", "-o", "model.dll"], "must end in .so"),
        (["export", "small.toml", "-o", "no/model.so"], "there is no directory no"),
    ],
)
def test_bad_input(arguments, message, capsys):
    assert main(arguments) in (1, 2)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "0", "a", "3-1", "1-99999", "-4"])
def test_batches_that_are_none(text, capsys):
    with pytest.raises(SystemExit):
        main(["export", "small.toml", f"--batches={text}"])
    assert "must be" in capsys.readouterr().err


def test_a_target_that_there_is_not(work, capsys):
    assert main(["train", "small.toml", "--out", "run"]) == 0
    assert main(["export", "run", "--target", "pentium"]) in (1, 2)
    assert "target must be one of native, sse2, avx2, avx512" in capsys.readouterr().err
    assert not list(work.glob("*.so"))
