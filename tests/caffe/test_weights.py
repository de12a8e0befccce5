"""Weights from and into files: shapes that do not fit, old shapes, HDF5."""

import numpy as np
import pytest

from weft.caffe import load
from weft.caffe.binary import serialize_message
from weft.caffe.errors import CaffeError, CaffemodelError
from weft.caffe.message import NetParameter
from weft.caffe.text import read_message
from weft.caffe.weights import net_proto, save_weights

TEXT = """input: "x" input_shape { dim: 1 dim: 3 }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
            inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
    layer { name: "bn" type: "BatchNorm" bottom: "y" top: "y" }"""


def net(text=TEXT):
    return load(read_message(text, NetParameter))


@pytest.mark.parametrize("name", ["a.caffemodel", "a.caffemodel.h5"])
def test_weights_come_back(tmp_path, name):
    if name.endswith("h5"):
        pytest.importorskip("h5py")
    made = net()
    save_weights(made, tmp_path / name)
    again = load(read_message(TEXT, NetParameter), tmp_path / name)
    for mine, theirs in zip(made.learned_blobs(), again.learned_blobs(), strict=True):
        np.testing.assert_array_equal(mine.value.numpy(), theirs.value.numpy())


def proto(*shape, blobs=2, name="ip", old=False):
    made = NetParameter()
    layer = made.layer.add(name=name, type="InnerProduct")
    for sizes in (shape, (2,))[:blobs]:
        blob = layer.blobs.add()
        if old:
            sizes = (1,) * (4 - len(sizes)) + sizes  # noqa: PLW2901  (four sizes, as once)
            blob.num, blob.channels, blob.height, blob.width = sizes
        else:
            blob.shape.dim.extend(sizes)
        blob.data.extend(np.arange(np.prod(sizes)))
    return made


def loaded(tmp_path, message):
    path = tmp_path / "w.caffemodel"
    path.write_bytes(serialize_message(message))
    return load(read_message(TEXT, NetParameter), path)


def test_old_blobs_have_four_sizes(tmp_path):
    made = loaded(tmp_path, proto(2, 3, old=True))
    assert made.layer_blobs("ip")[0].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_layers_of_other_names_are_passed_over(tmp_path):
    loaded(tmp_path, proto(7, 7, name="other"))


def test_what_does_not_fit_changes_nothing(tmp_path):
    with pytest.raises(CaffeError, match=r"Cannot copy param 0 weights .* \(4, 3\).*rename the la"):
        loaded(tmp_path, proto(4, 3))
    with pytest.raises(CaffeError, match="Incompatible number of blobs for layer 'ip'"):
        loaded(tmp_path, proto(2, 3, blobs=1))


def test_blobs_that_lie_about_their_size(tmp_path):
    message = proto(2, 3)
    message.layer[0].blobs[0].shape.dim[0] = 10**12
    with pytest.raises(CaffemodelError, match="has 6 numbers instead of 3000000000000"):
        loaded(tmp_path, message)


def test_files_that_are_none(tmp_path):
    path = tmp_path / "w.caffemodel"
    with pytest.raises(CaffemodelError, match="File not found"):
        load(read_message(TEXT, NetParameter), path)
    path.write_bytes(b"\x89HDF\r\n\x1a\n nothing more")
    with pytest.raises(CaffemodelError, match="no weights in HDF5 form"):
        load(read_message(TEXT, NetParameter), path)


def test_weights_of_layers_with_slashes_come_back_from_hdf5(tmp_path):
    pytest.importorskip("h5py")
    text = TEXT.replace('name: "ip"', 'name: "a/b/ip"')
    made = net(text)
    save_weights(made, tmp_path / "a.h5")
    again = load(read_message(text, NetParameter), tmp_path / "a.h5")
    expected = made.layer_blobs("a/b/ip")[0].numpy()
    np.testing.assert_array_equal(again.layer_blobs("a/b/ip")[0].numpy(), expected)


def test_links_into_other_files_are_not_followed(tmp_path):
    h5py = pytest.importorskip("h5py")
    save_weights(net(), tmp_path / "secret.h5")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["data"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "/data")
    with pytest.raises(CaffemodelError, match="no weights in HDF5 form for a layer"):
        load(read_message(TEXT, NetParameter), tmp_path / "a.h5")


def test_datasets_that_claim_more_than_there_is(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("data/ip/0", (10**6, 10**6), "f", chunks=(1000, 1000))
    with pytest.raises(CaffemodelError, match="more than the file can hold"):
        load(read_message(TEXT, NetParameter), tmp_path / "a.h5")


def test_a_net_says_its_weights():
    made = net_proto(net())
    assert [len(layer.blobs) for layer in made.layer] == [0, 2, 3]
