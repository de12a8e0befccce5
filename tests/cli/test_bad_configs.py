"""More than a hundred bad configurations, each with the message that its author needs.

A case changes one part of a good configuration; the message must name the line of the change (or
the option), what is wrong, and where there is one the nearest valid name.
"""

import numpy as np
import pytest

from weft.cli import main

GOOD = """\
name = "case"
seed = 0
loss = "cross_entropy"
metrics = ["accuracy"]

[data]
batch_size = 8
split = [0.6, 0.2, 0.2]

[data.source]
type = "blobs"
n = 60
classes = 3

[model]
[[model.layers]]
type = "Linear"
name = "fc1"
out_features = 16

[[model.layers]]
type = "ReLU"
name = "act"

[[model.layers]]
type = "Linear"
name = "fc2"
inputs = ["act"]
out_features = 3

[optimizer]
type = "adam"
lr = 0.01

[schedule]
type = "step"
step_size = 1

[trainer]
epochs = 1
"""


def line_of(text, part):
    return text[: text.index(part)].count("\n") + 1


def run(tmp_path, capsys, text, *arguments):
    path = tmp_path / "case.toml"
    path.write_text(text) if isinstance(text, str) else path.write_bytes(text)
    status = main(["train", str(path), "--dry-run", *arguments])
    captured = capsys.readouterr()
    return status, captured.err


def test_the_good_one_is_good(tmp_path, capsys):
    assert run(tmp_path, capsys, GOOD) == (0, "")


