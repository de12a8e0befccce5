"""Recurrent layers and cells against their formulas, written out in NumPy step by step."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest

import weft as wf
from weft.autodiff.check import check_grads
from weft.nn.recurrent import GRU, LSTM, RNN
from weft.nn.rnn_cells import GRUCell, LSTMCell, RNNCell
from weft.nn.state import functional_call


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference_step(kind, x, state, w, activation=np.tanh):
    """Return the next state, straight from the equations; w maps names to arrays or None."""
    h = state[0]
    bias_ih, bias_hh = (0.0 if w.get(n) is None else w[n] for n in ("bias_ih", "bias_hh"))
    from_x, from_h = w["weight_ih"] @ x + bias_ih, w["weight_hh"] @ h + bias_hh
    if kind is RNN:
        return (activation(from_x + from_h),)
    if kind is GRU:
        (xr, xz, xn), (hr, hz, hn) = np.split(from_x, 3), np.split(from_h, 3)
        r, z = sigmoid(xr + hr), sigmoid(xz + hz)
        return ((1 - z) * np.tanh(xn + r * hn) + z * h,)
    i, f, g, o = np.split(from_x + from_h, 4)
    c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return (h if w.get("weight_hr") is None else w["weight_hr"] @ h, c)


def reference(net, x, states):
    """Return outputs (T, out) and final states of one sequence x (T, in), layer by layer."""
    directions = 2 if net.bidirectional else 1
    activation = np.tanh if getattr(net, "nonlinearity", "tanh") == "tanh" else lambda v: v.clip(0)
    finals = []
    for layer in range(net.num_layers):
        columns = []
        for direction in range(directions):
            suffix = f"_l{layer}" + ("_reverse" if direction else "")
            w = {
                name[: -len(suffix)]: p.detach().numpy()
                for name, p in net.named_parameters()
                if name.endswith(suffix)
            }
            state = tuple(s[layer * directions + direction] for s in states)
            outputs = []
            for step in x[::-1] if direction else x:
                state = reference_step(type(net), step, state, w, activation)
                outputs.append(state[0])
            columns.append(np.array(outputs[::-1] if direction else outputs))
            finals.append(state)
        x = np.concatenate(columns, axis=1)
    return x, [np.array(part) for part in zip(*finals, strict=True)]


def as_states(state):
    return state if isinstance(state, tuple) else (state,)


def draw_states(rng, net, batch):
    runs = net.num_layers * (2 if net.bidirectional else 1)
    sizes = [net.proj_size or net.hidden_size, net.hidden_size][: 2 if type(net) is LSTM else 1]
    return [rng.normal(size=(runs, batch, size)) for size in sizes]


def check_against_reference(net, rng, batch=3, steps=4, with_state=True):
    x = rng.normal(size=(steps, batch, net.input_size))
    states = draw_states(rng, net, batch)
    if not with_state:
        states = [np.zeros_like(s) for s in states]
    given = tuple(map(wf.tensor, states)) if with_state else None
    if given is not None and type(net) is not LSTM:
        (given,) = given
    fed = x.swapaxes(0, 1) if net.batch_first else x
    output, final = net(wf.tensor(fed), given)
    output = output.detach().numpy()
    output = output.swapaxes(0, 1) if net.batch_first else output
    for b in range(batch):
        expected, ends = reference(net, x[:, b], [s[:, b] for s in states])
        np.testing.assert_allclose(output[:, b], expected, rtol=1e-9, atol=1e-12)
        for got, end in zip(as_states(final), ends, strict=True):
            np.testing.assert_allclose(got.detach().numpy()[:, b], end, rtol=1e-9, atol=1e-12)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


KINDS = [
    (RNN, {}),
    (RNN, {"nonlinearity": "relu"}),
    (GRU, {}),
    (LSTM, {}),
    (LSTM, {"proj_size": 2}),
]


@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.parametrize(
    ("layers", "bidirectional"), list(itertools.product((1, 3), (False, True)))
)
@pytest.mark.parametrize(("bias", "batch_first"), [(True, False), (False, True)])
def test_layers_follow_their_equations(
    rng, kind, options, layers, bidirectional, bias, batch_first
):
    net = kind(
        5,
        4,
        num_layers=layers,
        bidirectional=bidirectional,
        bias=bias,
        batch_first=batch_first,
        dtype=wf.float64,
        **options,
    )
    check_against_reference(net, rng)
    check_against_reference(net, rng, with_state=False)


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_input_without_batch(rng, kind, options):
    net = kind(3, 4, num_layers=2, bidirectional=True, batch_first=True, dtype="float64", **options)
    x = rng.normal(size=(5, 3))
    states = [s[:, 0] for s in draw_states(rng, net, 1)]
    given = tuple(map(wf.tensor, states)) if kind is LSTM else wf.tensor(states[0])
    output, final = net(wf.tensor(x), given)
    expected, ends = reference(net, x, states)
    np.testing.assert_allclose(output.detach().numpy(), expected, rtol=1e-9)
    for got, end in zip(as_states(final), ends, strict=True):
        np.testing.assert_allclose(got.detach().numpy(), end, rtol=1e-9)


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_derivatives(rng, kind, options):
    net = kind(2, 3, bidirectional=True, dtype=wf.float64, **options)
    # All positive, so that a ReLU is never near its kink.
    weights = {name: abs(p.detach().numpy()) + 0.1 for name, p in net.named_parameters()}
    x, states = abs(rng.normal(size=(3, 2, 2))), [abs(s) for s in draw_states(rng, net, 2)]

    def run(x, states, weights):
        given = tuple(states) if kind is LSTM else states[0]
        return functional_call(net, weights, x, given)

    check_grads(run, (x, states, weights), order=2)


def test_parameter_names_shapes_and_first_values():
    net = LSTM(3, 4, num_layers=2, bidirectional=True, proj_size=2)
    shapes = {name: p.shape for name, p in net.named_parameters()}
    assert list(shapes)[:5] == [
        "weight_ih_l0",
        "weight_hh_l0",
        "bias_ih_l0",
        "bias_hh_l0",
        "weight_hr_l0",
    ]
    assert shapes["weight_ih_l0"] == (16, 3)
    assert shapes["weight_ih_l1_reverse"] == (16, 4)
    assert shapes["weight_hh_l1"] == (16, 2)
    assert shapes["weight_hr_l0_reverse"] == (2, 4)
    assert all(np.abs(p.detach().numpy()).max() <= 0.5 for p in net.parameters())
    assert np.ptp(net.weight_ih_l0.detach().numpy()) > 0.5
    assert len(net.all_weights) == 4
    assert len(net.all_weights[0]) == 5
    assert [len(w) for w in GRU(2, 3, bias=False).all_weights] == [2]


def test_dropout_acts_between_layers_in_training_only(rng):
    net = GRU(3, 64, num_layers=2, dropout=0.5)
    x = wf.tensor(rng.normal(size=(4, 2, 3)).astype(np.float32))
    wf.manual_seed(0)
    first = net(x)[0].detach().numpy()
    second = net(x)[0].detach().numpy()
    assert not np.array_equal(first, second)
    assert (first != 0).all()  # outputs of the last layer are not dropped
    wf.manual_seed(0)
    assert np.array_equal(net(x)[0].detach().numpy(), first)
    net.eval()
    assert np.array_equal(net(x)[0].detach().numpy(), net(x)[0].detach().numpy())


def test_full_dropout_cuts_the_layers_apart(rng):
    net = RNN(3, 4, num_layers=2, dropout=1.0)
    x = wf.tensor(rng.normal(size=(4, 2, 3)).astype(np.float32), requires_grad=True)
    net(x)[0].sum().backward()
    assert not x.grad.numpy().any()


def test_long_sequences_stay_in_range():
    for kind in (RNN, GRU, LSTM):
        net = kind(1, 2)
        x = wf.full((200, 1, 1), 1e30)
        output, _ = net(x)
        output.sum().backward()
        assert np.abs(output.detach().numpy()).max() <= 1
        assert np.isfinite(net.weight_hh_l0.grad.numpy()).all()


def test_an_empty_batch():
    output, (h, c) = LSTM(3, 4)(wf.zeros(5, 0, 3))
    assert (output.shape, h.shape, c.shape) == ((5, 0, 4), (1, 0, 4), (1, 0, 4))


def test_copies_and_pickles(rng):
    net = LSTM(3, 4, num_layers=2)
    x = wf.tensor(rng.normal(size=(4, 2, 3)).astype(np.float32))
    expected = net(x)[0].detach().numpy()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert np.array_equal(other(x)[0].detach().numpy(), expected)
    fresh = LSTM(3, 4, num_layers=2)
    fresh.load_state_dict(net.state_dict())
    assert np.array_equal(fresh(x)[0].detach().numpy(), expected)


def test_repr():
    shown = repr(LSTM(3, 4, num_layers=2, batch_first=True, dropout=0.5, proj_size=2))
    assert shown == "LSTM(3, 4, proj_size=2, num_layers=2, batch_first=True, dropout=0.5)"
    assert repr(RNNCell(3, 4, bias=False, nonlinearity="relu")) == (
        "RNNCell(3, 4, bias=False, nonlinearity='relu')"
    )


def test_half_precision():
    output, _ = GRU(3, 4, dtype=wf.float16)(wf.ones(2, 1, 3, dtype=wf.float16))
    assert output.dtype == wf.float16


# -- cells ---------------------------------------------------------------------------------------

CELLS = [
    (RNNCell, RNN, {}),
    (RNNCell, RNN, {"nonlinearity": "relu"}),
    (GRUCell, GRU, {}),
    (LSTMCell, LSTM, {}),
]


@pytest.mark.parametrize(("cell", "kind", "options"), CELLS)
@pytest.mark.parametrize("bias", [True, False])
def test_cells_follow_their_equations(rng, cell, kind, options, bias):
    module = cell(3, 4, bias=bias, dtype=wf.float64, **options)
    weights = {name: p.detach().numpy() for name, p in module.named_parameters()}
    activation = np.tanh if not options else lambda v: v.clip(0)
    x, states = rng.normal(size=(2, 3)), rng.normal(size=(2 if cell is LSTMCell else 1, 2, 4))
    given = tuple(map(wf.tensor, states)) if cell is LSTMCell else wf.tensor(states[0])
    batch = as_states(module(wf.tensor(x), given))
    for b in range(2):
        expected = reference_step(kind, x[b], states[:, b], weights, activation)
        single = [wf.tensor(s[b]) for s in states]
        alone = as_states(module(wf.tensor(x[b]), tuple(single) if len(single) > 1 else single[0]))
        for got, one, end in zip(batch, alone, expected, strict=True):
            np.testing.assert_allclose(got.detach().numpy()[b], end, rtol=1e-9)
            np.testing.assert_allclose(one.detach().numpy(), end, rtol=1e-9)


@pytest.mark.parametrize(("cell", "kind", "options"), CELLS)
def test_a_cell_starts_from_zeros(rng, cell, kind, options):
    module = cell(3, 4, **options)
    x = wf.tensor(rng.normal(size=(2, 3)).astype(np.float32))
    zeros = wf.zeros(2, 4)
    explicit = module(x, (zeros, zeros) if cell is LSTMCell else zeros)
    for got, expected in zip(as_states(module(x)), as_states(explicit), strict=True):
        assert np.array_equal(got.detach().numpy(), expected.detach().numpy())


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: RNN(0, 4), ValueError, "RNN: input_size must be at least 1. Received: 0"),
        (lambda: GRU(3, -1), ValueError, "GRU: hidden_size.*-1"),
        (lambda: GRU(3, 2.5), TypeError, "hidden_size must be an integer"),
        (lambda: LSTM(3, 4, num_layers=0), ValueError, "num_layers must be at least 1"),
        (lambda: LSTM(3, 4, proj_size=4), ValueError, r"smaller than hidden_size \(4\).*4"),
        (lambda: LSTM(3, 4, proj_size=-1), ValueError, "proj_size"),
        (lambda: RNN(3, 4, nonlinearity="elu"), ValueError, "'tanh' or 'relu'.*'elu'"),
        (lambda: RNNCell(3, 4, nonlinearity="elu"), ValueError, "RNNCell.*'elu'"),
        (lambda: GRU(3, 4, 2, dropout=1.5), ValueError, r"dropout must lie in \[0, 1\]"),
        (lambda: GRU(3, 4, bias=1), TypeError, "bias must be True or False"),
        (lambda: GRU(3, 4)(np.zeros((2, 3))), TypeError, "GRU: input must be a tensor"),
        (lambda: GRU(3, 4)(wf.zeros(5, 2, 2)), ValueError, r"3 features.*\(5, 2, 2\)"),
        (lambda: GRU(3, 4)(wf.zeros(3)), ValueError, r"\(time, batch, in\) or \(time, in\)"),
        (lambda: GRU(3, 4)(wf.zeros(0, 2, 3)), ValueError, "no time steps"),
        (
            lambda: GRU(3, 4)(wf.zeros(5, 2, 3), wf.zeros(1, 3, 4)),
            ValueError,
            r"hx must have shape \(1, 2, 4\).*Received: \(1, 3, 4\)",
        ),
        (lambda: GRU(3, 4)(wf.zeros(5, 2, 3), [1.0]), TypeError, "hx must hold tensors"),
        (lambda: LSTM(3, 4)(wf.zeros(5, 2, 3), wf.zeros(1, 2, 4)), TypeError, r"a pair \(h, c\)"),
        (lambda: LSTMCell(3, 4)(wf.zeros(2, 3), wf.zeros(2, 4)), TypeError, r"a pair \(h, c\)"),
        (lambda: GRUCell(3, 4)(wf.zeros(2, 3), wf.zeros(2, 5)), ValueError, r"shape \(2, 4\)"),
        (lambda: GRUCell(3, 4)(wf.zeros(2, 2, 3)), ValueError, r"\(batch, in\) or \(in,\)"),
    ],
)
def test_bad_input_is_explained(build, error, match):
    with pytest.raises(error, match=match):
        build()


def test_dropout_of_a_single_layer_is_warned_of():
    with pytest.warns(UserWarning, match="no effect with one layer") as caught:
        LSTM(3, 4, dropout=0.5)
    assert caught[0].filename == __file__
