"""What TensorFlow 1's face says of bad input: in TensorFlow's words."""

from __future__ import annotations

import numpy as np
import pytest

import weft.tf1 as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_a_feed_of_another_shape_names_the_tensor_and_both_shapes():
    x = tf.placeholder(tf.float32, [None, 784], name="x")
    with pytest.raises(
        ValueError,
        match=r"shape \(3, 4\) for Tensor 'x:0', which has shape '\(\?, 784\)'",
    ):
        tf.Session().run(x * 2, {x: np.zeros((3, 4))})


def test_a_placeholder_that_is_not_fed_is_named():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"You must feed a value for placeholder tensor 'x' with dtype float",
    ):
        tf.Session().run(x * 2)


def test_variables_without_a_value_are_named():
    w = tf.Variable(tf.zeros([2]), name="w")
    with pytest.raises(
        tf.errors.FailedPreconditionError, match="Attempting to use uninitialized value w"
    ):
        tf.Session().run(w + 1)


def test_shapes_that_do_not_fit_are_told_when_the_graph_is_built(graph):
    a, b = tf.zeros([2, 3]), tf.zeros([4, 5])
    before = len(graph.operations)
    with pytest.raises(
        ValueError,
        match=r"Dimensions must be equal, but are 3 and 4 for 'MatMul' \(op: 'MatMul'\) with",
    ):
        tf.matmul(a, b)
    assert len(graph.operations) == before
    with pytest.raises(ValueError, match=r"Dimensions must be equal, but are 3 and 5"):
        a + b
    with pytest.raises(ValueError, match="Shape must be rank 2 but is rank 1"):
        tf.matmul(tf.zeros([3]), a)
    with pytest.raises(ValueError, match="Cannot reshape a tensor with 6 elements"):
        tf.reshape(a, [4])