# (what is replaced, by what, the part whose line is named, what the message says)
CASES = [
    # unknown and mistyped keys
    ("seed = 0", "sed = 0", "sed", "has no key 'sed'; did you mean 'seed'?"),
    ("loss =", "los =", "los", "has no key 'los'; did you mean 'loss'?"),
    ("metrics", "metric", "metric", "did you mean 'metrics'?"),
    ("[optimizer]", "[optimiser]", "[optimiser]", "did you mean 'optimizer'?"),
    ("[trainer]", "[training]", "[training]", "did you mean 'trainer'?"),
    ("[schedule]", "[scheduler]", "[scheduler]", "did you mean 'schedule'?"),
    ("batch_size = 8", "batchsize = 8", "batchsize", "data has no key 'batchsize'; did you mean"),
    ("split =", "splits =", "splits", "did you mean 'split'?"),
    ("[data.source]", "[data.sources]", "[data.sources]", "did you mean 'source'?"),
    ("n = 60", "number = 60", "number", "data.source has no key 'number'"),
    ("classes = 3", "clases = 3", "clases", "did you mean 'classes'?"),
    ("out_features = 16", "out_feature = 16", "out_feature", "did you mean 'out_features'?"),
    ('name = "act"', 'nme = "act"', "nme", "did you mean 'name'?"),
    ('inputs = ["act"]', 'input = ["act"]', "input =", "did you mean 'inputs'?"),
    ("lr = 0.01", "lrr = 0.01", "lrr", "optimizer has no key 'lrr'; did you mean 'lr'?"),
    ("lr = 0.01", "momentum = 0.9", "momentum", "optimizer has no key 'momentum'"),
    ("step_size = 1", "stepsize = 1", "stepsize", "did you mean 'step_size'?"),
    ("epochs = 1", "epoch = 1", "epoch =", "trainer has no key 'epoch'; did you mean 'epochs'?"),
    ("epochs = 1", "clip_nrm = 1.0", "clip_nrm", "did you mean 'clip_norm'?"),
    ("epochs = 1", "[trainer.checkpoint]\nkep_last = 1", "kep_last", "did you mean 'keep_last'?"),
    ("epochs = 1", "early_stopping = {patienc = 1}", "early_stopping", "did you mean 'patience'?"),
    ("[model]", "[model]\ntyp = 1", "typ =", "model has no key 'typ'"),
    ("[model]", "[model]\nfreez = []", "freez", "did you mean 'freeze'?"),
    # unknown names
    ('"cross_entropy"', '"crossentropy"', "loss", "no loss 'crossentropy'; did you mean 'cross_e"),
    ('"accuracy"', '"acuracy"', "metrics", "there is no metric 'acuracy'; did you mean 'accuracy'"),
    ('"blobs"', '"blob"', 'type = "blob"', "there is no dataset 'blob'; did you mean 'blobs'?"),
    ('"Linear"', '"Liner"', 'type = "Liner"', "there is no layer 'Liner'; did you mean 'Linear'?"),
    ('"ReLU"', '"relu"', 'type = "relu"', "there is no layer 'relu'; did you mean 'ReLU'?"),
    ('"ReLU"', '"os.system"', 'type = "os', "there is no layer 'os.system'"),
    ('"ReLU"', '"weft.nn.ReLU"', 'type = "weft', "there is no layer 'weft.nn.ReLU'"),
    ('"ReLU"', '"Module"', 'type = "Module"', "there is no layer 'Module'"),
    ('"ReLU"', '"MSELoss"', 'type = "MSELoss"', "there is no layer 'MSELoss'"),
    ('"ReLU"', '"LazyLinear"', 'type = "Lazy', "there is no layer 'LazyLinear'"),
    ('"ReLU"', "1", "type = 1", "there is no layer 1; it must be a string"),
    ('"adam"', '"adm"', 'type = "adm"', "there is no optimizer 'adm'; did you mean 'adam'?"),
    ('"adam"', '"Adam"', 'type = "Adam"', "there is no optimizer 'Adam'; did you mean 'adam'?"),
    ('"step"', '"stp"', 'type = "stp"', "there is no schedule 'stp'; did you mean 'step'?"),
    ("batch_size = 8", 'transforms = ["flip"]', "transforms", "there is no transform 'flip'"),
    ("batch_size = 8", 'transforms = ["resiz"]', "transforms", "did you mean 'resize'?"),
    ("batch_size = 8", 'batch_transforms = ["mixup"]', "batch_t", "did you mean 'mix_up'?"),
    # missing keys
    ('loss = "cross_entropy"\n', "", None, "the configuration needs the key 'loss'"),
    ('[optimizer]\ntype = "adam"\nlr = 0.01\n', "", None, "needs the key 'optimizer'"),
    ('type = "adam"\n', "", "[optimizer]", "needs the key 'type', the name of a optimizer"),
    ('type = "adam"', 'name = "adam"', "[optimizer]", "did you mean type = 'adam' instead of name"),
    ('type = "step"\n', "", "[schedule]", "schedule needs the key 'type'"),
    ("step_size = 1\n", "", "[schedule]", "step needs the option 'step_size'"),
    ("out_features = 16\n", "", "[[model.layers]]", "Linear needs the option 'out_features'"),
    ('type = "Linear"\n', "", "[[model.layers]]", "model.layers[0] needs the key 'type'"),
    ('type = "blobs"\n', "", "[data.source]", "needs the key 'type', the name of a dataset"),
    ("lr = 0.01", "groups = [{lr_mult = 2.0}]", "groups", "needs the key 'match'"),
    # wrong kinds
    ("seed = 0", 'seed = "0"', "seed", "seed must be an integer. Received: '0' (a string)"),
    ("seed = 0", "seed = 0.5", "seed", "seed must be an integer. Received: 0.5 (a number)"),
    ("seed = 0", "seed = true", "seed", "must be an integer. Received: true (true or false)"),
    ("seed = 0", "seed = -1", "seed", "seed must be at least 0. Received: -1"),
    ("batch_size = 8", "batch_size = 0", "batch_size", "must be at least 1. Received: 0"),
    ("batch_size = 8", "batch_size = [8]", "batch_size", "must be an integer. Received: [8]"),
    ("batch_size = 8", "shuffle = 1", "shuffle", "data.shuffle must be true or false"),
    ("batch_size = 8", "workers = -1", "workers", "data.workers must be at least 0"),
    ("n = 60", "n = 0.5", "n = 0.5", "blobs: n must be an integer. Received: 0.5 (a number)"),
    ("out_features = 16", 'out_features = "16"', "out_features", "must be an integer. Received"),
    ("out_features = 16", "out_features = 16.0", "out_features", "Received: 16.0 (a number)"),
    ("out_features = 16", "out_features = -4", "out_features", "out_features must be at least 0"),
    ("out_features = 16", "out_features = 9\nbias = 1", "bias", "bias must be true or false"),
    ("lr = 0.01", 'lr = "0.01"', "lr", "lr must be a number. Received: '0.01' (a string)"),
    ("lr = 0.01", "lr = -0.01", "lr", "lr must be finite and not negative. Received: -0.01"),
    ("lr = 0.01", "lr = nan", "lr", "lr must be finite and not negative"),
    ("lr = 0.01", "betas = 0.9", "betas", "betas must be a list. Received: 0.9"),
    ("lr = 0.01", "betas = [0.9, 1.5]", "betas", "betas must be at least 0 and less than 1"),
    ("lr = 0.01", "amsgrad = 1", "amsgrad", "amsgrad must be true or false"),
    ("step_size = 1", "step_size = 0", "step_size", "step_size must be a positive integer"),
    ("epochs = 1", "epochs = 0", "epochs", "trainer.epochs must be above 0. Received: 0"),
    ("epochs = 1", "epochs = -2", "epochs", "must be above 0. Received: -2"),
    ("epochs = 1", 'epochs = "ten"', "epochs", "must be a number. Received: 'ten' (a string)"),
    ("epochs = 1", "iterations = 1.5", "iterations", "trainer.iterations must be an integer"),
    ("epochs = 1", "clip_norm = 0.0", "clip_norm", "must be above 0"),
    ("epochs = 1", "ema = 1.5", "ema", "trainer.ema must be from 0 to 0.999999"),
    ("epochs = 1", 'plot = "maybe"', "plot", "must be one of true, false, 'auto'"),
    ("epochs = 1", "early_stopping = 3", "early_stopping", "must be a table"),
    ('"accuracy"', "1", "metrics", "must be a table"),
    ('metrics = ["accuracy"]', "metrics = 1", "metrics", "metrics must be a list"),
    ('loss = "cross_entropy"', "loss = 1", "loss", "must be a table"),
    ("seed = 0", 'seed = 0\nprecision = "float8"', "precision", "must be one of 'float32'"),
    ("seed = 0", 'seed = 0\nprecision = "flot32"', "precision", "did you mean 'float32'?"),
    ("seed = 0", 'seed = 0\ndevice = "cuda"', "device", "device must be one of 'cpu'"),
    ('name = "case"', 'name = ""', "name", "name must not be empty"),
    ("[data.source]\n", "[data.source]\nstd = -1\n", "std", "std must be"),
    # data
    ("[0.6, 0.2, 0.2]", "[0.6, 0.2]", "split", "data.split must sum to 1"),
    ("[0.6, 0.2, 0.2]", "[0.4, 0.2, 0.2, 0.2]", "split", "up to 3 parts"),
    ("[0.6, 0.2, 0.2]", "[1.2, -0.2]", "split", "must be from 0 to 1"),
    ("[0.6, 0.2, 0.2]", "[]", "split", "needs at least 1 entries"),
    ("[0.6, 0.2, 0.2]", "[0.999, 0.001]", "split", "the val data is empty"),
    (
        "[data.source]",
        "[data.train]",
        "split",
        "data.split divides [data.source], which is missing",
    ),
    ("[model]", '[data.val]\ntype = "blobs"\n[model]', "[data.val]", "also a part of data.split"),
    ("[model]", '[data.train]\ntype = "blobs"\n[model]', "[data.train]", "both source and train"),
    ('"blobs"\nn = 60\nclasses = 3', '"csv"\npath = "no.csv"', "path", "no.csv"),
    ('"blobs"\nn = 60\nclasses = 3', '"csv"\npath = 3', "path", "path must be a path in quotes"),
    ('"blobs"\nn = 60\nclasses = 3', '"csv"', "[data.source]", "csv needs the option 'path'"),
    ('"blobs"\nn = 60\nclasses = 3', '"npz"\npath = "no.npz"', "path", "no.npz"),
    (
        '"blobs"\nn = 60\nclasses = 3',
        '"image_folder"\nroot = "no"',
        "root",
        "dataset 'image_folder'",
    ),
    ('"blobs"\nn = 60\nclasses = 3', '"mnist"\ndirectory = "no"', "directory", "dataset 'mnist'"),
    ('"blobs"\nn = 60\nclasses = 3', '"cifar10"\npath = "no"', "path", "dataset 'cifar10'"),
    (
        '"blobs"\nn = 60\nclasses = 3',
        '"tfrecord"\npaths = "no"\nfeatures = "x"',
        "paths",
        "dataset 'tfrecord'",
    ),
    (
        '"blobs"\nn = 60\nclasses = 3',
        '"image_records"\npath = "no.rec"',
        "path",
        "dataset 'image_records'",
    ),
    ('"blobs"\nn = 60\nclasses = 3', '"characters"\nlength = 5', "[data.source]", "either path or"),
    ("batch_size = 8", 'target = "none"', "loss", "loss 'cross_entropy'"),
    ("batch_size = 8", 'target = "first"', "target", "must be one of 'last', 'input', 'none'"),
    (
        "batch_size = 8",
        "statistics = {mean = [0.0], std = [1.0]}",
        "statistics",
        "standardize = true",
    ),
    # the model
    (
        '[[model.layers]]\ntype = "ReLU"',
        '[[model.layers]]\nshare = "no"',
        "share",
        "no earlier layer",
    ),
    ('name = "act"', 'name = "fc1"', 'name = "fc1"\n\n', "input or a layer named 'fc1' already"),
    ('name = "act"', 'name = "a.b"', 'name = "a.b"', "must be a name of letters"),
    ('inputs = ["act"]', 'inputs = ["atc"]', "inputs", "layer 'atc'; did you mean 'act'?"),
    ('inputs = ["act"]', 'inputs = ["fc2"]', "inputs", "no earlier input or layer 'fc2'"),
    ('inputs = ["act"]', 'inputs = ["act.x"]', "inputs", "no earlier input or layer 'act.x'"),
    (
        'inputs = ["act"]',
        'inputs = ["act.1"]',
        '[[model.layers]]\ntype = "Linear"\nname = "fc2"',
        "'act' makes one value, so there is no 'act.1'",
    ),
    ('inputs = ["act"]', "inputs = []", "inputs", "needs at least 1 entries"),
    (
        'inputs = ["act"]',
        'inputs = ["act", "fc1"]',
        '[[model.layers]]\ntype = "Linear"\nname = "fc2"',
        "layer 'fc2' (Linear) does not fit its input (2, 16)",
    ),
    ("[model]", '[model]\noutputs = ["fc3"]', "outputs", "did you mean 'fc2'?"),
    ("[model]", '[model]\ninputs = ["a", "b"]', "inputs", "2 inputs (a, b), the data gives 1"),
    ("[model]", "[model]\ninput_shape = [3]", "input_shape", "samples of shape [2], not [3]"),
    ("[model]", '[model]\nfreeze = ["conv*"]', "freeze", "no parameter is named like 'conv*'"),
    ("[model]", '[model]\nfreeze = ["*"]', "freeze", "all parameters are frozen"),
    ("[model]", '[model]\ntype = "mlp"', "type", "both layers and type"),
    ("[model]", '[model]\nweights = "no.safetensors"', "weights", "no.safetensors"),
    ("[model]", '[model]\nweights = "model.pt"', "weights", "pickle"),
    (
        'type = "Linear"\nname = "fc1"',
        'type = "Linear"\nin_features = 5\nname = "fc1"',
        "[[model.layers]]",
        "layer 'fc1' (Linear) does not fit its input (2, 2) of float32",
    ),
    (
        'type = "Linear"\nname = "fc1"\nout_features = 16',
        'type = "Conv2d"\nname = "fc1"\nout_channels = 4\nkernel_size = 3',
        "[[model.layers]]",
        "the input must have 4 dimensions",
    ),
    ('type = "ReLU"', 'type = "Dropout"\np = 1.5', "p = 1.5", "p must lie in [0, 1]"),
    ('type = "ReLU"', 'type = "Concat"\naxis = "1"', "axis", "axis must be an integer"),
    ('type = "ReLU"', 'type = "Add"', '[[model.layers]]\ntype = "Add"', "joins two or more inputs"),
    (
        "out_features = 3",
        "out_features = 2",
        "loss",
        "labels from 0 to 2, but the model has 2 outputs",
    ),
    # loss, optimizer, schedule, trainer
    ('"cross_entropy"', '{type = "cross_entropy", weight = [1.0]}', "loss", "loss 'cross_entropy'"),
    ('"cross_entropy"', '{type = "cross_entropy", reduction = "none"}', "loss", "one number"),
    ('"cross_entropy"', '"mse"', "loss", "output and target must have one shape"),
    ('"cross_entropy"', '"vae"', "loss", "the output must be (reconstruction, mean"),
    ("lr = 0.01", 'groups = [{match = "fc9.*"}]', "groups", "no parameter is named like 'fc9.*'"),
    ("lr = 0.01", 'groups = [{match = "fc1.*", lrmult = 2}]', "groups", "did you mean 'lr_mult'?"),
    (
        "step_size = 1",
        'step_size = 1\nmetric = "val/loss"',
        "metric =",
        "for type = 'plateau' only",
    ),
    ("step_size = 1", "step_size = 1\nwarmup = 1", "warmup", "the run has only 1"),
    (
        '"step"\nstep_size = 1',
        '"plateau"\nmetric = "val/los"',
        "metric =",
        "did you mean 'val/loss'?",
    ),
    (
        '"step"\nstep_size = 1',
        '"plateau"\nwarmup = 2',
        "warmup",
        "cannot be combined with 'warmup'",
    ),
    ('"step"\nstep_size = 1', '"multistep"\nmilestones = 3', "milestones", "must be a list"),
    ('"step"\nstep_size = 1', '"one_cycle"', "[schedule]", "one_cycle needs the option 'max_lr'"),
    ("epochs = 1", "epochs = 1\niterations = 2", "iterations", "both epochs and iterations"),
    ("epochs = 1", 'early_stopping = {metric = "val/acc"}', "early", "nothing observes 'val/acc'"),
    ("epochs = 1", 'checkpoint = {metric = "val/f1"}', "checkpoint", "nothing observes 'val/f1'"),
    ("epochs = 1", "samples = {count = 4}", "samples", "makes no samples"),
    # syntax
    ("seed = 0", "seed = ", "seed", "this is not TOML: Invalid value"),
    ("seed = 0", "seed = 0\nseed = 1", "seed = 1", "this is not TOML: Cannot overwrite a value"),
    ("[model]", "[model", "[model", "this is not TOML"),
    ('name = "case"', "name = case", "name", "this is not TOML"),
]


