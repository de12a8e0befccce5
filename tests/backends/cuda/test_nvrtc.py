"""CUDA C++: every kind of kernel compiles for all architectures. Skipped where NVRTC is not."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.backends.c_source.dialect import cuda
from weft.backends.c_source.kernels import has_code, write_kernel
from weft.backends.c_source.launch import program_source
from weft.backends.cuda.nvrtc import compile_source, library
from weft.backends.cuda.resources import kernel_resources
from weft.core.device_array import DeviceError
from weft.lower.kernels import walk

ARCHITECTURES = ("sm_70", "sm_80", "sm_90")
DEPRECATED = "nvrtc: warning: Architectures prior to"  # what NVRTC says of sm_70 alone
MOST_SHARED = 48 << 10  # bytes that every device has
MOST_REGISTERS = 255


def is_here():
    try:
        library()
    except DeviceError:
        return False
    return True


needs_compiler = pytest.mark.skipif(not is_here(), reason="NVRTC is not here")


def sources(program):
    """Return the launches of a program's kernels."""
    kernels = [k for k in walk(program.kernels) if has_code(k)]
    return [launch for kernel in kernels for launch in write_kernel(kernel, cuda())]


def assert_compiles(launches, architecture):
    """Compile without a warning; return what the kernels take."""
    made = compile_source(program_source(cuda(), launches), architecture)
    said = [line for line in made.log.splitlines() if not line.startswith(DEPRECATED)]
    assert said == []
    taken = kernel_resources(made.code)
    assert set(taken) == {launch.name for launch in launches}
    for resources in taken.values():
        assert 0 < resources.registers <= MOST_REGISTERS
        assert resources.shared <= MOST_SHARED
    return taken


def all_kinds(x, w, i):
    h = wf.relu(x @ w + 1)
    total = h.sum(axis=0)
    table = wf.gradients((wf.take(h, i, axis=0) * total).sum(), [h, w])
    more = [wf.sin(h), wf.pow(wf.abs(h), 1.5), wf.fmod(h, 0.3), wf.randn(4, 5)]
    more += [wf.exp(x).reshape(4, 16, 40).sum(axis=1), wf.argsort(h), *wf.topk(x, 3)]
    return [wf.softmax(h, axis=-1), total, wf.cumsum(h, axis=1), *table, *more]


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_kind_of_kernel_compiles(architecture, dtype):
    arrays = [np.zeros((64, 40), dtype), np.zeros((40, 48), dtype), np.zeros(9, np.int64)]
    with wf.Graph() as graph:
        given = [wf.placeholder(a.shape, a.dtype) for a in arrays]
        fetches = all_kinds(*given)
    executable = wf.Session(graph, device="reference").executable(
        fetches, dict(zip(given, arrays, strict=True))
    )
    kinds = {kernel.kind for kernel in executable.program.kernels}
    assert kinds >= {"row", "column", "gemm", "scan", "scatter", "library"}
    taken = assert_compiles(sources(executable.program), architecture)
    assert any(resources.shared for resources in taken.values())


@needs_compiler
def test_what_it_refuses_is_said():
    with pytest.raises(DeviceError, match=r"refuses kernels for sm_80: weft\.cu\(1\): error"):
        compile_source("KERNEL void f() {}", "sm_80")


def test_code_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"an ELF file\. Received: b'PTX"):
        kernel_resources(b"PTX, as text")
