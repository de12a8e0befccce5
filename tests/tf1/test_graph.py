"""Graphs of TensorFlow 1's face: names, scopes, collections."""

from __future__ import annotations

import pytest

import weft.tf1 as tf
from weft.tf1.compat import v1


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_names_are_those_of_tensorflow(graph):
    a = tf.placeholder(tf.float32, [None, 3], name="a")
    assert a.name == "a:0"
    assert a.op.name == "a"
    assert (a + 1.0).name == "add:0"
    with tf.name_scope("layer") as scope:
        assert scope == "layer/"
        assert tf.exp(a).name == "layer/Exp:0"
        assert tf.exp(a, name="e").name == "layer/e:0"
    with tf.name_scope("layer"):
        assert tf.exp(a).name == "layer_1/Exp:0"
    with tf.name_scope("layer/"):
        assert tf.exp(a).name == "layer/Exp_1:0"
    assert tf.Variable(1.0).name == "Variable:0"
    assert tf.Variable(1.0).name == "Variable_1:0"
    assert graph.get_tensor_by_name("layer/e:0").op is graph.get_operation_by_name("layer/e")
    assert str(a) == 'Tensor("a:0", shape=(?, 3), dtype=float32)'


def test_unknown_names_are_refused_in_tensorflows_words(graph):
    tf.constant(1.0, name="c")
    with pytest.raises(KeyError, match="refers to an Operation not in the graph"):
        graph.get_operation_by_name("d")
    with pytest.raises(KeyError, match="exists but only has 1 outputs"):
        graph.get_tensor_by_name("c:1")
    with pytest.raises(ValueError, match="Tensor names must be of the form"):
        graph.get_tensor_by_name("c")
    with pytest.raises(ValueError, match="is not a valid scope name"), tf.name_scope("a b"):
        pass


def test_collections_are_lists_by_name(graph):
    tf.add_to_collection("losses", tf.constant(1.0, name="x/a"))
    tf.add_to_collection("losses", tf.constant(2.0, name="y/b"))
    assert len(tf.get_collection("losses")) == 2
    assert [t.name for t in tf.get_collection("losses", scope="x")] == ["x/a:0"]
    assert graph.get_all_collection_keys() == ["losses"]
    assert tf.get_collection("nothing") == []


def test_static_shapes_can_be_asked_for_and_said():
    x = tf.placeholder(tf.float32, [None, 4])
    assert x.get_shape().as_list() == [None, 4]
    assert x.shape[1].value == 4
    assert x.shape[0].value is None
    assert int(x.get_shape()[1]) * 2 == 8
    y = tf.reshape(x, [-1, 2, 2])
    assert y.shape.as_list() == [None, 2, 2]
    unknown = tf.placeholder(tf.float32)
    with pytest.raises(ValueError, match="not defined on an unknown TensorShape"):
        unknown.shape.as_list()
    unknown.set_shape([3, None])
    assert (unknown * 2.0).shape.as_list() == [3, None]
    with pytest.raises(ValueError, match="are incompatible"):
        unknown.set_shape([4, 4])
    assert tf.matmul(x, tf.zeros([4, 7])).shape.as_list() == [None, 7]
    assert tf.zeros([tf.shape(x)[0], 5]).shape.as_list() == [None, 5]


def test_the_default_graph_can_be_reset():
    outside = tf.Graph()
    with outside.as_default():
        tf.constant(1.0)
        assert tf.get_default_graph() is outside
        with pytest.raises(AssertionError, match="nested graphs"):
            tf.reset_default_graph()


def test_dtypes_compare_with_numpys():
    assert tf.float32 == "float32"
    assert tf.as_dtype("float") == tf.float32
    assert tf.float32.as_numpy_dtype(1.5).dtype == tf.float32
    assert tf.int32.max == 2**31 - 1
    assert repr(tf.uint8) == "tf.uint8"
    assert tf.float64.is_floating
    assert not tf.bool.is_integer
    with pytest.raises(TypeError, match="to a TensorFlow DType"):
        tf.as_dtype("quaternion")


def test_the_face_is_compat_v1_too():
    assert v1.placeholder is tf.placeholder
    assert tf.compat.v1 is v1
    v1.disable_v2_behavior()
    assert tf.keras.__name__ == "weft.keras"
