"""What all faces train: a small regression, from the same weights, on the same batches."""

from typing import Any, NamedTuple

import numpy as np

ROWS, INPUTS, HIDDEN, OUTPUTS = 320, 6, 16, 2
BATCH, STEPS, RATE = 16, 100, 0.05
EPOCHS = STEPS * BATCH // ROWS


class Trained(NamedTuple):
    """What a face leaves: weights in the order of `start`, and the graph of its step."""

    weights: list[Any]
    graph: Any


def data() -> tuple[Any, Any]:
    """Return inputs (rows, 6) and targets (rows, 2)."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, INPUTS)).astype(np.float32)
    y = np.stack([np.sin(x[:, 0]) + x[:, 1], x[:, 2] * x[:, 3]], 1)
    return x, y.astype(np.float32)


def start() -> list[Any]:
    """Return the weights and biases of two layers, as (outputs, inputs) and (outputs,)."""
    rng = np.random.default_rng(1)
    shapes = [(HIDDEN, INPUTS), (HIDDEN,), (OUTPUTS, HIDDEN), (OUTPUTS,)]
    return [(rng.normal(size=shape) * 0.4).astype(np.float32) for shape in shapes]


def batches() -> Any:
    """Yield the batches of all steps, in the order of the rows."""
    x, y = data()
    for step in range(STEPS):
        rows = slice(step * BATCH % ROWS, step * BATCH % ROWS + BATCH)
        yield x[rows], y[rows]


def recorded(captures: Any) -> Any:
    """Return the graph of the step that a face has compiled."""
    graphs = [jitted.graph() for jitted in captures._made.values()]
    return max(graphs, key=lambda graph: len(graph.nodes))