@pytest.mark.parametrize("case", CASES, ids=[f"{new!r:.40}" for _, new, _, _ in CASES])
def test_message(case, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.pt").write_bytes(b"\x80\x02}q\x00.")
    old, new, place, message = case
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    status, error = run(tmp_path, capsys, text)
    assert status == 2, error
    assert message in error
    assert "Traceback" not in error
    if place is not None:
        start = text.index(new) if place in new else 0
        line = text[: text.index(place, start)].count("\n") + 1
        assert f"case.toml:{line}: " in error, error


def test_there_are_a_hundred():
    assert len(CASES) >= 100


def test_all_problems_are_told_at_once(tmp_path, capsys):
    text = GOOD.replace("seed", "sed").replace("epochs", "epoch").replace('"ReLU"', '"ReLu6"')
    _, error = run(tmp_path, capsys, text)
    assert all(name in error for name in ("'seed'", "'epochs'", "'ReLU6'"))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("trainer.epoch=5", "--set trainer.epoch: trainer has no key 'epoch'; did you mean"),
        ("optimizer.lr=fast", "--set optimizer.lr: adam: lr must be a number. Received: 'fast'"),
        ("model.layers.fc1.out_features=0.5", "--set model.layers.0.out_features: Linear: out_fea"),
        ("model.layers.fc9.bias=true", "model.layers has no 'fc9'; it has fc1, act, fc2"),
        ("nonsense", "--set takes key=value"),
    ],
)
def test_set_is_checked_too(tmp_path, capsys, setting, message):
    status, error = run(tmp_path, capsys, GOOD, "--set", setting)
    assert status == 2
    assert message in error


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "needs the key 'data'"),
        (b"\xff\xfe\x00", "case.toml:1: expected text in UTF-8, found the byte 0xff"),
        (b"a = 1\nb = '\xe9'\n", "case.toml:2: expected text in UTF-8, found the byte 0xe9"),
        (b"\x00", "this is not TOML"),
        (b"[" * 10_000, "this is not TOML"),
    ],
)
def test_bad_files(tmp_path, capsys, content, message):
    status, error = run(tmp_path, capsys, content)
    assert status == 2
    assert message in error


