"""Python layers: classes of a program between the layers of a net."""

import sys
from types import ModuleType

import numpy as np
import pytest

from weft import caffe
from weft.caffe.message import NetParameter
from weft.caffe.network import Network
from weft.caffe.text import read_message


class Doubled(caffe.Layer):
    """The layer of Caffe's own test: it multiplies by what param_str says."""

    def setup(self, bottom, top):
        self.factor = float(self.param_str or 2)

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom, top):
        top[0].data[...] = self.factor * bottom[0].data

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] = self.factor * top[0].diff


class Learned(caffe.Layer):
    def setup(self, bottom, top):
        self.blobs.add_blob(1)
        self.blobs[0].data[0] = 3

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom, top):
        top[0].data[...] = self.blobs[0].data * bottom[0].data

    def backward(self, top, propagate_down, bottom):
        self.blobs[0].diff[0] += (top[0].diff * bottom[0].data).sum()
        bottom[0].diff[...] = self.blobs[0].data * top[0].diff


@pytest.fixture(autouse=True)
def module(monkeypatch):
    made = ModuleType("user_layers")
    made.Doubled, made.Learned = Doubled, Learned
    monkeypatch.setitem(sys.modules, "user_layers", made)


def net(kind, more=""):
    text = f"""force_backward: true input: "x" input_shape {{ dim: 2 dim: 3 }}
        layer {{ name: "one" type: "Python" bottom: "x" top: "y" {more}
                 python_param {{ module: "user_layers" layer: "{kind}" }} }}
        layer {{ name: "two" type: "Python" bottom: "y" top: "z"
                 python_param {{ module: "user_layers" layer: "Doubled" param_str: "5" }} }}"""
    return read_message(text, NetParameter)


def test_forward_and_backward_are_the_users():
    made = caffe.Net(net("Doubled"), caffe.TEST)
    made.blobs["x"].data[...] = 1.5
    np.testing.assert_allclose(made.forward()["z"], 15)
    np.testing.assert_allclose(made.backward(z=np.ones((2, 3)))["x"], 10)


def test_blobs_of_a_python_layer_are_learned():
    made = Network(net("Learned", "param { lr_mult: 0.5 }"), "TRAIN")
    x = np.arange(6, dtype="f").reshape(2, 3)
    (blob,) = made.learned_blobs()
    assert (blob.lr_mult, blob.value.tolist()) == (0.5, [3])
    made(x).sum().backward()
    assert blob.value.grad.tolist() == [75]


def test_a_class_that_is_not_there():
    with pytest.raises(caffe.CaffeError, match=r"user_layers\.Nothing, which cannot be imported"):
        Network(net("Nothing"))
