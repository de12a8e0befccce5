"""Parameters to optimize, with and without a gradient."""

import weft as wf


def leaf(*values):
    return wf.tensor([float(v) for v in values], requires_grad=True)


def with_grad(value, grad):
    w = leaf(*value)
    w.grad = wf.tensor(list(grad))
    return w
