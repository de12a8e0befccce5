"""Damaged databases and HDF5 files: an error of Weft's, or what is left; never the process's end.

Each kind is read in a process of its own, with bounds of memory and time, so that an end is seen.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import h5py
import lmdb
import numpy as np
import pytest

from weft.caffe.inputs.databases import open_database
from weft.caffe.inputs.hdf5 import read_hdf5
from weft.caffe.inputs.lmdb_pages import Pages
from weft.caffe.inputs.writing import write_database
from weft.core.errors import WeftError
from weft.data import DataFileError

from .cases import damaged

MEMORY, SECONDS = 4 << 30, 5
READ, REFUSED = 0, 3


def records(count: int = 40) -> list[tuple[bytes, bytes]]:
    draw = random.Random(0)
    return [(b"%08d" % i, draw.randbytes(100 if i % 2 else 3000)) for i in range(count)]


def test_whole_files_are_walked_in_order(tmp_path: Path) -> None:
    for count in (1, 40, 900):
        write_database(tmp_path / str(count), records(count), "LMDB")
        pages = Pages(str(tmp_path / str(count) / "data.mdb"))
        assert sum(pages.leaves()) == pages.entries == count
        pages.close()
        assert list(open_database(tmp_path / str(count), "LMDB").records()) == records(count)


def test_what_is_cut_off_is_not_read(tmp_path: Path) -> None:
    write_database(tmp_path / "db", records(), "LMDB")
    file = tmp_path / "db" / "data.mdb"
    file.write_bytes(file.read_bytes()[:40000])
    with pytest.raises(DataFileError, match=r"data\.mdb, page \d+: the database is damaged"):
        list(open_database(tmp_path / "db", "LMDB").records())


def test_databases_inside_databases_are_refused(tmp_path: Path) -> None:
    env = lmdb.open(str(tmp_path / "db"), max_dbs=1)
    env.open_db(b"inner", dupsort=True)
    env.close()
    with pytest.raises(DataFileError, match="several values"):
        list(open_database(tmp_path / "db", "LMDB").records())


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


@pytest.mark.parametrize("kind", KINDS)
def test_damage_ends_no_process(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> None:
    count = 10_000 if request.config.getoption("--long") else 60
    make, read = KINDS[kind]
    make(tmp_path / "whole")
    whole = {file.name: file.read_bytes() for file in (tmp_path / "whole").iterdir()}
    draw, ends = random.Random(1), Counter()
    for _ in range(count):
        victim = draw.choice([name for name in whole if whole[name]])
        folder = tmp_path / "damaged"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, content in whole.items():
            (folder / name).write_bytes(damaged(content, draw) if name == victim else content)
        ends[in_process(read, folder)] += 1
    assert set(ends) <= {READ, REFUSED}, ends
    assert len(ends) == 2  # some damage is in what nobody reads, some is found
    assert {entry.name for entry in tmp_path.iterdir()} == {"whole", "damaged"}


def in_process(read: Callable[[Path], object], folder: Path) -> object:
    """Return how a process ends that reads a folder: its status, or its signal."""
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.alarm(SECONDS)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        status = 4
        try:
            read(folder)
            status = READ
        except WeftError:
            status = REFUSED
        finally:
            os._exit(status)
    _, end = os.waitpid(pid, 0)
    return f"signal {os.WTERMSIG(end)}" if os.WIFSIGNALED(end) else os.WEXITSTATUS(end)
