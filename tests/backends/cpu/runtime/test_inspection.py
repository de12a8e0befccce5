"""Executables looked at from inside: kernels, code, and profiles."""

import json

import numpy as np
import pytest

import weft as wf
from weft.backends.cpu.runtime.timing import Timing
from weft.compiler.stages import compile_program
from weft.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    IndexOutOfRange,
    ShapeError,
)
from weft.graph.run import Program


def compiled(graph, fetches, feeds, targets=()):
    values = [x.value for x in feeds]
    program = Program(graph, [y.value for y in fetches], values, [t.value for t in targets])
    return compile_program(program, {x.value: array.shape for x, array in feeds.items()})


@pytest.fixture(scope="module")
def mixed():
    """Compile a program of every kind of kernel: products, rows, columns, and a sort in Python."""
    with wf.Graph() as graph:
        x = wf.placeholder((300, 200), wf.float32, name="x")
        y = wf.placeholder((200, 70), wf.float32, name="y")
        product = wf.tanh(x @ y)
        ordered = wf.sort(product, axis=0)
        total = ordered.sum(axis=0)
        soft = wf.nn.functional.softmax(ordered, axis=-1)
    rng = np.random.default_rng(0)
    feeds = {x: rng.normal(size=(300, 200)).astype("f"), y: rng.normal(size=(200, 70)).astype("f")}
    return compiled(graph, [total, soft], feeds), list(feeds.values())


def test_kernels_are_listed_with_their_origin(mixed):
    executable, _ = mixed
    kernels = executable.kernels
    assert [k.number for k in kernels] == list(range(len(kernels)))
    assert {k.kind for k in kernels} >= {"gemm", "row", "library"}
    (gemm,) = [k for k in kernels if k.kind == "gemm"]
    assert gemm.shape == (300, 70, 200)
    assert gemm.ops[0] == "matmul"
    assert gemm.where[0].startswith("test_inspection.py:")
    assert gemm.flops >= 2 * 300 * 200 * 70
    assert gemm.bytes == 4 * (300 * 200 + 200 * 70 + 300 * 70)
    text = repr(kernels)
    lines = text.splitlines()
    assert len(lines) == len(kernels) + 1
    assert all(k.name in line for k, line in zip(kernels, lines[1:], strict=True))


def test_an_executable_says_what_it_is(mixed):
    executable, _ = mixed
    assert "1 gemm" in repr(executable)
    assert "1 library" in repr(executable)
    assert executable.stats()["library"] == [k.ops[0] for k in executable.kernels if not k.function]


def test_code_is_shown(mixed):
    executable, _ = mixed
    gemm = next(k for k in executable.kernels if k.kind == "gemm")
    assert f"define void @{gemm.function}(" in executable.llvm_ir(gemm)
    for named in (gemm, gemm.number, gemm.name, gemm.function):
        assert executable.llvm_ir(named) == executable.llvm_ir(gemm)
    assert gemm.function in executable.asm(gemm)
    assert "define void @run_0(" in executable.llvm_ir()
    assert "run_0" in executable.asm()


@pytest.mark.parametrize("wanted", [99, -1, "nothing"])
def test_unknown_kernels_are_an_error(mixed, wanted):
    with pytest.raises(ArgumentError, match=f"no kernel {wanted!r}; there are"):
        mixed[0].llvm_ir(wanted)


@pytest.mark.parametrize("wanted", [1.5, True, [0]])
def test_kernels_are_named_by_number_or_name(mixed, wanted):
    with pytest.raises(ArgumentTypeError, match=f"Received: {type(wanted).__name__}"):
        mixed[0].asm(wanted)


def test_library_kernels_have_no_code(mixed):
    library = next(k for k in mixed[0].kernels if k.kind == "library")
    with pytest.raises(ArgumentError, match="from Python"):
        mixed[0].llvm_ir(library)


def test_profile_holds_every_kernel(mixed):
    executable, feeds = mixed
    profile = executable.profile(feeds, runs=3)
    assert [p.kernel for p in profile.kernels] == list(executable.kernels)
    for found in profile.kernels:
        assert found.calls == 3
        assert 0 < found.minimum <= found.mean
        assert found.bytes_per_second > 0
    assert sum(p.share for p in profile.kernels) == pytest.approx(1)
    assert sum(p.minimum for p in profile.kernels) < max(r.end - r.begin for r in profile.runs)


def test_profile_as_a_table(mixed):
    executable, feeds = mixed
    profile = executable.profile(feeds, runs=2)
    head, *rows, summary = str(profile).splitlines()
    assert head.split()[:4] == ["#", "kernel", "kind", "shape"]
    assert [int(row.split()[0]) for row in rows] == list(range(len(executable.kernels)))
    assert f"{len(rows)} kernels, 2 runs" in summary
    slowest = max(profile.kernels, key=lambda found: found.minimum).kernel
    assert profile.table("time").splitlines()[1].split()[0] == str(slowest.number)
    with pytest.raises(ArgumentError, match="sort must be one of order, time"):
        profile.table("name")


