"""Recurrent layers against loops over time steps."""

import numpy as np
import pytest

import weft as wf
from weft.caffe.errors import CaffeError

from .checking import check, layer, normal

CONT = np.array([[0, 1.0], [1, 1], [1, 0]])
X = normal(3, 2, 4)
SIZE = 2


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, cont, w, b, u, hidden, cell, static=0.0):
    outputs = []
    for t in range(len(x)):
        keep = cont[t][:, None]
        i, f, o, g = np.split(x[t] @ w.T + b + static + (keep * hidden) @ u.T, 4, 1)
        cell = keep * sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        outputs.append(hidden)
    return np.stack(outputs), hidden, cell


def rnn(x, cont, w, b, u, v, c, hidden):
    outputs = []
    for t in range(len(x)):
        hidden = np.tanh(x[t] @ w.T + b + (cont[t][:, None] * hidden) @ u.T)
        outputs.append(np.tanh(hidden @ v.T + c))
    return np.stack(outputs), hidden


ZERO = np.zeros((2, SIZE))
PARAM = f"recurrent_param {{ num_output: {SIZE} %s }}"


def fresh(text, *bottoms):
    """Return a layer in float64 whose states are zeros whenever it is called."""
    made = layer(text, *bottoms)
    run = made.forward

    def forward(*given):
        for name in made.states:
            if not made.exposed:
                setattr(made, name, wf.tensor(ZERO))
        return run(*given)

    made.__dict__["forward"] = forward
    return made


def test_lstm():
    text = 'type: "LSTM" ' + PARAM % ""

    def reference(x, cont, w, b, u):
        return lstm(x, cont, w, b, u, ZERO, ZERO)[0]

    check("", X, CONT, reference=reference, made=fresh(text, X, CONT), differentiable=(0,))


def test_lstm_with_a_static_input():
    static = normal(2, 3)

    def reference(x, cont, static, w, b, ws, u):
        return lstm(x, cont, w, b, u, ZERO, ZERO, static @ ws.T)[0]

    made = fresh('type: "LSTM" ' + PARAM % "", X, CONT, static)
    check("", X, CONT, static, reference=reference, made=made, differentiable=(0, 2))


def test_lstm_with_exposed_states():
    def reference(x, cont, h, c, w, b, u):
        y, h, c = lstm(x, cont, w, b, u, h[0], c[0])
        return y, h[None], c[None]

    text = 'type: "LSTM" top: "y" top: "h" top: "c" ' + PARAM % "expose_hidden: true"
    states = normal(1, 2, SIZE), normal(1, 2, SIZE)
    check(text, X, CONT, *states, reference=reference, differentiable=(0, 2, 3))


def test_rnn():
    def reference(x, cont, *weights):
        return rnn(x, cont, *weights, ZERO)[0]

    made = fresh('type: "RNN" ' + PARAM % "", X, CONT)
    check("", X, CONT, reference=reference, made=made, differentiable=(0,))


def test_the_next_batch_begins_where_the_last_one_ended():
    made = layer('type: "LSTM" ' + PARAM % "", X, CONT)
    for name in made.states:
        setattr(made, name, wf.tensor(ZERO))
    on = np.ones((3, 2))
    weights = [made.blob(i).detach().numpy() for i in range(3)]
    first = made(wf.tensor(X), wf.tensor(on))[0]
    second = made(wf.tensor(X), wf.tensor(on))[0]
    y, h, c = lstm(X, on, *weights, ZERO, ZERO)
    np.testing.assert_allclose(first.detach().numpy(), y)
    np.testing.assert_allclose(second.detach().numpy(), lstm(X, on, *weights, h, c)[0])


def test_another_number_of_streams_begins_anew():
    made = layer('type: "RNN" ' + PARAM % "", X, CONT).float()
    assert made(wf.ones((3, 5, 4)), wf.ones((3, 5)))[0].shape == (3, 5, SIZE)


@pytest.mark.parametrize(
    ("text", "bottoms", "message"),
    [
        ('type: "LSTM"', (X, CONT), "num_output must be positive"),
        ('type: "LSTM" ' + PARAM % "", (X, normal(3)), "must have exactly 2 axes"),
        ('type: "LSTM" ' + PARAM % "expose_hidden: true", (X, CONT), "takes 4 or 5 bottoms"),
    ],
)
def test_what_is_refused(text, bottoms, message):
    with pytest.raises(CaffeError, match=message):
        layer(text, *bottoms)
