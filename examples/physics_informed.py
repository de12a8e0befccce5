"""Solve a differential equation with a network: u'' = -pi^2 sin(pi x), u(0) = u(1) = 0.

The network is trained to satisfy the equation itself (Raissi, Perdikaris and Karniadakis 2019). Its
second derivative by x comes from forward mode twice, for all points at once by `vmap`; the gradient
by the weights is then taken through it.

    python examples/physics_informed.py
"""

import argparse

import numpy as np

import weft as wf


def make_network(width, rng):
    """Return the weights of two hidden layers."""
    sizes = [(1, width), (width, width), (width, 1)]
    return [
        (
            wf.tensor(rng.normal(0, shape[0] ** -0.5, shape), requires_grad=True),
            wf.tensor(np.zeros(shape[1]), requires_grad=True),
        )
        for shape in sizes
    ]


def u(layers, x):
    """Return the solution at a point, zero at both ends by construction."""
    h = x.reshape((1,))
    for weight, bias in layers[:-1]:
        h = wf.tanh(h @ weight + bias)
    weight, bias = layers[-1]
    return x * (1 - x) * (h @ weight + bias)[0]


def second_derivative(fn, x):
    """Return fn''(x), by forward mode over forward mode."""
    one = wf.ones_like(x)

    def slope(x):
        return wf.jvp(fn, (x,), (one,))[1]

    return wf.jvp(slope, (x,), (one,))[1]


def residual(layers, x):
    """Return how far the equation is from being satisfied at a point."""
    force = np.pi**2 * wf.sin(np.pi * x)
    return second_derivative(lambda x: u(layers, x), x) + force


def main():
    """Train, and compare with the solution sin(pi x)."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smaller run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    steps, width = (300, 8) if options.quick else (1500, 16)
    layers = make_network(width, np.random.default_rng(options.seed))
    points = wf.tensor(np.linspace(0, 1, 21))
    optimizer = wf.optim.Adam([p for layer in layers for p in layer], lr=0.02)
    for step in range(steps):
        loss = (wf.vmap(lambda x: residual(layers, x))(points) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % (steps // 5) == 0:
            print(f"step {step:5}: mean squared residual {loss.item():.3e}")
    with wf.no_grad():
        found = wf.vmap(lambda x: u(layers, x))(points).numpy()
    print(f"largest error: {np.abs(found - np.sin(np.pi * points.numpy())).max():.2e}")


if __name__ == "__main__":
    main()
