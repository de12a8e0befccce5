"""Nets converted into graphs, safetensors and today's forms, and run from there."""

import numpy as np
import pytest

import weft as wf
from weft.caffe import convert, load, load_converted
from weft.caffe.errors import CaffeError
from weft.caffe.weights import save_weights
from weft.cli import main

OLD = """name: "old" input: "data" input_dim: 2 input_dim: 1 input_dim: 6 input_dim: 6
    layers { name: "conv" type: CONVOLUTION bottom: "data" top: "conv"
             convolution_param { num_output: 3 kernel_size: 3 weight_filler { type: "xavier" } } }
    layers { name: "prob" type: SOFTMAX bottom: "conv" top: "prob" }"""
X = np.random.default_rng(0).normal(size=(2, 1, 6, 6)).astype("f")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "net.prototxt").write_text(OLD)
    net = load(tmp_path / "net.prototxt")
    save_weights(net, tmp_path / "net.caffemodel")
    return tmp_path, net(X).detach().numpy()


def test_graphs_run_in_sessions(files):
    folder, expected = files
    done = convert(folder / "net.prototxt", folder / "net.caffemodel", folder / "net.weft")
    assert done.inputs == {"data": (2, 1, 6, 6)}
    session = wf.Session(wf.Graph.load(folder / "net.weft"))
    found = session.run(done.outputs[0], {"data": X})
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_safetensors_hold_the_net(files):
    folder, expected = files
    convert(folder / "net.prototxt", folder / "net.caffemodel", folder / "net.safetensors")
    net = load_converted(folder / "net.safetensors")
    np.testing.assert_array_equal(net(X).detach().numpy(), expected)


def test_old_nets_are_upgraded(files):
    folder, expected = files
    convert(folder / "net.prototxt", None, folder / "new.prototxt")
    text = (folder / "new.prototxt").read_text()
    assert "layers" not in text
    assert 'type: "Convolution"' in text
    net = load(folder / "new.prototxt", folder / "net.caffemodel")
    np.testing.assert_array_equal(net(X).detach().numpy(), expected)


def test_the_command(files, capsys):
    folder, _ = files
    net, weights, out = (str(folder / n) for n in ("net.prototxt", "net.caffemodel", "o.h5"))
    pytest.importorskip("h5py")
    assert main(["caffe", "convert", net, weights, "-o", out]) == 0
    assert "input  data 2 x 1 x 6 x 6" in capsys.readouterr().out
    assert main(["caffe", "convert", net, weights, "-o", str(folder / "o.onnx")]) != 0
    assert "writes .weft, .safetensors" in capsys.readouterr().err


def test_files_without_a_net(tmp_path):
    wf.save(tmp_path / "a.safetensors", {"x": wf.ones(2)})
    with pytest.raises(CaffeError, match="holds no net"):
        load_converted(tmp_path / "a.safetensors")
