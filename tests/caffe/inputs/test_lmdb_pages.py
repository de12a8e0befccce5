"""Damaged databases and HDF5 files: an error of Weft's, or what is left; never the process's end.

`damage_lab.py` reads each file in a process of its own, with bounds of memory and time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

from weft.caffe.inputs.databases import open_database
from weft.caffe.inputs.lmdb_pages import Pages
from weft.caffe.inputs.writing import write_database
from weft.data import DataFileError

from .damage_lab import records


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


@pytest.mark.parametrize("kind", ["lmdb", "leveldb", "hdf5"])
def test_damage_ends_no_process(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> None:
    count = 10_000 if request.config.getoption("--long") else 60
    lab = Path(__file__).with_name("damage_lab.py")
    result = subprocess.run(
        [sys.executable, str(lab), kind, str(count), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    ends = json.loads(result.stdout)
    assert ends.keys() == {"read", "refused"}, ends  # some damage is in what nobody reads
    assert {entry.name for entry in tmp_path.iterdir()} == {"whole", "damaged"}
