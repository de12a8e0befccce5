"""Matrix products: Weft's kernels beside NumPy (OpenBLAS) and PyTorch (MKL).

    python benchmarks/gemm.py [--peer-python PATH] [--threads 1 2] [--only TEXT] [--quick]

Square, skinny, tall, transposed and batched products of sizes 16 to 2048. A row gives GF/s (2 m n k
per product, best time of all rounds) and the ratio of Weft's speed to that of the better peer,
taken within each round, as the median over rounds. The bar: a geometric mean of at least 1.0, and
no product below 0.8. Each library writes into an existing array.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import harness

PEERS = ("numpy", "torch")


@dataclass(frozen=True)
class Case:
    """A product; x or y may lie transposed in memory ("NN", "NT", "TN", "TT")."""

    kind: str
    m: int
    n: int
    k: int
    layout: str = "NN"
    batch: int = 0
    dtype: str = "float32"

    @property
    def name(self) -> str:
        """Return what a table calls it."""
        batch = f"{self.batch} x " if self.batch else ""
        wide = " f64" if self.dtype == "float64" else ""
        return f"{self.kind} {batch}{self.m}x{self.n}x{self.k} {self.layout}{wide}"

    @property
    def flops(self) -> int:
        """Return the number of additions and multiplications."""
        return 2 * max(1, self.batch) * self.m * self.n * self.k


def cases(*, quick: bool) -> list[Case]:
    """Return the products to be measured."""
    return list(_quick_cases() if quick else _all_cases())


def _quick_cases() -> Iterator[Case]:
    yield from (Case("square", n, n, n) for n in (16, 64, 256, 1024))
    yield Case("skinny", 16, 2048, 2048)
    yield Case("tall", 2048, 16, 2048)
    yield Case("transposed", 128, 512, 784, "NT")
    yield Case("transposed", 784, 512, 128, "TN")
    yield Case("batched", 64, 64, 64, batch=32)


def _all_cases() -> Iterator[Case]:
    yield from (Case("square", n, n, n) for n in (16, 32, 64, 100, 128, 256, 512, 1000, 1024, 2048))
    for kind, sizes in {
        "skinny": [(16, 2048, 2048), (32, 1024, 1024), (64, 1024, 1024), (128, 512, 784)],
        "tall": [(2048, 16, 2048), (1024, 64, 1024), (2048, 2048, 16), (64, 64, 2048)],
        "narrow": [(128, 10, 512), (2048, 1, 2048), (1, 2048, 2048)],
    }.items():
        for m, n, k in sizes:
            yield from (Case(kind, m, n, k, layout) for layout in ("NN", "NT", "TN"))
    for layout in ("NT", "TN", "TT"):
        yield from (Case("transposed", n, n, n, layout) for n in (32, 64, 256, 1024))
    yield Case("batched", 32, 32, 32, batch=128)
    yield Case("batched", 64, 64, 64, batch=32)
    yield Case("batched", 128, 128, 64, "NT", batch=32)
    yield Case("batched", 128, 64, 128, batch=32)
    yield Case("batched", 256, 256, 256, batch=8)
    yield from (Case("square", n, n, n, dtype="float64") for n in (64, 256, 1024))
    yield Case("skinny", 64, 1024, 1024, "NT", dtype="float64")


# -- the libraries ---------------------------------------------------------------------------------


def _operands(case: Case, make: Callable[[tuple[int, ...]], Any]) -> tuple[Any, Any, Any]:
    """Return x, y and out, the transposed ones as views, as `make` makes arrays of a shape."""
    batch = (case.batch,) if case.batch else ()

    def matrix(rows: int, columns: int, transposed: bool) -> Any:
        if not transposed:
            return make((*batch, rows, columns))
        return make((*batch, columns, rows)).swapaxes(-1, -2)

    x = matrix(case.m, case.k, case.layout[0] == "T")
    y = matrix(case.k, case.n, case.layout[1] == "T")
    return x, y, matrix(case.m, case.n, transposed=False)


def _lazily(prepare: Callable[[Case], Callable[[], None]]) -> harness.Workloads:
    """Return the workloads, each prepared when it is first run, and forgotten with the next."""
    held: dict[str, Callable[[], None]] = {}

    def run(case: Case) -> None:
        if case.name not in held:
            held.clear()
            held[case.name] = prepare(case)
        held[case.name]()

    return {case.name: lambda case=case: run(case) for case in (*_quick_cases(), *_all_cases())}


def numpy_workloads() -> harness.Workloads:
    """Return the workloads on NumPy."""
    import numpy as np

    def prepare(case: Case) -> Callable[[], None]:
        x, y, out = _operands(case, lambda shape: np.ones(shape, case.dtype))
        return lambda: np.matmul(x, y, out=out)

    return _lazily(prepare)


def torch_workloads() -> harness.Workloads:
    """Return the workloads on PyTorch."""
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.set_grad_enabled(False)

    def prepare(case: Case) -> Callable[[], None]:
        dtype = getattr(torch, case.dtype)
        x, y, out = _operands(case, lambda shape: torch.ones(shape, dtype=dtype))
        multiply = torch.bmm if case.batch else torch.mm
        return lambda: multiply(x, y, out=out)

    return _lazily(prepare)


def weft_workloads() -> harness.Workloads:
    """Return the workloads on Weft's kernels, run by its thread pool."""
    import numpy as np

    import weft as wf

    wf.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

    def prepare(case: Case) -> Callable[[], None]:
        arrays = _operands(case, lambda shape: np.ones(shape, case.dtype))
        return _native_product(case, arrays)

    return _lazily(prepare)


