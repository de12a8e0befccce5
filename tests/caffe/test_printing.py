"""Printed messages: as people write them, and read back as they were."""

from hypothesis import given
from hypothesis import strategies as st

from weft.caffe.message import BlobProto, Datum, LayerParameter
from weft.caffe.text import print_message, read_message


def test_what_was_set_is_printed():
    layer = LayerParameter(name="conv", type="Convolution", loss_weight=[0.1, 1])
    layer.convolution_param.weight_filler.std = 0.01
    layer.include.add(phase="TEST")
    words = """name: "conv" type: "Convolution" loss_weight: 0.1 loss_weight: 1
        include { phase: TEST } convolution_param { weight_filler { std: 0.01 } }"""
    assert print_message(layer).split() == words.split()


@given(st.text(), st.binary(), st.floats(width=32), st.floats())
def test_what_is_printed_is_read(text, data, single, double):
    layer = LayerParameter(name=text, loss_weight=[single])
    assert str(read_message(print_message(layer), LayerParameter).loss_weight) == str(
        layer.loss_weight
    )
    assert read_message(print_message(layer), LayerParameter).name == text
    datum = Datum(data=data)
    assert read_message(print_message(datum), Datum).data == data
    blob = BlobProto()
    blob.double_data.append(double)
    assert read_message(print_message(blob), BlobProto) == blob
