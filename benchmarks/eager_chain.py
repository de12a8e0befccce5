"""Does backward scale linearly? Microseconds per operation for chains of growing length.

    python benchmarks/eager_chain.py

The chain is z = z*y + x; its length is the number of recorded operations.
"""

from __future__ import annotations

import time

import weft as wf


def measure(length: int) -> tuple[float, float]:
    """Return seconds per operation of the forward and the backward pass."""
    x = wf.tensor([0.5] * 8, requires_grad=True)
    y = wf.tensor([0.9] * 8, requires_grad=True)
    start = time.perf_counter()
    z = x
    for _ in range(length // 2):
        z = z * y + x
    middle = time.perf_counter()
    z.sum().backward()
    end = time.perf_counter()
    return (middle - start) / length, (end - middle) / length


def main() -> None:
    """Print the table."""
    print(f"{'operations':>12}{'forward us/op':>16}{'backward us/op':>16}")
    for length in (1_000, 10_000, 100_000, 1_000_000):
        best = [min(times) for times in zip(*(measure(length) for _ in range(3)), strict=True)]
        print(f"{length:>12,}{best[0] * 1e6:>16.2f}{best[1] * 1e6:>16.2f}", flush=True)


if __name__ == "__main__":
    main()