def test_profile_as_a_trace(mixed, tmp_path):
    executable, feeds = mixed
    executable.profile(feeds, runs=2).save_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    threads = {e["tid"] for e in events if e["ph"] == "M"}
    timed = [e for e in events if e["ph"] == "X"]
    assert {e["tid"] for e in timed} <= threads
    (run,) = [e for e in timed if e["name"] == "run"]
    for event in timed:
        assert run["ts"] - 1 <= event["ts"]
        assert event["ts"] + event["dur"] <= run["ts"] + run["dur"] + 1
    wholes = [e for e in timed if e["cat"] not in ("run", "chunk")]
    assert [e["args"]["kernel"] for e in wholes] == [k.number for k in executable.kernels]
    assert all(e["args"]["where"] for e in wholes)
    chunks = [e for e in timed if e["cat"] == "chunk"]
    assert len(chunks) == sum(k.chunks for k in executable.kernels if k.chunks > 1)


def test_chunks_stand_on_the_rows_of_their_threads():
    before = wf.get_num_threads()
    wf.set_num_threads(2)
    try:
        with wf.Graph() as graph:
            x = wf.placeholder((1000, 1000), wf.float32)
            y = wf.exp(wf.sin(x))
        feed = np.ones((1000, 1000), np.float32)
        executable = compiled(graph, [y], {x: feed})
        profile = executable.profile([feed], runs=20)
    finally:
        wf.set_num_threads(before)
    (spans,) = (run.kernels for run in profile.runs[-1:])
    assert len(spans[0].chunks) == executable.kernels[0].chunks > 1
    for run in profile.runs:
        (found,) = run.kernels
        for chunk in found.chunks:
            assert chunk.thread in (0, 1)
            assert found.whole.begin <= chunk.begin <= chunk.end <= found.whole.end


def test_profiles_change_nothing():
    total = wf.tensor(np.arange(5.0))
    generator = wf.nn.Dropout(0.5)
    with wf.Graph() as graph:
        x = wf.placeholder((5,), wf.float64)
        update = total.assign(total + generator(x))
    feed = np.ones(5)
    session = wf.Session(graph, compiled=True)
    session.run(update, {x: feed})
    executable = session.executable(update, {x: feed})
    held, state = total.numpy().copy(), wf.get_rng_state()
    executable.profile([feed], runs=5)
    np.testing.assert_array_equal(total.numpy(), held)
    np.testing.assert_equal(wf.get_rng_state(), state)
    assert executable.timing is None


def test_feeds_of_profiles_are_checked():
    with wf.Graph() as graph:
        x = wf.placeholder((3, 4), wf.float32, name="x")
        y = wf.placeholder((3,), wf.int64, name="y")
        loss = wf.nn.functional.cross_entropy(x, y)
    good = np.zeros((3, 4), np.float32), np.zeros(3, np.int64)
    executable = compiled(graph, [loss], dict(zip((x, y), good, strict=True)))
    with pytest.raises(ArgumentError, match=r"expected 2 feeds \(x, y\). Received: 1"):
        executable.profile(good[:1])
    with pytest.raises(ShapeError, match=r"x must be fed with float32\[3, 4\]"):
        executable.profile([good[0][:2], good[1]])
    with pytest.raises(DTypeError, match="y must be fed"):
        executable.profile([good[0], good[1].astype(np.float32)])
    with pytest.raises(IndexOutOfRange, match="out of range"):
        executable.profile([good[0], good[1] + 9])
    with pytest.raises(ArgumentError, match=r"at least 1. Received: 0"):
        executable.profile(good, runs=0)


def test_feeds_of_profiles_may_have_any_layout(mixed):
    executable, (x, y) = mixed
    profile = executable.profile([np.asfortranarray(x), np.repeat(y, 2, axis=1)[:, ::2]], runs=1)
    assert len(profile.kernels) == len(executable.kernels)


def test_program_without_kernels():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32)
        y = x.reshape(3, 1)
    executable = compiled(graph, [y], {x: np.zeros(3, np.float32)})
    profile = executable.profile([np.zeros(3, np.float32)], runs=1)
    assert profile.kernels == []
    assert "0 kernels" in str(profile)
    assert "no kernels" in repr(executable)


def test_program_of_library_kernels_only():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32)
        y = wf.sort(x)
    feed = np.zeros(3, np.float32)
    profile = compiled(graph, [y], {x: feed}).profile([feed], runs=2)
    assert {p.kernel.kind for p in profile.kernels} == {"library"}


def test_normal_runs_contain_no_clock(mixed):
    executable, feeds = mixed
    executable.profile(feeds, runs=1)
    assert "clock" not in executable.llvm_ir()
    assert isinstance(executable._timed_copy().timing, Timing)


def test_a_program_that_is_lent_its_memory_is_profiled_in_memory_of_its_own():
    with wf.Graph() as graph:
        x = wf.placeholder((500, 400), wf.float32)
        y = wf.tanh(x).sum(axis=0) * 2
    program = Program(graph, [y.value], [x.value], [])
    executable = compile_program(program, {x.value: (500, 400)}, own_arena=False)
    profile = executable.profile([np.ones((500, 400), "f")], runs=2)
    assert len(profile.kernels) == len(executable.kernels)
