"""Variables of TensorFlow 1's face: assignments, their order, scopes and sharing."""

from __future__ import annotations

import numpy as np
import pytest

import weft.tf1 as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def test_assignments_hold_from_run_to_run(session):
    v = tf.Variable([1.0, 2.0, 3.0], name="v")
    session.run(tf.global_variables_initializer())
    assert session.run(v.assign([4, 5, 6])).tolist() == [4.0, 5.0, 6.0]
    assert session.run(tf.assign_sub(v, [1, 1, 1])).tolist() == [3.0, 4.0, 5.0]
    assert session.run(tf.scatter_update(v, [0, 2], [9.0, 8.0])).tolist() == [9.0, 4.0, 8.0]
    assert session.run(tf.scatter_add(v, [0, 0], [1.0, 1.0])).tolist() == [11.0, 4.0, 8.0]
    v.load([0, 0, 0], session)
    assert v.eval().tolist() == [0.0, 0.0, 0.0]


def test_control_dependencies_order_reads_after_writes(session):
    v = tf.Variable(1.0)
    up = v.assign_add(10.0)
    with tf.control_dependencies([up]):
        after = tf.identity(v)
    twice = tf.group(v.assign_add(1.0), v.assign_add(1.0))
    session.run(v.initializer)
    before, new = session.run([v + 0.0, after])
    assert (before, new) == (1.0, 11.0)
    session.run(twice)
    assert session.run(v) == 13.0


def test_initial_values_may_come_from_other_variables(session):
    w = tf.Variable(tf.random_normal([3]), name="w")
    twin = tf.Variable(w.initialized_value(), name="twin")
    double = tf.Variable(lambda: tf.constant(2.0), name="double", trainable=False)
    assert [v.name for v in tf.trainable_variables()] == ["w:0", "twin:0"]
    assert session.run(tf.report_uninitialized_variables()).tolist() == [b"w", b"twin", b"double"]
    session.run(tf.global_variables_initializer())
    assert np.array_equal(*session.run([w, twin]))
    assert session.run(tf.is_variable_initialized(double))
    assert session.run(double) == 2.0


def test_variables_are_shared_by_scope(session):
    def net(x):
        w = tf.get_variable("w", [2, 2], initializer=tf.ones_initializer())
        return tf.matmul(x, w)

    x = tf.constant([[1.0, 2.0]])
    with tf.variable_scope("net") as scope:
        first = net(x)
        scope.reuse_variables()
        second = net(x)
    with tf.variable_scope(scope, reuse=True):
        third = net(x)
    with tf.variable_scope("auto", reuse=tf.AUTO_REUSE):
        net(x)
    with tf.variable_scope("auto", reuse=tf.AUTO_REUSE):
        net(x)
    assert [v.name for v in tf.global_variables()] == ["net/w:0", "auto/w:0"]
    session.run(tf.global_variables_initializer())
    assert [x.tolist() for x in session.run([first, second, third])] == [[[3.0, 3.0]]] * 3
    with tf.variable_scope("outer"), tf.variable_scope("inner"):
        assert tf.get_variable("v", initializer=3.0).name == "outer/inner/v:0"
        assert tf.get_variable_scope().name == "outer/inner"


def test_scopes_give_initializers_and_penalties(session):
    start = tf.constant_initializer(0.5)
    with tf.variable_scope(
        "s", initializer=start, regularizer=tf.contrib.layers.l2_regularizer(0.1)
    ):
        w = tf.get_variable("w", [2])
    session.run(tf.global_variables_initializer())
    assert session.run(w).tolist() == [0.5, 0.5]
    np.testing.assert_allclose(
        session.run(tf.losses.get_regularization_loss()), 0.1 * 0.25, rtol=1e-6
    )


def test_constraints_and_slots(session):
    w = tf.get_variable(
        "w",
        [2],
        initializer=tf.ones_initializer(),
        constraint=lambda x: tf.clip_by_value(x, 0.0, 0.9),
    )
    optimizer = tf.train.AdamOptimizer(0.5)
    step = optimizer.minimize(tf.reduce_sum(-w))
    assert optimizer.get_slot_names() == ["m", "v"]
    assert optimizer.get_slot(w, "m").name == "w/Adam:0"
    assert [v.name for v in optimizer.variables()] == [
        "beta1_power:0",
        "beta2_power:0",
        "w/Adam:0",
        "w/Adam_1:0",
    ]
    session.run(tf.global_variables_initializer())
    session.run(step)
    np.testing.assert_allclose(session.run(w), [0.9, 0.9])


@pytest.mark.parametrize(
    ("make", "mean", "deviation"),
    [
        (lambda: tf.random_normal([4000], 1.0, 2.0), 1.0, 2.0),
        (lambda: tf.truncated_normal([4000], 0.0, 1.0), 0.0, 0.88),
        (lambda: tf.random_uniform([4000], -1.0, 3.0), 1.0, 4 / 12**0.5),
        (lambda: tf.glorot_uniform_initializer()([50, 80]), 0.0, (2 / 130) ** 0.5),
        (lambda: tf.initializers.he_normal()([50, 80]), 0.0, (2 / 50) ** 0.5),
        (lambda: tf.to_float(tf.multinomial(tf.log([[0.25, 0.75]]), 4000)), 0.75, 0.433),
    ],
)
def test_draws_have_their_moments_and_follow_seeds(make, mean, deviation):
    def drawn():
        with tf.Graph().as_default():
            tf.set_random_seed(7)
            made = make()
            with tf.Session() as session:
                return session.run(made), session.run(made)

    first, second = drawn()
    again, _ = drawn()
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)
    np.testing.assert_allclose(first.mean(), mean, atol=0.1 * deviation)
    np.testing.assert_allclose(first.std(), deviation, rtol=0.06)


def test_an_operations_own_seed_decides_alone(session):
    a, b = tf.random_normal([3], seed=5), tf.random_normal([3], seed=5)
    c = tf.random_normal([3])
    x, y, z = session.run([a, b, c])
    assert np.array_equal(x, y)
    assert not np.array_equal(x, z)
    shuffled = session.run(tf.random_shuffle(tf.range(10), seed=1))
    assert sorted(shuffled) == list(range(10))
