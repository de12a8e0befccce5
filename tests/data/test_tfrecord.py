"""TFRecords and the examples in them: against files of TensorFlow's own, and damaged ones."""

from __future__ import annotations

import gzip
import random
import resource
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from tests.caffe.fuzzing import mutated_bytes
from weft.core.errors import ArgumentError, ArgumentTypeError
from weft.data import (
    DataFileError,
    DataFileMissingError,
    DataLoader,
    ExampleDataset,
    TFRecordDataset,
    TFRecordStream,
    TFRecordWriter,
    encode_example,
    parse_example,
    read_tfrecords,
    write_tfrecords,
)
from weft.train.datasets import DATASETS

RECORDS = [b"", b"a", b"b" * 1000, bytes(range(256)) * 40]
# One record that TensorFlow 2.21 wrote: label [3, -3], none (empty), raw [b"ab\0", b"ccc"], x.
REAL = bytes.fromhex(
    "4e00000000000000c4b905ad0a4c0a130a03726177120c0a0a0a036162000a036363630a110a0178120c120a"
    "0a080000c03f0000c03f0a080a046e6f6e6512000a180a056c6162656c120f1a0d0a0b03fdffffffffffffff"
    "ff01a0f2b640"
)


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_records_there_and_back(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a.tfrecord"
    write_tfrecords(path, RECORDS, compression=compression)
    assert list(read_tfrecords(path)) == RECORDS
    assert list(read_tfrecords(path, compression=compression, check=False)) == RECORDS


def test_a_file_of_tensorflow_is_read_and_written_alike(tmp_path: Path) -> None:
    path = tmp_path / "real.tfrecord"
    path.write_bytes(REAL)
    (record,) = read_tfrecords(path)
    found = parse_example(record)
    assert found["label"].tolist() == [3, -3]
    assert found["raw"] == [b"ab\0", b"ccc"]
    assert found["x"].tolist() == [1.5, 1.5]
    assert found["none"] == []
    write_tfrecords(tmp_path / "again", [record])
    assert (tmp_path / "again").read_bytes() == REAL


def test_compressed_files_of_several_members(tmp_path: Path) -> None:
    write_tfrecords(tmp_path / "plain", RECORDS)
    content = (tmp_path / "plain").read_bytes()
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(content[:500]) + gzip.compress(content[500:]))
    assert list(read_tfrecords(path)) == RECORDS
    path.write_bytes(zlib.compress(content, 1))
    assert list(read_tfrecords(path)) == RECORDS


def test_dataset_by_index(tmp_path: Path) -> None:
    for name in "ab":
        write_tfrecords(tmp_path / name, [f"{name}{i}".encode() for i in range(5)])
    dataset = TFRecordDataset([tmp_path / "a", tmp_path / "b"], parse=bytes.decode)
    assert len(dataset) == 10
    assert (dataset[0], dataset[-1], dataset[5]) == ("a0", "b4", "b0")
    assert dataset.paths[1].endswith("b")


