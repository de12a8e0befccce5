"""NetSpec: nets written in Python become those that prototxt files say."""

import pytest

from weft import caffe
from weft.caffe import layers as L
from weft.caffe import params as P
from weft.caffe.errors import CaffeError
from weft.caffe.message import NetParameter
from weft.caffe.text import read_message


def lenet():
    n = caffe.NetSpec()
    n.data, n.label = L.DummyData(
        shape=[{"dim": [2, 1, 12, 12]}, {"dim": [2]}], ntop=2, transform_param={"scale": 0.5}
    )
    n.conv1 = L.Convolution(
        n.data,
        kernel_size=5,
        num_output=4,
        weight_filler={"type": "xavier"},
        param=[{"lr_mult": 2}],
    )
    n.pool1 = L.Pooling(n.conv1, kernel_size=2, stride=2, pool=P.Pooling.AVE)
    n.relu1 = L.ReLU(n.pool1, in_place=True)
    n.ip1 = L.InnerProduct(n.relu1, num_output=10)
    n.loss = L.SoftmaxWithLoss(n.ip1, n.label)
    return n.to_proto()


def test_a_net_is_what_its_text_says():
    text = """
      layer { name: "data" type: "DummyData" top: "data" top: "label"
              dummy_data_param { shape { dim: [2, 1, 12, 12] } shape { dim: 2 } }
              transform_param { scale: 0.5 } }
      layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1" param { lr_mult: 2 }
              convolution_param { kernel_size: 5 num_output: 4 weight_filler { type: "xavier" } } }
      layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
              pooling_param { kernel_size: 2 stride: 2 pool: AVE } }
      layer { name: "relu1" type: "ReLU" bottom: "pool1" top: "pool1" }
      layer { name: "ip1" type: "InnerProduct" bottom: "pool1" top: "ip1"
              inner_product_param { num_output: 10 } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip1" bottom: "label" top: "loss" }
    """
    assert lenet() == read_message(text, NetParameter)


def test_what_it_makes_runs():
    net = caffe.Net(read_message(str(lenet()), NetParameter), caffe.TRAIN)
    assert net.forward()["loss"] == pytest.approx(2.302585, rel=1e-4)


def test_unnamed_layers_get_names():
    data = L.Input(shape={"dim": [1, 2]})
    net = caffe.to_proto(L.ReLU(L.ReLU(data)), L.Sigmoid(data, name="s"))
    assert [layer.name for layer in net.layer] == ["Input1", "ReLU1", "ReLU2", "s"]


def test_what_is_refused():
    with pytest.raises(TypeError, match=r"Convolution input 0 is not a Top \(type is int\)"):
        L.Convolution(3)
    with pytest.raises(TypeError, match="takes what layers return"):
        caffe.NetSpec().x = 3
    with pytest.raises(CaffeError, match=r"has no field named .kernel_sice.; did you mean"):
        caffe.to_proto(L.Convolution(L.Input(), kernel_sice=3))
    with pytest.raises(AttributeError, match="has no top 'x'"):
        caffe.NetSpec().x  # noqa: B018  (reading it is the test)
    with pytest.raises(AttributeError, match="no PolingParameter"):
        P.Poling  # noqa: B018  (reading it is the test)
