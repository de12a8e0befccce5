"""CIFAR: the four archives, packed and unpacked; pickles are never run."""

from __future__ import annotations

import io
import os
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError
from weft.data import (
    DataFileError,
    DataFileMissingError,
    DataLoader,
    load_cifar10,
    load_cifar100,
)
from weft.data.plainpickle import load_plain_pickle

NAMES = ["airplane", "automobile"]


def pixels(count: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (count, 3072)).astype(np.uint8)


def python2(images: Any, labels: list[int], key: bytes = b"labels") -> bytes:
    """Return a batch as Python 2 wrote it: text as bytes, an array by NumPy's old names."""
    content, count = images.tobytes(), len(images)
    made = b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03"
    made += b"cnumpy\nndarray\nq\x04K\x00\x85U\x01b\x87Rq\x05(K\x01M" + count.to_bytes(2, "little")
    made += b"M\x00\x0c\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87Rq\x07(K\x03U\x01|NNNJ"
    made += b"\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T" + len(content).to_bytes(4, "little")
    made += content + b"tbU" + bytes([len(key)]) + key + b"q\x08]q\x09("
    made += b"".join(b"K" + bytes([label]) for label in labels) + b"eu."
    return made


def python3(images: Any, labels: list[int], key: bytes = b"labels") -> bytes:
    found = {b"data": images, key: labels, b"filenames": [b"a.png"] * len(labels)}
    return pickle.dumps(found, protocol=2)


def rows(images: Any, labels: list[int]) -> bytes:
    return np.concatenate([np.array(labels, np.uint8)[:, None], images], 1).tobytes()


def cifar10(write: Callable[[Any, list[int]], bytes], is_binary: bool = False) -> dict[str, bytes]:
    end = ".bin" if is_binary else ""
    files = {
        f"data_batch_{i}{end}": write(pixels(4, i), [i % 10, (i + 1) % 10, 2, 3])
        for i in range(1, 6)
    }
    files[f"test_batch{end}"] = write(pixels(3, 9), [1, 2, 3])
    if is_binary:
        files["batches.meta.txt"] = b"airplane\nautomobile\n\n"
    else:
        files["batches.meta"] = pickle.dumps({b"label_names": [n.encode() for n in NAMES]}, 2)
    return files


