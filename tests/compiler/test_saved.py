"""Compiled programs in a file: used by another process, and never what is not its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import weft as wf
from weft.backends.store import CacheWarning
from weft.core.errors import GraphError

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
    import sys
    import numpy as np, weft as wf
    from weft.backends.cpu.runtime import objects

    compiled = []
    real = objects.compile_module
    objects.compile_module = lambda text, target: compiled.append(1) or real(text, target)
    weight = wf.tensor([1.0, 2.0], requires_grad=True)
    optimizer = wf.optim.Adam([weight], lr=0.5)

    @wf.jit
    def step(x):
        optimizer.zero_grad()
        loss = ((weight - x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    def ahead(x):
        return wf.exp(x).sum()

    x = wf.tensor([3.0, 5.0])
    if sys.argv[1] == "save":
        print(step(x).item(), weight.tolist())
        step.save("step.weft")
        f = wf.compile(ahead, x)
        f.save("ahead.weft")
    else:
        assert step.load("step.weft")
        print(step(x).item(), weight.tolist())
        f = wf.compile(ahead, x, saved="ahead.weft")
    print(f(x).item(), len(compiled) > 0)
"""


def process(tmp_path, act, cache):
    """Run the program in a process with a cache of its own, but the same key."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "WEFT_CACHE_DIR": str(tmp_path / cache),
        "WEFT_CACHE_KEY": str(tmp_path / "key"),
    }
    done = subprocess.run(
        [sys.executable, "-c", dedent(PROGRAM), act],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_another_process_compiles_nothing(tmp_path):
    saved = process(tmp_path, "save", "one")
    loaded = process(tmp_path, "load", "two")
    assert loaded[0] == saved[0]
    assert (saved[1].split()[1], loaded[1].split()[1]) == ("True", "False")
    assert loaded[1].split()[0] == saved[1].split()[0]


@pytest.fixture
def file(tmp_path):
    """Return a file of a compiled step, and the step."""
    step = wf.jit(lambda x: wf.sin(x) * 2)
    step(wf.ones(3))
    step.save(tmp_path / "step.weft")
    return tmp_path / "step.weft"


def refused(path, match):
    step = wf.jit(lambda x: wf.sin(x) * 2)
    with pytest.warns(CacheWarning, match=match):
        assert not step.load(path)
    np.testing.assert_allclose(step(wf.ones(3)).numpy(), np.sin(np.ones(3)) * 2, rtol=1e-6)


def test_what_is_damaged_is_not_used(file):
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    refused(file, "damaged")
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    refused(file, "damaged")
    file.write_bytes(b"something else")
    refused(file, "no file of compiled programs")
    file.write_bytes(b"")
    refused(file, "no file of compiled programs")


def test_what_was_made_for_something_else_is_not_used(file):
    content = file.read_bytes()
    version = b'"Weft": "' + wf.__version__.encode()
    assert version in content
    file.write_bytes(content.replace(version, b'"Weft": "0.0.1', 1))
    refused(file, rf"made for something else: Weft 0.0.1, here {wf.__version__}")
    threads = wf.get_num_threads()
    file.write_bytes(content)
    try:
        wf.set_num_threads(threads + 1)
        refused(file, f"threads {threads}, here {threads + 1}")
    finally:
        wf.set_num_threads(threads)


def test_what_another_user_wrote_is_not_used(file, monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_CACHE_KEY", str(tmp_path / "another"))
    refused(file, "not written by this user")


def test_another_program_is_compiled_as_ever(file):
    step = wf.jit(lambda x: wf.cos(x) * 3)
    assert step.load(file)
    np.testing.assert_allclose(step(wf.ones(3)).numpy(), np.cos(np.ones(3)) * 3, rtol=1e-6)


def test_there_must_be_something_to_save(tmp_path):
    with pytest.raises(GraphError, match="call it first"):
        wf.jit(lambda x: x).save(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError):
        wf.jit(lambda x: x).load(tmp_path / "nothing")
