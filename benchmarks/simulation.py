"""Predicted steps on many ranks: tables, and a comparison with real steps on two ranks.

    python benchmarks/simulation.py                    tables of resnet50 and gpt, 8 to 1,024 ranks
    python benchmarks/simulation.py --validate         two ranks, two link speeds, four workloads

For --validate two network namespaces are made, joined by a cable whose speed is limited (tbf), with
a rank of one thread in each; it needs root. Every rank measures the latency and the bandwidth of
the cable, its step alone, and the step that both take together; the prediction knows the first two.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from step_nets import WORKLOADS, Framework, Workload, initial

import weft as wf
from weft.distributed.simulation.measured import measure

RANKS = (8, 16, 32, 64, 128, 256, 512, 1024)
LINKS = ("1gbit", "4gbit")
VALIDATED = ("mlp", "cnn", "lstm", "gpt")
ADDRESSES = ("10.211.8.1", "10.211.8.2")
ROUNDS, RUNS = 4, 8  # of measurements, and steps of each


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--validate", action="store_true")
    parser.add_argument("--links", default=",".join(LINKS), help="speeds of the cable")
    parser.add_argument("--workloads", default=",".join(VALIDATED))
    parser.add_argument("--models", default="resnet50,gpt")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        validate_here(options.workloads.split(","))
    elif options.validate:
        validate(options.workloads, options.links.split(","))
    else:
        tables(options.models.split(","))


# -- tables ----------------------------------------------------------------------------------------


def tables(models: list[str]) -> None:
    """Print what is predicted for large models."""
    for name in models:
        step, net, data = training_step(MODELS[name])
        handle = wf.distributed.parallel(net)
        measured = measure(step, data, runs=5)
        handle.close()
        size = measured.parameters / 1e6
        print(f"{name}: {size:.1f} MB of parameters, {measured.seconds * 1e3:.0f} ms on one rank")
        for network in ("10gbit", "100gbit"):
            print(wf.distributed.simulate(measured, RANKS, network=network), "\n", flush=True)


def resnet50(lib: Framework) -> Any:
    """Return ResNet-50 (He et al. 2016), for images of 224 by 224."""
    nn = lib.nn

    class Bottleneck(nn.Module):
        def __init__(self, inputs: int, width: int, stride: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                *(nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
                nn.Conv2d(width, width, 3, stride, 1, bias=False),
                *(nn.BatchNorm2d(width), nn.ReLU()),
                *(nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)),
            )
            self.past = (
                nn.Sequential(
                    nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
                )
                if stride != 1 or inputs != 4 * width
                else nn.Identity()
            )

        def forward(self, x: Any) -> Any:
            return lib.F.relu(self.body(x) + self.past(x))

    layers: list[Any] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    inputs = 64
    for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for i in range(count):
            layers.append(Bottleneck(inputs, width, 2 if i == 0 and width > 64 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def images() -> tuple[np.ndarray, ...]:
    """Return a batch of images with their classes."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(4, 3, 224, 224)).astype(np.float32), rng.integers(0, 1000, 4)


MODELS = {
    "resnet50": Workload(images, resnet50, WORKLOADS["mlp"].loss),
    "gpt": WORKLOADS["gpt"],
}


def training_step(workload: Workload) -> tuple[Any, Any, list[Any]]:
    """Return a jitted training step, its network and what it is called with."""

    def over_time(step: Callable[..., Any], carry: Any, xs: Any) -> tuple[Any, Any]:
        return wf.scan(step, carry, xs)

    lib = Framework(wf.nn, wf.nn.functional, wf.arange, wf.gather, over_time)
    net = workload.net(lib)
    with wf.no_grad():
        for name, p in net.named_parameters():
            p.copy_(initial(name, tuple(p.shape)))
    optimizer = wf.optim.Adam(net.parameters(), lr=1e-3)

    @wf.jit
    def step(*data: Any) -> Any:
        optimizer.zero_grad()
        loss = workload.loss(lib, net, *data)
        loss.backward()
        optimizer.step()
        return loss

    return step, net, [wf.tensor(a) for a in workload.batch()]


# -- two ranks -------------------------------------------------------------------------------------


