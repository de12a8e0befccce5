"""`weft graph`: pictures of declared models."""

import xml.etree.ElementTree as ET

import pytest

import weft as wf
from weft.cli import main
from weft.viz.drawing import dot

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
name = "hidden"
out_features = 8
[[model.layers]]
type = "ReLU"
[[model.layers]]
type = "Linear"
name = "head"
out_features = 3

[optimizer]
type = "adam"

[trainer]
epochs = 1
plot = false
tensorboard = false
"""
MLP = """\
[model]
type = "mlp"
hidden = [16]
out_features = 3

"""
TAIL = CONFIG[CONFIG.index("[optimizer]") :]


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dot.shutil, "which", lambda name: None)
    (tmp_path / "small.toml").write_text(CONFIG)
    return tmp_path


def weft(*arguments):
    return main(["graph", *map(str, arguments)])


def texts(path):
    root = ET.parse(path).getroot()
    return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]


def row(out, scope):
    (found,) = [line.split() for line in out.splitlines() if line.split()[:1] == [scope]]
    return found[1:]


def test_a_model_is_drawn_and_listed(work, capsys):
    assert weft("small.toml") == 0
    out = capsys.readouterr().out
    assert row(out, "hidden") == ["3", "24"]
    assert row(out, "head") == ["3", "27"]
    assert row(out, "all")[1] == "51"
    assert out.endswith("drawn to graph.svg\n")
    shown = texts(work / "graph.svg")
    assert {"input", "hidden", "head", "weight", "float32[batch, 2]"} <= set(shown)


def test_training_adds_loss_gradients_and_update(work, capsys):
    assert weft("small.toml", "--training", "--out", "step.svg", "--depth", "1") == 0
    out = capsys.readouterr().out
    assert row(out, "all")[1] == "51"
    assert row(out, "gradients")
    assert row(out, "optimizer")
    assert "target" in texts(work / "step.svg")


def test_depth_closes_scopes(work):
    assert weft("small.toml", "--depth", "0", "--out", "closed.svg") == 0
    shown = texts(work / "closed.svg")
    assert "hidden" not in shown
    assert any(text.endswith(" nodes") for text in shown)


@pytest.mark.parametrize("name", ["graph.dot", "graph.gv"])
def test_dot_files(work, name):
    assert weft("small.toml", "--out", name) == 0
    assert (work / name).read_text().startswith('digraph "small"')


def test_settings_change_the_model(work):
    (work / "mlp.toml").write_text(CONFIG.partition("[model]")[0] + MLP + TAIL)
    assert weft("mlp.toml", "--set", "model.hidden=[5]") == 0
    assert "float32[5, 2]" in texts(work / "graph.svg")


def test_tensorboard_files(work):
    pytest.importorskip("tensorboardX")
    assert weft("small.toml", "--tensorboard", "board") == 0
    assert list((work / "board").glob("events.out.tfevents.*"))


def test_a_saved_graph_is_drawn(work, capsys):
    with wf.Graph("saved") as graph:
        x = wf.placeholder((None, 3), wf.float32, name="x")
        (x * 2.0).sum().name = "total"
    graph.save("net.graph")
    assert weft("net.graph") == 0
    assert "total" in texts(work / "graph.svg")
    assert weft("net.graph", "--training") == 2
    assert "saved graph" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("small.toml", "--out", "graph.pdf"), "--out must end in .svg, .png"),
        (("small.toml", "--out", "nowhere/graph.svg"), "there is no directory nowhere"),
        (("missing.toml",), "missing.toml"),
    ],
)
def test_bad_input_is_one_line(arguments, message, capsys):
    assert weft(*arguments) in {1, 2}
    error = capsys.readouterr().err
    assert error.startswith("weft: error: ")
    assert message in error
    assert "Traceback" not in error


def test_a_negative_depth_is_refused(capsys):
    with pytest.raises(SystemExit):
        weft("small.toml", "--depth", "-1")
    assert "must be at least 0" in capsys.readouterr().err


def test_help_names_the_options(capsys):
    with pytest.raises(SystemExit):
        weft("--help")
    out = capsys.readouterr().out
    assert all(option in out for option in ("--out", "--depth", "--training", "--tensorboard"))
