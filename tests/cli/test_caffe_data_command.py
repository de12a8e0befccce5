"""Commands that make databases for nets of Caffe, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from weft.caffe.inputs.databases import open_database
from weft.caffe.inputs.datum import read_datum
from weft.caffe.inputs.hdf5 import read_hdf5
from weft.caffe.inputs.opening import mean_of_file
from weft.cli import main
from weft.data import write_idx


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def records(path: str, backend: str = "LMDB") -> list[tuple[Any, int]]:
    return [read_datum(value, "record") for _, value in open_database(path, backend).records()]


def arrays() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (5, 4, 6), np.uint8), np.arange(5, dtype=np.uint8)


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_arrays_become_databases(work: Path, backend: str, capsys: Any) -> None:
    images, labels = arrays()
    write_idx("images.idx", images)
    write_idx("labels.idx", labels)
    command = ["caffe", "convert-arrays", "images.idx", "labels.idx", "deep/db"]
    assert main([*command, "--backend", backend]) == 0
    assert capsys.readouterr().out == "5 images in deep/db\n"
    found = records("deep/db", backend)
    np.testing.assert_array_equal([image[0] for image, _ in found], images)
    assert [label for _, label in found] == [0, 1, 2, 3, 4]
    assert main([*command, "--backend", backend]) == 1
    assert "exists; remove it" in capsys.readouterr().err


def test_arrays_become_hdf5(work: Path, capsys: Any) -> None:
    images, labels = arrays()
    np.savez("both.npz", x=images, y=labels)
    command = ["caffe", "convert-arrays", "both.npz", "train.txt", "--backend", "hdf5"]
    assert main([*command, "--scale", "0.5"]) == 0
    assert Path("train.txt").read_text() == "train.h5\n"
    data, label = read_hdf5("train.h5", ["data", "label"])
    np.testing.assert_array_equal(data[:, 0], images * np.float32(0.5))
    np.testing.assert_array_equal(label, labels)


def test_arrays_that_do_not_fit(work: Path, capsys: Any) -> None:
    np.save("x.npy", np.zeros((2, 3, 3)))
    np.savez("both.npz", x=np.zeros(2))
    for arguments, message in (
        (["x.npy", "db"], "needs a file of labels"),
        (["both.npz", "db"], "must hold x and y. Received: x"),
        (["both.npz", "x.npy", "db"], "has the labels itself"),
        (["x.npy", "x.npy", "db"], "there are 2 images and 18 labels"),
        (["x.npy", "x.npy", "db", "--scale", "2"], "--scale is for HDF5"),
    ):
        assert main(["caffe", "convert-arrays", *arguments]) in (1, 2)
        assert message in capsys.readouterr().err


def test_images_become_a_database_with_a_mean(work: Path, capsys: Any) -> None:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (3, 6, 6, 3), np.uint8)
    for number, image in enumerate(pixels):
        Image.fromarray(image).save(f"{number}.png")
    Path("list.txt").write_text("".join(f"{number}.png {number}\n" for number in range(3)))
    assert main(["caffe", "convert-images", ".", "list.txt", "db", "--check-size"]) == 0
    expected = pixels[:, :, :, ::-1].transpose(0, 3, 1, 2)
    np.testing.assert_array_equal([image for image, _ in records("db")], expected)
    assert main(["caffe", "mean", "db", "mean.binaryproto"]) == 0
    np.testing.assert_allclose(mean_of_file("mean.binaryproto")[0], expected.mean(0), rtol=1e-6)
    assert "the mean (3, 6, 6) is in mean.binaryproto" in capsys.readouterr().out
    command = ["caffe", "convert-images", ".", "list.txt", "small", "--gray", "--resize", "3x2"]
    assert main([*command, "--shuffle", "1"]) == 0
    found = records("small")
    assert [image.shape for image, _ in found] == [(1, 3, 2)] * 3
    assert sorted(label for _, label in found) == [0, 1, 2]
