"""Train the networks of `step_nets.py` on a device and on the CPU: losses, copies, time.

    python benchmarks/device_steps.py --device opencl:0 --steps 20 --only mlp dqn
    python benchmarks/device_steps.py --device opencl:0 --launches

Each is trained eagerly and by `wf.jit`, from the same weights on the same batch. `out` and `in` are
the values that a step copies from the device to the host, and to it, once it is compiled; the loss
is read when all steps are done. `--launches` times eager operations on 8 elements instead.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from step_nets import WORKLOADS, Workload
from steps import loop, weft_net

import weft as wf
from weft.backends.device_memory import memory_of


def main() -> None:
    """Print a line for each network and mode."""
    given = _arguments()
    if given.launches:
        _launches(given.device)
        return
    print(f"{'network':<10}{'mode':<8}{'largest difference':>20}{'out':>6}{'in':>6}{'ms':>10}")
    for name in given.only or WORKLOADS:
        for mode in given.modes:
            if mode == "eager" and name in given.jit_only:
                continue
            _line(name, mode, given)


def _line(name: str, mode: str, given: Any) -> None:
    here, *_ = _trained(WORKLOADS[name], mode, "cpu", given.steps)
    there, copies, seconds = _trained(WORKLOADS[name], mode, given.device, given.steps)
    worst = float(np.max(np.abs(np.subtract(there, here)) / (np.abs(here) + 0.01 * here[0])))
    print(
        f"{name:<10}{mode:<8}{worst:>20.2e}{copies[0]:>6}{copies[1]:>6}{seconds * 1e3:>10.1f}",
        flush=True,
    )


def _launches(place: str) -> None:
    """Print the time of small eager operations, from call to call, with one wait for many."""
    x, y = wf.ones(8, device=place), wf.ones(8, device=place)
    operations = {"x + y": lambda: x + y, "exp(x)": lambda: wf.exp(x), "x * 2": lambda: x * 2.0}
    for name, run in operations.items():
        run().numpy()
        seconds = min(_many(run) for _ in range(20))
        print(f"{name:<10}{seconds * 1e6:>8.1f} us")


def _many(run: Any, count: int = 500) -> float:
    start = time.perf_counter()
    for _ in range(count):
        last = run()
    last.numpy()
    return (time.perf_counter() - start) / count


def _trained(workload: Workload, mode: str, place: str, steps: int) -> tuple[Any, Any, float]:
    """Return the losses, the copies of the last step, and its seconds."""
    wf.manual_seed(0)
    lib, net, optimizer = weft_net(workload, loop(wf))
    net.to(place)
    batch = [wf.tensor(x, device=place) for x in workload.batch()]
    lib = lib._replace(arange=lambda n: wf.arange(n, device=place))

    def step(*parts: Any) -> Any:
        optimizer.zero_grad()
        loss = workload.loss(lib, net, *parts)
        loss.backward()
        optimizer.step()
        return loss.detach()

    take = wf.jit(step) if mode == "jit" else step
    losses, counts = [], memory_of(place).counts if place != "cpu" else {}
    for _ in range(steps):
        before = [counts.get("copies out", 0), counts.get("copies in", 0)]
        start = time.perf_counter()
        losses.append(take(*batch))
        wf.device(place).synchronize()
        seconds = time.perf_counter() - start
    after = [counts.get("copies out", 0), counts.get("copies in", 0)]
    return [x.item() for x in losses], np.subtract(after, before), seconds


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--only", nargs="*", choices=list(WORKLOADS))
    parser.add_argument("--modes", nargs="*", default=["eager", "jit"])
    parser.add_argument("--jit-only", nargs="*", default=[], help="networks too long for eager")
    parser.add_argument("--launches", action="store_true", help="time eager operations")
    return parser.parse_args()


if __name__ == "__main__":
    main()
