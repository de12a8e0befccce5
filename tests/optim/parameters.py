"""Parameters to optimize, with and without a gradient."""

import numpy as np

import weft as wf


def leaf(*values, dtype=np.float32):
    return wf.tensor(np.array(values, dtype), requires_grad=True)


def with_grad(value, grad):
    w = leaf(*value)
    w.grad = wf.tensor(list(grad))
    return w