def unpacked(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def packed(path: Path, inner: str, files: dict[str, bytes], mode: str = "w:gz") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]  # a mode by name
        for name, content in files.items():
            entry = tarfile.TarInfo(f"{inner}/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


PYTHON, BINARY = "cifar-10-batches-py", "cifar-10-batches-bin"


@pytest.mark.parametrize("write", [python2, python3])
def test_python_archives(tmp_path: Path, write: Callable[..., bytes]) -> None:
    files = cifar10(write)
    places = [
        unpacked(tmp_path / "a" / PYTHON, files),
        tmp_path / "a",
        packed(tmp_path / "b" / "cifar-10-python.tar.gz", PYTHON, files),
        tmp_path / "b",
        packed(tmp_path / "any.tar", PYTHON, files, "w"),
    ]
    for place in places:
        dataset = load_cifar10(place)
        assert len(dataset) == 20
        np.testing.assert_array_equal(dataset.images[:4], pixels(4, 1).reshape(4, 3, 32, 32))
        assert dataset.targets.tolist()[:6] == [1, 2, 2, 3, 2, 3]
        assert dataset.classes == NAMES
        assert len(load_cifar10(place, "test")) == 3


def test_binary_archives_hold_the_same(tmp_path: Path) -> None:
    files = cifar10(rows, is_binary=True)
    expected = load_cifar10(unpacked(tmp_path / PYTHON, cifar10(python3)))
    for place in (
        unpacked(tmp_path / "a" / BINARY, files),
        packed(tmp_path / "b" / "cifar-10-binary.tar.gz", BINARY, files),
    ):
        dataset = load_cifar10(place)
        np.testing.assert_array_equal(dataset.images, expected.images)
        np.testing.assert_array_equal(dataset.targets, expected.targets)
        assert dataset.classes == NAMES


def test_items_and_batches(tmp_path: Path) -> None:
    dataset = load_cifar10(unpacked(tmp_path / PYTHON, cifar10(python2)))
    image, label = dataset[-1]
    assert (image.shape, image.dtype, label.dtype) == ((3, 32, 32), wf.float32, wf.int64)
    np.testing.assert_array_equal(
        image.numpy(), dataset.images[-1].astype(np.float32) / np.float32(255)
    )
    x, y = next(iter(DataLoader(dataset, batch_size=5, num_workers=1)))
    assert x.shape == (5, 3, 32, 32)
    assert y.tolist() == dataset.targets[:5].tolist()
    np.testing.assert_array_equal(x[4].numpy(), dataset[4][0].numpy())


def test_cifar100(tmp_path: Path) -> None:
    images, fine, coarse = pixels(3), [99, 0, 5], [19, 1, 2]
    batch = pickle.dumps({b"data": images, b"fine_labels": fine, b"coarse_labels": coarse}, 2)
    meta = pickle.dumps({b"fine_label_names": [b"apple"], b"coarse_label_names": [b"fish"]}, 2)
    python = unpacked(tmp_path / "cifar-100-python", {"train": batch, "test": batch, "meta": meta})
    row = np.concatenate([np.array([coarse, fine], np.uint8).T, images], 1).tobytes()
    binary = packed(
        tmp_path / "other.tar.gz",
        "cifar-100-binary",
        {
            "train.bin": row,
            "test.bin": row,
            "fine_label_names.txt": b"apple",
            "coarse_label_names.txt": b"fish",
        },
    )
    for place in (python, tmp_path, binary):
        for split in ("train", "test"):
            found = load_cifar100(place, split)
            np.testing.assert_array_equal(found.images.reshape(3, -1), images)
            assert found.targets.tolist() == fine
            assert found.classes == ["apple"]
        other = load_cifar100(place, labels="coarse")
        assert (other.targets.tolist(), other.classes) == (coarse, ["fish"])


# -- what is wrong ---------------------------------------------------------------------------------


def test_missing_files_are_named(tmp_path: Path) -> None:
    files = cifar10(python3)
    del files["data_batch_3"]
    folder = unpacked(tmp_path / PYTHON, files)
    with pytest.raises(DataFileMissingError, match="the file data_batch_3 is missing"):
        load_cifar10(folder)
    archive = packed(tmp_path / "x.tar.gz", PYTHON, files)
    with pytest.raises(DataFileError, match=r"x\.tar\.gz: expected the files data_batch_1, .* or"):
        load_cifar10(archive)
    with pytest.raises(DataFileMissingError, match="none of cifar-100-python, "):
        load_cifar100(tmp_path)
    with pytest.raises(DataFileMissingError, match="no such file"):
        load_cifar10(tmp_path / "none")
    with pytest.raises(ArgumentError, match="split must be"):
        load_cifar10(folder, "valid")
    del files["batches.meta"]
    files["data_batch_3"] = files["data_batch_1"]
    assert load_cifar10(unpacked(tmp_path / "again", files)).classes == []


def test_content_that_is_not_cifar_is_named(tmp_path: Path) -> None:
    def check(content: bytes, match: str, name: str = "test_batch") -> None:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        unpacked(path, {name: content})
        with pytest.raises(DataFileError, match=match):
            load_cifar10(path, "test")

    check(python3(pixels(2), [3, 10]), "image 1: expected a label below 10, found 10")
    check(python3(pixels(2), [3]), "expected 2 labels in 'labels', found 1")
    check(python3(pixels(2)[:, :99], [3, 1]), r"shape \(N, 3072\)")
    check(pickle.dumps([1, 2], 2), "expected a dictionary with 'data'")
    check(pickle.dumps({"data": pixels(1)}, 2), "expected a dictionary with 'labels'")
    check(pickle.dumps({"data": pixels(1), "labels": "x"}, 2), "list of integers")
    check(rows(pixels(2), [1, 2])[:-1], "offset 3073: .*3072 left over", "test_batch.bin")
    check(b"", "rows of 3073 bytes", "test_batch.bin")
    (tmp_path / "x.tar.gz").write_bytes(b"\x1f\x8bnot gzip")
    with pytest.raises(DataFileError, match=r"x\.tar\.gz, offset 0: damaged archive"):
        load_cifar10(tmp_path / "x.tar.gz")


# -- pickles ---------------------------------------------------------------------------------------


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/this-must-not-be",)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_pickle_that_would_run_something_is_refused(protocol: int) -> None:
    content = pickle.dumps({"data": Evil()}, protocol)
    with pytest.raises(DataFileError, match=r"evil, offset \d+: .*(system|instruction)"):
        load_plain_pickle(content, "evil")


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_plain_data_there_and_back(protocol: int) -> None:
    data = {
        "text": "äö",
        "numbers": [0, 255, 256, 70000, -1, 2**40, 1.5, None, True, False],
        "tuple": (1, (2, 3), (1, 2, 3, 4), ()),
        "bytes": b"\0\xff",
        "array": np.arange(6, dtype=">f4").reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        7: {},
    }
    if protocol == 4:  # where NumPy has arrays that lie in rows named otherwise
        del data["array"]
    found = load_plain_pickle(pickle.dumps(data, protocol), "a")
    assert list(found) == list(data)
    for key, value in data.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(found[key], value)
            assert found[key].dtype == value.dtype
        else:
            assert found[key] == value


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "offset 0: the pickle ends where 1 bytes"),
        (b"\x80\x02]", "offset 3: the pickle ends"),
        (b"\x80\x02h\x05.", "offset 2: the pickle is damaged"),
        (b"\x80\x02e.", "offset 2: the pickle"),
        (b"\x80\x02K\x01K\x02a.", "the pickle fills a int"),
        (b"\x80\x02(.", "keeps a name"),
        (b"\x80\x02X\xff\xff\xff\xffab", "ends where 4294967295 bytes should follow"),
        (b"\x80\x02}]K\x01s.", "a key that is a list"),
        (b"\x80\x02cnumpy\nndarray\n.", "keeps a name as if it were data"),
        (b"\x80\x02cos\nsystem\n.", "names os.system, which plain data do not need"),
        (b"\x80\x02cnumpy\ndtype\nK\x01\x85R.", "calls dtype with other things than text"),
        (b"\x80\x02]K\x01b.", "gives a state to a list"),
        (b"\x80\x02K\x01r\xff\xff\xff\xffK\x02R.", "calls what is no name"),
        (b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n)R.", "array without values"),
    ],
)
def test_damaged_pickles_are_named(content: bytes, match: str) -> None:
    with pytest.raises(DataFileError, match=f"bad, .*{match}"):
        load_plain_pickle(content, "bad")


def test_nests_that_would_fill_a_message_are_not_shown() -> None:
    """A tuple of two of itself, forty times over: written out it would have 2**40 entries."""
    nest = b"\x80\x02)q\x00" + b"h\x00h\x00\x86q\x00" * 40
    array = b"cnumpy.core.multiarray\n_reconstruct\n)R(K\x01h\x00cnumpy\ndtype\nU\x02u1\x85R\x89"
    with pytest.raises(DataFileError, match="whose shape is none"):
        load_plain_pickle(nest + array + b"U\x00tb.", "bad")
