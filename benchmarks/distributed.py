"""How much of a slow link is hidden behind backward, and a step beside PyTorch's DDP.

    python benchmarks/distributed.py [--peer-python /path/to/python/with/torch] [--steps 12]

Two processes with one thread each train a perceptron of 20 million parameters with SGD on batches
of 256 rows each. A delaying transport lets each exchange of gradients take longer by the time that
a link of `--gbit` Gbit/s would need for its bytes. Steps with and without the delay take turns in
one run, so that other work on the machine meets both; times are medians.

hidden    of the delay that all exchanges of a step have together, the part by which the step did
          not become longer
by waits  the same by how much longer the program waited for results, which the rest of the machine
          disturbs less

PyTorch trains the same net in the same way with DistributedDataParallel on gloo, without a delay.
`--trace out.json` writes what the exchanges and the steps of process 0 did when (Chrome's format),
and out.svg, a picture of the last step with the delay.

A link that takes longer for all gradients than backward takes cannot be hidden by anybody: `--gbit`
is to be chosen so that the column "delay" is shorter than about half of a step.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

NETS = {  # sizes of layers; about 20 million parameters each
    "narrow start": (512, *(1456,) * 10, 10),
    "equal": (*(2048,) * 6, 10),
}
ROWS = 256
BUCKET = 9  # MiB: a hidden layer; the first layer, last to be ready, is a small one of its own
MODES = ("eager", "jit")
ROOT = Path(__file__).resolve().parent.parent


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=12, help="of each kind")
    parser.add_argument("--gbit", type=float, default=10.0, help="of the link")
    parser.add_argument("--rounds", type=int, default=3, help="of both, in turns")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--net", choices=NETS, default="narrow start")
    parser.add_argument("--bucket", type=float, default=BUCKET, help="MiB of gradients")
    parser.add_argument("--peer-python", help="Python with torch")
    parser.add_argument("--trace", help="file to write")
    parser.add_argument("--worker", choices=("weft", "torch"), help=argparse.SUPPRESS)
    return parser.parse_args()


# -- Weft ------------------------------------------------------------------------------------------


def measure_weft(options):
    import weft as wf
    from weft.distributed.environment import find_launch
    from weft.distributed.exchanges import PendingExchange
    from weft.distributed.mpi import MPITransport, connect

    trace = Trace()
    wait = PendingExchange.wait

    def timed_wait(pending):
        begin = time.perf_counter()
        result = wait(pending)
        trace.waited += time.perf_counter() - begin
        trace.note("waits", 0, begin)
        return result

    PendingExchange.wait = timed_wait

    class DelayingTransport(MPITransport):
        """MPI on a link that takes its time."""

        seconds_per_byte = 0.0
        delayed = 0.0

        def reduce(self, array, how):
            begin = time.perf_counter()
            result = super().reduce(array, how)
            if self.seconds_per_byte and array.nbytes > 4096:
                time.sleep(array.nbytes * self.seconds_per_byte)
                self.delayed += array.nbytes * self.seconds_per_byte
            trace.note(f"exchange of {array.nbytes / 2**20:.1f} MiB", 1, begin)
            return result

    wf.set_num_threads(1)
    plain = connect(find_launch(os.environ))
    transport = DelayingTransport(plain.library, plain.comm)
    wf.distributed.init(transport)
    link = 8.0 / (options.gbit * 1e9)
    found = {mode: timed(wf, mode, transport, link, options, trace) for mode in MODES}
    if wf.distributed.rank() == 0:
        if options.trace:
            Path(options.trace).write_text(json.dumps({"traceEvents": trace.events}))
            Path(options.trace).with_suffix(".svg").write_text(picture(trace.events))
        print("RESULT", json.dumps(found), flush=True)


def timed(wf, mode, transport, link, options, trace):
    """Return the median seconds of steps without and with the delay, and the whole delay."""
    step, handle = weft_step(wf, mode, options)
    plain, delayed, waits = [], [], {0.0: [], link: []}
    for turn in range(options.steps + 2):
        for some, per_byte in ((plain, 0.0), (delayed, link)):
            transport.seconds_per_byte, transport.delayed, trace.waited = per_byte, 0.0, 0.0
            wf.distributed.barrier()
            begin = time.perf_counter()
            step()
            if turn > 1:
                some.append(time.perf_counter() - begin)
                waits[per_byte].append(trace.waited)
                trace.note(f"{mode} step", 0, begin)
    handle.close()
    medians = {"plain": float(np.median(plain)), "delayed": float(np.median(delayed))}
    longer = float(np.median(waits[link]) - np.median(waits[0.0]))
    return {**medians, "delay": transport.delayed, "waited": longer}


class Trace:
    """What happened when, in Chrome's format."""

    def __init__(self):
        self.events, self._start, self.waited = [], time.perf_counter(), 0.0

    def note(self, name, thread, begin):
        begun, now = (1e6 * (at - self._start) for at in (begin, time.perf_counter()))
        event = {"name": name, "ph": "X", "pid": 0, "tid": thread, "ts": begun, "dur": now - begun}
        self.events.append(event)


