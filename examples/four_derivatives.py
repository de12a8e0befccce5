"""Four ways to a derivative: by hand, by symbols, by differences, and by Weft (forward, reverse).

Two functions: four turns of the logistic map, x -> 4 x (1 - x), whose degree doubles with each
turn, and f(x, y) = x y + sin(x). Differences are wrong for every step size h: large ones cut the
Taylor series too early, small ones lose digits; with matplotlib installed, `--plot` draws the error
against h.

    python examples/four_derivatives.py [--plot error.png]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import weft as wf

TURNS = 4
X = 0.2


def logistic(x):
    """Return x after some turns of the logistic map; for numbers and tensors alike."""
    for _ in range(TURNS):
        x = 4 * x * (1 - x)
    return x


def by_hand(x: float) -> float:
    """Return the derivative of `logistic`, by the chain rule on paper."""
    derivative = 1.0
    for _ in range(TURNS):
        x, derivative = 4 * x * (1 - x), 4 * (1 - 2 * x) * derivative
    return derivative


def coefficients() -> list[int]:
    """Return the logistic map written out as a polynomial: symbols swell with each turn."""
    polynomial = [0, 1]
    for _ in range(TURNS):
        square = _product(polynomial, polynomial)
        polynomial = [4 * (a - b) for a, b in zip(_longer(polynomial, square), square, strict=True)]
    return polynomial


def _product(a: list[int], b: list[int]) -> list[int]:
    result = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            result[i + j] += x * y
    return result


def _longer(a: list[int], b: list[int]) -> list[int]:
    return a + [0] * (len(b) - len(a))


def by_symbols(x: float) -> float:
    """Return the derivative of the polynomial, term by term."""
    return math.fsum(k * c * x ** (k - 1) for k, c in enumerate(coefficients()) if k)


def by_differences(function: Callable[[float], float], x: float, h: float) -> float:
    """Return the slope of a chord: central differences."""
    return (function(x + h) - function(x - h)) / (2 * h)


def forward(x: float) -> float:
    """Return the derivative by dual numbers."""
    point, one = wf.tensor(x, dtype=wf.float64), wf.tensor(1.0, dtype=wf.float64)
    _, derivative = wf.jvp(logistic, (point,), (one,))
    return derivative.item()


def reverse(x: float) -> float:
    """Return the derivative by going back through what was computed."""
    point = wf.tensor(x, dtype=wf.float64, requires_grad=True)
    logistic(point).backward()
    return point.grad.item()


def two_inputs() -> float:
    """Return the largest error of Weft's derivatives of x y + sin(x) against those on paper."""
    x = wf.tensor(2.0, dtype=wf.float64, requires_grad=True)
    y = wf.tensor(3.0, dtype=wf.float64, requires_grad=True)
    (x * y + wf.sin(x)).backward()
    return max(abs(x.grad.item() - (3 + math.cos(2))), abs(y.grad.item() - 2))


def draw(path: str, steps: list[float], errors: list[float]) -> None:
    """Draw the error of differences against the step size."""
    import matplotlib as mpl  # noqa: PLC0415  (only where a picture is asked for)

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415  (likewise)

    figure, axes = plt.subplots(figsize=(6, 4))
    axes.loglog(steps, errors, marker="o")
    axes.set_xlabel("h")
    axes.set_ylabel("error of the derivative")
    axes.set_title("central differences of the logistic map")
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Compare the four, and show how differences err."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--plot", metavar="FILE", help="draw the error of differences against h")
    parser.add_argument("--quick", action="store_true", help="accepted for uniformity; it is quick")
    args = parser.parse_args()

    true = by_hand(X)
    print(f"by hand                {true:.15f}")
    print(f"by symbols             {by_symbols(X):.15f}   ({len(coefficients()) - 1} degrees)")
    print(f"forward (dual numbers) {forward(X):.15f}")
    print(f"reverse (backward)     {reverse(X):.15f}")
    steps = [10.0**-k for k in range(1, 16)]
    errors = [abs(by_differences(logistic, X, h) - true) or 1e-17 for h in steps]
    for h, error in zip(steps, errors, strict=True):
        print(f"differences, h = {h:.0e}: error {error:.1e}")
    exact = max(abs(forward(X) - true), abs(reverse(X) - true), two_inputs())
    print(f"largest error of forward and reverse: {exact:.1e}")
    print(f"least error of differences: {min(errors):.1e}")
    if args.plot:
        draw(args.plot, steps, errors)


if __name__ == "__main__":
    main()
