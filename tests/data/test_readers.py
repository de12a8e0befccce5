"""Readers: what they give, and what they say about files that are not as they should be."""

from __future__ import annotations

import builtins
import gzip
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.core import imports
from weft.core.errors import ArgumentError, MissingDependencyError
from weft.data import (
    CsvDataset,
    DataFileError,
    DataFileMissingError,
    DataLoader,
    ImageFolder,
    NpzDataset,
    ParquetDataset,
    TextLines,
    TokenWindows,
    Vocabulary,
    load_digits,
    load_mnist,
    read_csv,
    read_idx,
    read_image,
    read_npy,
    read_npz,
    read_parquet,
    write_idx,
)

IRIS = "length,width,kind\n5.1,3.5,setosa\n4.9,,setosa\n6.2,2.9,other\n"


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# -- CSV -----------------------------------------------------------------------------------------


def test_csv_types(tmp_path: Path) -> None:
    text = 'i,f,b,t,m\n1,1.5,true,"a, b",\n-2,1e3,No,c,3\n'
    table = read_csv(write(tmp_path / "a.csv", text))
    assert table.names == ["i", "f", "b", "t", "m"]
    kinds = {column.name: column.values.dtype.kind for column in table.columns}
    assert kinds == {"i": "i", "f": "f", "b": "b", "t": "O", "m": "i"}
    assert table.column("t").values.tolist() == ["a, b", "c"]
    assert table.column("m").missing.tolist() == [True, False]
    assert table.column(-1).name == "m"


def test_csv_dataset(tmp_path: Path) -> None:
    path = write(tmp_path / "iris.csv", IRIS)
    data = CsvDataset(path, target="kind", missing="mean")
    assert data.classes == ["other", "setosa"]
    assert data.feature_names == ["length", "width"]
    x, y = data[1]
    assert x.tolist() == pytest.approx([4.9, 3.2])
    assert (x.dtype, y.dtype, y.item()) == (wf.float32, wf.int64, 1)
    assert len(CsvDataset(path, target="kind", missing="drop")) == 2
    assert np.isnan(CsvDataset(path, target="kind", missing="nan")[1][0].numpy()[1])
    assert CsvDataset(path, target="kind", missing=-1.0)[1][0].numpy()[1] == -1
    (batch,) = DataLoader(data, 3)
    assert batch[0].shape == (3, 2)


def test_csv_text_features(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "colour,size,y\nred,1,0.5\nblue,2,1.5\nred,3,2\n")
    data = CsvDataset(path, target="y")
    assert data.feature_names == ["colour=blue", "colour=red", "size"]
    assert data[0][0].tolist() == [0, 1, 1]
    assert data[1][1].dtype == wf.float32
    assert CsvDataset(path, target="y", text="codes")[0][0].tolist() == [1, 1]
    assert CsvDataset(path, features=["size"])[2].tolist() == [3]
    with pytest.raises(DataFileError, match="column 'colour': expected numbers"):
        CsvDataset(path, target="y", text="error")


def test_csv_without_header_and_with_other_delimiter(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "1;2\n\n3;4\n")
    data = CsvDataset(path, header=False, delimiter=";", target=-1)
    assert data.feature_names == ["0"]
    assert [y.item() for _, y in data] == [2, 4]
    table = read_csv(path, header=False, delimiter=";", columns=["a", "b"])
    assert table.names == ["a", "b"]


def test_csv_declared_types_and_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", b"\xef\xbb\xbfcode,n\n007,1\n")
    table = read_csv(path, dtypes={"code": "str", "n": "float"})
    assert table.column("code").values.tolist() == ["007"]
    assert table.column("n").values.dtype == np.float64


