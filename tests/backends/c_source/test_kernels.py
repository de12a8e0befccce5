"""The text of kernels, which needs no device: what is written, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.backends.c_source.dialect import cuda, opencl
from weft.backends.c_source.function import CFunction, literal
from weft.backends.c_source.kernels import write_kernel
from weft.backends.c_source.launch import Room, program_source, without_unused
from weft.backends.cpu.codegen.values import IRValue
from weft.lower.kernels import GemmKernel, RowKernel

DIALECTS = {
    "processors": opencl(serial=True),
    "wide vectors": opencl(serial=True, vector_bytes=64),
    "groups": opencl(serial=False),
    "cuda": cuda(),
}
each_dialect = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)


def program_of(build, *arrays):
    """Return the kernel program of a function of tensors."""
    with wf.Graph() as graph:
        given = [wf.placeholder(a.shape, a.dtype) for a in arrays]
        fetches = build(*given)
    feeds = dict(zip(given, arrays, strict=True))
    return wf.Session(graph, device="reference").executable(fetches, feeds).program


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def network(x, w, i):
    """Return results of all kinds of kernels over loops."""
    h = wf.relu(x @ w + 1)
    rows = wf.softmax(h, axis=-1)
    table = wf.gradients(wf.take(h, i, axis=0).sum(), [h])[0]
    columns = wf.exp(x).reshape(4, 16, 40).sum(axis=1)
    return [rows, h.sum(axis=0), columns, wf.cumsum(h, axis=1), table]


@each_dialect
def test_every_kind_has_a_text(dialect):
    program = program_of(network, zeros(64, 40), zeros(40, 48), zeros(9, dtype=np.int64))
    kinds = {kernel.kind for kernel in program.kernels}
    assert kinds >= {"row", "column", "gemm", "scan", "scatter"}
    launches = [launch for k in program.kernels for launch in write_kernel(k, dialect)]
    source = program_source(dialect, launches)
    for launch in launches:
        assert source.count(f"KERNEL void {launch.name}(") == 1
        assert all(size >= 1 for size in launch.groups)


@each_dialect
def test_equal_kernels_are_one_function(dialect):
    program = program_of(lambda x, y: [wf.exp(x), wf.exp(y)], zeros(3, 4), zeros(3, 4))
    names = {launch.name for k in program.kernels for launch in write_kernel(k, dialect)}
    assert len(program.kernels) == 2
    assert len(names) == 1


def test_processors_have_no_barriers_and_groups_have():
    program = program_of(lambda x: [wf.softmax(x, axis=-1)], zeros(8, 300))
    (kernel,) = program.kernels
    assert isinstance(kernel, RowKernel)
    (serial,) = write_kernel(kernel, DIALECTS["processors"])
    (grouped,) = write_kernel(kernel, DIALECTS["groups"])
    assert "BARRIER" not in serial.text
    assert "BARRIER" in grouped.text
    assert grouped.items == DIALECTS["groups"].group


def test_products_of_processors_pack_into_room():
    program = program_of(lambda x, w: [x @ w], zeros(64, 40), zeros(40, 48))
    (kernel,) = program.kernels
    assert isinstance(kernel, GemmKernel)
    pack, tiles = write_kernel(kernel, DIALECTS["processors"])
    (room,) = (a for a in pack.arguments if isinstance(a, Room))
    assert room in tiles.arguments
    assert room.size == 40 * 48
    assert len(write_kernel(kernel, DIALECTS["groups"])) == 1


@pytest.mark.parametrize("shapes", [((70_000, 2, 2), (70_000, 2, 3)), ((1_200_000, 2), (2, 3))])
def test_long_products_have_no_more_groups_than_cuda_takes(shapes):
    program = program_of(lambda x, y: [x @ y], *(zeros(*shape) for shape in shapes))
    launches = [launch for k in program.kernels for launch in write_kernel(k, cuda())]
    assert all(groups <= 65_535 for launch in launches for groups in launch.groups[1:])


@each_dialect
def test_nothing_is_launched_for_nothing(dialect):
    program = program_of(lambda x: [wf.exp(x)], zeros(0, 4))
    assert [launch for k in program.kernels for launch in write_kernel(k, dialect)] == []


def test_double_precision_is_told_of():
    single = program_of(lambda x: [wf.exp(x)], zeros(4))
    double = program_of(lambda x: [wf.exp(x)], zeros(4, dtype=np.float64))
    found = [
        launch.needs_double
        for program in (single, double)
        for kernel in program.kernels
        for launch in write_kernel(kernel, DIALECTS["cuda"])
    ]
    assert found == [False, True]


def test_literals_keep_every_bit():
    assert literal("float", 0.1) == f"{float(np.float32(0.1))!r}f"
    assert literal("double", -0.5) == "(-0.5)"
    assert literal("float", float("inf")) == "F32(0x7f800000)"
    assert literal("i8", -1) == "(u8)0xff"
    assert literal("i1", True) == "1"


@pytest.mark.parametrize(("name", "better"), [("maximum", ">"), ("minimum", "<")])
def test_an_extreme_is_one_choice(name, better):
    """LLVM's time would double with each element of a chain of choices in choices."""
    f = CFunction()
    getattr(f, name)(IRValue("a", "float"), IRValue("b", "float"))
    wanted, found = (line.split(" = ")[1] for line in f.lines)
    assert wanted == f"(a {better} b) | (a != a);"
    assert found.endswith("? a : b;")