def test_shapes_that_only_a_run_knows_are_told_by_the_run():
    x = tf.placeholder(tf.float32)
    y = tf.matmul(x, tf.zeros([4, 5]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="node MatMul"):
        tf.Session().run(y, {x: np.zeros((2, 3))})


def test_dtypes_are_not_mixed():
    with pytest.raises(
        TypeError,
        match=r"Input 'y' of 'Add' Op has type int32 that does not match type float32",
    ):
        tf.zeros([2]) + tf.constant([1, 2])
    with pytest.raises(TypeError, match=r"Expected int32, got 2\.5 of type 'float' instead"):
        tf.constant([1, 2]) + 2.5
    with pytest.raises(ValueError, match="requested dtype int32 for Tensor with dtype float32"):
        tf.convert_to_tensor(tf.zeros([2]), tf.int32)


def test_fetches_that_are_none_or_no_tensor_are_refused():
    x = tf.constant(1.0)
    with pytest.raises(TypeError, match="Fetch argument None has invalid type"):
        tf.Session().run([x, None])
    with pytest.raises(ValueError, match="refers to a Tensor which does not exist"):
        tf.Session().run("y:0")
    with pytest.raises(TypeError, match="has invalid type"):
        tf.Session().run(3.5)


def test_feeds_that_are_tensors_or_unknown_are_refused():
    x = tf.placeholder(tf.float32, name="x")
    with pytest.raises(TypeError, match=r"The value of a feed cannot be a tf.Tensor object"):
        tf.Session().run(x, {x: tf.constant(1.0)})
    with pytest.raises(TypeError, match="Cannot interpret feed_dict key as Tensor"):
        tf.Session().run(x, {"y:0": 1.0})
    with pytest.raises(TypeError, match="'x' refers to an Operation, not a Tensor"):
        tf.Session().run(x, {"x": 1.0})
    assert tf.Session().run(x, {"x:0": 1.0}) == 1.0


def test_tensors_of_another_graph_are_refused():
    x = tf.constant(1.0)
    with (
        tf.Graph().as_default(),
        pytest.raises(ValueError, match="is not an element of this graph"),
    ):
        tf.Session().run([x, tf.constant(2.0)])
    with tf.Graph().as_default(), pytest.raises(ValueError, match="must be from the same graph"):
        x + 1.0


def test_a_tensor_is_no_bool_and_no_array():
    x = tf.placeholder(tf.float32)
    with pytest.raises(TypeError, match=r"Using a `tf.Tensor` as a Python `bool` is not allowed"):
        bool(x > 0)
    with pytest.raises(NotImplementedError, match="Cannot convert a symbolic Tensor"):
        np.array(x)
    with pytest.raises(TypeError, match="only iterable"):
        list(x)


def test_variables_that_exist_or_do_not_are_named():
    tf.get_variable("w", [2])
    with pytest.raises(ValueError, match="Variable w already exists, disallowed"):
        tf.get_variable("w", [2])
    with (
        tf.variable_scope("", reuse=True),
        pytest.raises(ValueError, match="Trying to share variable w, but specified shape"),
    ):
        tf.get_variable("w", [3])
    with (
        tf.variable_scope("s", reuse=True),
        pytest.raises(ValueError, match="Variable s/w does not exist, or was not created"),
    ):
        tf.get_variable("w", [2])
    with pytest.raises(ValueError, match="must be fully defined"):
        tf.get_variable("v", [None, 2])


def test_losses_without_variables_or_gradients_are_refused():
    step = tf.train.GradientDescentOptimizer(0.1)
    with pytest.raises(ValueError, match="No variables to optimize"):
        step.minimize(tf.constant(1.0))
    tf.Variable(1.0)
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        step.minimize(tf.constant(1.0))


def test_loops_whose_shapes_change_say_so():
    with pytest.raises(ValueError, match="is not an invariant for the loop"):
        tf.while_loop(lambda x: tf.size(x) < 9, lambda x: tf.concat([x, x], 0), [tf.zeros([2])])


def test_branches_of_two_types_are_refused():
    with pytest.raises(
        ValueError, match="Outputs of true_fn and false_fn must have the same type: float32, int32"
    ):
        tf.cond(tf.constant(True), lambda: tf.constant(1.0), lambda: tf.constant(1))


def test_sessions_that_are_closed_or_missing_say_so():
    x = tf.constant(1.0)
    session = tf.Session()
    session.close()
    with pytest.raises(RuntimeError, match="Attempted to use a closed Session"):
        session.run(x)
    with pytest.raises(ValueError, match="No default session is registered"):
        x.eval()
    with pytest.raises(ValueError, match="weft serve"):
        tf.Session("grpc://localhost:2222")


def test_a_finalized_graph_takes_nothing(graph):
    graph.finalize()
    with pytest.raises(RuntimeError, match="Graph is finalized and cannot be modified"):
        tf.constant(1.0)


def test_cross_entropies_take_named_arguments():
    with pytest.raises(
        ValueError, match="Only call `softmax_cross_entropy_with_logits` with named arguments"
    ):
        tf.nn.softmax_cross_entropy_with_logits(tf.zeros([2, 3]), tf.zeros([2, 3]))
    with pytest.raises(ValueError, match="Rank mismatch"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.zeros([2, 3], tf.int32), logits=tf.zeros([2, 3])
        )


@pytest.mark.parametrize("label", [-1, -100, 3])
def test_labels_out_of_range_are_refused(label):
    labels, logits = tf.placeholder(tf.int32, [None, 2]), tf.placeholder(tf.float32)
    logits.set_shape([None, 2, 3])
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    rows = np.zeros((1, 2, 3))
    found = tf.Session().run(loss, {labels: [[0, 2]], logits: rows})
    np.testing.assert_allclose(found, [[np.log(3)] * 2], rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{label} at position .* 3 classes"):
        tf.Session().run(loss, {labels: [[0, label]], logits: rows})


def test_assertions_of_the_program_are_raised_by_runs():
    x = tf.placeholder(tf.float32)
    with tf.control_dependencies([tf.assert_positive(x, message="x must be so")]):
        y = tf.identity(x)
    assert tf.Session().run(y, {x: [1.0]}) == [1.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
        tf.Session().run(y, {x: [-1.0]})


def test_names_that_are_not_served_say_what_to_use():
    for name, hint in {
        "estimator.Estimator": "tf.keras",
        "contrib.learn": "tf.keras",
        "custom_gradient": "weft.custom_vjp",
    }.items():
        owner = tf
        *path, last = name.split(".")
        for part in path:
            owner = getattr(owner, part)
        with pytest.raises(AttributeError, match=hint):
            getattr(owner, last)
    with pytest.raises(AttributeError, match="did you mean 'reduce_mean'"):
        _ = tf.reduce_meen
    with pytest.raises(TypeError, match="values first"):
        tf.concat(1, [tf.zeros([2, 2])])
