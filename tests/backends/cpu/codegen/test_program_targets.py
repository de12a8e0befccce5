"""Whole programs, with every kind of kernel, as machine code for machines that are not here."""

import re

import pytest

import weft as wf
from tests.backends.cpu.codegen.test_targets import LIBRARY_CALL, REGISTERS, TARGETS
from weft.backends.cpu.codegen.profile import write_profiled
from weft.backends.cpu.codegen.program import write_program
from weft.backends.cpu.device import cpu_device
from weft.backends.cpu.runtime.linking import CodegenError, assembly, compile_module
from weft.backends.cpu.runtime.native.clock import clock_text
from weft.compiler.stages import optimize_static
from weft.graph.run import Program
from weft.lower.kernels import CallKernel
from weft.lower.lowering import lower
from weft.passes.specialize import specialize
from weft.plan.memory import with_memory
from weft.plan.threads import with_schedule

MAGIC = {"linux": b"\x7fELF", "darwin": b"\xcf\xfa\xed\xfe"}
OUTSIDE = {"weft_parallel_for", "memcpy", "memset", "memmove", "chkstk"}


def training_step(dtype):
    """Return a program of products, norms, reductions, choices and updates, with its gradients."""
    with wf.Graph() as graph:
        x = wf.placeholder((130, 70), dtype, name="x")
        labels = wf.placeholder((130,), wf.int64, name="labels")
        w = wf.placeholder((70, 33), dtype, name="w")
        hidden = wf.nn.functional.gelu(wf.nn.functional.layer_norm(x @ w, (33,)))
        hidden = hidden + wf.sin(hidden) * wf.pow(wf.abs(hidden) + 1.0, 1.5)
        loss = wf.nn.functional.cross_entropy(hidden, labels) + hidden.sum(axis=0).max()
        counts = (hidden > 0.5).astype(wf.int32).sum(axis=1)
        order = wf.sort(hidden, axis=-1) * 2.0
        slope = wf.gradients(loss, w)
        thin = wf.softmax(x[:1] @ w)
        rows = wf.placeholder((3, 5000), dtype, name="rows")
        few = rows.sum(axis=0)
    fetches = [y.value for y in (loss, slope, counts, order, thin, few)]
    feeds = {v.value: v.shape for v in (x, labels, w, rows)}
    return lower(optimize_static(specialize(Program(graph, fetches, list(feeds)), feeds)))[0]


def convolution_step(dtype):
    """Return a program of a strided convolution and both of its adjoints."""
    with wf.Graph() as graph:
        x = wf.placeholder((10, 7, 10, 13), dtype, name="x")
        w = wf.placeholder((33, 7, 3, 3), dtype, name="w")
        y = wf.nn.functional.conv2d(x, w, stride=2, padding=1)
        slopes = wf.gradients((y * y).sum(), [x, w])
    feeds = {v.value: v.shape for v in (x, w)}
    fetches = [y.value for y in slopes]
    return lower(optimize_static(specialize(Program(graph, fetches, list(feeds)), feeds)))[0]


def planned(lowered, target):
    """Return a program with memory and threads, as for a machine."""
    return with_schedule(with_memory(lowered), cpu_device(target))


def modules_for(target, dtype):
    lowered = training_step(dtype)
    made = planned(lowered, target)
    program = write_program(made, target)
    timed = write_profiled(program, made.memory, target, len(made.memory.places))
    clock = None if "windows" in target.triple else 1
    return lowered, [*program.modules.values(), timed.entry, clock_text(target, clock)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_programs_compile_for_other_machines(name, dtype):
    target = TARGETS[name]
    lowered, modules = modules_for(target, dtype)
    kinds = {type(kernel).__name__ for kernel in lowered.kernels}
    assert kinds >= {"RowKernel", "ColumnKernel", "GemmKernel", "CallKernel"}
    for text in modules:
        try:
            code = compile_module(text, target)
        except CodegenError:
            raise
        except RuntimeError as error:
            pytest.skip(f"LLVM was built without {target.triple}: {error}")
        for system, magic in MAGIC.items():
            assert code.startswith(magic) or system not in target.triple


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_convolutions_compile_for_other_machines(name, dtype):
    target = TARGETS[name]
    lowered = convolution_step(dtype)
    assert not any(isinstance(kernel, CallKernel) for kernel in lowered.kernels)
    program = write_program(planned(lowered, target), target)
    for text in program.modules.values():
        try:
            compile_module(text, target)
        except CodegenError:
            raise
        except RuntimeError as error:
            pytest.skip(f"LLVM was built without {target.triple}: {error}")


@pytest.mark.parametrize("name", ["avx512", "neon", "sse2"])
def test_kernels_use_the_vectors_of_the_machine_and_no_library(name):
    target = TARGETS[name]
    lowered = training_step("float32")
    program = write_program(planned(lowered, target), target)
    try:
        texts = {f: assembly(text, target) for f, text in program.modules.items()}
    except RuntimeError as error:
        pytest.skip(f"LLVM was built without {target.triple}: {error}")
    wide = [text for text in texts.values() if re.search(REGISTERS[name], text)]
    assert len(wide) >= len(texts) - 4  # kernels of one element, and the entry
    called = set(LIBRARY_CALL.findall("\n".join(texts.values())))
    assert {call for call in called if not call.startswith(("kernel_", "task_"))} <= OUTSIDE


def test_a_library_kernel_stands_between_native_ones():
    kernels = training_step("float32").kernels
    places = [i for i, kernel in enumerate(kernels) if isinstance(kernel, CallKernel)]
    assert 0 < places[0] < len(kernels) - 1
