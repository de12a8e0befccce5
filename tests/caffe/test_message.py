"""Messages: fields, defaults, what is set and what is not, and what is refused."""

import numpy as np
import pytest

from weft.caffe.message import MESSAGES, BlobProto, LayerParameter, NetParameter, SolverParameter


def test_unset_fields_have_their_defaults():
    solver = SolverParameter()
    assert (solver.iter_size, solver.type, solver.momentum2) == (1, "SGD", 0.999)
    assert solver.which("snapshot_format") == "BINARYPROTO"
    assert not solver.has("iter_size")
    assert LayerParameter().pooling_param.which("pool") == "MAX"


def test_a_message_inside_is_set_when_something_in_it_is():
    layer = LayerParameter()
    inner = layer.convolution_param.weight_filler
    assert not layer.has("convolution_param")
    inner.std = 0.01
    assert layer.has("convolution_param")
    assert layer.convolution_param.weight_filler.std == 0.01


def test_lists_check_their_elements():
    layer = LayerParameter(bottom=["data"])
    layer.convolution_param.kernel_size.extend([3, 5])
    assert layer.convolution_param.kernel_size == [3, 5]
    with pytest.raises(ValueError, match=r"kernel_size: takes an integer from 0 to .* -1"):
        layer.convolution_param.kernel_size.append(-1)
    with pytest.raises(TypeError, match="takes a string"):
        layer.bottom.append(3)
    with pytest.raises(ValueError, match=r"bottom: takes text: U\+D800 is no character"):
        layer.bottom.append("a\ud800")
    layer.bottom.append("a\udcff")  # a byte that is no text, as Python keeps it


def test_assigning_a_list_says_how_to_change_it():
    with pytest.raises(AttributeError, match=r"message\.bottom\.extend"):
        LayerParameter().bottom = ["a"]


def test_unknown_fields_are_named_with_near_ones():
    with pytest.raises(AttributeError, match=r"has no field named.*did you mean 'bottom'"):
        LayerParameter().botom  # noqa: B018  (reading it is the test)


def test_merging_joins_lists_and_overwrites_scalars():
    one = NetParameter(name="a", input=["x"], state={"level": 1})
    two = NetParameter(name="b", input=["y"], state={"stage": ["s"]})
    one.MergeFrom(two)
    assert (one.name, one.input, one.state.level, one.state.stage) == ("b", ["x", "y"], 1, ["s"])


def test_a_copy_is_apart():
    net = NetParameter(name="n")
    net.layer.add(name="l")
    copy = net.copy()
    copy.layer[0].name = "other"
    assert net.layer[0].name == "l"
    assert copy != net
    assert net == net.copy()


def test_numbers_of_blobs_are_arrays():
    blob = BlobProto(shape={"dim": [2, 2]})
    blob.data.extend(np.eye(2))
    blob.data.append(3)
    assert np.array(blob.data).dtype == np.float32
    assert list(blob.data) == [1, 0, 0, 1, 3]
    blob.data[:] = [5, 6]
    assert (blob.data[1], len(blob.data)) == (6.0, 2)


def test_every_type_that_fields_name_is_declared():
    for kind in MESSAGES.values():
        for field in kind.TYPE.fields.values():
            assert not field.is_message or field.message in MESSAGES, field


def test_no_two_fields_have_one_number():
    for kind in MESSAGES.values():
        assert len(kind.TYPE.numbers) == len(kind.TYPE.fields), kind
