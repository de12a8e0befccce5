"""Learn to learn (MAML, Finn et al. 2017): one gradient step from these weights fits a sine curve.

The inner step is ordinary: `wf.grad` of the loss on five points, and a step against it. The outer
gradient is taken through that step, so it contains second derivatives. Tasks are mapped over by
`vmap`: grad of a mean of vmapped functions that call grad.

    python examples/maml.py
"""

import argparse

import numpy as np

import weft as wf

RATE = 0.05  # of the inner step


def make_weights(rng, width=32):
    """Return the weights of a perceptron from a number to a number."""
    return {
        "w1": wf.tensor(rng.normal(0, 1.0, (1, width))),
        "b1": wf.tensor(rng.normal(0, 1.0, width)),
        "w2": wf.tensor(rng.normal(0, width**-0.5, (width, width))),
        "b2": wf.tensor(np.zeros(width)),
        "w3": wf.tensor(rng.normal(0, width**-0.5, (width, 1))),
        "b3": wf.tensor(np.zeros(1)),
    }


def predict(p, x):
    """Return the curve at a column of points."""
    h = wf.tanh(x @ p["w1"] + p["b1"])
    h = wf.tanh(h @ p["w2"] + p["b2"])
    return h @ p["w3"] + p["b3"]


def loss(p, x, y):
    """Return the mean squared error."""
    return ((predict(p, x) - y) ** 2).mean()


def adapted(p, x, y):
    """Return the weights after one gradient step on a task."""
    grads = wf.grad(loss)(p, x, y)
    return {name: p[name] - RATE * grads[name] for name in p}


def after_one_step(p, tasks):
    """Return the loss on new points of each task after a step on its first points, averaged."""
    losses = wf.vmap(
        lambda x, y, more_x, more_y: loss(adapted(p, x, y), more_x, more_y), in_axes=0
    )(*tasks)
    return losses.mean()


def draw_tasks(rng, count, points=5):
    """Return points of sine curves with random amplitude and phase: to learn from, and to test."""
    amplitude = rng.uniform(0.5, 2.0, (count, 1, 1))
    phase = rng.uniform(0, np.pi, (count, 1, 1))
    sets = []
    for _ in range(2):
        x = rng.uniform(-2, 2, (count, points, 1))
        sets += [wf.tensor(x), wf.tensor(amplitude * np.sin(x + phase))]
    return sets


def main():
    """Train the weights, and compare what one step from them reaches."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smaller run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    weights = {name: w.requires_grad_() for name, w in make_weights(rng).items()}
    held_out = draw_tasks(rng, 100)
    first = after_one_step(weights, held_out).item()
    optimizer = wf.optim.Adam(list(weights.values()), lr=3e-3)
    for _ in range(150 if options.quick else 1500):
        optimizer.zero_grad()
        after_one_step(weights, draw_tasks(rng, 8)).backward()
        optimizer.step()
    last = after_one_step(weights, held_out).item()
    print(f"loss after one step on a new task: {first:.3f} -> {last:.3f}")


if __name__ == "__main__":
    main()
