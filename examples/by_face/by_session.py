"""Define and run: placeholders, `minimize`, a session."""

from by_loop import Net, weights_of
from task import BATCH, INPUTS, OUTPUTS, RATE, Trained, batches

import weft as wf
import weft.nn.functional as F


def train() -> Trained:
    """Train by feeding a graph."""
    net = Net()
    with wf.Graph() as graph:
        x = wf.placeholder((BATCH, INPUTS), wf.float32, name="x")
        y = wf.placeholder((BATCH, OUTPUTS), wf.float32, name="y")
        step = wf.optim.SGD(net.parameters(), lr=RATE).minimize(F.mse_loss(net(x), y))
    session = wf.Session(graph)
    for inputs, targets in batches():
        session.run(step, {x: inputs, y: targets})
    return Trained(weights_of(net), graph)
