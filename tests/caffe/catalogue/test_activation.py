"""Elementwise layers against their formulas."""

import numpy as np
import pytest

import weft as wf
from weft.caffe.errors import CaffeError
from weft.caffe.message import NetParameter
from weft.caffe.network import Network
from weft.caffe.text import read_message

from .checking import apart, check, layer, normal

X = apart(2, 3, 4)

FORMULAS = {
    'type: "ReLU"': lambda x: np.maximum(x, 0),
    'type: "ReLU" relu_param { negative_slope: 0.1 }': lambda x: np.where(
        x > 0, x, np.float64(0.1) * x
    ),
    'type: "Sigmoid"': lambda x: 1 / (1 + np.exp(-x)),
    'type: "TanH"': np.tanh,
    'type: "AbsVal"': np.abs,
    'type: "BNLL"': lambda x: np.log(1 + np.exp(x)),
    'type: "ELU" elu_param { alpha: 0.5 }': lambda x: np.where(x > 0, x, 0.5 * np.expm1(x)),
    'type: "Power" power_param { power: 3 scale: 2 shift: 5 }': lambda x: (5 + 2 * x) ** 3,
    'type: "Power" power_param { scale: 0.25 }': lambda x: x / 4,
    'type: "Exp"': np.exp,
    'type: "Exp" exp_param { base: 2 scale: 3 shift: 1 }': lambda x: 2.0 ** (3 * x + 1),
    'type: "Log" log_param { base: 2 scale: 0.5 shift: 4 }': lambda x: np.log2(0.5 * x + 4),
    'type: "Swish" swish_param { beta: 0.5 }': lambda x: x / (1 + np.exp(-x / 2)),
    'type: "Swish"': lambda x: x / (1 + np.exp(-x)),
    'type: "Clip" clip_param { min: -0.3 max: 0.25 }': lambda x: np.clip(x, -0.3, 0.25),
    'type: "Threshold" threshold_param { threshold: 0.1 }': lambda x: (x > 0.1) * 1.0,
}


@pytest.mark.parametrize("text", FORMULAS, ids=lambda text: text[7:30])
def test_formulas(text):
    check(text, X, reference=FORMULAS[text], differentiable=() if "Threshold" in text else None)


def test_prelu_has_a_slope_for_each_channel():
    def reference(x, a):
        return np.where(x > 0, x, x * a[:, None])

    check('type: "PReLU"', X, reference=reference)


def test_prelu_may_share_one_slope():
    shared = 'type: "PReLU" prelu_param { channel_shared: true }'
    check(shared, X, reference=lambda x, a: np.where(x > 0, x, x * a))


def test_slopes_of_prelu_begin_at_a_quarter():
    text = 'input: "x" input_shape { dim: 1 dim: 2 } layer { type: "PReLU" bottom: "x" top: "y" }'
    net = Network(read_message(text, NetParameter), "TEST")
    assert net.learned_blobs()[0].value.tolist() == [0.25, 0.25]


def test_dropout_scales_what_it_keeps():
    made = layer('type: "Dropout" dropout_param { dropout_ratio: 0.25 }', X)
    x = wf.ones((200, 200))
    y = made(x).numpy()
    assert set(np.unique(y)) == {0, np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.02


def test_dropout_may_scale_in_the_test_phase_instead():
    text = 'type: "Dropout" dropout_param { dropout_ratio: 0.25 scale_train: false }'
    assert set(np.unique(layer(text, X)(wf.ones((100, 100))).numpy())) == {0, 1}
    check(text, X, reference=lambda x: x * 0.75, phase=1)
    check('type: "Dropout"', X, reference=lambda x: x, phase=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('type: "Dropout" dropout_param { dropout_ratio: 1 }', "dropout_ratio must lie between"),
        ('type: "Exp" exp_param { base: -3 }', "base must be strictly positive"),
        ('type: "Clip"', "clip_param needs min and max"),
        ('type: "ReLU" top: "a" top: "b"', r"ReLU Layer takes 1 top blob\(s\) as output.*: 2"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(CaffeError, match=message):
        layer(text, normal(2, 2))
