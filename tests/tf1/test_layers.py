"""Layers, losses' collections, metrics and sampled losses of TensorFlow 1's face."""

from __future__ import annotations

import numpy as np
import pytest

import weft.tf1 as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        tf.set_random_seed(1)
        yield made


def test_layers_make_variables_under_tensorflows_names(session):
    x = tf.placeholder(tf.float32, [None, 8, 8, 3])
    h = tf.layers.conv2d(x, 4, 3, padding="same", activation=tf.nn.relu)
    h = tf.layers.conv2d(h, 4, (3, 2), strides=2, name="second")
    h = tf.layers.separable_conv2d(h, 6, 2)
    h = tf.layers.conv2d_transpose(h, 5, 3, strides=2, padding="same")
    h = tf.layers.average_pooling2d(h, 2, 1)
    assert h.shape.as_list() == [None, 3, 5, 5]
    tf.layers.dense(tf.layers.flatten(h), 2)
    assert [v.op.name for v in tf.trainable_variables()] == [
        *("conv2d/kernel", "conv2d/bias", "second/kernel", "second/bias"),
        *(
            "separable_conv2d/depthwise_kernel",
            "separable_conv2d/pointwise_kernel",
            "separable_conv2d/bias",
        ),
        *("conv2d_transpose/kernel", "conv2d_transpose/bias", "dense/kernel", "dense/bias"),
    ]
    session.run(tf.global_variables_initializer())
    assert session.run(h, {x: np.zeros((2, 8, 8, 3))}).shape == (2, 3, 5, 5)


def test_a_layer_shares_its_variables_with_itself(session):
    layer = tf.layers.Dense(
        4, use_bias=False, kernel_regularizer=tf.contrib.layers.l2_regularizer(1.0)
    )
    a, b = layer(tf.ones([2, 3])), layer(tf.ones([2, 3]))
    assert len(tf.global_variables()) == 1
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 1
    session.run(tf.global_variables_initializer())
    assert np.array_equal(*session.run([a, b]))
    with pytest.raises(ValueError, match="last dimension of the inputs should be defined"):
        tf.layers.dense(tf.placeholder(tf.float32, [2, None]), 3)


def test_sequences_are_dense_layers_input_too(session):
    made = tf.layers.dense(tf.ones([2, 5, 3]), 4, kernel_initializer=tf.ones_initializer())
    session.run(tf.global_variables_initializer())
    np.testing.assert_allclose(session.run(made), np.full((2, 5, 4), 3.0))


def test_batch_normalization_follows_a_flag_that_is_fed(session):
    x = tf.placeholder(tf.float32, [None, 2])
    training = tf.placeholder(tf.bool, [])
    y = tf.layers.batch_normalization(x, momentum=0.5, training=training)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    session.run(tf.global_variables_initializer())
    value = np.array([[1.0, 2.0], [3.0, 6.0]])
    session.run(updates, {x: value, training: True})
    mean, variance = session.run(
        ["batch_normalization/moving_mean:0", "batch_normalization/moving_variance:0"]
    )
    np.testing.assert_allclose(mean, [1.0, 2.0])
    np.testing.assert_allclose(variance, [1.0, 2.5])
    np.testing.assert_allclose(
        session.run(y, {x: value, training: False}),
        (value - mean) / np.sqrt(variance + 1e-3),
        rtol=1e-5,
    )
    np.testing.assert_allclose(session.run(y, {x: value, training: True}).mean(0), 0, atol=1e-6)


def test_dropout_follows_a_flag_that_is_fed(session):
    training = tf.placeholder(tf.bool, [])
    y = tf.layers.dropout(tf.ones([1000]), 0.25, training=training)
    assert session.run(y, {training: False}).tolist() == [1.0] * 1000
    dropped = session.run(y, {training: True})
    assert 0.2 < np.mean(dropped == 0) < 0.3
    np.testing.assert_allclose(dropped.max(), 1 / 0.75)
    noise = session.run(tf.nn.dropout(tf.ones([50, 3]), 0.5, noise_shape=[50, 1]))
    assert (noise == noise[:, :1]).all()


def test_contribs_layers_have_their_names(session):
    x = tf.ones([2, 6, 6, 1])
    h = tf.contrib.layers.conv2d(x, 4, [3, 3], normalizer_fn=tf.contrib.layers.batch_norm)
    h = tf.contrib.layers.max_pool2d(h, [2, 2])
    y = tf.contrib.layers.fully_connected(tf.contrib.layers.flatten(h), 3, activation_fn=None)
    assert [v.op.name for v in tf.trainable_variables()] == [
        *("Conv/conv/kernel", "Conv/BatchNorm/bn/beta"),
        *("fully_connected/weights", "fully_connected/biases"),
    ]
    session.run(tf.global_variables_initializer())
    assert session.run(y).shape == (2, 3)


def test_metrics_add_up_over_runs(session):
    labels = tf.placeholder(tf.int64, [None])
    found = tf.placeholder(tf.int64, [None])
    accuracy, more = tf.metrics.accuracy(labels, found)
    precision = tf.metrics.precision(labels, found)
    recall = tf.metrics.recall(labels, found)
    mean = tf.metrics.mean(tf.to_float(labels))
    session.run(tf.local_variables_initializer())
    assert tf.global_variables() == []
    for y, p in (([1, 0, 1], [1, 1, 1]), ([0, 0, 1], [0, 0, 0])):
        session.run([more, precision[1], recall[1], mean[1]], {labels: y, found: p})
    values = session.run([accuracy, precision[0], recall[0], mean[0]])
    np.testing.assert_allclose(values, [4 / 6, 2 / 3, 2 / 3, 0.5], rtol=1e-6)
    area, step = tf.metrics.auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    session.run(tf.local_variables_initializer())
    session.run(step)
    np.testing.assert_allclose(session.run(area), 0.75, atol=0.01)


def test_sampled_losses_learn_what_whole_ones_do(session):
    w, b = tf.Variable(tf.zeros([20, 4])), tf.Variable(tf.zeros([20]))
    x, y = tf.ones([6, 4]), tf.constant([[1], [2], [3], [1], [2], [3]])
    losses = [
        tf.nn.nce_loss(w, b, y, x, 5, 20),
        tf.nn.sampled_softmax_loss(w, b, y, x, 5, 20),
    ]
    step = tf.train.GradientDescentOptimizer(0.5).minimize(
        tf.add_n([tf.reduce_mean(v) for v in losses])
    )
    session.run(tf.global_variables_initializer())
    first = session.run(losses)
    assert [v.shape for v in first] == [(6,), (6,)]
    for _ in range(30):
        session.run(step)
    assert set(np.argsort(session.run(b))[-3:]) == {1, 2, 3}
