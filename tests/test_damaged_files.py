"""Damaged files of every kind give Weft's own errors, which name the file, and nothing else."""

import gzip
import io
import pickle
import random
import struct
import tarfile
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import weft as wf
import weft.io as wio
from weft.cli.config import ConfigError, read_source
from weft.core.errors import WeftError
from weft.data import (
    CsvDataset,
    DataFileError,
    ImageRecordDataset,
    RecordIODataset,
    TFRecordDataset,
    TFRecordStream,
    encode_example,
    load_cifar10,
    pack_record,
    read_csv,
    read_image,
    read_npy,
    read_npz,
    read_recordio,
    write_recordio,
    write_tfrecords,
)
from weft.data.idx import read_idx, write_idx

# -- claims ----------------------------------------------------------------------------------------


def npy(header, data=b"\0" * 96):
    """Return an .npy file with a header of one's own."""
    content = header.encode("latin-1") + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(content)) + content + data


def described(shape="(3, 4)", dtype="'<f8'", fortran="False"):
    return f"{{'descr': {dtype}, 'fortran_order': {fortran}, 'shape': {shape}, }}"


HEADERS = {
    "open bracket": described("(3, 4"),  # TokenError, of NumPy's reader of old headers
    "size of another type": described("(3.5, 4)"),
    "shape that is no tuple": described("3"),
    "negative size": described("(-3, -4)"),
    "huge size": described("(9223372036854775808,)"),
    "many sizes": described("(" + "1," * 70 + ")"),
    "product beyond 64 bits": described("(4294967296, 4294967296, 4294967296)"),
    "dtype that is a number": described(dtype="3"),
    "dtype that is a list": described(dtype="[('x', '<f8', (1, 2, 'q'))]"),
    "dtype unknown": described(dtype="'<zz'"),
    "objects": described(dtype="'|O'"),
    "nothing": "",
    "no dictionary": "3",
    "keys of another type": "{1: 2, 'shape': (3,), 'descr': '<f8'}",
    "deep": "(" * 3000 + ")" * 3000,
    "null bytes": "\0" * 40,
}


@pytest.mark.parametrize("name", HEADERS)
def test_damaged_headers_of_arrays(tmp_path, name):
    path, archive = tmp_path / "x.npy", tmp_path / "x.npz"
    path.write_bytes(npy(HEADERS[name]))
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("x.npy", npy(HEADERS[name]))
    for read in (read_npy, lambda p: read_npy(p, mmap=True)):
        with pytest.raises(DataFileError, match=r"x\.npy"):
            read(path)
    with pytest.raises(DataFileError, match=r"x\.npz, array 'x'"):
        read_npz(archive)


def test_array_that_claims_more_than_its_file_has(tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(npy(described("(40000, 40000)")))
    for mmap in (True, False):
        with pytest.raises(DataFileError, match=r"12800000000 bytes; there can be no more than \d"):
            read_npy(path, mmap=mmap)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archive_that_claims_more_than_its_file_can_hold(tmp_path, method):
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr(
            "x.npy", npy(described("(40000, 40000)"), np.random.default_rng(0).bytes(9999))
        )
    with pytest.raises(
        DataFileError, match=r"array 'x': .*12800000000 bytes; there can be no more"
    ):
        read_npz(path)


def test_archive_that_claims_more_than_it_holds(tmp_path):
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.npy", npy(described("(20, 100)"), bytes(1000)))
    with pytest.raises(DataFileError, match="takes 16000 bytes, found 1000"):
        read_npz(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as file:
        file.writestr("x.npy", npy(described("(3, 4)")))
    with pytest.raises(DataFileError, match="stored or deflated"):
        read_npz(path)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_whole_archives_are_read(tmp_path, save):
    arrays = {
        "zeros": np.zeros((1000, 1000)),  # nearly all that deflate can do
        "turned": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "empty": np.zeros((0, 3), np.int8),
        "number": np.float32(2.5),
        "truth": np.array([True, False]),
    }
    save(tmp_path / "x.npz", **arrays)
    for name, found in read_npz(tmp_path / "x.npz").items():
        np.testing.assert_array_equal(found, arrays[name], strict=True)
        assert found.flags.writeable
    for name, array in arrays.items():
        np.save(tmp_path / name, array)
        for mmap in (True, False):
            found = read_npy(tmp_path / f"{name}.npy", mmap=mmap)
            np.testing.assert_array_equal(found, array)
            assert found.dtype == np.asarray(array).dtype


def test_compressed_idx_file_expands_no_further_than_its_sizes(tmp_path):
    path = tmp_path / "x.gz"
    content = bytes((0, 0, 8, 1)) + struct.pack(">I", 5) + bytes(50_000_000)
    path.write_bytes(gzip.compress(content, 1))
    with pytest.raises(DataFileError, match=r"expected 5 bytes .*found at least 1005"):
        read_idx(path)
    path.write_bytes(gzip.compress(bytes((0, 0, 8, 70)) + struct.pack(">70I", *[1] * 70) + b"x"))
    with pytest.raises(DataFileError, match="no array has the shape"):
        read_idx(path)


def test_csv_integers_beyond_64_bits_are_named(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,n\n1,2\n,\n9223372036854775808,3\n")
    with pytest.raises(
        DataFileError, match=r"line 4, column 'id': 9223372036854775808 does not fit"
    ):
        read_csv(path)
    table = read_csv(path, dtypes={"id": "float"})
    assert table.columns[0].values[2] == 2.0**63
    assert read_csv(path, dtypes={"id": "str"}).columns[0].values[2] == "9223372036854775808"
    path.write_text("id\n9223372036854775807\n-9223372036854775808\n")
    assert read_csv(path).columns[0].values.tolist() == [2**63 - 1, -(2**63)]
    path.write_text("id\n" + "9" * 5000 + "\n")
    with pytest.raises(DataFileError, match="does not fit an integer"):
        read_csv(path)
    path.write_text("x\n9223372036854775808\n0.5\n")  # a column of numbers with points
    assert read_csv(path).columns[0].values.tolist() == [2.0**63, 0.5]


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 20_000 + "]" * 20_000,
        "x = " + "{a = " * 5_000 + "1" + "}" * 5_000,
        ".".join("a" * 20_000) + " = 1",
        "[" + ".".join("a" * 20_000) + "]",
        "x = " + "[" * 101 + "]" * 101,
    ],
)
def test_deep_toml_is_named(tmp_path, text):
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"run.toml: .*nested more than 100 levels"):
        read_source(path)
    path.write_text("")
    if text.startswith("x = ["):
        with pytest.raises(ConfigError, match=r"--set: .*nested more than 100 levels"):
            read_source(path, [text.replace(" ", "")])