def test_loaders_with_workers_give_the_same_and_resume(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    examples = [{"x": [float(i), 1.0], "y": i % 3} for i in range(40)]
    write_tfrecords(path, map(encode_example, examples))
    write_tfrecords(tmp_path / "b.gz", map(encode_example, examples), compression="gzip")
    for dataset in (TFRecordDataset(path), TFRecordStream(tmp_path / "b.gz")):
        shuffle = {"shuffle": True, "seed": 3} if isinstance(dataset, TFRecordDataset) else {}
        whole = [b["x"].numpy() for b in DataLoader(dataset, batch_size=7, **shuffle)]
        shared = DataLoader(dataset, batch_size=7, num_workers=2, **shuffle)
        for found, expected in zip(shared, whole, strict=True):
            np.testing.assert_array_equal(found["x"].numpy(), expected)
        loader = DataLoader(dataset, batch_size=7, **shuffle)
        batches = iter(loader)
        next(batches), next(batches)
        state = loader.state_dict()
        again = DataLoader(dataset, batch_size=7, **shuffle)
        again.load_state_dict(state)
        for found, expected in zip(again, whole[2:], strict=True):
            np.testing.assert_array_equal(found["x"].numpy(), expected)


def test_streams_parse_only_what_is_kept(tmp_path: Path) -> None:
    write_tfrecords(tmp_path / "a", [b"0", b"1", b"2", b"3"])
    parsed: list[bytes] = []
    stream = TFRecordStream(tmp_path / "a", parse=lambda data: parsed.append(data) or int(data))
    assert list(stream.select(lambda place: place % 2 == 1)) == [1, 3]
    assert parsed == [b"1", b"3"]
    assert list(stream) == [0, 1, 2, 3]


def write_pixels(path: Path) -> Path:
    write_tfrecords(
        path,
        (encode_example({"image": bytes([i] * 12), "more": [0.5], "label": i}) for i in range(6)),
    )
    return path


def test_examples_as_inputs_and_targets(tmp_path: Path) -> None:
    path = write_pixels(tmp_path / "a")
    dataset = ExampleDataset(path, "image", "label", shape=(3, 2, 2), raw="uint8")
    image, label = dataset[5]
    assert image.shape == (3, 2, 2)
    assert image.dtype == wf.float32
    np.testing.assert_allclose(image.numpy(), 5 / 255)
    assert label.item() == 5
    assert ExampleDataset(path, ["more", "label"])[2].tolist() == [0.5, 2.0]


def test_configurations_name_them(tmp_path: Path) -> None:
    path = write_pixels(tmp_path / "a")
    made = DATASETS["tfrecord"](paths=str(path), features=["more"], target="label")
    assert made[3][0].tolist() == [0.5]
    assert {"cifar10", "cifar100", "image_records"} <= set(DATASETS)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"features": "image"}, "feature 'image' is bytes; give raw="),
        ({"features": "none"}, r"no feature 'none'; it has \['image', 'label', 'more'\]"),
        ({"features": "image", "raw": "uint8", "shape": (5,)}, r"12 values, not \(5,\)"),
        ({"features": "image", "raw": "complex128"}, "12 bytes, no values of complex128"),
    ],
)
def test_examples_that_are_not_as_they_were_said_to_be(
    tmp_path: Path, options: dict[str, object], match: str
) -> None:
    with pytest.raises(DataFileError, match=match):
        ExampleDataset(write_pixels(tmp_path / "a"), **options)[0]
    with pytest.raises(ArgumentError, match="one feature at least"):
        ExampleDataset(tmp_path / "a", [])


def test_examples_of_every_type() -> None:
    features = {
        "i": np.arange(4).reshape(2, 2),
        "b": [True, False],
        "f": wf.tensor([0.5, 1.5]),
        "s": "text",
        "l": [b"a", "b"],
        "e": np.zeros(0, np.float32),
    }
    with pytest.raises(ArgumentTypeError, match="mixes bytes and int"):
        encode_example({"l": [b"a", 3]})
    with pytest.raises(ArgumentTypeError, match="feature 'c' must be numbers"):
        encode_example({"c": 1j})
    found = parse_example(encode_example(features))
    assert list(found) == sorted(features)
    assert found["i"].tolist() == [0, 1, 2, 3]
    assert found["b"].tolist() == [1, 0]
    assert found["f"].tolist() == [0.5, 1.5]
    assert (found["s"], found["l"]) == ([b"text"], [b"a", b"b"])
    assert found["e"].dtype == np.float32


# -- damage ----------------------------------------------------------------------------------------


def changed(at: int, by: bytes) -> bytes:
    return REAL[:at] + by + REAL[at + len(by) :]


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (changed(0, b"\x01"), r"offset 0: the checksum of a record's length is 0x\w{8} instead of"),
        (changed(30, b"\xff"), r"offset 0: the checksum of a record of \d+ bytes"),
        (REAL + b"\1\2", rf"offset {len(REAL)}: expected the length .*found 2 bytes"),
        (REAL[:-6], r"a record claims \d+ bytes and a checksum, and \d+ bytes are left"),
    ],
)
def test_damage_is_named(tmp_path: Path, content: bytes, match: str) -> None:
    path = tmp_path / "bad.tfrecord"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=rf"bad\.tfrecord, .*{match}"):
        list(read_tfrecords(path))
    with pytest.raises(DataFileError, match="bad"):
        list(TFRecordDataset(path))
    compressed = tmp_path / "bad.gz"
    compressed.write_bytes(gzip.compress(content))
    with pytest.raises(DataFileError, match="bad"):
        list(read_tfrecords(compressed))


