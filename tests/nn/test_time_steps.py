"""Recurrent layers on large tensors, which are programs, beside the same step by step."""

import numpy as np
import pytest

import weft as wf
from weft.core.large import LARGE
from weft.nn.time_steps import _layer_for_programs, _layer_over_time

TIME, BATCH, FEATURES, HIDDEN = 9, 37, 201, 23
assert TIME * BATCH * FEATURES >= LARGE

LAYERS = {
    "rnn": lambda **options: wf.nn.RNN(FEATURES, HIDDEN, nonlinearity="relu", **options),
    "gru": lambda **options: wf.nn.GRU(FEATURES, HIDDEN, **options),
    "lstm": lambda **options: wf.nn.LSTM(FEATURES, HIDDEN, **options),
    "lstm with projection": lambda **options: wf.nn.LSTM(FEATURES, HIDDEN, proj_size=5, **options),
}
LAST = {"batch_first": True}
BOTH_WAYS = {"bidirectional": True, "num_layers": 2, "batch_first": True}
CASES = [
    *((name, options, "float32") for name in LAYERS for options in ({}, LAST)),
    ("lstm", {"bias": False, **LAST}, "float32"),
    ("gru", BOTH_WAYS, "float32"),
    ("lstm", LAST, "float64"),
]


def shape_for(options):
    return (BATCH, TIME, FEATURES) if options.get("batch_first") else (TIME, BATCH, FEATURES)


def results(layer, x):
    """Return the outputs, the last states and all gradients of a layer."""
    layer.zero_grad()
    x = wf.tensor(x, requires_grad=True)
    y, final = layer(x)
    states = final if isinstance(final, tuple) else (final,)
    (wf.sum(wf.square(y)) + sum(wf.sum(wf.tanh(s)) for s in states)).backward()
    found = (y, *states, x.grad, *(p.grad for p in layer.parameters()))
    return [t.detach().numpy() for t in found]


@pytest.mark.parametrize(("name", "options", "dtype"), CASES, ids=str)
def test_programs_compute_what_steps_do(name, options, dtype, monkeypatch):
    wf.manual_seed(0)
    layer = LAYERS[name](dtype=dtype, **options)
    x = np.random.default_rng(0).normal(size=shape_for(options)).astype(dtype)
    monkeypatch.setattr(wf.config, "eager_kernels", True)
    found = results(layer, x)
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    for one, other in zip(found, results(layer, x), strict=True):
        scale = max(1.0, float(np.abs(other).max()))
        np.testing.assert_allclose(one / scale, other / scale, atol=2e-6)


def test_second_derivatives_of_a_program(monkeypatch):
    wf.manual_seed(0)
    layer = wf.nn.GRU(FEATURES, 4, batch_first=True, dtype="float64")
    x = np.random.default_rng(0).normal(size=shape_for(LAST))

    def second():
        leaf = wf.tensor(x, requires_grad=True)
        (g,) = wf.gradients(wf.sum(wf.square(layer(leaf)[0])), [leaf], create_graph=True)
        return wf.gradients(wf.sum(g * g), leaf).numpy()

    monkeypatch.setattr(wf.config, "eager_kernels", True)
    found = second()
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    np.testing.assert_allclose(found, second(), atol=1e-10)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_both_forms_are_the_same_function(axis, backward):
    rng = np.random.default_rng(0)
    shapes = [(3, 2, 5) if axis else (2, 3, 5), (12, 5), (12, 3), (12,), (12,)]
    tensors = [wf.tensor(rng.normal(size=s)) for s in shapes]
    state = [wf.tensor(rng.normal(size=(3, 3))) for _ in range(2)]
    operands = ("LSTM", *tensors, None, *state)
    graph_results = []
    for layer in (_layer_over_time, _layer_for_programs):
        with wf.Graph() as graph:
            made = layer(*operands, axis=axis, backward=backward)
        graph_results.append(wf.Session(graph).run(list(made)))
    stepwise = _layer_over_time(*operands, axis=axis, backward=backward)
    for by_graph in graph_results:
        for one, other in zip(by_graph, stepwise, strict=True):
            np.testing.assert_allclose(one, other.numpy(), atol=1e-12)
