"""pycaffe's Net: blobs, diffs, parts of nets, weights."""

import numpy as np
import pytest

from weft import caffe
from weft.caffe.inputs_protocol import ArraySource
from weft.caffe.message import NetParameter
from weft.caffe.text import read_message

TEXT = """
    name: "small" force_backward: %s
    layer { name: "in" type: "Input" top: "data" input_param { shape { dim: 4 dim: 3 } } }
    layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 4 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
            inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
    layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }
    layer { name: "ip2" type: "InnerProduct" bottom: "ip" top: "ip2"
            inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
"""


def small(force=False, phase=caffe.TEST):
    net = caffe.Net(read_message(TEXT % str(force).lower(), NetParameter), phase)
    rng = np.random.default_rng(1)
    net.blobs["data"].data[...] = rng.normal(size=(4, 3))
    net.blobs["label"].data[...] = [0, 1, 2, 1]
    return net


def test_blobs_and_params_have_names_and_shapes():
    net = small()
    assert [(n, b.shape) for n, b in net.blobs.items()] == [
        *(("data", (4, 3)), ("label", (4,)), ("ip", (4, 5)), ("ip2", (4, 3)), ("loss", ())),
    ]
    assert [(n, [b.shape for b in bs]) for n, bs in net.params.items()] == [
        ("ip", [(5, 3), (5,)]),
        ("ip2", [(3, 5), (3,)]),
    ]
    assert (net.inputs, net.outputs, net.name) == (["data", "label"], ["loss"], "small")
    assert [layer.type for layer in net.layers][-1] == "SoftmaxWithLoss"
    assert net.bottom_names["loss"] == ["ip2", "label"]
    assert net.blob_loss_weights["loss"] == 1
    blob = net.blobs["data"]
    assert (blob.num, blob.channels, blob.height, blob.count) == (4, 3, 1, 12)


def test_forward_and_backward_are_those_of_the_graph():
    net = small()
    found = net.forward()
    net.backward()
    graph = net.network
    loss = graph.loss(net.blobs["data"].data, net.blobs["label"].data)
    loss.backward()
    assert found["loss"] == pytest.approx(loss.item())
    for blobs in net.params.values():
        for blob in blobs:
            np.testing.assert_allclose(blob.diff, blob.tensor_.grad.numpy(), rtol=1e-5, atol=1e-7)


def test_inputs_get_a_diff_only_when_it_is_forced():
    net = small()
    net.forward()
    assert not net.backward()["data"].any()
    forced = small(force=True)
    forced.forward()
    numeric = np.zeros((4, 3))
    for place in np.ndindex(4, 3):
        for sign in (1, -1):
            forced.blobs["data"].data[place] += sign * 1e-2
            numeric[place] += sign * float(forced.forward()["loss"]) / 2e-2
            forced.blobs["data"].data[place] -= sign * 1e-2
    forced.forward()
    np.testing.assert_allclose(forced.backward()["data"], numeric, atol=2e-3)


def test_diffs_of_params_add_up_until_they_are_cleared():
    net = small()
    net.forward()
    net.backward()
    once = net.params["ip"][0].diff.copy()
    net.backward()
    np.testing.assert_allclose(net.params["ip"][0].diff, 2 * once, rtol=1e-6)
    net.clear_param_diffs()
    assert not net.params["ip"][0].diff.any()


def test_parts_of_a_net_run_alone():
    net = small()
    net.forward()
    net.blobs["ip"].data[...] = 1
    found = net.forward(start="ip2", end="ip2")
    w, b = (blob.data for blob in net.params["ip2"])
    np.testing.assert_allclose(found["ip2"], np.ones((4, 5)) @ w.T + b, rtol=1e-5)
    net.blobs["ip2"].diff[...] = 2
    diffs = net.backward(start="ip2", end="ip2")
    np.testing.assert_allclose(diffs["ip"], np.full((4, 3), 2) @ w, rtol=1e-5)


def test_what_is_written_into_params_is_in_the_net():
    net = small()
    net.params["ip"][0].data[...] = 0
    net.params["ip"][1].data[...] = [1, 2, 3, 4, 5]
    net.forward(end="relu")
    assert net.blobs["ip"].data.tolist() == [[1, 2, 3, 4, 5]] * 4


