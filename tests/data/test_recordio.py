"""RecordIO: parts, indexes, headers of images, and damage."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError, ArgumentTypeError
from weft.data import (
    DataFileError,
    DataLoader,
    ImageRecordDataset,
    RecordIODataset,
    pack_record,
    read_recordio,
    unpack_record,
    write_recordio,
)

MAGIC = struct.pack("<I", 0xCED7230A)
RECORDS = [
    b"",
    b"abc",
    b"abcd",
    MAGIC,
    b"1234" + MAGIC + b"56",
    MAGIC + MAGIC,
    b"x" + MAGIC,  # not where a reader would look
    b"z" * 1001,
]


def test_bytes_of_the_format(tmp_path: Path) -> None:
    write_recordio(tmp_path / "a", [b"abcde", b"1234" + MAGIC + b"56"])
    expected = MAGIC + struct.pack("<I", 5) + b"abcde\0\0\0"
    expected += MAGIC + struct.pack("<I", 1 << 29 | 4) + b"1234"
    expected += MAGIC + struct.pack("<I", 3 << 29 | 2) + b"56\0\0"
    assert (tmp_path / "a").read_bytes() == expected


def test_records_there_and_back(tmp_path: Path) -> None:
    write_recordio(tmp_path / "a.rec", RECORDS, tmp_path / "a.idx")
    assert list(read_recordio(tmp_path / "a.rec")) == RECORDS
    walked = RecordIODataset(tmp_path / "a.rec")
    indexed = RecordIODataset(tmp_path / "a.rec", tmp_path / "a.idx")
    assert list(walked) == list(indexed) == RECORDS
    assert walked.keys.tolist() == indexed.keys.tolist() == list(range(len(RECORDS)))
    assert walked[-1] == RECORDS[-1]


def test_an_index_gives_the_order(tmp_path: Path) -> None:
    write_recordio(tmp_path / "a.rec", [b"0000", b"1111"])
    (tmp_path / "a.idx").write_text("7\t12\n3\t0\n")
    dataset = RecordIODataset(tmp_path / "a.rec", tmp_path / "a.idx", bytes.decode)
    assert list(dataset) == ["1111", "0000"]
    assert dataset.keys.tolist() == [7, 3]


def test_headers() -> None:
    header, content = unpack_record(pack_record(b"x", [1.0, 2.5], id=3, id2=4))
    assert (header.flag, header.label.tolist(), header.id, header.id2) == (2, [1.0, 2.5], 3, 4)
    assert content == b"x"
    assert pack_record(b"", 2.0, id=1) == struct.pack("<IfQQ", 0, 2.0, 1, 0)
    with pytest.raises(ArgumentError, match=r"header has 24 bytes. Received: 3 bytes"):
        unpack_record(b"abc")
    with pytest.raises(ArgumentError, match="claims 4294967295 labels"):
        unpack_record(struct.pack("<IfQQ", 2**32 - 1, 0, 0, 0))


def png(value: int) -> bytes:
    pillow = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    pillow.fromarray(np.full((4, 5, 3), value, np.uint8)).save(file, "PNG")
    return file.getvalue()


def test_images_with_workers_and_resume(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    write_recordio(path, [pack_record(png(i), float(i)) for i in range(10)], tmp_path / "a.idx")
    dataset = ImageRecordDataset(path, tmp_path / "a.idx")
    image, label = dataset[3]
    assert image.shape == (3, 4, 5)
    np.testing.assert_allclose(image.numpy(), np.float32(3 / 255))
    assert label == 3
    expected = [y.tolist() for _, y in DataLoader(dataset, batch_size=3, shuffle=True, seed=1)]
    loader = DataLoader(dataset, batch_size=3, shuffle=True, seed=1, num_workers=2)
    batches = iter(loader)
    assert next(batches)[1].tolist() == expected[0]
    state = loader.state_dict()
    again = DataLoader(dataset, batch_size=3, shuffle=True, seed=1)
    again.load_state_dict(state)
    assert [y.tolist() for _, y in again] == expected[1:]


def test_labels_are_what_they_were(tmp_path: Path) -> None:
    write_recordio(tmp_path / "a", [pack_record(png(0), x) for x in (0.5, 2, [1.0, 2.0])])
    labels = [label for _, label in ImageRecordDataset(tmp_path / "a", transform=wf.tensor)]
    assert labels[:2] == [0.5, 2]
    assert isinstance(labels[1], int)
    assert labels[2].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"abcdefgh", r"offset 0: expected the number 0xced7230a of RecordIO, found 0x64636261"),
        (MAGIC + b"\1", "offset 0: expected the head of a record, found 5 bytes"),
        (MAGIC + struct.pack("<I", 99) + b"x", "a part claims 99 bytes, and 1 are left"),
        (MAGIC + struct.pack("<I", 7 << 29), "expected a part of kind 0 to 3, found 7"),
        (MAGIC + struct.pack("<I", 2 << 29), "where a record should begin"),
        (MAGIC + struct.pack("<I", 1 << 29), "offset 8: the file ends in the middle of a record"),
        ((MAGIC + struct.pack("<I", 1 << 29)) * 2, "offset 8: a record begins before"),
    ],
)
def test_damage_is_named(tmp_path: Path, content: bytes, match: str) -> None:
    path = tmp_path / "bad.rec"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=rf"bad\.rec, .*{match}"):
        list(read_recordio(path))


def test_damaged_indexes_and_images_are_named(tmp_path: Path) -> None:
    write_recordio(tmp_path / "a.rec", [b"abc", pack_record(b"no image", 1.0)])
    images = ImageRecordDataset(tmp_path / "a.rec")
    with pytest.raises(DataFileError, match=r"a\.rec, offset 0: expected a record of an image"):
        images[0]
    with pytest.raises(DataFileError, match=r"a\.rec, offset 12: expected an image"):
        images[1]
    (tmp_path / "a.idx").write_text("0\t0\n1 x\n")
    with pytest.raises(DataFileError, match=r"a\.idx, line 2: expected a key and an offset"):
        RecordIODataset(tmp_path / "a.rec", tmp_path / "a.idx")
    (tmp_path / "a.idx").write_text("0\t9999\n")
    with pytest.raises(DataFileError, match="offset 9999: the index names a record past the end"):
        RecordIODataset(tmp_path / "a.rec", tmp_path / "a.idx")[0]
    with pytest.raises(ArgumentTypeError, match=r"record is bytes. Received: str"):
        write_recordio(tmp_path / "b", ["text"])  # type: ignore[list-item]  # what is tested
