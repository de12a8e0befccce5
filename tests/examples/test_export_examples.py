"""Exported models, called from C, C++, R and Python by the programs in examples/export."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from tests.exported import EXAMPLES, Model, example, needs
from weft.nn import models

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libraries are for Linux")

NAMES = ["mlp", "lstm", "gpt", "train", pytest.param("resnet18", marks=pytest.mark.long)]
REST = ["resnet18", "lstm", "gpt", "train"]
SUPERUSER = hasattr(os, "geteuid") and os.geteuid() == 0
C_LIBRARY = ["ld-linux-x86-64", "libc", "libdl", "libpthread"]
# C++ compiles for seconds, each model anew: the library is linked with the program there.
LINKED = ["train", *(pytest.param(n, marks=pytest.mark.long) for n in ("mlp", "lstm", "gpt"))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def made(folder: Path, name: str) -> str:
    """Return the path of a model's library, which is exported once."""
    path = folder / f"{name}.so"
    if not path.exists():
        example("make_models").write_model(folder, name)
    return str(path)


def run(folder: Path, *command: str) -> str:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def compiled(folder: Path, source: str, header: str, *options: str) -> str:
    """Return the path of a program of the examples, compiled without a warning."""
    program = str(folder / f"{source}.{header}")
    compiler = "c++" if source.endswith("cpp") else "cc"
    strict = ["-Wall", "-Wextra", "-Werror", "-O1", "-I", str(folder), "-include", f"{header}.h"]
    run(folder, compiler, *strict, str(EXAMPLES / source), *options, "-o", program)
    return program


@needs("cc")
@pytest.mark.parametrize("name", NAMES)
def test_c(folder, name):
    library = made(folder, name)
    program = compiled(folder, "call_from_c.c", name, "-ldl")
    assert "equal" in run(folder, program, library, f"{name}.bin")


def jail(folder: Path, program: str, *files: str) -> Path:
    """Return a folder with a program, the libraries of C that it needs, and some files."""
    root = folder / f"{Path(program).name}.jail"
    needed = [word for word in run(folder, "ldd", program).split() if word.startswith("/")]
    for file in (program, *needed, *files):
        target = root / (file.lstrip("/") if file in needed else Path(file).name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    return root


@needs("cc", "ldd", "chroot")
@pytest.mark.skipif(not SUPERUSER, reason="the superuser alone may change the root")
@pytest.mark.parametrize("name", ["mlp", *(pytest.param(n, marks=pytest.mark.long) for n in REST)])
def test_where_there_is_nothing_but_c(folder, name):
    library = made(folder, name)
    program = compiled(folder, "call_from_c.c", name, "-ldl")
    root = jail(folder, program, library, str(folder / f"{name}.bin"))
    assert {file.name.partition(".")[0] for file in root.rglob("*.so*")} <= {*C_LIBRARY, name}
    called = (f"/{Path(program).name}", f"/{name}.so", f"/{name}.bin")
    assert "equal" in run(folder, "chroot", str(root), *called)


@needs("c++")
@pytest.mark.parametrize("name", [*LINKED, NAMES[-1]])
def test_cpp(folder, name):
    library = made(folder, name)
    program = compiled(folder, "call_from_cpp.cpp", name, library, "-pthread")
    assert "equal" in run(folder, program, f"{name}.bin")


@needs("R", "cc")
@pytest.mark.parametrize("name", NAMES)
def test_r(folder, name):
    library = made(folder, name)
    shim = folder / "call_from_r.so"
    if not shim.exists():
        (folder / "call_from_r.c").write_text((EXAMPLES / "call_from_r.c").read_text())
        flags = f"PKG_CPPFLAGS=-I. -include {name}.h"
        run(folder, "env", flags, "R", "CMD", "SHLIB", "call_from_r.c", "-o", str(shim))
    script = str(EXAMPLES / "call_from_r.R")
    assert "equal" in run(folder, "Rscript", script, str(shim), library, f"{name}.bin")


@pytest.mark.parametrize("name", NAMES)
def test_python_without_weft(folder, name):
    script = str(EXAMPLES / "call_from_python.py")
    assert "equal" in run(folder, sys.executable, script, made(folder, name), f"{name}.bin")


def test_the_cache_of_the_decoder_is_what_the_whole_network_sees(folder):
    wf.manual_seed(5)
    net = models.GPT(11, block_size=8, n_layer=2, n_head=2, n_embd=8).eval()
    wf.compile(example("make_models").Decoder(net).eval(), np.array([0])).export(folder / "d.so")
    model, tokens = Model(str(folder / "d.so")), np.array([[3, 1, 4, 1, 5, 9, 2, 6]])
    whole = net(wf.asarray(tokens)).detach().numpy()[0]
    for token, expected in zip(tokens[0], whole, strict=True):
        (scores,) = model(np.array([token]))
        np.testing.assert_allclose(scores[0], expected, rtol=1e-4, atol=1e-6)
