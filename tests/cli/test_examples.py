"""The TOML files in examples/ are good, and together show every key there is."""

import tomllib
from pathlib import Path

import pytest

from weft.cli import main
from weft.cli.model_schema import COMMON, LAYER, LAYERED, WEIGHTS
from weft.cli.run_schema import CHECKPOINT, DATA, EARLY_STOPPING, OPTIMIZER, ROOT, SCHEDULE, TRAINER
from weft.io import save
from weft.nn import BatchNorm2d, Conv2d

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.toml"))
REFERENCE = (EXAMPLES / "all_options.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_example_is_good(path, tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    settings = []
    if path.stem == "transfer":
        parts = {"conv1": Conv2d(1, 16, 3), "batchnorm2d_1": BatchNorm2d(16)}
        parts["conv2"] = Conv2d(16, 16, 3)
        state = {f"{n}.{k}": v for n, m in parts.items() for k, v in m.state_dict().items()}
        save("w.safetensors", state)
        settings = ["--set", "model.weights.path=w.safetensors"]
    status = main(["train", str(path), "--dry-run", *settings])
    assert status == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    "fields",
    [
        *(ROOT, DATA, COMMON, LAYERED, LAYER, WEIGHTS),
        *(OPTIMIZER, SCHEDULE, TRAINER, CHECKPOINT, EARLY_STOPPING),
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_every_key_is_explained(fields):
    for key in fields:
        shown = (f"{key} =", f"[{key}]", f".{key}]")
        assert any(form in REFERENCE for form in shown), key


def test_defaults_are_those_that_are_shown():
    shown = tomllib.loads(REFERENCE)
    tables = {"data": DATA, "trainer": TRAINER}
    differing = {"standardize", "transforms", "batch_transforms", "checkpoint"}
    for name, fields in tables.items():
        for key, field in fields.items():
            if field.default is not None and key in shown[name] and key not in differing:
                assert shown[name][key] == field.default, key