def validate(workloads: str, links: list[str]) -> None:
    """Run both ranks in namespaces of their own, over cables of each speed."""
    names = [f"ws{os.getpid()}{letter}" for letter in "ab"]  # of this run alone
    try:
        connect(names)
        for rate in links:
            for name in names:
                place = ["tc", "-n", name, "qdisc", "replace", "dev", f"{name}v", "root"]
                limit = ["tbf", "rate", rate, "burst", "128kb", "latency", "200ms"]
                subprocess.run([*place, *limit], check=True)
            print(f"a cable of {rate}", flush=True)
            run_ranks(names, workloads)
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)


def connect(names: list[str]) -> None:
    """Make two namespaces and a cable."""

    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True)

    for name in names:
        ip("netns", "add", name)
    ends = [f"{name}v" for name in names]
    cable = ("type", "veth", "peer", "name", ends[1], "netns", names[1])
    ip("link", "add", ends[0], "netns", names[0], *cable)
    for name, end, address in zip(names, ends, ADDRESSES, strict=True):
        ip("-n", name, "addr", "add", f"{address}/24", "dev", end)
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "link", "set", end, "up")


def run_ranks(names: list[str], workloads: str) -> None:
    """Start a rank in each namespace; the first prints."""
    with tempfile.TemporaryDirectory() as folder:
        agent = Path(folder) / "agent"
        inner = f"ip netns exec {names[1]} unshare --uts sh -c"
        agent.write_text(
            f'#!/bin/sh\nshift\nexec {inner} \'hostname other; exec sh -c "$0"\' "$*"\n'
        )
        agent.chmod(0o755)
        launch = [sys.executable, "-m", "weft.cli", "launch", "-n", "2", "--threads", "1"]
        launch += ["--hosts", ",".join(f"{a}:1" for a in ADDRESSES), "--address", ADDRESSES[0]]
        launch += ["--agent", str(agent), "--logs", folder, "--silence", "120"]
        launch += [os.path.abspath(__file__), "--rank", "--workloads", workloads]
        subprocess.run(["ip", "netns", "exec", names[0], *launch], check=True)


def validate_here(workloads: list[str]) -> None:
    """Measure and predict, as one of two ranks."""
    wf.distributed.init()
    alone = [wf.distributed.new_group([rank]) for rank in range(2)][wf.distributed.rank()]
    for name in workloads:
        (solo, data, *one), (step, _, *both) = (parallel_step(name, g) for g in (alone, None))
        ratios, shown, links = [], [], []
        for _ in range(ROUNDS):  # other work on the machine comes and goes
            network = wf.distributed.measure_network(repeats=4)
            measured = measure(solo, data, runs=RUNS)
            together = best_of(lambda step=step, data=data: float(step(*data)), RUNS)
            found = wf.distributed.simulate(measured, 2, network=network).predictions[0]
            # The slower rank decides.
            both_found = wf.distributed.world().exchanges.transport.objects(found.seconds)
            ratios.append(max(both_found) / together)
            shown.append((measured.seconds, together, max(both_found)))
            links.append((network.latency * 1e6, network.bandwidth * 8e-9, network.occupied))
        for handle in (*one, *both):
            handle.close()
        seconds = [f"{1e3 * t:8.2f}" for t in np.median(shown, axis=0)]
        say(
            f"{name:8} alone {seconds[0]} ms   together {seconds[1]} ms   predicted {seconds[2]} "
            f"ms   ratio {np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        )
        latency, gbit, occupied = np.median(links, axis=0)
        say(f"{'':8} {latency:.0f} us, {gbit:.2f} Gbit/s, {occupied:.0%} of a processor")


def parallel_step(name: str, group: Any) -> tuple[Any, Any, Any]:
    """Return a training step that exchanges gradients in a group, its batch and its handle."""
    step, net, data = training_step(WORKLOADS[name])
    handle = wf.distributed.parallel(net, group=group)
    return step, data, handle


def best_of(act: Callable[[], Any], count: int) -> float:
    """Return the shortest of several times, as profiles do."""
    act()
    taken = []
    for _ in range(count):
        wf.distributed.barrier()
        began = time.perf_counter()
        act()
        taken.append(time.perf_counter() - began)
    return min(taken)


def say(text: str) -> None:
    """Print on the first rank."""
    if wf.distributed.rank() == 0:
        print(text, flush=True)


if __name__ == "__main__":
    main()
