"""Recurrent networks of TensorFlow 1's face."""

from __future__ import annotations

import numpy as np
import pytest

import weft.tf1 as tf

CELLS = {
    "basic": lambda: tf.nn.rnn_cell.BasicRNNCell(3),
    "gru": lambda: tf.nn.rnn_cell.GRUCell(3),
    "lstm": lambda: tf.nn.rnn_cell.BasicLSTMCell(3),
    "projected": lambda: tf.nn.rnn_cell.LSTMCell(4, num_proj=3, use_peepholes=True, cell_clip=2.0),
    "deep": lambda: tf.nn.rnn_cell.MultiRNNCell(
        [tf.nn.rnn_cell.LSTMCell(4), tf.nn.rnn_cell.GRUCell(3)]
    ),
}


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        tf.set_random_seed(1)
        yield made


@pytest.mark.parametrize("name", CELLS)
def test_dynamic_and_static_networks_compute_the_same(session, name):
    x = tf.placeholder(tf.float32, [None, 5, 2])
    cell = CELLS[name]()
    outputs, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    unrolled, last = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)
    loss, other = tf.reduce_sum(tf.square(outputs)), tf.reduce_sum(tf.square(tf.stack(unrolled, 1)))
    variables = tf.trainable_variables()
    slopes, others = tf.gradients(loss, variables), tf.gradients(other, variables)
    session.run(tf.global_variables_initializer())
    feeds = {x: np.random.default_rng(0).standard_normal((4, 5, 2))}
    a, b, c, d = session.run([outputs, tf.stack(unrolled, 1), slopes, others], feeds)
    np.testing.assert_allclose(a, b, atol=1e-6)
    for left, right in zip(c, d, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-5)
    assert outputs.shape.as_list() == [None, 5, 3]
    for left, right in zip(
        tf.nest.flatten(session.run(state, feeds)),
        tf.nest.flatten(session.run(last, feeds)),
        strict=True,
    ):
        np.testing.assert_allclose(left, right, atol=1e-6)


def test_names_of_variables_are_those_of_tensorflow(session):
    x = tf.placeholder(tf.float32, [2, 5, 2])
    tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(3), x, dtype=tf.float32)
    deep = tf.contrib.rnn.MultiRNNCell([tf.contrib.rnn.GRUCell(3)])
    tf.nn.dynamic_rnn(deep, x, dtype=tf.float32, scope="deep")
    assert [v.name for v in tf.trainable_variables()] == [
        "rnn/basic_lstm_cell/kernel:0",
        "rnn/basic_lstm_cell/bias:0",
        "deep/multi_rnn_cell/cell_0/gru_cell/gates/kernel:0",
        "deep/multi_rnn_cell/cell_0/gru_cell/gates/bias:0",
        "deep/multi_rnn_cell/cell_0/gru_cell/candidate/kernel:0",
        "deep/multi_rnn_cell/cell_0/gru_cell/candidate/bias:0",
    ]


def test_behind_their_lengths_outputs_are_zero_and_states_stay(session):
    x = tf.placeholder(tf.float32, [None, None, 2])
    lengths = tf.placeholder(tf.int32, [None])
    cell = tf.nn.rnn_cell.GRUCell(3)
    outputs, state = tf.nn.dynamic_rnn(cell, x, sequence_length=lengths, dtype=tf.float32)
    turned, _ = tf.nn.bidirectional_dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(3), tf.nn.rnn_cell.GRUCell(3), x, lengths, dtype=tf.float32
    )
    session.run(tf.global_variables_initializer())
    feeds = {x: np.random.default_rng(0).standard_normal((3, 4, 2)), lengths: [1, 4, 2]}
    found, last, (_, backward) = session.run([outputs, state, turned], feeds)
    assert not found[0, 1:].any()
    assert not found[2, 2:].any()
    np.testing.assert_array_equal(last, [found[0, 0], found[1, 3], found[2, 1]])
    assert not backward[0, 1:].any()
    shorter = session.run(turned[1], {x: feeds[x][2:, :2], lengths: [2]})
    np.testing.assert_allclose(shorter[0], backward[2, :2], atol=1e-6)


def test_time_may_be_first_and_states_may_be_fed(session):
    x = tf.placeholder(tf.float32, [5, None, 2])
    cell = tf.nn.rnn_cell.BasicLSTMCell(3)
    batch = tf.placeholder(tf.int32, [])
    start = cell.zero_state(batch, tf.float32)
    outputs, state = tf.nn.dynamic_rnn(cell, x, initial_state=start, time_major=True)
    session.run(tf.global_variables_initializer())
    value = np.random.default_rng(0).standard_normal((5, 4, 2))
    first = session.run(state, {x: value, batch: 4})
    assert isinstance(first, tf.nn.rnn_cell.LSTMStateTuple)
    again = session.run(outputs, {x: value, start: first, batch: 4})
    assert again.shape == (5, 4, 3)
    with pytest.raises(ValueError, match="you must give a dtype"):
        tf.nn.dynamic_rnn(cell, x)


def test_dropout_around_cells(session):
    x = tf.ones([4, 3, 50])
    keep = tf.placeholder(tf.float32, [])
    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicRNNCell(40), output_keep_prob=keep)
    outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    session.run(tf.global_variables_initializer())
    dropped = session.run(outputs, {keep: 0.5})
    assert 0.35 < np.mean(dropped == 0) < 0.65
    assert not np.array_equal(dropped[:, 0] == 0, dropped[:, 1] == 0)  # each step draws anew
    assert np.mean(session.run(outputs, {keep: 1.0}) == 0) < 0.05
