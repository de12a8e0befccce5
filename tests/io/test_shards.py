"""HuggingFace layouts: shard indexes and directories of weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import weft.io as wio

INDEX = "model.safetensors.index.json"


def write_index(folder: Path, weight_map: Any, **others: Any) -> Path:
    path = folder / INDEX
    path.write_text(json.dumps({"metadata": {"total_size": 8}, "weight_map": weight_map} | others))
    return path


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    save_file({"a": np.full(2, 1), "b": np.full(2, 2)}, tmp_path / "model-1-of-2.safetensors")
    save_file({"c": np.full(2, 3)}, tmp_path / "model-2-of-2.safetensors")
    files = {"a": "model-1-of-2.safetensors", "b": "model-1-of-2.safetensors"}
    write_index(tmp_path, files | {"c": "model-2-of-2.safetensors"})
    return tmp_path


@pytest.mark.parametrize("name", ["", INDEX])
def test_shards_are_put_together(sharded: Path, name: str) -> None:
    loaded = wio.load(sharded / name)
    assert {n: t.tolist() for n, t in loaded.items()} == {"a": [1, 1], "b": [2, 2], "c": [3, 3]}
    assert wio.load_metadata(sharded / name) == {"total_size": 8}


def test_missing_shard_is_named(sharded: Path) -> None:
    (sharded / "model-2-of-2.safetensors").unlink()
    with pytest.raises(wio.FileMissingError, match=r"1 are missing.*model-2-of-2"):
        wio.load(sharded)


def test_index_that_does_not_belong_to_the_files(sharded: Path) -> None:
    write_index(sharded, {"a": "model-1-of-2.safetensors", "z": "model-2-of-2.safetensors"})
    with pytest.raises(wio.FileFormatError, match=r"model-2-of-2.safetensors holds 'z'"):
        wio.load(sharded)


def test_damaged_shard_is_named(sharded: Path) -> None:
    path = sharded / "model-2-of-2.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(wio.FileFormatError, match="model-2-of-2"):
        wio.load(sharded)


@pytest.mark.parametrize(
    "file",
    [
        *("../x.safetensors", "/etc/passwd", "a/b.safetensors", "..", ".", "", "a\\b.safetensors"),
        *(3, None, ["x"]),
    ],
)
def test_shards_outside_the_directory_are_refused(sharded: Path, file: Any) -> None:
    write_index(sharded, {"a": file})
    with pytest.raises(wio.FileFormatError, match="plain file name beside the index"):
        wio.load(sharded)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "valid JSON"),
        ("{", "valid JSON"),
        ("[]", "no 'weight_map'"),
        ("{}", "no 'weight_map'"),
        ('{"weight_map": []}', "no 'weight_map'"),
        ('{"weight_map": {}}', "no 'weight_map'"),
        ("[" * 100_000, "valid JSON"),
        ('{"weight_map": {"a": NaN}}', "valid JSON"),
        ('{"weight_map": {"a": "pytorch_model.bin"}}', "pickle"),
    ],
)
def test_malformed_index(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / INDEX).write_text(text)
    with pytest.raises(wio.FileFormatError, match=message):
        wio.load(tmp_path)


def test_missing_index(tmp_path: Path) -> None:
    with pytest.raises(wio.FileMissingError, match="there is no file"):
        wio.load(tmp_path / INDEX)


def test_directories(tmp_path: Path) -> None:
    with pytest.raises(wio.FileMissingError, match=r"holds no \.safetensors file"):
        wio.load(tmp_path)
    (tmp_path / "pytorch_model.bin").touch()
    with pytest.raises(wio.UnsafeFileError, match=r"pytorch_model\.bin"):
        wio.load(tmp_path)
    save_file({"x": np.ones(1)}, tmp_path / "adapter.safetensors")
    assert list(wio.load(tmp_path)) == ["x"]
    save_file({"y": np.ones(1)}, tmp_path / "other.safetensors")
    with pytest.raises(wio.FileFormatError, match=r"adapter.*other.*name the file"):
        wio.load(tmp_path)
    save_file({"z": np.ones(1)}, tmp_path / "model.safetensors")
    assert list(wio.load(tmp_path)) == ["z"]


def test_checkpoint_is_not_taken_for_weights(tmp_path: Path) -> None:
    wio.save_state(tmp_path / "c", {"model": {}})
    with pytest.raises(wio.CheckpointError, match="load_state"):
        wio.load(tmp_path / "c")