def test_file_that_is_not_there(tmp_path, capsys):
    (tmp_path / "digits.toml").write_text("")
    assert main(["train", str(tmp_path / "digit.toml")]) == 2
    assert "did you mean 'digits.toml'?" in capsys.readouterr().err
    assert main(["train", str(tmp_path)]) == 2
    assert "is a directory; name a TOML file" in capsys.readouterr().err


def test_splits_with_other_classes_are_refused(tmp_path, capsys):
    for name, kinds in (("a", "xyz"), ("b", "xy")):
        rows = [f"{i},{i * 2},{kinds[i % len(kinds)]}" for i in range(12)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["p,q,kind", *rows]))
    data = '[data]\nbatch_size = 4\n[data.train]\ntype = "csv"\npath = "a.csv"\ntarget = "kind"\n'
    data += '[data.val]\ntype = "csv"\npath = "b.csv"\ntarget = "kind"\n'
    start, end = GOOD.index("[data]"), GOOD.index("[model]")
    status, error = run(tmp_path, capsys, GOOD[:start] + data + GOOD[end:])
    assert status == 2
    assert "the val data has other" in error
    assert "['x', 'y']" in error


def test_damaged_data_files_name_the_place(tmp_path, capsys):
    np.savez(tmp_path / "d.npz", x=np.zeros((4, 2), np.float32), y=np.zeros(3, np.int64))
    text = GOOD.replace('"blobs"\nn = 60\nclasses = 3', '"npz"\npath = "d.npz"')
    status, error = run(tmp_path, capsys, text)
    assert status == 2
    assert "expected arrays of equal length" in error
