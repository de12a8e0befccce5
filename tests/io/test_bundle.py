"""Checkpoints of TensorFlow: one that TensorFlow wrote, ours that it reads, and damaged ones."""

import struct
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError, ArgumentTypeError
from weft.io import FileFormatError, FileMissingError, TensorBundle, save_bundle, wire
from weft.io.bundle_keys import slice_key
from weft.io.crc32c import masked_crc32c
from weft.io.sstable import SortedTable, write_table

# The index of a checkpoint by TensorFlow 2.21: "w" [1.5, -2], "step" 7, "names" ["a", "bcd", ""],
# and "part", 300 bytes (0 to 6 in turn) in two partitions.
INDEX = bytes.fromhex(
    "00000608011a020801000e1700706172740001010280c096808108041209120308960112020801200b289601"
    "355305630b090618c096c09680810804120912030896011202080120a101289601350ff66cbc00050f6e616d"
    "65730807120412020803280b3540a8f4fa0004267061727408041209120308ac02120208013a090a03109601"
    "0a0210013a0c0a060896011096010a02100100040e737465700809120020b702280835bbd79f110001127708"
    "0112041202080220bf022808353d33c8f4000000000100000000570f9863000000000100000000c0f2a1b000"
    "01037800c9010000000001000000000009179cce0108db010f00000000000000000000000000000000000000"
    "00000000000000000000000000000057fb808b247547db"
)
# A checkpoint of version 1 by the same: "w" of shape (2, 3).
VERSION_1 = bytes.fromhex(
    "00001d0a1b0a150a017712081202080212020803180122040a000a0012020801000a27007700010102807f80"
    "7f12250a017712040a000a001a1a2a18000000000000803f0000004000004040000080400000a04000000000"
    "0100000000fb3075bf000000000100000000c0f2a1b000010201005c0000000001000000005960921061086e"
    "0e00000000000000000000000000000000000000000000000000000000000000000000000057fb808b247547"
    "db"
)
PART = (np.arange(300) % 7).astype(np.uint8)
NAMES = bytes.fromhex("010300836d8c6e") + b"abcd"  # lengths, their checksum, texts
DATA = NAMES + PART.tobytes() + struct.pack("<qff", 7, 1.5, -2)


def of_tensorflow(folder):
    prefix = folder / "model.ckpt"
    Path(f"{prefix}.index").write_bytes(INDEX)
    Path(f"{prefix}.data-00000-of-00001").write_bytes(DATA)
    return prefix


def test_a_checkpoint_that_tensorflow_wrote(tmp_path):
    bundle = TensorBundle(of_tensorflow(tmp_path))
    assert bundle.names() == ["names", "part", "step", "w"]
    assert "w" in bundle
    assert "v" not in bundle
    assert "" not in bundle
    assert (bundle.shape("part"), bundle.dtype("part")) == ((300, 1), "uint8")
    assert (bundle.shape("step"), bundle.dtype("step")) == ((), "int64")
    assert bundle.dtype("names") == "object"
    found = bundle.read_all()
    assert found["names"].tolist() == [b"a", b"bcd", b""]
    assert found["step"] == 7
    assert found["w"].tolist() == [1.5, -2.0]
    np.testing.assert_array_equal(found["part"], PART[:, None])
    assert len(bundle.entry("part").slices) == 2
    assert found["w"].flags.writeable


def test_our_index_is_tensorflows(tmp_path):
    """Of tensors that are not partitioned both write the same entries and bytes."""
    theirs = TensorBundle(of_tensorflow(tmp_path)).read_all()
    save_bundle(tmp_path / "ours", {name: theirs[name] for name in ("names", "step", "w")})
    whole, ours = (
        dict(SortedTable(tmp_path / f"{x}.index").items()) for x in ("model.ckpt", "ours")
    )
    assert ours[b""] == whole[b""]
    message, expected = wire.Message(ours[b"names"]), wire.Message(whole[b"names"])
    assert message.fixed32(6) == expected.fixed32(6)
    assert wire.Message(ours[b"w"]).fixed32(6) == wire.Message(whole[b"w"]).fixed32(6)
    assert (tmp_path / "ours.data-00000-of-00001").read_bytes() == NAMES + DATA[-16:]


