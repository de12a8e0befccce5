"""Fit a differential equation to data: dz/dt = f(z, weights), solved by Runge-Kutta.

The gradient through the solver comes in three ways, which must agree: plain backpropagation, which
keeps every stage; checkpoints, which keep one state for each stretch of steps and compute the rest
again; and the adjoint method (Chen et al. 2018), which keeps nothing and solves a second equation
backwards in time, here with the same steps.

    python examples/neural_ode.py
"""

import argparse
from math import isqrt

import numpy as np

import weft as wf

SPAN = 2.0


def field(z, weights):
    """Return dz/dt of a small network."""
    return wf.tanh(z @ weights["w1"] + weights["b1"]) @ weights["w2"]


def step(z, weights, dt):
    """Return the state after one step of the classical Runge-Kutta method."""
    a = field(z, weights)
    b = field(z + 0.5 * dt * a, weights)
    c = field(z + 0.5 * dt * b, weights)
    d = field(z + dt * c, weights)
    return z + dt / 6 * (a + 2 * b + 2 * c + d)


def plain(z, weights, steps):
    """Return the last state; the gradient keeps every stage."""
    for _ in range(steps):
        z = step(z, weights, SPAN / steps)
    return z


def checkpointed(z, weights, steps):
    """Return the same; the gradient keeps one state for each stretch."""
    stretch = isqrt(steps)

    @wf.checkpoint
    def several(z, weights):
        for _ in range(stretch):
            z = step(z, weights, SPAN / steps)
        return z

    for _ in range(steps // stretch):
        z = several(z, weights)
    return plain_rest(z, weights, steps, steps - steps // stretch * stretch)


def plain_rest(z, weights, steps, count):
    """Take the steps that fill no stretch."""
    for _ in range(count):
        z = step(z, weights, SPAN / steps)
    return z


def by_adjoint(steps):
    """Return the same solver with the adjoint equation as its derivative."""

    @wf.custom_vjp
    def solve(z, weights):
        return plain(z, weights, steps)

    def forward(z, weights):
        last = plain(z, weights, steps)
        return last, (last, weights)

    def backward(saved, g):
        z, weights = saved
        totals = {name: wf.zeros_like(w) for name, w in weights.items()}
        for _ in range(steps):  # back in time: the state again, and its adjoint beside it
            z = step(z, weights, -SPAN / steps)
            _, pull = wf.vjp(lambda z, w: step(z, w, SPAN / steps), z, weights)
            g, parts = pull(g)
            totals = {name: totals[name] + parts[name] for name in totals}
        return g, totals

    solve.defvjp(forward, backward)
    return solve


def main():
    """Compare the three gradients, then fit a spiral."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smaller run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    width, steps, rounds = (8, 20, 60) if options.quick else (32, 50, 400)
    weights = {
        "w1": wf.tensor(rng.normal(0, 0.7, (2, width))),
        "b1": wf.tensor(np.zeros(width)),
        "w2": wf.tensor(rng.normal(0, width**-0.5, (width, 2))),
    }
    start = wf.tensor(rng.normal(size=(16, 2)))
    turn = np.array([[np.cos(1.0), np.sin(1.0)], [-np.sin(1.0), np.cos(1.0)]])
    target = wf.tensor(0.8 * start.numpy() @ turn)

    def loss(weights, solve):
        return ((solve(start, weights) - target) ** 2).mean()

    ways = {
        "plain": lambda z, w: plain(z, w, steps),
        "checkpoint": lambda z, w: checkpointed(z, w, steps),
        "adjoint": by_adjoint(steps),
    }
    grads = {name: wf.grad(loss)(weights, solve) for name, solve in ways.items()}
    for name in ("checkpoint", "adjoint"):
        print(f"difference of {name}: {difference(grads[name], grads['plain']):.1e}")

    first = loss(weights, ways["plain"]).item()
    for _ in range(rounds):
        g = wf.grad(loss)(weights, ways["adjoint"])
        weights = {name: w - 0.3 * g[name] for name, w in weights.items()}
    print(f"loss: {first:.4f} -> {loss(weights, ways['plain']).item():.4f}")


def difference(a, b):
    """Return the largest relative difference between two trees of gradients."""
    return max(float((abs(a[n] - b[n]).max() / abs(b[n]).max()).item()) for n in a)


if __name__ == "__main__":
    main()
