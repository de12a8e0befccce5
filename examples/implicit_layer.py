"""A layer of infinite depth: z = tanh(W z + U x + b), differentiated at its fixed point.

Bai, Kolter and Koltun ("Deep equilibrium models", 2019). The fixed point is found by iteration, but
`wf.autodiff.implicit` differentiates the equation instead of the iterations: one linear solve, and
no memory for the steps. The gradient is compared with that through a long unrolled loop.

    python examples/implicit_layer.py
"""

import argparse

import numpy as np

import weft as wf


def cell(z, p, x):
    """Return what is equal to z at the equilibrium."""
    return wf.tanh(z @ p["w"] + x @ p["u"] + p["b"])


equilibrium = wf.autodiff.implicit(cell)


def unrolled(z, p, x, steps=60):
    """Return the same after many explicit steps."""
    for _ in range(steps):
        z = cell(z, p, x)
    return z


def predict(p, x, solve):
    """Return the output of the model."""
    z = solve(wf.tensor(np.zeros((x.shape[0], p["w"].shape[0]))), p, x)
    return (z @ p["v"])[:, 0]


def main():
    """Compare the gradients, then train."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smaller run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    width, rounds = (6, 40) if options.quick else (16, 300)
    p = {
        "w": wf.tensor(rng.normal(0, 0.3 * width**-0.5, (width, width))),
        "u": wf.tensor(rng.normal(0, 1.0, (2, width))),
        "b": wf.tensor(np.zeros(width)),
        "v": wf.tensor(rng.normal(0, width**-0.5, (width, 1))),
    }
    x = wf.tensor(rng.uniform(-1, 1, (32, 2)))
    y = wf.sin(3 * x[:, 0]) * x[:, 1]

    def loss(p, solve):
        return ((predict(p, x, solve) - y) ** 2).mean()

    found, expected = wf.grad(loss)(p, equilibrium), wf.grad(loss)(p, unrolled)
    error = max(float(abs(found[n] - expected[n]).max().item()) for n in p)
    print(f"largest difference from the unrolled gradient: {error:.1e}")
    first = loss(p, equilibrium).item()
    for _ in range(rounds):
        grads = wf.grad(loss)(p, equilibrium)
        p = {name: w - 0.3 * grads[name] for name, w in p.items()}
    print(f"loss: {first:.4f} -> {loss(p, equilibrium).item():.4f}")


if __name__ == "__main__":
    main()
