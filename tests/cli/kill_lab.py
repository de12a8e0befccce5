"""Kill trainings at random moments, resume them, and compare their weights with a whole run's.

    python tests/cli/kill_lab.py RUNS [SEED]

Each training is a fork of this process, which has imported everything before: so a kill falls into
training and checkpoint writing rather than into imports, and a thousand runs take minutes.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy loads: a fork must not inherit threads
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from weft.cli import main
from weft.io import load

CONFIG = """\
seed = 1
loss = "cross_entropy"
[data]
batch_size = 8
split = [0.8, 0.2]
[data.source]
type = "moons"
n = 200
[model]
type = "mlp"
hidden = [32]
out_features = 2
dropout = 0.2
[optimizer]
type = "adam"
[schedule]
type = "one_cycle"
max_lr = 0.05
unit = "iteration"
[trainer]
epochs = 3
ema = 0.9
plot = false
tensorboard = false
progress = false
checkpoint = {every = 3, unit = "iteration", keep_last = 2}
"""


def start(name: str) -> int:
    """Start a training, or go on with one, in a process of its own; return its number."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        with open(f"{name}.output", "a") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        status = main(["train", "run.toml", "--out", name, "--resume", "auto"])
    finally:
        os._exit(status)


def kill_after(name: str, seconds: float) -> bool:
    """Kill a training after some seconds; return whether it was still running."""
    pid = start(name)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def finish(name: str) -> dict[str, bytes]:
    """Let a training end and return its weights."""
    _, status = os.waitpid(start(name), 0)
    if status:
        raise SystemExit(f"{name} failed: {Path(f'{name}.output').read_text()[-2000:]}")
    weights = load(Path(name) / "model.safetensors")
    return {key: tensor.numpy().tobytes() for key, tensor in weights.items()}


def run_trials(runs: int, seed: int) -> int:
    """Kill and resume so many trainings; return how many kills hit a running one."""
    Path("run.toml").write_text(CONFIG)
    finish("warm-up")
    begin = time.perf_counter()
    expected = finish("whole")
    length = time.perf_counter() - begin
    draw, kills = random.Random(seed), 0
    for i in range(runs):
        moments = [draw.uniform(0.0, length) for _ in range(draw.randint(1, 3))]
        kills += sum(kill_after(f"run{i}", seconds) for seconds in moments)
        if finish(f"run{i}") != expected:
            raise SystemExit(f"run {i} of seed {seed} ended elsewhere after kills at {moments}")
    return kills


if __name__ == "__main__":
    number = int(sys.argv[1])
    chosen = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        hits = run_trials(number, chosen)
        os.chdir("/")
    print(f"{number} runs, {hits} kills: all weights identical")