def test_arrays_of_blobs_stand():
    net = small()
    data, ip = net.blobs["data"].data, net.blobs["ip"].data
    net.forward()
    before = ip.copy()
    data[...] *= 2
    net.forward()
    assert ip is net.blobs["ip"].data
    assert (ip != before).any()


def test_forward_takes_inputs_and_returns_more_blobs():
    net = small()
    given = {"data": np.ones((4, 3)), "label": np.zeros(4)}
    found = net.forward(blobs=["ip"], **given)
    assert {*found} == {"ip", "loss"}
    with pytest.raises(caffe.CaffeError, match="do not match net inputs"):
        net.forward(dta=np.ones(3))
    with pytest.raises(caffe.CaffeError, match="Input is not batch sized"):
        net.forward(data=np.ones((5, 3)), label=np.zeros(4))
    with pytest.raises(caffe.CaffeError, match="Unknown layer 'nothing'"):
        net.forward(end="nothing")


def test_blobs_are_reshaped():
    net = small()
    net.blobs["data"].reshape(7, 3)
    net.blobs["label"].reshape(7)
    net.reshape()
    assert net.blobs["ip2"].data.shape == (7, 3)
    net.blobs["label"].data[...] = 0
    net.forward()
    assert net.blobs["ip2"].data.shape == (7, 3)


def test_any_number_of_examples_in_batches():
    text = """input: "x" input_shape { dim: 4 dim: 2 }
        layer { name: "p" type: "Power" bottom: "x" top: "y" power_param { scale: 3 } }"""
    net = caffe.Net(read_message(text, NetParameter), caffe.TEST)
    x = np.arange(20.0).reshape(10, 2)
    np.testing.assert_allclose(net.forward_all(x=x)["y"], 3 * x)


def test_weights_are_saved_copied_and_shared(tmp_path):
    net, other = small(), small()
    path = str(tmp_path / "a.caffemodel")
    net.save(path)
    other.copy_from(path)
    np.testing.assert_array_equal(other.params["ip2"][0].data, net.params["ip2"][0].data)
    third = small()
    third.share_with(net)
    net.params["ip"][0].data[...] = 4
    assert (third.params["ip"][0].data == 4).all()


def test_data_layers_bring_batches():
    text = """layer { name: "d" type: "Data" top: "x" }
        layer { name: "p" type: "Power" bottom: "x" top: "y" power_param { scale: 2 } }"""
    source = ArraySource(np.arange(4.0), batch=2)
    net = caffe.Net(read_message(text, NetParameter), caffe.TRAIN, inputs={"d": source})
    assert [net.forward()["y"].tolist() for _ in range(2)] == [[0, 2], [4, 6]]


def test_backward_needs_forward():
    with pytest.raises(caffe.CaffeError, match="needs a forward pass first"):
        small().backward()


def test_devices_are_refused_in_caffes_words():
    caffe.set_mode_cpu()
    with pytest.raises(caffe.CaffeError, match="Cannot use GPU in CPU-only Caffe"):
        caffe.set_mode_gpu()
    with pytest.raises(caffe.CaffeError, match="Cannot use GPU"):
        caffe.set_device(0)
    with pytest.raises(AttributeError, match=r"Detector.*use caffe\.Classifier"):
        caffe.Detector  # noqa: B018  (reading it is the test)


def test_layer_types_are_listed():
    assert {"Convolution", "Data", "LSTM", "Python"} <= {*caffe.layer_type_list()}


def test_arrays_for_memory_data():
    text = """layer { name: "m" type: "MemoryData" top: "x" top: "y"
        memory_data_param { batch_size: 2 channels: 1 height: 1 width: 2 } }"""
    net = caffe.Net(read_message(text, NetParameter), caffe.TEST)
    net.set_input_arrays(np.arange(8, dtype="f").reshape(4, 1, 1, 2), np.arange(4, dtype="f"))
    assert [net.forward()["y"].tolist() for _ in range(3)] == [[0, 1], [2, 3], [0, 1]]
    with pytest.raises(caffe.CaffeError, match="if the first layer is MemoryData"):
        small().set_input_arrays(np.ones(1), np.ones(1))
