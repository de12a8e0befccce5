"""Two machines: namespaces with networks, host names and disks of their own, joined by a cable."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
ADDRESSES = ("10.211.7.1", "10.211.7.2")

SCRIPT = """
import socket, sys, warnings
from pathlib import Path
import weft as wf
from weft.distributed import load_checkpoint, save_checkpoint

wf.distributed.init()
rank = wf.distributed.rank()
disk = Path(sys.argv[1])
(disk / f"of-{rank}").touch()
assert [path.name for path in disk.iterdir()] == [f"of-{rank}"], "a disk of its own"
total = float(wf.distributed.all_reduce(wf.tensor([1.0 + rank]))[0])
warnings.simplefilter("ignore")
save_checkpoint(disk / "saved", {"w": wf.arange(50_000.0), "step": 3})
found = load_checkpoint(disk / "saved")
assert (disk / "saved").exists() == (rank == 0)
print(socket.gethostname(), total, found["step"], float(found["w"][-1]), flush=True)
"""

AGENT = """#!/bin/sh
shift
exec ip netns exec {other} unshare --mount --uts sh -c \
'hostname {other}; mount -t tmpfs tmpfs {disk}; exec sh -c "$0"' "$*"
"""


@pytest.fixture
def machines():
    """Make two namespaces that are connected; skip where that is not allowed."""
    if os.name != "posix" or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("needs root, to make namespaces")
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("needs ip and unshare")
    names = [f"weft{os.getpid()}{letter}" for letter in "ab"]
    try:
        for name in names:
            ip("netns", "add", name)
        ends = [f"wf{os.getpid()}{letter}"[-14:] for letter in "ab"]
        ip("link", "add", ends[0], "netns", names[0], "type", "veth", "peer", "name", ends[1],
           "netns", names[1])  # fmt: skip
        for name, end, address in zip(names, ends, ADDRESSES, strict=True):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", end)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", end, "up")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"namespaces are not allowed here: {error.stderr}")
    else:
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@pytest.mark.long
def test_ranks_on_two_machines_without_a_shared_disk(machines, tmp_path):
    pytest.importorskip("mpi4py")
    here, other = machines
    disk = tmp_path / "disk"
    disk.mkdir()
    agent = tmp_path / "agent"
    agent.write_text(AGENT.format(other=other, disk=disk))
    agent.chmod(0o755)
    (tmp_path / "script.py").write_text(SCRIPT)
    launch = [sys.executable, "-m", "weft.cli", "launch", "-n", "2"]
    launch += ["--hosts", ",".join(f"{a}:1" for a in ADDRESSES), "--address", ADDRESSES[0]]
    launch += ["--agent", str(agent), "--logs", str(tmp_path / "logs"), "script.py", str(disk)]
    inside = f"hostname {here}; mount -t tmpfs tmpfs {disk}; exec {' '.join(launch)}"
    done = subprocess.run(
        ["ip", "netns", "exec", here, "unshare", "--mount", "--uts", "sh", "-c", inside],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{here} 3.0 3 49999.0\n"
    assert f"{other} 3.0 3 49999.0" in (tmp_path / "logs" / "rank-1.log").read_text()