def _native_product(case: Case, arrays: tuple[Any, Any, Any]) -> Callable[[], None]:
    """Return a function that multiplies by compiled code, with all addresses bound."""
    import ctypes

    import numpy as np

    from weft.backends.cpu.codegen.gemm.kernel import (
        gemm_chunks,
        gemm_units,
        scratch_shape,
        write_gemm_kernel,
    )
    from weft.backends.cpu.codegen.target import host
    from weft.backends.cpu.codegen.text import ModuleText
    from weft.backends.cpu.runtime.arena import aligned_empty
    from weft.backends.cpu.runtime.linking import compile_module, link
    from weft.backends.cpu.runtime.threads import pool_symbols
    from weft.lower.storage import Buffer, contiguous

    kernel = _kernel(case, arrays)
    threads = int(os.environ["OMP_NUM_THREADS"])
    operands = [*arrays]
    areas = scratch_shape(kernel, host(), threads)
    if areas is not None:
        memory = Buffer("arena", areas, np.dtype(np.uint8), "scratch")
        kernel = replace(kernel, scratch=contiguous(memory, areas))
        operands.append(aligned_empty(memory.nbytes))
    units, chunks = gemm_units(kernel, host()), gemm_chunks(kernel, host(), threads)
    module = ModuleText(host())
    write_gemm_kernel(module, "product", kernel)
    _write_entry(module, units, chunks, len(operands))
    library = link([compile_module(module.text(), host())], ["run"], pool_symbols())
    table = (ctypes.c_void_p * len(operands))(*(a.ctypes.data for a in operands))
    address = ctypes.c_void_p(ctypes.addressof(table))
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("run"))
    _start_threads()

    def run(_held: Any = (operands, table, library)) -> None:
        function(address)

    return run