def test_damage_in_an_example_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.tfrecord"
    write_tfrecords(path, [encode_example({"x": 1}), b"\x0a\x7f"])
    first = len(encode_example({"x": 1})) + 16
    for dataset in (TFRecordDataset(path), TFRecordStream(path)):
        with pytest.raises(
            DataFileError, match=rf"offset {first + 14}: Example: field 1 claims 127"
        ):
            list(dataset)


def test_lengths_beyond_the_file_take_no_memory(tmp_path: Path) -> None:
    length = struct.pack("<Q", 1 << 60)
    head = length + struct.pack("<I", wf.io.crc32c.masked_crc32c(length))
    path = tmp_path / "bad"
    path.write_bytes(head + b"abc")
    with pytest.raises(DataFileError, match=f"claims {1 << 60} bytes"):
        list(read_tfrecords(path))
    path.write_bytes(gzip.compress(head + b"abc"))
    with pytest.raises(DataFileError, match="cut off after 3 bytes"):
        list(read_tfrecords(path))


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_tfrecords(path, [b"x"], compression="gzip")
    with pytest.raises(DataFileError, match=r"compressed.*TFRecordStream"):
        TFRecordDataset(path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataFileError, match="damaged compressed data"):
        list(read_tfrecords(path))
    with pytest.raises(DataFileMissingError, match="no such file"):
        TFRecordStream(tmp_path / "none")
    with pytest.raises(ArgumentError, match="one file at least"):
        TFRecordStream([])
    with pytest.raises(ArgumentError, match="compression must be"):
        TFRecordWriter(path, compression="xz")
    with TFRecordWriter(path) as writer, pytest.raises(ArgumentTypeError, match="record is bytes"):
        writer.write("text")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(ArgumentError, match="is closed"):
        writer.write(b"x")


def test_a_writer_flushes(tmp_path: Path) -> None:
    for compression in ("none", "gzip"):
        writer = TFRecordWriter(tmp_path / "a", compression=compression)
        writer.write(b"one")
        writer.flush()
        assert (tmp_path / "a").stat().st_size > 8
        writer.close()
        writer.close()
        assert list(read_tfrecords(tmp_path / "a")) == [b"one"]


# -- mutations -------------------------------------------------------------------------------------

EXAMPLE = encode_example(
    {"label": [3, -3, 2**40], "x": np.linspace(0, 1, 9, dtype=np.float32), "raw": [b"ab\0", b"c"]}
)
SECONDS, MORE_MEMORY = 5.0, 200_000  # of one file, and of all (kilobytes)


def mutated_files(folder: Path, count: int) -> Iterator[Path]:
    """Yield files of three examples with mutated bytes: of the file, or of an example inside."""
    rng, path = random.Random(8), folder / "damaged"
    write_tfrecords(folder / "whole", [EXAMPLE] * 3)
    whole = (folder / "whole").read_bytes()
    for number in range(count):
        if number % 3 == 0:  # with checksums that are right: the example itself is read
            write_tfrecords(path, [EXAMPLE, mutated_bytes(EXAMPLE, rng), EXAMPLE])
        elif number % 3 == 1:
            path.write_bytes(mutated_bytes(whole, rng))
        else:
            path.write_bytes(mutated_bytes(gzip.compress(whole, 1), rng))
        yield path


def test_mutated_files_are_read_or_refused(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    count = 10_000 if request.config.getoption("--long") else 120
    ends = {"read": 0, "refused": 0}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for path in mutated_files(tmp_path, count):
        start = time.thread_time()
        try:
            for _ in TFRecordStream(path, check=bool(ends["read"] % 4)):
                pass
        except DataFileError:
            ends["refused"] += 1
        else:
            ends["read"] += 1
        assert time.thread_time() - start < SECONDS, path.read_bytes()
    assert min(ends.values()) > 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MORE_MEMORY
    assert {entry.name for entry in tmp_path.iterdir()} == {"whole", "damaged"}
