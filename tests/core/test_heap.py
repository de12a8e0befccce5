"""Memory that NumPy frees stays with the process once there are large tensors."""

import os
import platform
import subprocess
import sys
from textwrap import dedent

import pytest

from weft.core import heap

FAULTS = """
    import resource
    import numpy as np
    import weft as wf

    wf.zeros((1 << 16,))

    def round_of_large_arrays():
        arrays = [np.ones(1 << 17, np.float32) for _ in range(100)]
        del arrays

    round_of_large_arrays()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(3):
        round_of_large_arrays()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
PAGES = 3 * 100 * (1 << 17) * 4 // 4096  # that the rounds touch


def environment(**settings):
    names = heap._SETTINGS_OF_USERS
    return {k: v for k, v in os.environ.items() if k not in names} | settings


def faults(**settings):
    command = [sys.executable, "-c", dedent(FAULTS)]
    result = subprocess.run(
        command, env=environment(**settings), capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return int(result.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left alone")
def test_freed_pages_are_used_again():
    assert faults() < PAGES / 10
    assert faults(WEFT_POOL_MB="0") > PAGES / 2


RESIDENT = """
    from pathlib import Path
    import numpy as np
    import weft as wf

    wf.zeros((1 << 16,))
    arrays = [np.ones(1 << 20, np.float32) for _ in range(20)]
    arrays = arrays[-1:]  # the last one keeps the heap from shrinking
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in x)
    high = next(x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x)
    print((int(high.split()[1]) - int(line.split()[1])) // 1024)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left alone")
def test_freed_arrays_go_back_where_nothing_is_kept(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "FAULTS", RESIDENT)
    assert faults(WEFT_POOL_MB="0") > 60  # of 76 MiB
    assert faults() < 20


@pytest.mark.parametrize("name", heap._SETTINGS_OF_USERS)
def test_settings_of_the_user_stand(name, monkeypatch):
    monkeypatch.setenv(name, "1000000")
    assert not heap.keep_freed_memory()
    monkeypatch.setenv("WEFT_POOL_MB", "0")
    assert not heap.give_back_freed_memory()


def test_nothing_is_kept_where_nothing_may_be(monkeypatch):
    monkeypatch.setenv("WEFT_POOL_MB", "0")
    assert not heap.keep_freed_memory()


def test_limit_is_in_megabytes(monkeypatch):
    monkeypatch.setenv("WEFT_POOL_MB", " 8 ")
    assert heap.kept_memory_limit() == 8 * 2**20


def test_limit_must_be_a_number(monkeypatch):
    monkeypatch.setenv("WEFT_POOL_MB", "much")
    with pytest.warns(UserWarning, match="WEFT_POOL_MB .* Received: 'much'"):
        assert heap.kept_memory_limit() == 512 * 2**20