def _kernel(case: Case, arrays: tuple[Any, Any, Any]) -> Any:
    from weft.lower.kernels import GemmKernel
    from weft.lower.storage import Buffer, View

    def view(array: Any) -> View:
        strides = tuple(s // array.itemsize for s in array.strides)
        return View(Buffer("feed", array.size, array.dtype, "array"), array.shape, strides)

    batch = (case.batch,) if case.batch else ()
    views = [view(array) for array in arrays]
    return GemmKernel("product", batch, case.m, case.n, case.k, *views, None)


def _write_entry(module: Any, units: int, chunks: int, operands: int) -> None:
    """Add `run(ptr table)`, which has the pool do the chunks of a product."""
    from weft.backends.cpu.codegen.values import IRValue

    task = module.function("task", ["ptr", "i64", "i64"])
    table, chunk, _ = task.parameters
    begin = task.udiv(task.mul(chunk, units), chunks)
    end = task.udiv(task.mul(task.add(chunk, 1), units), chunks)
    pointers = [task.load("ptr", task.gep(table, i, "ptr")) for i in range(operands)]
    task.call("product", "void", *pointers, begin, end)
    task.ret()
    run = module.function("run", ["ptr"])
    if chunks == 1:
        zero = run.constant("i64", 0)
        run.call("task", "void", run.parameters[0], zero, zero)
    else:
        module.declare("weft_parallel_for", ["ptr", "ptr", "i64"])
        count = run.constant("i64", chunks)
        run.call("weft_parallel_for", "void", IRValue("@task", "ptr"), run.parameters[0], count)
    run.ret()


def _start_threads() -> None:
    from weft.backends.cpu.runtime.threads import pool

    pool().start_workers()


# -- the comparison --------------------------------------------------------------------------------


@dataclass
class Measured:
    """Seconds of each round, by library."""

    case: Case
    seconds: dict[str, list[float]]

    @property
    def ratio(self) -> float:
        """Return the speed relative to the better peer, the median over rounds."""
        peers = [self.seconds[name] for name in PEERS if name in self.seconds]
        rounds = zip(self.seconds["weft"], *peers, strict=True)
        return statistics.median(min(others) / own for own, *others in rounds)

    def row(self, names: list[str]) -> str:
        """Return a line of the table."""
        speeds = [self.case.flops / min(self.seconds[name]) / 1e9 for name in names]
        return f"{self.case.name:<34}" + "".join(f"{s:9.1f}" for s in speeds) + f"{self.ratio:9.2f}"


def main() -> None:
    """Run the benchmark, or serve as a worker process of it."""
    options = _parse(sys.argv[1:])
    libraries = {"weft": weft_workloads, "numpy": numpy_workloads, "torch": torch_workloads}
    if options.worker:
        harness.serve(libraries[options.worker])
        return
    for threads in options.threads:
        _compare(list(libraries), threads, options)


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--slot", type=float, default=0.1, help="seconds per library and round")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", help="measure products whose name contains this")
    parser.add_argument("--quick", action="store_true", help="a few products, fewer rounds")
    parser.add_argument(
        "--peer-python",
        default=os.environ.get("WEFT_PEER_PYTHON", sys.executable),
        help="interpreter that has PyTorch installed",
    )
    return parser.parse_args(argv)


def _compare(libraries: list[str], threads: int, options: argparse.Namespace) -> None:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)
    pythons = {"torch": options.peer_python}
    workers = []
    for name in libraries:
        worker = harness.Worker(__file__, name, pythons.get(name, sys.executable))
        if worker.missing:
            print(f"{name}: not measured ({worker.missing})")
        else:
            workers.append(worker)
    names = [worker.framework for worker in workers]
    print(f"\n{threads} thread{'s' * (threads > 1)}, GF/s" + " " * 17, end="")
    print("".join(f"{name:>9}" for name in names) + f"{'ratio':>9}")
    ratios = []
    for case in cases(quick=options.quick):
        if options.only is None or options.only in case.name:
            measured = _measure(workers, case, options)
            ratios.append((measured.ratio, case.name))
            print(measured.row(names), flush=True)
    for worker in workers:
        worker.close()
    if ratios:
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio, _ in ratios))
        print(f"geometric mean {mean:.2f}; least {min(ratios)[0]:.2f} ({min(ratios)[1]})")


def _measure(workers: list[harness.Worker], case: Case, options: argparse.Namespace) -> Measured:
    rounds = min(options.rounds, 5) if options.quick else options.rounds
    seconds: dict[str, list[float]] = {worker.framework: [] for worker in workers}
    for _ in range(rounds):
        for worker in workers:
            seconds[worker.framework].append(worker.measure(case.name, options.slot))
    return Measured(case, seconds)


if __name__ == "__main__":
    main()
