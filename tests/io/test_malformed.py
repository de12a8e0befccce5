"""Damaged and hostile files are refused with a reason, and never crash or allocate."""

import random
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft.io as wio
from tests.io.rawfile import GOOD, MALFORMED, entry, raw
from weft.core.errors import WeftError


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_file_is_refused_with_a_reason(tmp_path: Path, name: str) -> None:
    content, message = MALFORMED[name]
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    with pytest.raises(wio.FileFormatError, match=message) as caught:
        wio.load(path)
    assert str(path) in str(caught.value)


def test_good_file_is_not_refused(tmp_path: Path) -> None:
    path = tmp_path / "good.safetensors"
    path.write_bytes(GOOD)
    assert {n: t.shape for n, t in wio.load(path).items()} == {"a": (1,), "b": (2,)}


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.safetensors"
    for length in range(len(GOOD)):
        path.write_bytes(GOOD[:length])
        with pytest.raises(wio.FileFormatError):
            wio.load(path)


def read_or_refuse(path: Path, content: bytes) -> None:
    """Load a file; only Weft's own errors may come out."""
    path.write_bytes(content)
    try:
        tensors = wio.load(path)
        wio.load_metadata(path)
    except WeftError:
        return
    assert sum(t.nbytes for t in tensors.values()) <= len(content)


@given(content=st.binary(max_size=200))
def test_random_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    read_or_refuse(tmp_path_factory.mktemp("fuzz") / "x.safetensors", content)


NUMBERS = st.sampled_from([-1, 0, 1, 2, 4, 8, 2**31, 2**32, 2**62, 2**63, 2**64, 1.5, "1", None])
ENTRIES = st.builds(
    entry,
    dtype=st.sampled_from(["F32", "BF16", "BOOL", "I64", "F4", "F8_E5M2", "C64", "", "f32"]),
    shape=st.lists(NUMBERS, max_size=3).map(tuple),
    offsets=st.lists(NUMBERS, max_size=3).map(tuple),
)


@given(
    header=st.dictionaries(st.sampled_from(["a", "b", "", "__metadata__"]), ENTRIES, max_size=3),
    data=st.binary(max_size=16),
)
def test_random_headers(
    tmp_path_factory: pytest.TempPathFactory, header: dict[str, object], data: bytes
) -> None:
    read_or_refuse(tmp_path_factory.mktemp("fuzz") / "x.safetensors", raw(header, data))


def test_flipped_bits(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    rng = random.Random(0)
    for _ in range(20_000 if request.config.getoption("--long") else 500):
        content = bytearray(GOOD)
        for _ in range(rng.choice((1, 1, 2, 8))):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        read_or_refuse(tmp_path / "x.safetensors", bytes(content))


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory by RLIMIT_AS")
def test_hostile_sizes_allocate_nothing(tmp_path: Path) -> None:
    """Read every malformed file, and a large one, in a process that can get only 64 MB more."""
    for number, (content, _) in enumerate(MALFORMED.values()):
        (tmp_path / f"{number}.safetensors").write_bytes(content)
    size = 10**9
    with (tmp_path / "large.safetensors").open("wb") as file:
        file.write(raw({"a": entry("U8", (size,), (0, size))}))
        file.truncate(file.tell() + size)  # sparse: takes no space on disk
    program = """
        import resource, sys
        from pathlib import Path
        import safetensors.numpy
        import weft.io as wio
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + 64_000_000
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for path in sorted(Path(sys.argv[1]).iterdir()):
            try:
                wio.load(path)
            except wio.FileFormatError:
                print("refused")
            except (MemoryError, wio.ReadError) as error:  # by version of safetensors
                print(error)
    """
    command = [sys.executable, "-c", dedent(program), str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    *refused, last = result.stdout.splitlines()
    assert refused == ["refused"] * len(MALFORMED)
    assert "large.safetensors" in last
    assert "memory" in last


# -- other programs' files -------------------------------------------------------------------------

TORCH = "save_file.torch.load"
FOREIGN = [
    ("model.pt", b"PK\x03\x04 anything", TORCH),
    ("model.pth", b"", TORCH),
    ("pytorch_model.bin", b"PK\x03\x04", TORCH),
    ("MODEL.PT", b"x", TORCH),
    ("last.ckpt", b"x", TORCH),
    ("model.pkl", b"\x80\x04.", "load it with the program that made it"),
    ("model.pickle", b"x", "load it with the program that made it"),
    ("model.joblib", b"x", "load it with the program that made it"),
    ("renamed.safetensors", b"PK\x03\x04" + bytes(40), "zip archive, as PyTorch writes"),
    ("renamed.safetensors", b"\x80\x02}q\x00.", "is a pickle"),
    ("renamed.safetensors", b"\x80\x04\x95\x05\0\0\0\0\0\0\0}q\0.", "is a pickle"),
]


@pytest.mark.parametrize(("name", "content", "message"), FOREIGN)
def test_pickles_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(wio.UnsafeFileError, match=message) as caught:
        wio.load(path)
    assert "can run any code" in str(caught.value)
    assert "safetensors" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.h5", b"\x89HDF\r\n\x1a\n", "HDF5"),
        ("a.gguf", b"GGUF\x03\0\0\0", "GGUF"),
        ("a.safetensors", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        ("a.safetensors", b"<!DOCTYPE html><title>404</title>", "download failed"),
    ],
)
def test_other_formats_are_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(wio.FileFormatError, match=message):
        wio.load(path)


def test_numpy_files_are_named(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(3))
    np.savez(tmp_path / "b.npz", x=np.zeros(3))
    np.save(tmp_path / "c.npy", np.array([{"a": 1}]), allow_pickle=True)
    for name in ("a.npy", "b.npz"):
        with pytest.raises(wio.FileFormatError, match=re.escape(f"np.load('{name}')")):
            wio.load(tmp_path / name)
    with pytest.raises(wio.UnsafeFileError, match="pickled objects"):
        wio.load(tmp_path / "c.npy")


def test_header_that_looks_like_a_pickle_is_read(tmp_path: Path) -> None:
    """A header of 0x0480 bytes begins like a pickle of protocol 4."""
    header = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    path = tmp_path / "x.safetensors"
    path.write_bytes(raw(header.ljust(0x0480), bytes(4)))
    assert wio.load(path)["a"].shape == (1,)
