"""Sorts that devices run: which launches they are, and what they give on a processor."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.backends.opencl.test_backend import device_of, each_way, needs_device
from tests.backends.shim import needs_compiler
from weft.backends import backend_named
from weft.backends.c_source.dialect import cuda, opencl
from weft.backends.c_source.execution import DeviceExecution
from weft.backends.c_source.kernels import has_code, write_kernel
from weft.backends.c_source.sorts import GROUP_RUN, SERIAL_RUN


def sorting(shape, dtype, build):
    """Return a sort as the reference has it: a call, and what it stands for."""
    with wf.Graph() as graph:
        x = wf.placeholder(shape, dtype)
        fetches = build(x)
    session = wf.Session(graph, device="reference")
    return session.executable(fetches, {x: np.zeros(shape, dtype)})


@pytest.mark.parametrize("dialect", [opencl(serial=True), cuda()], ids=["serial", "groups"])
def test_runs_are_merged_until_one_is_left(dialect):
    run = SERIAL_RUN if dialect.serial else GROUP_RUN
    for size, merges in ((1, 0), (run, 0), (run + 1, 1), (2 * run + 1, 2), (5 * run, 3)):
        (kernel,) = sorting((2, size), np.float32, lambda x: [wf.argsort(x)]).program.kernels
        assert has_code(kernel)
        kinds = [launch.name.rpartition("_")[0] for launch in write_kernel(kernel, dialect)]
        assert kinds == ["weft_sort_runs", *["weft_sort_merge"] * merges, "weft_sort_given"]


def test_other_calls_are_the_hosts():
    (kernel,) = sorting((3, 3), np.float32, lambda x: [wf.linalg.inv(x)]).program.kernels
    assert not has_code(kernel)


def everything(x):
    """Return results of all that sorts, along either axis and of all elements."""
    return [
        wf.sort(x, axis=1, descending=True),
        wf.argsort(x, axis=None),
        *wf.topk(x, 5, axis=0, largest=False),
    ]


def assert_sorted(device, dtype):
    rng = np.random.default_rng(0)
    array = rng.integers(-40, 40, (7, 300)).astype(dtype)
    if array.dtype.kind == "f":
        array[:, ::9] = np.nan
        array[:, 1::7] *= -0.0
        array[:, 5::100] = np.inf
    executable = sorting(array.shape, array.dtype, everything)
    ready = DeviceExecution(device, executable.program, executable.sources)
    assert ready.on_host == []
    for a, b in zip(ready.run([array]), executable.run([array]), strict=True):
        assert a.to_host().tobytes() == b.tobytes()


@needs_device
@each_way
def test_equal_elements_keep_their_order(way):
    assert_sorted(device_of(way), "float32")


# Each dtype on one of both, since most of the text is the same.
PLACED = [(dtype, "shim:0") for dtype in ("float32", "float16", "uint64", "bool")]
PLACED += [(dtype, "shim:1") for dtype in ("float32", "float64", "int8", "int32")]


@needs_compiler
@pytest.mark.parametrize(("dtype", "place"), PLACED)
def test_all_dtypes_have_an_order(dtype, place, shim):
    assert_sorted(backend_named(place), dtype)
