"""The same loop, its step compiled."""

from by_loop import stepper, weights_of
from task import Trained, batches

import weft as wf


def train() -> Trained:
    """Train by one native call a step."""
    net, step = stepper()
    compiled = wf.jit(step)
    for x, y in batches():
        compiled(wf.tensor(x), wf.tensor(y))
    return Trained(weights_of(net), compiled.graph())