def test_comparisons_of_nan_are_as_in_machine_code():
    f = CFunction()
    a, b = f.constant("float", 1.0), f.constant("float", 2.0)
    for predicate in ("olt", "ult", "one", "ueq", "uno"):
        f.fcmp(predicate, a, b)
    texts = [line.split(" = ")[1] for line in f.lines]
    assert texts == [
        "1.0f < 2.0f;",
        "!(1.0f >= 2.0f);",
        "((1.0f < 2.0f) | (1.0f > 2.0f));",
        "!((1.0f < 2.0f) | (1.0f > 2.0f));",
        "(1.0f != 1.0f) | (2.0f != 2.0f);",
    ]


@pytest.mark.parametrize(
    ("sizes", "lines"),
    [
        ((1, 7), []),
        ((8, 20, 63, 127, 255), ["APART_SHORT"]),
        ((32, 64, 100, 1000, 1024), ["APART"]),
    ],
)
def test_few_turns_of_a_loop_are_left_over_from_its_vectors(sizes, lines):
    for turns in sizes:
        assert asked_of_a_loop(turns, []) == lines, turns


def asked_of_a_loop(turns, types, vector_bytes=32):
    """Return what is asked of compilers for a loop with values of some types."""
    f = CFunction()
    f.vector_bytes = vector_bytes
    with f.vectors("APART", turns, "for (;;)"):
        for type in types:
            f.define(type, "0")
    return [line.strip() for line in f.lines[: -2 - len(types)]]


@pytest.mark.parametrize(
    ("turns", "types", "lines"),
    [
        (64, ["float"], ["LANES(16)", "APART"]),
        (64, ["float", "i32", "i1"], ["LANES(16)", "APART"]),
        (64, ["float", "double"], ["LANES(8)", "APART"]),
        (64, ["float", "i64"], ["LANES(8)", "APART"]),
        (20, ["float"], ["LANES(16)", "APART_SHORT"]),
        (15, ["float"], ["APART_SHORT"]),
        (15, ["double"], ["LANES(8)", "APART_SHORT"]),
        (7, ["double"], []),
        (64, ["i8"], ["APART"]),
        (64, [], ["APART"]),
    ],
)
def test_wide_vectors_are_asked_for(turns, types, lines):
    """Of values of 4 or 8 bytes, where a processor has vectors that compilers do not make."""
    assert asked_of_a_loop(turns, types, vector_bytes=64) == lines
    assert not any("LANES" in line for line in asked_of_a_loop(turns, types))


def test_kernels_with_wide_vectors_say_so():
    """Else compilers halve them again."""
    assert "min_vector_width(512)" in DIALECTS["wide vectors"].prelude
    assert "min_vector_width" not in DIALECTS["processors"].prelude


def test_what_nobody_needs_is_left_out():
    lines = ["  const f32 v0 = 1;", "  const f32 v1 = v0;", "  const f32 v2 = v0;", "  b0[0] = v2;"]
    assert without_unused(lines) == [lines[0], lines[2], lines[3]]