def test_tensors_there_and_back(tmp_path):
    tensors = {
        name: np.arange(6).astype(name).reshape(2, 3)
        for name in (
            "float32",
            "float64",
            "int8",
            "uint16",
            "int64",
            "bool",
            "complex64",
            "float16",
        )
    }
    tensors |= {"scalar": np.float32(3), "none": np.zeros((0, 4)), "text": np.array([["a"], ["ä"]])}
    tensors |= {f"many/{i:03}": np.int32(i) for i in range(500)}
    tensors["tensor"] = wf.tensor([1.0, 2.0])
    save_bundle(tmp_path / "x", tensors)
    bundle = TensorBundle(tmp_path / "x")
    assert bundle.names() == sorted(tensors)
    for name, value in tensors.items():
        found = bundle.read(name)
        if name == "text":
            assert found.tolist() == [[b"a"], ["ä".encode()]]
        else:
            np.testing.assert_array_equal(found, np.asarray(value))
            assert found.shape == value.shape


def test_shards(tmp_path):
    """Two tensors in two files: as TensorFlow shards, by hand."""
    save_bundle(tmp_path / "x", {"a": np.float32([1, 2]), "b": np.float32([3])})
    entries = dict(SortedTable(tmp_path / "x.index").items())
    entries[b""] = wire.MessageWriter().varint(1, 2).content()
    other = wire.Message(entries[b"b"])
    sizes = wire.MessageWriter().message(2, wire.MessageWriter().varint(1, 1))
    made = wire.MessageWriter().varint(1, 1).message(2, sizes).varint(3, 1).varint(5, 4)
    entries[b"b"] = made.fixed32(6, other.fixed32(6)).content()
    write_table(tmp_path / "x.index", entries)
    (tmp_path / "x.data-00000-of-00002").write_bytes(np.float32([1, 2]).tobytes())
    (tmp_path / "x.data-00001-of-00002").write_bytes(np.float32([3]).tobytes())
    found = TensorBundle(tmp_path / "x").read_all()
    assert (found["a"].tolist(), found["b"].tolist()) == ([1, 2], [3])
    (tmp_path / "x.data-00001-of-00002").unlink()
    with pytest.raises(FileMissingError, match=r"x\.data-00001-of-00002, which tensor 'b' is in"):
        TensorBundle(tmp_path / "x").read("b")


@pytest.mark.parametrize(
    ("place", "key"),
    [
        ([(0, 150), (0, -1)], "00 61 0001 0102 80 c096 80 7f"),
        ([(64, 8192)], "00 61 0001 0101 c040 e02000"),
        ([(-65, -8193)], "00 61 0001 0101 3fbf 1fdfff"),
    ],
)
def test_keys_of_slices(place, key):
    assert slice_key("a", place).hex() == key.replace(" ", "")


def test_keys_escape_their_ends():
    assert slice_key("a\0b", []).hex() == "006100ff62000100"


def test_keys_sort_as_numbers_do():
    numbers = sorted({s * (1 << k) + d for k in range(62) for s in (1, -1) for d in (-1, 0, 1)})
    keys = [slice_key("a", [(n, 1)]) for n in numbers]
    assert keys == sorted(keys)


# -- what is wrong ---------------------------------------------------------------------------------


def test_version_1_is_refused_with_the_way_on(tmp_path):
    (tmp_path / "model.ckpt").write_bytes(VERSION_1)
    with pytest.raises(FileFormatError, match=r"version 1, which is not read.*write_version"):
        TensorBundle(tmp_path / "model.ckpt")
    with pytest.raises(FileMissingError, match=r"give the prefix, without '\.index'"):
        TensorBundle(tmp_path / "none")


