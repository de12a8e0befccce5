"""Sorted tables: there and back, and damaged ones."""

import random
import struct

import pytest

from weft.core.errors import WeftError
from weft.io import FileFormatError, FileMissingError
from weft.io.crc32c import masked_crc32c
from weft.io.sstable import SortedTable, is_table, write_table
from weft.io.wire import varint


@pytest.mark.parametrize("count", [0, 1, 17, 3000])
def test_entries_there_and_back(tmp_path, count):
    chance = random.Random(count)
    entries = {f"layer/{i:05}/w".encode(): chance.randbytes(i % 40) for i in range(count)}
    write_table(tmp_path / "x", entries)
    assert list(SortedTable(tmp_path / "x").items()) == sorted(entries.items())
    assert is_table(tmp_path / "x")
    assert not is_table(tmp_path / "none")


def a_table(block, kind=0, checksum=None):
    """Return a table of one block of one's own."""
    content = block + bytes([kind])
    made = content + struct.pack("<I", masked_crc32c(content) if checksum is None else checksum)
    handle = varint(0) + varint(len(block))
    index = varint(0) + varint(1) + varint(len(handle)) + b"z" + handle + struct.pack("<II", 0, 1)
    start = len(made)
    made += index + b"\0" + struct.pack("<I", masked_crc32c(index + b"\0"))
    footer = varint(0) + varint(0) + varint(start) + varint(len(index))
    return made + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "offset 0: expected a table, which ends with 57fb808b247547db; found nothing"),
        (bytes(60), "offset 12: expected a table"),
        (
            a_table(b"\0" * 8, checksum=3),
            "offset 0: the checksum of a block of 8 bytes is 0x00000003",
        ),
        (a_table(b"\0" * 8, kind=1), r"compressed \(snappy\), and only tables without"),
        (a_table(b"\0" * 8, kind=9), r"compressed \(kind 9\)"),
        (a_table(b"\xff" * 8), "a block of 8 bytes claims 4294967295 whole keys"),
        (a_table(b"ab"), "claims 2 whole keys"),
        (a_table(b"\5\1\1kv" + struct.pack("<II", 0, 1)), "shares 5 bytes with a key of 0"),
        (a_table(b"\0\x7f\1kv" + struct.pack("<II", 0, 1)), "claims 128 of 2 bytes"),
        (a_table(b"\x80" + struct.pack("<II", 0, 1)), "a varint was cut off"),
    ],
)
def test_damage_is_named_with_its_offset(tmp_path, content, match):
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(FileFormatError, match=rf"bad, offset \d+: |{match}"):
        list(SortedTable(tmp_path / "bad").items())
    with pytest.raises(FileFormatError, match=match):
        list(SortedTable(tmp_path / "bad").items())


def test_keys_that_grow_without_end_are_stopped(tmp_path):
    """Each key is the one before and a byte: ten thousand of them take 50 megabytes."""
    entries = b"".join(varint(i) + b"\1\0k" for i in range(10_000))
    (tmp_path / "bad").write_bytes(a_table(entries + struct.pack("<II", 0, 1)))
    with pytest.raises(FileFormatError, match="keys take more memory"):
        list(SortedTable(tmp_path / "bad").items())


def test_missing_files(tmp_path):
    with pytest.raises(FileMissingError, match="there is no file"):
        SortedTable(tmp_path / "none")


def test_damage_behind_good_checksums(tmp_path):
    """Blocks are changed and summed again, so that what reads them meets the damage."""
    chance = random.Random(1)
    block = b"\0\1\1av\1\2\2bcwx\2\1\0d" + struct.pack("<II", 0, 1)
    for _ in range(300):
        changed = bytearray(block)
        changed[chance.randrange(len(changed))] = chance.randrange(256)
        (tmp_path / "bad").write_bytes(a_table(bytes(changed)))
        try:
            list(SortedTable(tmp_path / "bad").items())
        except WeftError as error:
            assert "bad, offset" in str(error)  # noqa: PT017  (it need not raise)
