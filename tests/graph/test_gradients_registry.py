"""Derivatives as passes over a graph equal those of eager mode, over the whole registry.

The rules are the same and so are the kernels: first derivatives agree to the last bit. The second
derivative of a sample sums more than two terms in places, in an order that the tape and the graph
need not share, so it agrees to rounding.
"""

from __future__ import annotations

import numpy as np

import weft as wf
from tests.ops import conformance as c
from tests.ops.by_operator import first, over
from weft.core.tensor import Tensor


def differentiable(case):
    floats = (np.dtype(np.float32), np.dtype(np.float64))
    return case.sample.grad and any(a.dtype in floats for a in c.Arguments.of(case.sample).arrays())


CASES = [case for case in c.cases() if differentiable(case)]
SECOND_ORDER = [
    case
    for case in CASES
    if case.sample.grad > 1
    and any(a.dtype == np.float64 for a in c.Arguments.of(case.sample).arrays())
]


def is_float(x):
    return isinstance(x, Tensor) and x.dtype.kind == "f"


class Call:
    """One sample called twice: eagerly on leaves, and in a graph on placeholders."""

    def __init__(self, case):
        self.case = case
        self.given = c.Arguments.of(case.drawn())
        self.feeds = {}

    def eager(self):
        """Return the floating outputs and inputs of the call."""
        return self._run(c.to_leaf)

    def symbolic(self):
        """Return the same as symbols of the open graph; note what to feed."""
        return self._run(lambda a: self.fed(a) if a.dtype.kind == "f" else c.to_tensor(a))

    def fed(self, array, shape=None):
        """Return a placeholder that runs will feed with an array."""
        symbol = wf.placeholder(array.shape if shape is None else shape, array.dtype)
        self.feeds[symbol] = array
        return symbol

    def _run(self, convert):
        made = []

        def note(array):
            made.append(convert(array))
            return made[-1]

        result = self.given.map(note).call(self.case.differentiated())
        return [y for y in c.outputs_of(result) if is_float(y)], [x for x in made if is_float(x)]


def directions(tensors, seed=0):
    """Return fixed arrays like the given tensors."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(t.shape).astype(t.dtype) for t in tensors]


def weighted(gs, weights):
    """Return one number that depends on all gradients."""
    total = 0.0
    for g, w in zip(gs, weights, strict=True):
        if g is not None and g.requires_grad:
            total = total + (g * w).sum()
    return total


def same_bits(found, expected, what):
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert (a is None) == (b is None), f"{what} {i}: {a} in the graph, {b} eagerly"
        if b is not None:
            np.testing.assert_array_equal(a, b.numpy(), err_msg=f"{what} {i}", strict=True)


def on_the_tape(ys, xs, seeds, **options):
    """Return the gradients of those outputs that have any."""
    pairs = [(y, wf.tensor(s)) for y, s in zip(ys, seeds, strict=True) if y.requires_grad]
    if not pairs:
        return [None] * len(xs)
    return wf.gradients([y for y, _ in pairs], xs, [s for _, s in pairs], **options)


@over(CASES)
def test_reverse_equals_the_tape(case):
    call = Call(case)
    ys, xs = call.eager()
    seeds = directions(ys)
    expected = on_the_tape(ys, xs, seeds)
    with wf.Graph() as graph:
        outputs, inputs = call.symbolic()
        gs = [call.fed(s, y.shape) for s, y in zip(seeds, outputs, strict=True)]
        found = wf.gradients(outputs, inputs, gs)
    same_bits(wf.Session(graph).run(found, call.feeds), expected, f"gradient of {case.id}")


@over(CASES)
def test_forward_equals_jvp(case):
    call = Call(case)
    _, xs = call.eager()
    tangents = directions(xs, 1)
    expected = eager_jvp(call, tangents)
    with wf.Graph() as graph:
        outputs, inputs = call.symbolic()
        found = wf.forward_gradients(outputs, inputs, [call.fed(t) for t in tangents])
    values = wf.Session(graph).run(found, call.feeds)
    for i, (a, b) in enumerate(zip(values, expected, strict=True)):
        if a is None:
            assert not b.numpy().any()  # jvp gives zeros where nothing depends on the inputs
        else:
            np.testing.assert_array_equal(a, b.numpy(), err_msg=f"{case.id}, {i}", strict=True)


def eager_jvp(call, tangents):
    """Return the tangents of the floating outputs by dual numbers."""
    arrays = [a for a in call.given.arrays() if a.dtype.kind == "f"]

    def fn(*duals):
        left = iter(duals)
        arguments = call.given.map(lambda a: next(left) if a.dtype.kind == "f" else c.to_tensor(a))
        return [y for y in c.outputs_of(arguments.call(call.case.differentiated())) if is_float(y)]

    given = [wf.tensor(t) for t in tangents]
    return wf.jvp(fn, [c.to_tensor(a) for a in arrays], given)[1]


@over(SECOND_ORDER, ordinary=first)  # the rest are mostly other shapes of the same
def test_second_order_equals_the_tape(case):
    call = Call(case)
    ys, xs = call.eager()
    seeds, weights = directions(ys), directions(xs, 2)
    first = on_the_tape(ys, xs, seeds, create_graph=True)
    scalar = weighted(first, [wf.tensor(w) for w in weights])
    linear = not isinstance(scalar, Tensor)
    expected = [None] * len(xs) if linear else wf.gradients(scalar, xs)
    with wf.Graph() as graph:
        outputs, inputs = call.symbolic()
        gs = [call.fed(s, y.shape) for s, y in zip(seeds, outputs, strict=True)]
        first = wf.gradients(outputs, inputs, gs)
        scalar = weighted(first, [call.fed(w) for w in weights])
        found = [None] * len(inputs)
        if isinstance(scalar, Tensor):
            found = wf.gradients(scalar, inputs)
    values = wf.Session(graph).run(found, call.feeds)
    for i, (a, b) in enumerate(zip(values, expected, strict=True)):
        close(np.zeros(()) if a is None else a, np.zeros(()) if b is None else b.numpy(), i)


def close(found, expected, i):
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13 * scale, err_msg=f"x {i}")