def picture(events):
    """Return the last step as a picture: the program above, exchanges of gradients below it."""
    step = [e for e in events if e["name"].endswith("step")][-1]
    inside = [
        e for e in events if e is not step and step["ts"] <= e["ts"] < step["ts"] + step["dur"]
    ]
    ends = (step["ts"], step["ts"] + step["dur"])
    computes, waits, travels = "#7fb08a", "#d9685b", "#6b93c9"
    bars = [bar(step, ends, 8, computes)]
    bars += [bar(e, ends, 8, waits) for e in inside if e["name"] == "waits"]
    bars += [bar(e, ends, 44, travels) for e in inside if e["name"].startswith("exchange")]
    ticks = [
        f'<text x="{120 + 6 * part}" y="86">{step["dur"] * part / 1e5:.0f} ms</text>'
        for part in (0, 25, 50, 75, 100)
    ]
    names = [
        f'<text x="4" y="{y}">{name}</text>' for y, name in ((25, "program"), (61, "exchanges"))
    ]
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 92" font-family="sans-serif"'
    title = "<title>a step: green computes, red waits, blue is the exchange of a bucket</title>"
    return "\n".join([f'{head} font-size="13">{title}', *names, *bars, *ticks, "</svg>\n"])


def bar(event, ends, y, color):
    """Return a bar for an event, between the ends of what is shown."""
    scale = 600 / (ends[1] - ends[0])
    x, width = 120 + scale * (event["ts"] - ends[0]), max(0.5, scale * event["dur"])
    return f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="24" fill="{color}"/>'


def weft_step(wf, mode, options):
    wf.manual_seed(0)
    sizes = NETS[options.net]
    layers = []
    for a, b in pairwise(sizes):
        layers += [wf.nn.Linear(a, b), wf.nn.ReLU()]
    model = wf.nn.Sequential(*layers[:-1])
    handle = wf.distributed.parallel(model, bucket_mib=options.bucket)
    optimizer = wf.optim.SGD(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(wf.distributed.rank())
    x = wf.tensor(rng.standard_normal((ROWS, sizes[0]), np.float32))
    y = wf.tensor(rng.integers(0, sizes[-1], ROWS))

    def step(x, y):
        optimizer.zero_grad()
        loss = wf.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = wf.jit(step, strict=True) if mode == "jit" else step
    return (lambda: run(x, y)), handle


# -- PyTorch ---------------------------------------------------------------------------------------


def measure_torch(options):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    sizes = NETS[options.net]
    layers = []
    for a, b in pairwise(sizes):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers[:-1])
    model = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=options.bucket)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(dist.get_rank())
    x = torch.from_numpy(rng.standard_normal((ROWS, sizes[0]), np.float32))
    y = torch.from_numpy(rng.integers(0, sizes[-1], ROWS))
    times = []
    for turn in range(options.steps + 2):
        dist.barrier()
        begin = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if turn > 1:
            times.append(time.perf_counter() - begin)
    if dist.get_rank() == 0:
        print("RESULT", json.dumps({"ddp": {"plain": float(np.median(times))}}), flush=True)
    dist.destroy_process_group()


# -- both ------------------------------------------------------------------------------------------


def run_weft(options):
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    command = [mpiexec, "--map-by", ":OVERSUBSCRIBE", "-n", str(options.ranks), sys.executable]
    root = {
        f"{tool}_ALLOW_RUN_AS_ROOT{more}": "1"
        for tool in ("OMPI", "PRTE")
        for more in ("", "_CONFIRM")
    }
    return result_of([[*command, *again(options, "weft")]], root)


def run_torch(options):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(options.ranks)}
    command = [options.peer_python, *again(options, "torch")]
    return result_of([command] * options.ranks, where)


def again(options, worker):
    more = ["--trace", options.trace] if options.trace else []
    return [
        __file__,
        "--worker",
        worker,
        "--steps",
        str(options.steps),
        "--gbit",
        str(options.gbit),
        "--net",
        options.net,
        "--bucket",
        str(options.bucket),
        *more,
    ]


def result_of(commands, variables):
    """Return what process 0 of those that commands start has measured."""
    shared = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}
    started = [
        subprocess.Popen(
            command,
            env={**shared, "RANK": str(i)} if len(commands) > 1 else shared,
            stdout=subprocess.PIPE,
            text=True,
        )
        for i, command in enumerate(commands)
    ]
    texts = [process.communicate()[0] for process in started]
    (line,) = [t for text in texts for t in text.splitlines() if t.startswith("RESULT")]
    return json.loads(line.removeprefix("RESULT"))


def show(found, peers):
    print(f"{'':8}{'step':>10}{'delayed':>10}{'delay':>10}{'hidden':>10}{'by waits':>10}")
    for mode in MODES:
        t = {kind: np.median([run[mode][kind] for run in found]) for kind in found[0][mode]}
        hidden = 1 - (t["delayed"] - t["plain"]) / t["delay"]
        cells = [f"{1e3 * t[k]:.0f} ms" for k in ("plain", "delayed", "delay")]
        by_waits = 1 - t["waited"] / t["delay"]
        print(
            f"{mode:8}" + "".join(f"{c:>10}" for c in cells) + f"{hidden:>10.0%}{by_waits:>10.0%}"
        )
        if peers:
            ddp = np.median([run["ddp"]["plain"] for run in peers])
            print(f"{'':8}{t['plain'] / ddp:.2f} of DDP's {1e3 * ddp:.0f} ms")


def main():
    options = arguments()
    if options.worker:
        return {"weft": measure_weft, "torch": measure_torch}[options.worker](options)
    found, peers = [], []
    for _ in range(options.rounds):  # other work on the machine comes and goes
        found.append(run_weft(options))
        if options.peer_python:
            peers.append(run_torch(options))
    return show(found, peers)


if __name__ == "__main__":
    main()
