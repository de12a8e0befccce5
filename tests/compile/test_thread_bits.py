"""Products and linear algebra give the same bits at any number of threads, and of BLAS's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SIDES = ("31", "44", "130")  # the last two are beyond what np.linalg is left with


def digests(weft_threads, blas_threads, *sides, **environment):
    """Return the digests that a process with such numbers of threads finds."""
    threads = {"WEFT_NUM_THREADS": str(weft_threads), "OPENBLAS_NUM_THREADS": str(blas_threads)}
    found = subprocess.run(
        [sys.executable, "-m", "tests.compile.thread_lab", *sides],
        env=os.environ | threads | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return json.loads(found.stdout)


def differing(one, other):
    assert one.keys() == other.keys()
    return [name for name in one if one[name] != other[name]]


def test_bits_do_not_depend_on_threads():
    assert differing(digests(1, 1, *SIDES), digests(2, 2, *SIDES)) == []


@pytest.mark.long
@pytest.mark.parametrize("core", ["Haswell", "Sandybridge", "SkylakeX"])
def test_bits_do_not_depend_on_threads_of_other_kernels(core):
    sides = (*SIDES, "300")
    alone = digests(1, 1, *sides, OPENBLAS_CORETYPE=core)
    for threads in ((1, 4), (3, 16)):
        assert differing(alone, digests(*threads, *sides, OPENBLAS_CORETYPE=core)) == []