def test_toml_number_of_thousands_of_digits(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("x = " + "9" * 5000)
    with pytest.raises(ConfigError, match=r"run\.toml"):
        read_source(path)


# -- damage of every kind --------------------------------------------------------------------------

WORDS = (b"9" * 20, b"-", b"1e400", b"nan", b"None", b"\xff\xfe", b"O", b"<M8[s]", b"[", b"{", b'"')


def damaged(content, chance):
    """Return content with a few places changed, taken out, put in or cut off."""
    made = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(made) + 1) if chance.random() < 0.5 else chance.randrange(150)
        kind = chance.randrange(5)
        if kind == 0 and at < len(made):
            made[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del made[at : at + chance.randrange(1, 9)]
        elif kind == 2:
            made[at:at] = chance.choice(WORDS)
        elif kind == 3:
            made[at:at] = made[: chance.randrange(1, 50)]
        else:
            del made[max(1, at) :]
    return bytes(made)


def saved(save):
    file = io.BytesIO()
    save(file)
    return file.getvalue()


def image(kind):
    pillow = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 255, (9, 7, 3)).astype(np.uint8)
    return saved(lambda file: pillow.fromarray(pixels).save(file, kind))


def written(write):
    def content(directory):
        write(directory / "x")
        return (directory / "x").read_bytes()

    return content


def a_graph(path):
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), wf.float32)
        rows = wf.scan(lambda carry, row: (carry + row, carry), x[0], x)[1]
        wf.nn.Linear(3, 2)(rows * wf.tensor([1.0, 2.0, 3.0]))
    graph.save(path)


EXAMPLES = [encode_example({"x": [0.5, 1.5], "y": [i, -i], "z": b"abc"}) for i in range(4)]
RECORDS = [b"abc", struct.pack("<III", 1, 0xCED7230A, 2), b"z" * 50]


def a_batch(pixels=None):
    """Return a batch of CIFAR-10 as a pickle."""
    pixels = np.zeros((2, 3072), np.uint8) if pixels is None else pixels
    return pickle.dumps({b"labels": [1, 2], b"data": pixels, b"batch_label": b"x"}, 2)


def an_archive(mode):
    def make(_):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode=mode) as archive:
            for name in ("a/test_batch", "a/batches.meta"):
                content = a_batch() if "test" in name else pickle.dumps({b"label_names": [b"x"]}, 2)
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        return file.getvalue()

    return make


def unpacked(name):
    """Read a file of CIFAR-10 in a folder of its own, under the name that it has there."""

    def read(path):
        folder = Path(path).parent / "damaged-folder"
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(Path(path).read_bytes())
        return load_cifar10(folder, "test")

    return read


BUNDLE = {"w": np.ones((2, 3), np.float32), "names": np.array(["a", "bc"]), "step": np.int64(3)}


def a_bundle(part):
    """Return one file of a checkpoint of TensorFlow's."""

    def make(directory):
        wio.save_bundle(directory / "whole", BUNDLE)
        return (directory / f"whole.{part}").read_bytes()

    return make


