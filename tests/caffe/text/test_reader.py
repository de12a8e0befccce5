"""The text format: everything that it allows, and where errors are."""

import pytest

from weft.caffe.errors import CaffeError, PrototxtError
from weft.caffe.message import LayerParameter, NetParameter, SolverParameter
from weft.caffe.text import MAX_DEPTH, print_message, read_message, read_message_file

from ..suite import SUITE, needs_suite


def layer(text):
    return read_message(text, LayerParameter, name="net.prototxt")


def test_the_forms_of_fields():
    text = """
    name: 'a' "b"   # strings that follow one another are one
    bottom: ["x", 'y'], bottom: "z";
    convolution_param: { kernel_size: [3, 5] pad: 0x10 group: 010 bias_term: f }
    pooling_param < pool: AVE >
    power_param { power: -2.5e-1f scale: - inf shift: .5 }
    include { phase: TEST } include { phase: 0 }
    """
    made = layer(text)
    assert (made.name, made.bottom) == ("ab", ["x", "y", "z"])
    conv = made.convolution_param
    assert (conv.kernel_size, conv.pad, conv.group, conv.bias_term) == ([3, 5], [16], 8, False)
    assert made.pooling_param.which("pool") == "AVE"
    power = made.power_param
    assert (power.power, power.scale, power.shift) == (-0.25, float("-inf"), 0.5)
    assert [rule.phase for rule in made.include] == [1, 0]


def test_strings_have_escapes():
    made = layer(r'name: "a\n\t\"\x41\101\303\251é\u00e9"')
    assert made.name == 'a\n\t"AAééé'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name: "a"\n botom: "x"', r"^net.prototxt:2:2: .*no field named \"botom\"; did.*'bottom'"),
        ("name: 3", r':1:7: Expected a string for name, found "3"'),
        ('name: "a" name: "b"', r':1:11: Non-repeated field "name" is specified multiple'),
        ("pooling_param { pool: MIX }", r':1:23: .*enumeration value of "MIX"; .*MAX'),
        ("pooling_param { pool: MAX", r"Expected a field.s name, found the end of the text"),
        ("pooling_param { pad: 1.5 }", r'Expected integer for pad \(uint32\), found "1.5"'),
        ("pooling_param { pad: 5000000000 }", r"takes an integer from 0 to 4294967295"),
        ("relu_param: 3", r'Expected "{" after relu_param, found "3"'),
        ('name "a"', r'Expected ":" after name, found'),
        ('name: ["a"]', "takes one value, not a list"),
        ('bottom: ["a" "b" 3]', 'Expected "," or "]"'),
        ("name: 'a\nb'", r":1:7: String literals cannot cross line boundaries"),
        ("name: 'a' @", r":1:11: Invalid character: '@'"),
        ("name: 'ab\ud800c'", r":1:10: U\+D800 is no character"),
        (r"name: '\q'", r"Invalid escape \\q"),
        ("loss_weight: x", r'Expected a number for loss_weight, found "x"'),
        ("propagate_down: maybe", r'Expected true or false for propagate_down, found "maybe"'),
        ("}", 'found "}"'),
    ],
)
def test_errors_say_where_and_what(text, message):
    with pytest.raises(PrototxtError, match=message):
        layer(text)


def test_text_that_never_closes_is_refused():
    deep = "layers { layer { blobs { shape " + "{ " * 10 * MAX_DEPTH
    with pytest.raises(PrototxtError, match="Expected a field's name"):
        read_message(deep, NetParameter)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(CaffeError, match=r"File not found: .*nothing\.prototxt"):
        read_message_file(tmp_path / "nothing.prototxt", NetParameter)


FILES = sorted(SUITE.rglob("*.prototxt"))


@needs_suite
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_files_of_caffe_are_read_and_printed(path):
    kind = SolverParameter if "solver" in path.name else NetParameter
    made = read_message_file(path, kind)
    assert read_message(print_message(made), kind) == made


def test_long_texts_are_refused(monkeypatch):
    monkeypatch.setattr("weft.caffe.text.reader.MAX_CHARACTERS", 10)
    with pytest.raises(CaffeError, match=r"at most 10 characters. Received: 12"):
        layer('name: "abcd"')
