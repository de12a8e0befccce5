"""A script of pycaffe's as it stands, by `weft run`."""

from weft.cli import main

SCRIPT = """
import numpy as np
import caffe
from caffe import layers as L, params as P
from caffe.proto import caffe_pb2

caffe.set_mode_cpu()
caffe.set_random_seed(1)
n = caffe.NetSpec()
n.data = L.Input(shape=dict(dim=[2, 3, 8, 8]))
n.conv = L.Convolution(n.data, kernel_size=3, num_output=4, weight_filler=dict(type="msra"))
n.pool = L.Pooling(n.conv, pool=P.Pooling.MAX, kernel_size=2, stride=2)
n.prob = L.Softmax(L.InnerProduct(n.pool, num_output=5))
with open("deploy.prototxt", "w") as f:
    f.write(str(n.to_proto()))
net = caffe.Net("deploy.prototxt", caffe.TEST)
net.save("w.caffemodel")
net = caffe.Net("deploy.prototxt", "w.caffemodel", caffe.TEST)
net.blobs["data"].data[...] = np.random.randn(2, 3, 8, 8)
out = net.forward()
proto = caffe_pb2.NetParameter()
with open("w.caffemodel", "rb") as f:
    proto.ParseFromString(f.read())
print("classes", out["prob"].shape, "layers", len(proto.layer))
"""


def test_a_script_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    assert main(["run", "script.py"]) == 0
    assert "classes (2, 5) layers 5" in capsys.readouterr().out
