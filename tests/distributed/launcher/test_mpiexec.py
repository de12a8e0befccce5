"""The command that starts ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.distributed.launcher import mpiexec
from weft.distributed.launcher.mpiexec import MpiFlavour, Placement, command_line, place

OPEN_MPI, MPICH = MpiFlavour("Open MPI", (5, 0, 11)), MpiFlavour("MPICH", (4, 2))


@pytest.mark.parametrize(
    ("ranks", "hosts", "found"),
    [
        (4, None, ()),
        (4, "a,b", (("a", 2), ("b", 2))),
        (5, "a, b", (("a", 3), ("b", 2))),
        (6, "a:1,b,c:3", (("a", 1), ("b", 2), ("c", 3))),
        (2, "[fe80::1]:2", (("[fe80::1]", 2),)),
    ],
)
def test_ranks_are_shared_among_hosts(ranks, hosts, found):
    assert place(ranks, hosts) == Placement(ranks, found)


@pytest.mark.parametrize(
    ("ranks", "hosts", "message"),
    [
        (0, None, "at least one rank. Received: 0"),
        (2, "a,,b", "names like a,b"),
        (2, "a;rm", "names like a,b"),
        (2, "a:0", "names like a,b"),
        (2, "a:1,b:3", "which take 4"),
        (4, "a:1,b:1", "which take 2"),
        (1, "a,b", "2 hosts for 1 ranks"),
    ],
)
def test_hosts_that_cannot_be(ranks, hosts, message):
    with pytest.raises(ValueError, match=message):
        place(ranks, hosts)


def test_each_mpi_is_asked_in_its_own_way():
    where, given = place(3, "a,b:1"), {"X": "1"}
    said = command_line(Path("mpiexec"), OPEN_MPI, where, given, survive=True, agent="rsh")
    for pair in (("-n", "3"), ("--host", "a:2,b:1"), ("-x", "X"), ("--with-ft", "ulfm")):
        at = said.index(pair[0])
        assert said[at + 1] == pair[1]
    assert said[said.index("plm_ssh_agent") + 1] == "rsh"
    said = command_line(Path("mpiexec"), MPICH, where, given, agent="rsh", extra=["-v"])
    assert " ".join(said) == "mpiexec -n 3 -launcher-exec rsh -hosts a:2,b:1 -genvlist X -v"


def test_who_cannot_survive_says_so():
    with pytest.raises(ValueError, match=r"Open MPI from 5\.0 on; .* is MPICH 4\.2"):
        command_line(Path("mpiexec"), MPICH, place(2, None), {}, survive=True)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("mpiexec (Open MPI) 5.0.11\n\nReport bugs to", OPEN_MPI),
        ("mpirun (OpenRTE) 4.1.4", MpiFlavour("Open MPI", (4, 1, 4))),
        ("HYDRA build details:\n    Version:          4.2\n", MPICH),
    ],
)
def test_flavours(said, found, tmp_path):
    assert mpiexec.flavour_of(_saying(tmp_path, said)) == found


def test_an_mpi_that_nobody_knows(tmp_path):
    with pytest.raises(ValueError, match=r"says 'mine 1\.0.*under any launcher"):
        mpiexec.flavour_of(_saying(tmp_path, "mine 1.0"))
    with pytest.raises(ImportError, match="cannot be run"):
        mpiexec.flavour_of(tmp_path / "none")


def _saying(folder, text):
    program = folder / "mpiexec"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
    program.chmod(0o755)
    return program


def test_a_missing_mpiexec_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setattr(mpiexec.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImportError, match=r'pip install "weft\[mpi\]"'):
        mpiexec.find_mpiexec()