def test_damage_is_named(tmp_path):
    prefix = of_tensorflow(tmp_path)
    data = Path(f"{prefix}.data-00000-of-00001")
    data.write_bytes(DATA[:-8] + b"\1" + DATA[-7:])
    with pytest.raises(FileFormatError, match=r"offset 319: tensor 'w' is damaged: its checksum"):
        TensorBundle(prefix).read("w")
    data.write_bytes(b"\2" + DATA[1:])
    with pytest.raises(FileFormatError, match="tensor 'names' is damaged: its 3 texts do not fit"):
        TensorBundle(prefix).read("names")
    data.write_bytes(DATA[:320])
    with pytest.raises(FileFormatError, match="tensor 'w' claims 8 bytes, and 1 are there"):
        TensorBundle(prefix).read("w")
    with pytest.raises(ArgumentError, match="there is no tensor 'x'"):
        TensorBundle(prefix).read("x")
    Path(f"{prefix}.index").write_bytes(INDEX[:20] + b"\1" + INDEX[21:])
    with pytest.raises(FileFormatError, match=r"model\.ckpt\.index, offset 0: the checksum of a"):
        TensorBundle(prefix)


def entry(code=1, sizes=(2,), shard=0, offset=0, size=8, slices=()):
    """Return an entry with claims of one's own; its checksum is that of zeros."""
    shape = wire.MessageWriter()
    for n in sizes:
        shape.message(2, wire.MessageWriter().varint(1, n))
    made = wire.MessageWriter().varint(1, code).message(2, shape).varint(3, shard)
    made.varint(4, offset).varint(5, size).fixed32(6, masked_crc32c(bytes(8)))
    for place in slices:
        extents = wire.MessageWriter()
        for start, length in place:
            extents.message(1, wire.MessageWriter().varint(1, start).varint(2, length))
        made.message(7, extents)
    return made.content()


HEADER = wire.MessageWriter().varint(1, 1).content()


@pytest.mark.parametrize(
    ("entries", "match"),
    [
        ({b"": b""}, "found 0 shards"),
        ({b"": wire.MessageWriter().varint(1, 1).varint(2, 1).content()}, "byte order 1"),
        ({b"": b"\x0a"}, "the header, offset 1"),
        ({b"w": entry(code=21)}, "'w' has a type that Weft does not have"),
        ({b"w": entry(shard=3)}, "should stand at offset 0 of shard 3"),
        ({b"w": entry(offset=-1)}, "should stand at offset -1"),
        ({b"w": entry(sizes=(-2,))}, "no array has the shape of tensor 'w'"),
        ({b"w": entry(sizes=(1,) * 70)}, "no array has the shape"),
        ({b"w": entry(sizes=(1 << 40,))}, "takes 4398046511104 bytes; there are 8"),
        ({b"w": entry(size=1 << 40)}, "claims 1099511627776 bytes, and 8 are there"),
        ({b"w": entry(code=7, sizes=(1 << 40,))}, "1099511627776 texts do not fit 8 bytes"),
        ({b"w": b"\xff"}, "entry 'w', offset 0: a varint was cut off"),
        ({b"w": entry(slices=[[(0, 1)]])}, "a slice of tensor 'w' is missing"),
        (
            {b"w": entry(slices=[[(1, 2)]]), slice_key("w", [(1, 2)]): entry()},
            "does not fit its shape",
        ),
        (
            {b"w": entry(sizes=(1 << 40,), slices=[[(0, 2)]]), slice_key("w", [(0, 2)]): entry()},
            "the slices of 'w' do not make up its shape",
        ),
    ],
)
def test_claims_are_held_against_what_is_there(tmp_path, entries, match):
    write_table(tmp_path / "x.index", {b"": HEADER, **entries})
    (tmp_path / "x.data-00000-of-00001").write_bytes(bytes(8))
    with pytest.raises(FileFormatError, match=match):
        TensorBundle(tmp_path / "x").read("w")


def test_what_bundles_do_not_hold_is_refused(tmp_path):
    with pytest.raises(ArgumentTypeError, match="'x' holds objects"):
        save_bundle(tmp_path / "x", {"x": np.array([object()])})
    with pytest.raises(ArgumentTypeError, match="'x' is of datetime64"):
        save_bundle(tmp_path / "x", {"x": np.array(["2020-01-01"], "M8[D]")})
    with pytest.raises(ArgumentTypeError, match="names are text"):
        save_bundle(tmp_path / "x", {3: np.ones(2)})
