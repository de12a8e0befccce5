"""Pictures of nets."""

from weft.caffe import draw
from weft.caffe.message import NetParameter
from weft.caffe.text import read_message


def test_a_net_is_drawn(tmp_path):
    text = """input: "a/b" input_shape { dim: 2 dim: 3 }
        layer { name: "ip" type: "InnerProduct" bottom: "a/b" top: "ip"
                inner_product_param { num_output: 2 } }"""
    path = tmp_path / "net.svg"
    draw.draw_net_to_file(read_message(text, NetParameter), str(path))
    assert "ip" in path.read_text()