BAD_CSV: list[tuple[str | bytes, dict[str, Any], str]] = [
    ("", {}, "the file is empty"),
    ("a,b\n", {}, "at least one row of data"),
    ("a,b\n1,2\n3\n", {}, "line 3: expected 2 fields .a, b., found 1: \\['3'\\]"),
    ("a,b\n1,2,3\n", {}, "line 2: expected 2 fields"),
    ("a,a\n1,2\n", {}, "header: column names must differ; repeated: \\['a'\\]"),
    ("a,b\n1,x\n", {"dtypes": {"b": "int"}}, "line 2, column 'b': expected an integer, found 'x'"),
    ("a\n1.5\n", {"dtypes": {"a": "int"}}, "expected an integer, found '1.5'"),
    ("a\n99999999999999999999\n", {"dtypes": {"a": "int"}}, "expected an integer"),
    ("a\n1_0\n", {"dtypes": {"a": "float"}}, "expected a number, found '1_0'"),
    ("a\nmaybe\n", {"dtypes": {"a": "bool"}}, "expected true or false"),
    ("a,b\n1,2\n3,NA\n", {}, "line 3, column 'b': the value is missing; choose missing="),
    ("a,b\n1,2\n3,?\n", {"target": "b", "missing": "mean"}, "a target is never made up"),
    ('a\n"open\n', {}, "not CSV"),
    (b"a\n\xff\n", {}, "expected text in utf-8-sig, found the byte 0xff"),
    ("a,b\n1,2\n", {"target": "c"}, "no column 'c'; the columns are \\['a', 'b'\\]"),
    ("a\n1\n", {"target": "a"}, "no feature columns are left"),
]


@pytest.mark.parametrize(("content", "options", "message"), BAD_CSV)
def test_malformed_csv(
    tmp_path: Path, content: str | bytes, options: dict[str, Any], message: str
) -> None:
    path = write(tmp_path / "bad.csv", content)
    with pytest.raises(DataFileError, match=message) as caught:
        CsvDataset(path, **options)
    assert str(path) in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtypes": {"z": "int"}}, "names column 'z'"),
        ({"dtypes": {"a": "complex"}}, "dtypes may name"),
        ({"columns": ["x", "y", "z"]}, "has 1 columns"),
        ({"delimiter": "ab"}, "read_csv"),
        ({"encoding": "no-such"}, "read_csv"),
        ({"missing": "guess"}, "missing must be"),
        ({"text": "guess"}, "text must be"),
    ],
)
def test_bad_csv_options(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        CsvDataset(write(tmp_path / "a.csv", "a\n1\n"), **options)


# -- NumPy ---------------------------------------------------------------------------------------


def test_numpy_files(tmp_path: Path) -> None:
    x, y = np.arange(6.0).reshape(3, 2), np.arange(3)
    np.savez(tmp_path / "a.npz", x=x, y=y)
    np.save(tmp_path / "a.npy", x)
    data = NpzDataset(tmp_path / "a.npz", ["y", "x"])
    assert (data[1][0].item(), data[1][1].tolist()) == (1, [2, 3])
    assert NpzDataset(tmp_path / "a.npz").names == ["x", "y"]
    assert read_npy(tmp_path / "a.npy", mmap=True)[2].tolist() == [4, 5]
    assert read_npz(tmp_path / "a.npz", ["y"])["y"].tolist() == [0, 1, 2]


def test_malformed_numpy_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "uneven.npz", x=np.zeros(2), y=np.zeros(3))
    np.savez(tmp_path / "objects.npz", x=np.array([{}], object))
    np.savez(tmp_path / "text.npz", x=np.array(["a"]))
    np.savez(tmp_path / "none.npz")
    np.save(tmp_path / "cut.npy", np.zeros(100))
    whole = (tmp_path / "uneven.npz").read_bytes()
    write(tmp_path / "cut.npz", whole[: len(whole) // 2])
    write(tmp_path / "cut.npy", (tmp_path / "cut.npy").read_bytes()[:200])
    write(tmp_path / "junk.npz", "hello")
    write(tmp_path / "pickle.npz", pickle.dumps([1]))
    cases: list[tuple[Callable[[Any], Any], str, str]] = [
        (NpzDataset, "uneven.npz", "equal length"),
        (NpzDataset, "objects.npz", "array 'x': .*no pickles"),
        (NpzDataset, "text.npz", "array 'x': expected numbers"),
        (NpzDataset, "none.npz", "the archive is empty"),
        (NpzDataset, "cut.npz", "NumPy file"),
        (NpzDataset, "junk.npz", "NumPy file"),
        (NpzDataset, "pickle.npz", "no NumPy file, and Weft reads no pickles"),
        (read_npy, "cut.npy", "NumPy file"),
        (read_npy, "uneven.npz", "found an .npz archive"),
        (lambda p: read_npy(p, mmap=True), "uneven.npz", "found an .npz archive"),
        (lambda p: read_npy(p, mmap=True), "cut.npy", "NumPy file"),
        (read_npz, "cut.npy", "found a single .npy array"),
        (lambda p: read_npz(p, ["z"]), "uneven.npz", r"no arrays \['z'\]; it holds \['x', 'y'\]"),
    ]
    for read, name, message in cases:
        with pytest.raises(DataFileError, match=message) as caught:
            read(tmp_path / name)
        assert name in str(caught.value)


# -- IDX -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("name", ["a.idx", "a.idx.gz"])
def test_idx_round_trip(tmp_path: Path, dtype: str, name: str) -> None:
    values = np.arange(24).reshape(2, 3, 4).astype(dtype)
    write_idx(tmp_path / name, values)
    back = read_idx(tmp_path / name)
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back, values)


def test_mnist(tmp_path: Path) -> None:
    images = np.arange(5 * 4 * 4, dtype=np.uint8).reshape(5, 4, 4)
    write_idx(tmp_path / "train-images-idx3-ubyte.gz", images)
    write_idx(tmp_path / "train-labels.idx1-ubyte", np.arange(5, dtype=np.uint8))
    data = load_mnist(tmp_path)
    x, y = data[4]
    assert (x.shape, x.dtype, y.item(), y.dtype) == ((1, 4, 4), wf.float32, 4, wf.int64)
    np.testing.assert_allclose(x.numpy()[0], images[4] / 255, rtol=1e-6)
    with pytest.raises(DataFileMissingError, match="t10k-images-idx3-ubyte"):
        load_mnist(tmp_path, "test")
    with pytest.raises(ArgumentError, match="'train' or 'test'"):
        load_mnist(tmp_path, "valid")
    write_idx(tmp_path / "train-labels.idx1-ubyte", np.arange(4, dtype=np.uint8))
    with pytest.raises(DataFileError, match="expected 5 labels, found 4"):
        load_mnist(tmp_path)
    write_idx(tmp_path / "train-labels.idx1-ubyte", images)
    with pytest.raises(DataFileError, match="expected 1 dimension"):
        load_mnist(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "offset 0: expected an IDX file.*found no data"),
        (b"PK\x03\x04", "offset 0: expected an IDX file.*found 50 4b 03 04"),
        (b"\0\0\x07\1\0\0\0\0", "offset 0"),
        (b"\0\0\x08\3\0\0\0\1", "offset 4: expected 3 sizes of 4 bytes, found 4 bytes"),
        (b"\0\0\x08\1\0\0\0\5ab", "offset 8: expected 5 bytes of values for shape .5,.*found 2"),
        (b"\0\0\x08\1\0\0\0\1abc", "found 3"),
        (b"\0\0\x0e\2\xff\xff\xff\xff\xff\xff\xff\xff", "found 0"),
        (gzip.compress(b"\0\0\x08\1\0\0\0\1a", mtime=0)[:-6], "damaged gzip data"),
    ],
)
def test_malformed_idx(tmp_path: Path, content: bytes, message: str) -> None:
    path = write(tmp_path / "bad.idx", content)
    with pytest.raises(DataFileError, match=message):
        read_idx(path)


