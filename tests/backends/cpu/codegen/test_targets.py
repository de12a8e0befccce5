"""Code for other machines: it compiles, uses their vectors, and calls no library."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.backends.cpu.codegen.functions import BINARY, FUNCTIONS, UNARY
from tests.backends.cpu.codegen.jit import assembly, machine
from tests.backends.cpu.codegen.minimax import tables
from weft.backends.cpu.codegen import (
    FunctionText,
    ModuleText,
    Target,
    avx2,
    avx512,
    element_of,
    host,
    neon,
    sse2,
    vector_of,
)
from weft.backends.cpu.codegen.mathematics import FUNCTIONS as MATHEMATICS
from weft.backends.cpu.codegen.mathematics import coefficients
from weft.backends.cpu.codegen.target import _NEEDED, CHOICES, KIB, cache_sizes, chosen, describe
from weft.core.errors import ArgumentError
from weft.core.scalar.functions import FUNCTIONS as RECORDS

TARGETS = {
    "avx2": avx2(),
    "avx512": avx512(),
    "avx512 on Windows": avx512("x86_64-pc-windows-msvc"),
    "neon": neon(),
    "neon on macOS": neon("arm64-apple-darwin"),
    "sse2": sse2(),
}
REGISTERS = {
    "avx2": r"%ymm",
    "avx512": r"%zmm",
    "neon": r"v\d+\.(4s|2d)|\.(4s|2d)\s+v\d+",
    "sse2": r"%xmm",
}
LIBRARY_CALL = re.compile(r"^\s*(?:callq?|bl|jmp|b)\s+_?(?!weft|\.?L)([a-z]\w*)", re.MULTILINE)


def all_functions(target: Target, dtype: str) -> str:
    """Return a module that computes every function once, on one vector."""
    module = ModuleText(target)
    type = vector_of(element_of(dtype), target.lanes(dtype))
    for name, write in FUNCTIONS.items():
        f = module.function(f"weft_{name}", ["ptr", "ptr", "ptr"])
        x, y, sink = f.parameters
        operands = [f.load(type, x), f.load(type, y)][: 1 + (name in BINARY)]
        f.store(write(f, *operands), sink)
        f.ret()
    return module.text()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_functions_compile_for_other_machines(name: str, dtype: str) -> None:
    target = TARGETS[name]
    try:
        machine(target)
    except RuntimeError as error:
        pytest.skip(f"LLVM was built without {target.triple}: {error}")
    text = assembly(all_functions(target, dtype), target)
    assert re.search(REGISTERS[name.split(" ", maxsplit=1)[0]], text)
    assert set(LIBRARY_CALL.findall(text)) <= {"chkstk"}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_only_rare_cases_branch(name: str) -> None:
    f = FunctionText(avx2(), "f", ["<8 x float>", "<8 x float>"])
    FUNCTIONS[name](f, *f.parameters[: 1 + (name in BINARY)])
    branches = {"sin", "cos", "tan", "fmod", "mod", "floor_divide"}
    branches |= {"exp", "sigmoid"}  # where e^x is no normal number
    branches |= {"log", "log2", "log10", "log1p", "pow"}  # of what is no normal number above 0
    branches |= {"acosh", "asinh", "atanh"}  # which are made of log1p
    assert (" br " in f.text().replace("\n", " ")) == (name in branches)


def test_mathematics_is_for_floats() -> None:
    f = FunctionText(avx2(), "f", ["i32"])
    with pytest.raises(TypeError, match=r"mathematics is for float and double; got .* type i32"):
        FUNCTIONS["exp"](f, *f.parameters)


def test_every_function_has_a_reference() -> None:
    assert set(MATHEMATICS) <= set(UNARY) | set(BINARY)
    stated = {name for name, record in RECORDS.items() if record.on == "f" and not record.composed}
    assert stated - {"copysign", "div", "reciprocal"} <= set(UNARY) | set(BINARY)


def test_lanes_follow_from_the_width_of_vectors() -> None:
    assert [t.lanes("float32") for t in (avx2(), avx512(), neon(), sse2())] == [8, 16, 4, 4]
    assert avx2().lanes(np.float64) == 4
    assert avx2().lanes(np.int8) == 32


@pytest.mark.parametrize(
    ("features", "width", "fused"),
    [
        ({"avx2": True, "fma": True, "avx512f": True}, 64, True),
        ({"avx2": True, "fma": True}, 32, True),
        ({"avx2": True}, 32, False),
        ({}, 16, False),
    ],
)
def test_features_decide_the_shape(features: dict[str, bool], width: int, fused: bool) -> None:
    target = describe("x86_64-unknown-linux-gnu", "any", features, "")
    assert (target.vector_bytes, target.has_fma) == (width, fused)


def test_the_host_is_described_once() -> None:
    assert host() is host()
    assert host().vector_bytes >= 16


ALL_FEATURES = dict.fromkeys(_NEEDED["avx512"], True)


@pytest.mark.parametrize("name", CHOICES)
def test_a_target_is_chosen_by_name(name: str) -> None:
    machine = describe("x86_64-apple-darwin", "any", ALL_FEATURES, "")
    assert chosen(name, machine, ALL_FEATURES) == CHOICES[name]("x86_64-apple-darwin")


def test_a_target_must_be_known_and_executable() -> None:
    machine = describe("x86_64-unknown-linux-gnu", "old", {}, "")
    with pytest.raises(ArgumentError, match=r"one of sse2, avx2, avx512, or unset.*'avx'"):
        chosen("avx", machine, ALL_FEATURES)
    features = {**ALL_FEATURES, "avx512bw": False}
    with pytest.raises(ArgumentError, match=r"avx512: this processor \(old\) lacks avx512bw;"):
        chosen("avx512", machine, features)
    with pytest.raises(ArgumentError, match=r"code for x86-64, and this machine is aarch64"):
        chosen("sse2", neon(), ALL_FEATURES)


def lines_of_process(target: str) -> str:
    """Return what a process says of its machine that was told a target."""
    script = "from weft.backends.cpu.codegen import host; print(host().cpu, host().vector_bytes)"
    command, environment = [sys.executable, "-c", script], {**os.environ, "WEFT_TARGET": target}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.skipif(host().architecture != "x86_64", reason="needs a processor that runs SSE2")
def test_the_environment_chooses() -> None:
    assert lines_of_process("sse2") == "x86-64 16\n"
    assert "WEFT_TARGET must be one of" in lines_of_process("sse3")


def test_cache_sizes_are_read_where_linux_tells_them(tmp_path: Path) -> None:
    for index, (level, kind, size) in enumerate(
        [
            ("1", "Data", "48K"),
            ("1", "Instruction", "32K"),
            ("2", "Unified", "2048K"),
            ("3", "", ""),
        ]
    ):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(text + "\n")
    (tmp_path / "index9").mkdir()  # a cache that tells nothing
    assert cache_sizes(tmp_path) == {"l1_bytes": 48 * KIB, "l2_bytes": 2048 * KIB}
    assert cache_sizes(tmp_path / "absent") == {}


def test_architectures_have_one_name() -> None:
    assert neon("arm64-apple-darwin").architecture == neon().architecture == "aarch64"


def test_the_coefficients_are_those_of_the_script() -> None:
    made: dict[str, object] = {}
    exec(tables(), made)  # our own text
    names = [name for name in made if name.isupper()]
    assert len(names) > 15
    for name in names:
        assert getattr(coefficients, name) == made[name]
