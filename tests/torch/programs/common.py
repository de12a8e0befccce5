"""Weights and data by formulas, so that every framework begins with the same numbers.

Programs are small, for tests. With PROGRAM_EPOCHS in the environment they have the sizes of the
programs whose shape they are, run so many epochs, each when a line comes in, and print what it took:
benchmarks/torch_programs.py does so.
"""

import os
import sys
import time

import numpy as np
import torch

EPOCHS = int(os.environ.get("PROGRAM_EPOCHS", "0"))


def size(small, full):
    """Return a size of the program: for tests, or of the original."""
    return full if EPOCHS else small


def epochs(count):
    """Yield the numbers of epochs; in full size, begin each when told to, and print what it took."""
    if not EPOCHS:
        yield from range(count)
        return
    for epoch in range(EPOCHS):
        sys.stdin.readline()
        start = time.perf_counter(), time.process_time()
        yield epoch
        seconds = time.perf_counter() - start[0], time.process_time() - start[1]
        print(f"epoch {seconds[0]:.6f} {seconds[1]:.6f}", flush=True)


def fill(module, scale=0.3):
    """Let parameters begin with numbers that follow from their place."""
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            count = parameter.numel()
            values = np.sin(np.arange(count) * 1.37 + i) * scale / max(1.0, count**0.25)
            parameter.copy_(torch.from_numpy(values.astype(np.float32)).view(parameter.shape))
    return module


def images(count, channels=1, size=8):
    """Return images and labels."""
    values = np.sin(np.arange(count * channels * size * size) * 0.731)
    data = torch.from_numpy(values.astype(np.float32)).view(count, channels, size, size)
    return data, torch.arange(count) % 4


def report(losses):
    """Print losses, one a line."""
    for loss in losses:
        print(f"{loss:.5f}")