def test_idx_dtype_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="Received: int64"):
        write_idx(tmp_path / "a", np.arange(3))


# -- images --------------------------------------------------------------------------------------


def make_images(root: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for i, name in enumerate(("cat", "dog")):
        (root / name / "deeper").mkdir(parents=True)
        image.fromarray(np.full((4, 6, 3), 100 * i, np.uint8)).save(root / name / "b.png")
        image.fromarray(np.full((4, 6), 50, np.uint8)).save(root / name / "deeper" / "a.bmp")
        write(root / name / "notes.txt", "not an image")
        write(root / name / ".hidden.png", "nor is this")


def test_image_folder(tmp_path: Path) -> None:
    make_images(tmp_path)
    data = ImageFolder(tmp_path)
    assert data.classes == ["cat", "dog"]
    assert data.class_to_index == {"cat": 0, "dog": 1}
    assert data.targets.tolist() == [0, 0, 1, 1]
    x, y = data[2]
    assert (x.shape, x.dtype, y) == ((3, 4, 6), wf.float32, 1)
    assert x.numpy()[0, 0, 0] == np.float32(100 / 255)
    grey = ImageFolder(tmp_path, lambda image: image, mode="L", target_transform=str)
    assert (grey[1][0].shape, grey[1][1]) == ((4, 6), "0")
    (batch,) = DataLoader(data, 4, num_workers=1)
    assert batch[0].shape == (4, 3, 4, 6)


def test_image_folders_as_torchvision_and_keras_have_them(tmp_path: Path) -> None:
    make_images(tmp_path)
    (tmp_path / "empty").mkdir()
    data = ImageFolder(tmp_path, class_names=["dog", "cat"])
    assert data.class_to_idx == {"dog": 0, "cat": 1}
    assert data.samples == list(zip(data.paths, data.targets.tolist(), strict=True))
    assert all(f"{os.sep}dog{os.sep}" in path for path, label in data.samples if label == 0)
    with pytest.raises(DataFileError, match=r"class_names names 'cow'; the subfolders are"):
        ImageFolder(tmp_path, class_names=["cow"])
    assert ImageFolder(tmp_path, allow_empty=True).classes == ["cat", "dog", "empty"]
    with pytest.raises(DataFileError, match="of class 'empty'"):
        ImageFolder(tmp_path)
    texts = ImageFolder(
        tmp_path, len, extensions=".TXT", loader=lambda p: Path(p).read_text(), allow_empty=True
    )
    assert [item for item, _ in texts] == [len("not an image")] * 2
    chosen = ImageFolder(
        tmp_path, is_valid_file=lambda path: path.endswith("a.png"), allow_empty=True
    )
    assert {Path(path).name for path in chosen.paths} <= {"a.png"}
    with pytest.raises(ArgumentError, match="either extensions or is_valid_file"):
        ImageFolder(tmp_path, extensions=[".png"], is_valid_file=str)
    pickle.loads(pickle.dumps(data))  # as spawned workers get it


def test_malformed_image_folders(tmp_path: Path) -> None:
    make_images(tmp_path / "good")
    (tmp_path / "flat").mkdir()
    (tmp_path / "hollow" / "cat").mkdir(parents=True)
    with pytest.raises(DataFileError, match="one subfolder for each class"):
        ImageFolder(tmp_path / "flat")
    with pytest.raises(DataFileError, match=r"cat: expected images .* of class 'cat'"):
        ImageFolder(tmp_path / "hollow")
    with pytest.raises(DataFileMissingError, match="no such directory"):
        ImageFolder(tmp_path / "nowhere")
    with pytest.raises(ArgumentError, match="mode must be"):
        ImageFolder(tmp_path / "good", mode="CMYK")
    bad = tmp_path / "good" / "cat" / "b.png"
    whole = bad.read_bytes()
    for content in (b"hello", b"", whole[:40], whole[:-30]):
        write(bad, content)
        with pytest.raises(DataFileError, match=r"b\.png: expected an image"):
            ImageFolder(tmp_path / "good")[0]


def test_image_is_turned_upright(tmp_path: Path) -> None:
    image_module = pytest.importorskip("PIL.Image")
    image = image_module.fromarray(np.zeros((4, 6, 3), np.uint8))
    exif = image_module.Exif()
    exif[0x0112] = 6  # the camera was held upright
    image.save(tmp_path / "a.jpg", exif=exif)
    assert read_image(tmp_path / "a.jpg").shape == (6, 4, 3)


# -- Parquet -------------------------------------------------------------------------------------


def test_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.table(
        {
            "x": [1.5, None, 3.5],
            "n": arrow.array([1, 2, None], arrow.int32()),
            "b": [True, False, True],
            "kind": arrow.array(["u", "v", "u"]).dictionary_encode(),
        }
    )
    path = tmp_path / "a.parquet"
    parquet.write_table(table, path)
    data = ParquetDataset(path, target="kind", missing="mean")
    assert data.classes == ["u", "v"]
    assert data[1][0].tolist() == [2.5, 2, 0]
    assert data[2][0].tolist() == [3.5, 1.5, 1]
    assert read_parquet(path, columns=["n"]).names == ["n"]
    with pytest.raises(DataFileError, match="row 1, column 'x': the value is missing"):
        ParquetDataset(path, target="kind")
    with pytest.raises(DataFileError, match=r"no columns \['z'\]"):
        read_parquet(path, columns=["z"])
    parquet.write_table(arrow.table({"l": [[1, 2]]}), path)
    with pytest.raises(DataFileError, match="column 'l': expected numbers, booleans or text"):
        read_parquet(path)
    for content in (b"hello", b"", b"PAR1junkPAR1"):
        with pytest.raises(DataFileError, match="expected a Parquet file"):
            read_parquet(write(path, content))
    parquet.write_table(arrow.table({"x": arrow.array([], arrow.float64())}), path)
    with pytest.raises(DataFileError, match="at least one row"):
        ParquetDataset(path)


# -- text ----------------------------------------------------------------------------------------


def test_text_lines(tmp_path: Path) -> None:
    first = write(tmp_path / "a.txt", "one\r\n\ntwo\n")
    second = write(tmp_path / "b.txt", "drei é")
    lines = TextLines([first, second])
    assert list(lines) == ["one", "", "two", "drei é"]
    assert lines[-1] == "drei é"
    assert list(TextLines(first, skip_empty=True)) == ["one", "two"]
    assert list(TextLines(write(tmp_path / "c.txt", ""))) == []
    assert next(iter(DataLoader(lines, 4, num_workers=1))) == ["one", "", "two", "drei é"]
    bad = TextLines(write(tmp_path / "d.txt", b"fine\nno\xffpe\n"))
    assert bad[0] == "fine"
    with pytest.raises(DataFileError, match=r"d\.txt, line 2, byte 2: expected text in utf-8"):
        bad[1]
    with pytest.raises(ArgumentError, match="unknown encoding"):
        TextLines(first, encoding="no-such")[0]


def test_vocabulary() -> None:
    words = Vocabulary.of(["b", "a", "b"], unknown="?")
    assert words.symbols == ["?", "a", "b"]
    assert words.encode(["a", "z"]).tolist() == [1, 0]
    assert words.decode(wf.tensor([2, 1])) == ["b", "a"]
    assert Vocabulary.of("").encode("").shape == (0,)
    with pytest.raises(ArgumentError, match="'z' is not one of its 2 symbols"):
        Vocabulary.of("ab").encode("az")
    with pytest.raises(ArgumentError, match="differ"):
        Vocabulary(["a", "a"])
    with pytest.raises(ArgumentError, match="one of the symbols"):
        Vocabulary(["a"], unknown="b")
    with pytest.raises(IndexError, match="out of range"):
        words.decode([3])


def test_token_windows() -> None:
    data = TokenWindows(np.arange(10), 3)
    assert len(data) == 3
    assert [part.tolist() for part in data[2]] == [[6, 7, 8], [7, 8, 9]]
    assert len(TokenWindows(np.arange(10), 3, stride=1)) == 7
    fast = next(iter(DataLoader(data, 3)))
    slow = next(iter(DataLoader([data[i] for i in range(3)], 3)))
    assert [part.tolist() for part in fast] == [part.tolist() for part in slow]
    with pytest.raises(ArgumentError, match="3 tokens are too few"):
        TokenWindows([1, 2, 3], 3)
    with pytest.raises(TypeError, match="sequence of integers"):
        TokenWindows([1.5], 1)


# -- all -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "read", [CsvDataset, NpzDataset, read_npy, read_idx, read_image, ParquetDataset, TextLines]
)
def test_missing_files_and_directories(read: Callable[[Any], Any], tmp_path: Path) -> None:
    with pytest.raises(DataFileMissingError, match=r"gone\.x: no such file"):
        read(tmp_path / "gone.x")
    with pytest.raises(FileNotFoundError):
        read(str(tmp_path / "gone.x"))
    with pytest.raises(DataFileError, match="this is a directory"):
        read(tmp_path)
    with pytest.raises(TypeError, match="a path must be a string or a Path"):
        read(3)


def test_directory_that_is_a_file(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="this is a file"):
        ImageFolder(write(tmp_path / "a", ""))


def test_digits() -> None:
    pytest.importorskip("sklearn")
    data = load_digits()
    x, y = data.tensors
    assert (x.shape, x.dtype, y.dtype) == ((1797, 1, 8, 8), wf.float32, wf.int64)
    assert (float(x.min()), float(x.max())) == (0.0, 1.0)
    assert sorted(set(y.tolist())) == list(range(10))
    assert load_digits(flat=True)[0][0].shape == (64,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: load_digits(), r"scikit-learn: pip install \"weft\[sklearn\]\""),
        (lambda p: read_image(write(p / "a.png", "")), r"pillow: pip install \"weft\[image\]\""),
        (lambda p: read_parquet(write(p / "a", "")), r"pyarrow: pip install \"weft\[table\]\""),
    ],
)
def test_missing_packages_are_named(
    call: Callable[[Path], Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(imports, "import_module", absent)
    with pytest.raises(MissingDependencyError, match=message):
        call(tmp_path)
    assert builtins.issubclass(MissingDependencyError, ImportError)