def bundled(part, other):
    """Read a checkpoint of which one file is damaged."""

    def read(path):
        prefix = Path(path)  # its name is in all errors
        Path(f"{prefix}.{part}").write_bytes(prefix.read_bytes())
        Path(f"{prefix}.{other}").write_bytes((prefix.parent / f"whole.{other}").read_bytes())
        return wio.TensorBundle(prefix).read_all()

    return read


SHARD = "data-00000-of-00001"
TOML = b'[a]\nb = "c"\nd = [1, {e = 3}]\n[[x]]\nt = 1979-05-27T07:32:00Z\n"k\\u0041" = 0x1f\n'
STATE = {"a": np.ones(3), "n": {"t": (1, 2.5)}, "l": [1, "x"], 3: None}
KINDS = {
    "npy": (lambda _: saved(lambda f: np.save(f, np.ones((3, 4)))), read_npy),
    "mapped": (
        lambda _: saved(lambda f: np.save(f, np.ones((3, 4)))),
        lambda p: read_npy(p, mmap=True),
    ),
    "npz": (lambda _: saved(lambda f: np.savez(f, x=np.ones(3), y=np.arange(4))), read_npz),
    "compressed": (lambda _: saved(lambda f: np.savez_compressed(f, x=np.ones(99))), read_npz),
    "csv": (
        lambda _: b'a,b,c\n1,2.5,x\n3,nan,"y z"\n-4,1e5,no\n',
        lambda p: CsvDataset(p, missing="nan"),
    ),
    "toml": (lambda _: TOML, read_source),
    "safetensors": (
        written(lambda p: wio.save(p, {"w": np.ones((2, 3))}, {"e": (1, 2)})),
        lambda p: (wio.load(p), wio.load_metadata(p)),
    ),
    "idx": (written(lambda p: write_idx(p, np.ones((2, 3), np.int16))), read_idx),
    "idx.gz": (
        lambda d: gzip.compress(written(lambda p: write_idx(p, np.ones(9, np.uint8)))(d)),
        read_idx,
    ),
    "graph": (written(a_graph), wf.Graph.load),
    "tfrecord": (
        written(lambda p: write_tfrecords(p, EXAMPLES)),
        lambda p: list(TFRecordDataset(p)),
    ),
    "tfrecord unchecked": (
        written(lambda p: write_tfrecords(p, EXAMPLES)),
        lambda p: list(TFRecordStream(p, check=False)),
    ),
    **{
        f"tfrecord {kind}": (
            written(lambda p, kind=kind: write_tfrecords(p, EXAMPLES, compression=kind)),
            lambda p: list(TFRecordStream(p)),
        )
        for kind in ("gzip", "zlib")
    },
    "recordio": (
        written(lambda p: write_recordio(p, RECORDS)),
        lambda p: (list(read_recordio(p)), list(RecordIODataset(p))),
    ),
    "recordio of images": (
        written(lambda p: write_recordio(p, [pack_record(image("PNG"), 1.0)] * 2)),
        lambda p: list(ImageRecordDataset(p)),
    ),
    "bundle index": (a_bundle("index"), bundled("index", SHARD)),
    "bundle data": (a_bundle(SHARD), bundled(SHARD, "index")),
    "cifar pickle": (lambda _: a_batch(), unpacked("test_batch")),
    "cifar rows": (lambda _: bytes(2 * 3073), unpacked("test_batch.bin")),
    "cifar archive": (an_archive("w"), lambda p: load_cifar10(p, "test")),
    "cifar compressed": (an_archive("w:gz"), lambda p: load_cifar10(p, "test")),
    **{
        kind: (lambda _, kind=kind: image(kind), read_image)
        for kind in ("PNG", "JPEG", "GIF", "TIFF", "BMP")
    },
}


# Kinds of files of which ten thousand inputs are damaged in long runs.
MANY = ("tfrecord", "recordio", "cifar", "bundle")


def check_damage(kind, directory, times):
    make, read = KINDS[kind]
    content = make(directory)
    path = Path(directory) / "damaged"
    chance = random.Random(kind)
    path.write_bytes(content)
    read(path)
    refused, left = 0, times
    for _ in range(times):
        path.write_bytes(damaged(content, chance))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # pillow's, about what it could still read
                read(path)
        except WeftError as error:
            refused += path.name in str(error)
            left -= path.name in str(error)
        else:
            left -= 1
    assert refused
    assert not left  # no error that does not name the file


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_met_with_errors_of_our_own(tmp_path, kind):
    check_damage(kind, tmp_path, 40)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_much_damage_is_met_with_errors_of_our_own(tmp_path, kind):
    check_damage(kind, tmp_path, 10_000 if kind.startswith(MANY) else 3000)


def test_damaged_checkpoints(tmp_path):
    wio.save_state(tmp_path / "whole", STATE)
    files = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    chance = random.Random(0)
    for turn in range(60):
        copy = tmp_path / str(turn)
        copy.mkdir()
        chosen = chance.choice(sorted(files))
        for name, content in files.items():
            (copy / name).write_bytes(damaged(content, chance) if name == chosen else content)
        with suppress(WeftError):
            wio.load_state(copy)
