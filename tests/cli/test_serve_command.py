"""`weft serve`: runs of tables, images and texts, and saved graphs, answered as `predict` would."""

import json
import os
import signal
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from tests.serve.lab import Lab
from weft.cli import main
from weft.cli.serve_command import run_model
from weft.cli.trained import open_trained

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """\
name = "NAME"
loss = "cross_entropy"
[data]
batch_size = 16
DATA
[model]
MODEL
[optimizer]
type = "adam"
lr = 0.02
[trainer]
epochs = 2
plot = false
tensorboard = false
"""
MLP = 'type = "mlp"\nhidden = [8]\nout_features = 2'
CONV = """layers = [
    { type = "Conv2d", out_channels = 2, kernel_size = 3 },
    { type = "Flatten" },
    { type = "Linear", out_features = 4 },
]"""
LM = 'type = "lstm_lm"\nembed_size = 4\nhidden_size = 8'


def train(name, data, model):
    text = CONFIG.replace("NAME", name).replace("DATA", data).replace("MODEL", model)
    Path(f"{name}.toml").write_text(text)
    assert main(["train", f"{name}.toml", "--out", name, "--compile", "false"]) == 0


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("serve"))
    points = np.random.default_rng(0).normal(size=(60, 2)).round(3)
    rows = [f"{a};{b};{'up' if a > b else 'down'}" for a, b in points]
    Path("t.csv").write_text("\n".join(["a;b;kind", *rows]))
    source = 'source = { type = "csv", path = "t.csv", target = "kind", delimiter = ";" }\n'
    train("table", f"standardize = true\nsplit = [0.8, 0.2]\n{source}", MLP)
    yield Path.cwd()
    os.chdir(before)


@pytest.fixture(scope="module")
def table(work):
    model = run_model(open_trained("table", ["compile=true"]), "auto")
    limits = wf.serve.ServeLimits(max_batch=4)
    with wf.serve.background(model, limits=limits) as address:
        yield Lab(address)


def predicted(capsys, run, *files):
    capsys.readouterr()
    assert main(["predict", run, *files, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    return [{key: value for key, value in row.items() if key != "input"} for row in rows]


def same(found, wanted):
    assert [set(row) for row in found] == [set(row) for row in wanted]
    for a, b in zip(found, wanted, strict=True):
        assert a.get("class") == b.get("class")
        assert a["probability"] == pytest.approx(b["probability"], rel=1e-4)
    return True


def test_tables_as_arrays_records_and_csv(work, table, capsys):
    rows = [[2.0, -1.0], [-1.0, 2.0], [0.5, 0.4]]
    records = [{"b": b, "a": a} for a, b in rows]
    text = "\n".join(["a;b", *(f"{a};{b}" for a, b in rows)])
    Path("new.csv").write_text(text)
    wanted = predicted(capsys, "table", "new.csv")
    assert [row["class"] for row in wanted[:2]] == ["up", "down"]
    for body in ({"inputs": rows}, {"inputs": records}):
        status, said, _ = table.post(body)
        assert status == 200, said
        assert same(said["predictions"], wanted)
    assert same(table.post(text.encode(), "text/csv")[1]["predictions"], wanted)
    assert same([table.post({"input": records[0]})[1]["prediction"]], wanted[:1])
    file = BytesIO()
    np.save(file, np.array(rows))
    assert same(table.post(file.getvalue(), "application/x-npy")[1]["predictions"], wanted)
    said = table.post({"input": rows[0]}, path="/v1/predict?top=2")[1]["prediction"]
    assert said["class_2"] == "down"
    told = table.get("/v1/model")[1]
    assert (told["name"], told["classes"], told["features"]) == (
        "table",
        ["down", "up"],
        ["a", "b"],
    )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"input": {"a": 1}}, "must be an object with the features a, b. Received: {'a': 1}"),
        ({"input": {"a": 1, "b": None}}, "a number or a text. Received: b = None"),
        ({"input": {"a": 1, "b": "text"}}, "the features"),
        ({"inputs": [{"a": 1, "b": 2}, 3]}, "must be an object with the features"),
        ({"input": 3}, "had 2 features or channels along the first axis. Received: shape ()"),
        ({"inputs": [1, 2]}, "had 2 features"),
        ({"inputs": [[1, 2, 3]]}, "Received: shape (3,)"),
    ],
)
def test_bad_rows(table, body, said):
    status, content, _ = table.post(body)
    assert status == 400
    assert said in content["error"]


