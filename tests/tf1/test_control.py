"""Control flow of TensorFlow 1's face."""

from __future__ import annotations

import numpy as np
import pytest

import weft.tf1 as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def test_cond_runs_one_branch_and_may_assign(session):
    x = tf.placeholder(tf.float32, [])
    v = tf.Variable(1.0)
    y = tf.cond(x > 0.0, lambda: tf.assign_add(v, x), lambda: tf.identity(v) * 0.0)
    step = tf.cond(x > 5.0, tf.no_op, lambda: v.assign(7.0).op)
    session.run(v.initializer)
    assert session.run(y, {x: 2.0}) == 3.0
    assert session.run(y, {x: -1.0}) == 0.0
    assert session.run(v) == 3.0
    session.run(step, {x: 0.0})
    assert session.run(v) == 7.0


def test_gradients_pass_both_branches_and_variables_inside(session):
    x = tf.placeholder(tf.float32, [])
    w = tf.Variable(3.0)
    y = tf.cond(x > 0.0, lambda: w * x * x, lambda: (w * x, tf.constant(0.0))[0])
    g = tf.gradients(y, [x, w])
    session.run(w.initializer)
    assert session.run(g, {x: 2.0}) == [12.0, 4.0]
    assert session.run(g, {x: -2.0}) == [3.0, -2.0]


def test_loops_carry_nests_and_write_variables(session):
    v = tf.Variable(0)
    n = tf.placeholder(tf.int32, [])

    def body(i, pair):
        a, b = pair
        with tf.control_dependencies([v.assign_add(2)]):
            return [i + 1, (b, a + b)]

    i, (a, b) = tf.while_loop(lambda i, pair: i < n, body, [tf.constant(0), (0, 1)])
    session.run(v.initializer)
    assert session.run([i, a, b], {n: 10}) == [10, 55, 89]
    bounded = tf.while_loop(
        lambda x: x < 100, lambda x: x * 2, [tf.constant(1)], maximum_iterations=3
    )
    assert session.run(bounded) == 8


def test_shapes_may_grow_if_the_turns_are_known(session):
    n = tf.placeholder(tf.int32, [])
    x = tf.Variable(tf.ones([2, 2]))
    _, grown = tf.while_loop(
        lambda i, m: i < n,
        lambda i, m: [i + 1, tf.concat([m, m], axis=0)],
        [tf.constant(0), x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])],
    )
    (g,) = tf.gradients(grown, x)
    session.run(x.initializer)
    assert [session.run(grown, {n: k}).shape for k in (0, 3)] == [(2, 2), (16, 2)]
    assert session.run(g, {n: 3}).tolist() == [[8.0, 8.0], [8.0, 8.0]]
    loose = [tf.TensorShape([None, None])]
    until = tf.while_loop(
        lambda m: tf.reduce_sum(m) < 9.0, lambda m: tf.concat([m, m], 0), [x], loose
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="decides about"):
        session.run(until)


def test_a_loop_of_one_variable_gives_it_alone(session):
    made = tf.while_loop(lambda x: tf.reduce_sum(x) < 10.0, lambda x: x * 2.0, [tf.ones([2])])
    assert session.run(made).tolist() == [8.0, 8.0]


def test_tensor_arrays_are_written_in_loops(session):
    x = tf.placeholder(tf.float32, [None, 3])
    steps = tf.shape(x)[0]
    inputs = tf.TensorArray(tf.float32, steps).unstack(x)
    outputs = tf.TensorArray(tf.float32, steps)

    def body(t, total, written):
        total = total + inputs.read(t)
        return t + 1, total, written.write(t, total * 2.0)

    _, last, written = tf.while_loop(lambda t, *_: t < steps, body, (0, tf.zeros([3]), outputs))
    stacked = written.stack()
    (g,) = tf.gradients(stacked, x)
    value = np.arange(12.0).reshape(4, 3)
    found, total, slope = session.run([stacked, last, g], {x: value})
    np.testing.assert_allclose(found, 2 * np.cumsum(value, 0))
    np.testing.assert_allclose(total, value.sum(0))
    np.testing.assert_allclose(slope, np.repeat([[8.0], [6.0], [4.0], [2.0]], 3, 1))
    fixed = tf.TensorArray(tf.int32, 2, element_shape=[]).write(0, 5).write(1, 7)
    assert session.run([fixed.stack(), fixed.read(1), fixed.size()])[0].tolist() == [5, 7]


def test_functions_over_elements_take_nests_and_gradients(session):
    a, b = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    w = tf.Variable(2.0)
    made = tf.map_fn(lambda pair: pair[0] * pair[1] * w, (a, b), dtype=tf.float32)
    (g,) = tf.gradients(made, w)
    both = tf.map_fn(lambda x: (x, x * x), a, dtype=(tf.float32, tf.float32))
    session.run(w.initializer)
    assert session.run(made).tolist() == [6.0, 16.0]
    assert session.run(g) == 11.0
    assert session.run(both[1]).tolist() == [1.0, 4.0]


def test_order_without_values(session):
    v = tf.Variable(0)
    with tf.control_dependencies([v.assign_add(1)]), tf.control_dependencies(None):
        free = tf.constant(1) + 1
    with tf.control_dependencies([v.assign_add(1)]):
        done = tf.no_op()
    both = tf.tuple([tf.constant(1), tf.constant(2)], control_inputs=[v.assign_add(5).op])
    session.run(v.initializer)
    session.run(free)
    assert session.run(v) == 0
    session.run(done)
    assert session.run(v) == 1
    assert session.run(both) == [1, 2]
    assert session.run(v) == 6


def test_python_inside_of_branches_is_refused(session):
    with pytest.raises(ValueError, match=r"cannot stand inside tf\.cond"):
        tf.cond(
            tf.constant(True),
            lambda: tf.py_func(np.sin, [1.0], tf.float32),
            lambda: tf.constant(1.0),
        )
