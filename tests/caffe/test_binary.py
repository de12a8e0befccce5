"""The binary form: what Caffe writes is read, and the other way round."""

import numpy as np
import pytest

from weft.caffe.binary import parse_message, parse_message_file, serialize_message
from weft.caffe.errors import CaffemodelError
from weft.caffe.message import BlobProto, Datum, LayerParameter, NetParameter, SolverState


def test_bytes_are_those_of_protobuf():
    """By hand: key 0x0a is field 1 as bytes, 0x28 field 5 as a varint."""
    datum = Datum(channels=1, data=b"\x01\x02", label=-1)
    assert serialize_message(datum).hex() == "08012202010228" + "ff" * 9 + "01"
    assert parse_message(serialize_message(datum), Datum) == datum


def test_a_net_with_blobs_is_the_same_after_a_round_trip():
    net = NetParameter(name="net", input=["data"], state={"phase": "TEST", "level": -3})
    layer = net.layer.add(name="ip", type="InnerProduct", loss_weight=[0.5], propagate_down=[True])
    layer.inner_product_param.weight_filler.std = 0.01
    layer.include.add(phase="TRAIN", not_stage=["é"])
    blob = layer.blobs.add(shape={"dim": [2, 3]})
    blob.data.extend(np.arange(6))
    again = parse_message(serialize_message(net), NetParameter)
    assert again == net
    assert again.layer[0].inner_product_param.weight_filler.std == 0.01


def test_fields_of_forks_are_passed_over():
    unknown = bytes.fromhex("ba7f03") + b"abc"  # field 2039, three bytes
    made = parse_message(serialize_message(LayerParameter(name="a")) + unknown, LayerParameter)
    assert made.name == "a"


def test_numbers_that_are_not_packed_are_read():
    one_by_one = bytes.fromhex("2d0000803f2d00000040")  # field 5, four bytes each
    assert parse_message(one_by_one, BlobProto).data == [1.0, 2.0]


def test_a_length_that_lies_is_refused_before_memory_is_taken():
    claimed = bytes.fromhex("2aff ffff ff07".replace(" ", ""))  # field 5 of 2**31 - 1 bytes
    with pytest.raises(CaffemodelError, match=r"m.caffemodel: no BlobProto .* claims 2147483647"):
        parse_message(claimed, BlobProto, name="m.caffemodel")


def test_files_that_are_no_message(tmp_path):
    path = tmp_path / "a.solverstate"
    path.write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(CaffemodelError, match=r"a\.solverstate: no SolverState"):
        parse_message_file(path, SolverState)
    with pytest.raises(CaffemodelError, match="File not found"):
        parse_message_file(tmp_path / "b", SolverState)


def test_messages_are_counted(monkeypatch):
    monkeypatch.setattr("weft.caffe.binary.MAX_MESSAGES", 10)
    net = NetParameter(layer=[{} for _ in range(9)])
    assert len(parse_message(serialize_message(net), NetParameter).layer) == 9
    net.layer.add()
    with pytest.raises(CaffemodelError, match="more than 10 messages"):
        parse_message(serialize_message(net), NetParameter)