def test_bad_files_do_not_tell_where_they_were(table):
    for body, kind in ((b"a;c\n1;2\n", "text/csv"), (b"junk", "application/x-npz")):
        status, content, _ = table.post(body, kind)
        assert status == 400
        assert content["error"].startswith("the body")
        assert "/" not in content["error"].replace("application/", "")


def test_images(work, capsys):
    PIL = pytest.importorskip("PIL.Image")
    size = 'eval_transforms = [{ type = "resize", size = 12 }]\ntransforms = []\n'
    source = 'source = { type = "shapes_folder", n = 24, size = 12 }\nsplit = [0.8, 0.2]\n'
    train("shapes", size + source, CONV)
    pixels = np.random.default_rng(0).integers(0, 255, (20, 20, 3)).astype(np.uint8)
    PIL.fromarray(pixels).save("new.png")
    wanted = predicted(capsys, "shapes", "new.png")
    model = run_model(open_trained("shapes", ["compile=true"]), "auto")
    with wf.serve.background(model, limits=wf.serve.ServeLimits(max_batch=2)) as address:
        lab = Lab(address)
        status, said, _ = lab.post(Path("new.png").read_bytes(), "image/png")
        assert status == 200, said
        assert same(said["predictions"], wanted)
        status, said, _ = lab.post(b"no image", "image/png")
        assert (status, "the body: expected an image" in said["error"]) == (400, True)
        status, said, _ = lab.post({"inputs": [[1, 2, 3]]})
        assert (status, "error" in said) == (400, True)


def test_texts(work):
    Path("book.txt").write_text("the cat sat on the mat and the dog sat on the log. " * 20)
    source = 'source = { type = "characters", path = "book.txt", length = 8 }\nsplit = [0.8, 0.2]\n'
    train("letters", source, LM)
    model = run_model(open_trained("letters", ["compile=true"]), "auto")
    with wf.serve.background(model, limits=wf.serve.ServeLimits(max_batch=2)) as address:
        lab = Lab(address)
        status, said, _ = lab.post({"inputs": ["the cat ", "the dog "]})
        assert (status, len(said["predictions"])) == (200, 2)
        assert lab.post({"input": "the"})[0] == 200  # of any length
        status, said, _ = lab.post({"input": "THE"})
        assert (status, "'T' is not one of its" in said["error"]) == (400, True)
        assert lab.post({"inputs": ["ab", ""]})[0] == 400


def test_the_command_serves_a_saved_graph_until_it_is_interrupted(work):
    with wf.Graph("doubled") as graph:
        x = wf.placeholder((None, 2), wf.float32, name="x")
        double = x * 2.0
        wf.relu(double)
    graph.save("net.weft")
    command = [sys.executable, "-c", "import sys; from weft.cli import main; sys.exit(main())"]
    command += ["serve", "net.weft", "--port", "0", "--outputs", "relu,mul", "--max-batch", "4"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        line = process.stdout.readline()
        assert line.startswith("serving doubled on http://127.0.0.1:"), process.stderr.read()
        lab = Lab(line.strip())
        said = lab.post({"input": [1, -1]})[1]
        assert said == {"output": {"relu": [2, 0], "mul": [2, -2]}}
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "nothing"),
        (["table/model.safetensors"], "weights alone do not say what to compute"),
        (["t.csv"], "t.csv"),
        (["table", "--outputs", "y"], "--outputs are for saved graphs"),
        (["table.toml", "--weights", "table/model.safetensors"], "input_shapes"),
        (["table", "--max-batch", "9", "--max-queue", "3"], "max_queue must be at least max_batch"),
        (["table", "--timeout", "0"], "timeout must be finite and above 0"),
        (["table", "--weights", "nothing.safetensors"], "nothing.safetensors"),
        (["table", "--port", "70000"], "port must be a number from 0 to 65535"),
        (["table", "--host", "no.such.host"], "cannot listen on no.such.host"),
    ],
)
def test_typical_mistakes(work, arguments, said, capsys):
    assert main(["serve", *arguments]) in (1, 2)
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err
