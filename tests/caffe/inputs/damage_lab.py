"""Read damaged databases and HDF5 files, each in a process of its own; count how those end.

python damage_lab.py lmdb|leveldb|hdf5 COUNT FOLDER
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import struct
import sys
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # the tree whose file this is

import h5py
import numpy as np

from weft.caffe.inputs.databases import open_database
from weft.caffe.inputs.hdf5 import read_hdf5
from weft.caffe.inputs.writing import write_database
from weft.core.errors import WeftError

MEMORY, SECONDS = 4 << 30, 5
ENDS = {0: "read", 3: "refused"}


def records(count: int = 40) -> list[tuple[bytes, bytes]]:
    draw = random.Random(0)
    return [(b"%08d" % i, draw.randbytes(100 if i % 2 else 3000)) for i in range(count)]


def make_lmdb(folder: Path) -> None:
    write_database(folder, records(), "LMDB")
    (folder / "lock.mdb").unlink()


def make_leveldb(folder: Path) -> None:
    write_database(folder, records(), "LEVELDB")


def make_hdf5(folder: Path) -> None:
    folder.mkdir()
    with h5py.File(folder / "x.h5", "w") as file:
        file["data"] = np.random.default_rng(0).random((20, 1, 4, 4), np.float32)
        file.create_dataset("label", data=np.arange(20.0), compression="gzip", chunks=(5,))


def read_database(backend: str) -> Callable[[Path], None]:
    return lambda folder: [*islice(open_database(folder, backend).records(), 10000)] and None


KINDS: dict[str, tuple[Callable[[Path], None], Callable[[Path], object]]] = {
    "lmdb": (make_lmdb, read_database("LMDB")),
    "leveldb": (make_leveldb, read_database("LEVELDB")),
    "hdf5": (make_hdf5, lambda folder: read_hdf5(folder / "x.h5", ["data", "label"])),
}


def in_process(read: Callable[[Path], object], folder: Path) -> str:
    """Return how a process ends that reads a folder."""
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.alarm(SECONDS)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        status = 4
        try:
            read(folder)
            status = 0
        except WeftError:
            status = 3
        finally:
            os._exit(status)
    _, end = os.waitpid(pid, 0)
    if os.WIFSIGNALED(end):
        return f"signal {os.WTERMSIG(end)}"
    return ENDS.get(os.WEXITSTATUS(end), "another error")


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Return bytes with some of them changed, cut off, moved or made zero."""
    found = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        where = draw.randrange(len(found) if draw.random() < 0.5 else min(len(found), 4096))
        match draw.randrange(6):
            case 0 | 1:
                found[where] = draw.randrange(256)
            case 2:
                odd = (0, 1, 2**63 - 1, 2**64 - 1, 2**32, draw.getrandbits(64), draw.randrange(64))
                found[where : where + 8] = struct.pack("<Q", draw.choice(odd))
            case 3:
                found[where : where + 2] = b"\xff\xff"
            case 4:
                del found[draw.randrange(len(found)) :]
            case 5:
                found[where : where + 64] = found[:64]
        found += bytes(max(0, 16 - len(found)))
    return bytes(found)


def main(kind: str, count: int, base: Path) -> None:
    make, read = KINDS[kind]
    make(base / "whole")
    whole = {file.name: file.read_bytes() for file in (base / "whole").iterdir()}
    draw: random.Random = random.Random(1)
    ends: Counter[str] = Counter()
    for _ in range(count):
        victim = draw.choice([name for name in whole if whole[name]])
        folder = base / "damaged"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, content in whole.items():
            (folder / name).write_bytes(damaged(content, draw) if name == victim else content)
        ends[in_process(read, folder)] += 1
    print(json.dumps(ends))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
