"""Compile the kernels of whole training steps as CUDA C++, which needs no GPU.

    python benchmarks/cuda_kernels.py [--only mlp dqn] [--architectures sm_70 sm_80 sm_90]

For each network of `step_nets.py` (forward, backward and Adam as one program) and architecture: how
many kernels there are, how many functions they become, what NVRTC says of them, and, read from the
code, the most registers that a work item and the most shared memory that a group takes. It needs
the package nvidia-cuda-nvrtc-cu12. Nothing is run.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from step_nets import WORKLOADS, Workload
from steps import loop, weft_net

import weft as wf
from weft.backends.c_source.dialect import cuda
from weft.backends.c_source.kernels import has_code, write_kernel
from weft.backends.c_source.launch import Launch, program_source
from weft.backends.cuda.nvrtc import compile_source
from weft.backends.cuda.resources import kernel_resources
from weft.lower.kernels import walk
from weft.lower.program import KernelProgram

DEPRECATED = "nvrtc: warning: Architectures prior to"  # what NVRTC says of an architecture itself


def step_program(workload: Workload) -> KernelProgram:
    """Return the program of a training step."""
    data = workload.batch()
    lib, net, optimizer = weft_net(workload, loop(wf))
    with wf.Graph() as graph:
        given = [wf.placeholder(np.shape(x), np.asarray(x).dtype) for x in data]
        loss = workload.loss(lib, net, *given)
        train = optimizer.minimize(loss)
    feeds = dict(zip(given, data, strict=True))
    program: KernelProgram = (
        wf.Session(graph, device="reference").executable([loss, train], feeds).program
    )
    return program


def launches_of(program: KernelProgram) -> tuple[int, list[Launch]]:
    """Return how many kernels a program has for a device, and what they are launched as."""
    kernels = [k for k in walk(program.kernels) if has_code(k)]
    return len(kernels), [launch for k in kernels for launch in write_kernel(k, cuda())]


def line(name: str, program: KernelProgram, architecture: str) -> str:
    """Return what became of a program."""
    count, launches = launches_of(program)
    made = compile_source(program_source(cuda(), launches), architecture)
    said = [text for text in made.log.splitlines() if not text.startswith(DEPRECATED)]
    taken = kernel_resources(made.code).values()
    registers, shared = max(r.registers for r in taken), max(r.shared for r in taken)
    return (
        f"{name:<10}{architecture:<8}{count:>8}{len(taken):>10}{len(said):>10}"
        f"{registers:>10}{shared:>10}"
    )


def main() -> None:
    """Print a line for each network and architecture."""
    given = _arguments()
    print(
        f"{'network':<18}{'kernels':>8}{'functions':>10}{'warnings':>10}{'registers':>10}{'shared':>10}"
    )
    for name in given.only or WORKLOADS:
        program = step_program(WORKLOADS[name])
        for architecture in given.architectures:
            print(line(name, program, architecture), flush=True)


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(WORKLOADS))
    parser.add_argument("--architectures", nargs="*", default=["sm_70", "sm_80", "sm_90"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
