"""The code of every target that this processor can execute, not only that of its own.

Which code is made follows from the processor, and for all of a process from WEFT_TARGET. So the
tests of compiled code run once more in a process for each of the others: in an ordinary run one
sample of each operator, with --long all of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from weft.backends.cpu.codegen.target import CHOICES, chosen, describe, host
from weft.core.errors import ArgumentError

ROOT = Path(__file__).parents[2]
ALL = ["tests/backends/cpu/codegen", "tests/compile", "tests/lower"]

pytestmark = pytest.mark.skipif("WEFT_TARGET" in os.environ, reason="a target is chosen already")


def others() -> list[str]:
    """Return the targets that this processor can execute, besides the one it has by itself."""
    features = llvm.get_host_cpu_features()
    machine = describe(host().triple, host().cpu, dict(features), features.flatten())
    found = []
    for name in CHOICES:
        try:
            target = chosen(name, machine, features)
        except ArgumentError:
            continue
        if target.vector_bytes != machine.vector_bytes:
            found.append(name)
    return found


def run_tests(target: str, *arguments: str) -> None:
    """Run tests in a process of another target, which must pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environment["WEFT_TARGET"] = target
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


@pytest.mark.parametrize("target", others())
def test_one_sample_of_each_operator(target: str) -> None:
    run_tests(target, "--few", "tests/compile/test_registry.py", "tests/compile/test_fuzz.py")


@pytest.mark.long
@pytest.mark.parametrize("target", others())
def test_everything(target: str) -> None:
    run_tests(target, *ALL)


@pytest.mark.long
@pytest.mark.parametrize("target", others())
def test_many_random_calls(target: str) -> None:
    run_tests(target, "--long", "tests/compile/test_fuzz.py")
