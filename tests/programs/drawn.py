"""What programs drawn from a seed share: drawing, feeding, and functions that keep errors small.

An error of a float's last bit stays one through each of these functions, so that programs of them
can be compared between two ways of computing them.
"""

from __future__ import annotations

import numpy as np

import weft as wf

F = wf.nn.functional

UNARY = {
    "tanh": wf.tanh,
    "sigmoid": wf.sigmoid,
    "bell": lambda x: wf.exp(-x * x),
    "sin": lambda x: wf.sin(x) * 0.5,
    "cos": wf.cos,
    "log1p": lambda x: wf.log1p(x * x),
    "sqrt": lambda x: wf.sqrt(x * x + 1.0),
    "rsqrt": lambda x: wf.rsqrt(x * x + 1.0),
    "gelu": F.gelu,
    "softplus": lambda x: F.softplus(x) * 0.3,
    "silu": F.silu,
    "relu": wf.relu,
    "abs": wf.abs,
    "quotient": lambda x: x / (1.0 + x * x),
    "erf": wf.erf,
    "atan": wf.atan,
    "asinh": wf.asinh,
    "expm1": lambda x: wf.expm1(-wf.abs(x)),
    "pow": lambda x: wf.pow(wf.abs(x) + 1.0, 0.5),
    "line": lambda x: -x * 0.7 + 0.1,
}
BINARY = {
    "sum": lambda x, y: wf.tanh(x + y),
    "difference": lambda x, y: x * 0.5 - y * 0.25,
    "product": lambda x, y: wf.tanh(x * y),
    "maximum": wf.maximum,
    "minimum": wf.minimum,
    "hypot": lambda x, y: wf.hypot(x, y + 0.5),
    "logaddexp": lambda x, y: wf.logaddexp(x, y) * 0.3,
    "atan2": lambda x, y: wf.atan2(x, wf.abs(y) + 1.0),
    "quotient": lambda x, y: x / (2.0 + wf.abs(y)),
}
REDUCTIONS = {
    "mean": wf.mean,
    "sum": lambda x, **how: wf.tanh(wf.sum(x, **how)),
    "logsumexp": lambda x, **how: wf.logsumexp(x, **how) * 0.3,
    "max": wf.max,
    "min": wf.min,
    "var": lambda x, **how: wf.var(x, correction=0, **how),
    "norm": lambda x, **how: wf.sqrt(wf.sum(wf.square(x), **how) + 1.0) * 0.1,
}
ROWS = {
    "softmax": lambda x: F.softmax(x, axis=-1),
    "log_softmax": lambda x: F.log_softmax(x, axis=-1) * 0.2,
    "column_softmax": lambda x: F.softmax(x, axis=0),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:], eps=0.1),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:], eps=0.1),
    "center": lambda x: x - wf.mean(x, axis=-1, keepdims=True),
}


class Drawn:
    """A program that is drawn from a seed, with the arrays that it is fed."""

    def __init__(self, seed, dtype=None):
        self.rng = np.random.default_rng(seed)
        self.dtype = np.dtype(dtype)
        self.feeds = {}

    def _choose(self, options):
        return options[int(self.rng.integers(len(options)))]

    def _feed(self, shape, array):
        symbol = wf.placeholder(shape, array.dtype)
        self.feeds[symbol] = array
        return symbol

    def _normal(self, shape):
        """Return a placeholder that is fed normal numbers."""
        return self._feed(shape, self.rng.normal(size=shape).astype(self.dtype))
