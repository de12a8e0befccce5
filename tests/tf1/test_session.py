"""Sessions of TensorFlow 1's face: feeds, fetches, and runs that are one native call."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

import weft.tf1 as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_the_listings_of_the_issue_run():
    x = tf.placeholder(tf.float32)
    y = x * x + 2.0 * x
    (g,) = tf.gradients(y, [x])
    value = np.random.default_rng(0).standard_normal((2, 3))  # float64 fed to float32
    found, slope = tf.Session().run([y, g], feed_dict={x: value})
    assert found.dtype == np.float32
    np.testing.assert_allclose(slope, 2 * value + 2, rtol=1e-5)
    i = tf.constant(0)
    made = tf.while_loop(lambda i: tf.less(i, 10), lambda i: tf.add(i, 1), [i])
    assert tf.Session().run(made) == 10


def test_a_placeholder_without_rank_takes_any_and_each_rank_is_built_once():
    x = tf.placeholder(tf.float32)
    y = tf.reduce_sum(tf.tanh(x))
    session = tf.Session()
    for shape in ((), (3,), (2, 3), (3,)):
        assert session.run(y, {x: np.zeros(shape)}) == 0.0
    (plan,) = session._plans.values()
    assert len(plan.stages[0].programs) == 3
    assert x.shape.ndims is None
    assert (x * 2).dtype == tf.float32


def test_a_training_step_is_one_native_call():
    x = tf.placeholder(tf.float32, [None, 4])
    loss = tf.reduce_mean(tf.square(tf.layers.dense(tf.layers.dense(x, 8, tf.nn.relu), 1) - 1.0))
    step = tf.train.AdamOptimizer().minimize(loss)
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    feeds = {x: np.ones((5, 4))}
    assert session.run(step, feeds) is None
    (plan,) = [p for p in session._plans.values() if p.fed]
    assert len(plan.stages) == 1
    assert plan.hosts == [[]]
    assert session.executable(step, feeds) is not None


def test_fetches_keep_their_nest():
    point = namedtuple("point", "a b")
    x, y = tf.constant(1.0), tf.constant([2, 3])
    found = tf.Session().run({"p": point(x, [y]), "t": (x, tf.no_op()), "n": "Const:0"})
    assert found["p"].a == 1.0
    assert found["p"].b[0].tolist() == [2, 3]
    assert found["t"] == (1.0, None)
    assert found["n"] == 1.0
    assert isinstance(found["n"], np.float32)


def test_any_tensor_can_be_fed():
    x = tf.placeholder(tf.float32, [], name="x")
    y = x * 2.0
    z = y + 1.0
    assert tf.Session().run(z, {y: 10}) == 11.0  # x is not needed
    default = tf.placeholder_with_default(5.0, [])
    assert tf.Session().run(default + 1.0) == 6.0
    assert tf.Session().run(default + 1.0, {default: 1}) == 2.0
    assert tf.Session().run("mul:0", {"x:0": 4}) == 8.0


def test_feeds_are_cast_as_tensorflow_casts():
    x = tf.placeholder(tf.float32, [None])
    i = tf.placeholder(tf.int32, [])
    found = tf.Session().run([x, i], {x: [1, 2], i: np.int64(3)})
    assert found[0].dtype == np.float32
    assert found[1].dtype == np.int32
    with pytest.raises(TypeError, match="is not compatible with Tensor type"):
        tf.Session().run(i, {i: 2**40})


def test_numbers_that_are_fed_may_decide_about_shapes():
    n = tf.placeholder(tf.int32, [])
    lengths = tf.placeholder(tf.int32, [None])
    made = tf.zeros([n, 2])
    mask = tf.sequence_mask(lengths, tf.reduce_max(lengths))
    assert made.shape.as_list() == [None, 2]
    session = tf.Session()
    assert [session.run(made, {n: k}).shape for k in (1, 3)] == [(1, 2), (3, 2)]
    assert session.run(mask, {lengths: [1, 3]}).shape == (2, 3)
    w = tf.Variable(3)
    session.run(w.initializer)
    with pytest.raises(tf.errors.InvalidArgumentError, match="decides about a shape"):
        session.run(tf.zeros([w]))


def test_each_session_has_values_of_its_own():
    v = tf.Variable(1.0)
    first, second = tf.Session(), tf.Session()
    for session in (first, second):
        session.run(v.initializer)
    first.run(v.assign_add(5.0))
    assert (first.run(v), second.run(v)) == (6.0, 1.0)
    assert second.read_variable(v) == 1.0
    second.write_variable(v, 9)
    assert second.run(v) == 9.0


def test_an_interactive_session_is_the_default_one():
    x = tf.constant([1.0, 2.0])
    session = tf.InteractiveSession()
    assert x.eval().tolist() == [1.0, 2.0]
    assert tf.get_default_session() is session
    session.close()
    assert tf.get_default_session() is None
    with tf.Session() as other:
        assert (x * 2.0).eval().tolist() == [2.0, 4.0]
        assert tf.get_default_session() is other


def test_python_divides_a_run_into_stages(capsys):
    x = tf.placeholder(tf.float32, [None])
    doubled = tf.py_func(lambda a: a * 2, [x + 1.0], tf.float32)
    doubled.set_shape([None])
    v = tf.Variable(1.0)
    y = tf.reduce_sum(doubled) * v
    shown = tf.Print(y, [y, x], "seen: ")
    session = tf.Session()
    session.run(v.initializer)
    assert session.run(shown, {x: [1, 2]}) == 10.0
    assert "seen: [10][1 2]" in capsys.readouterr().err
    (g,) = tf.gradients(y, v)
    assert session.run(g, {x: [1, 2]}) == 10.0  # no gradient passes Python's function
    assert tf.gradients(y, x) == [None]


def test_gradients_reach_what_a_stage_before_could_compute():
    v = tf.Variable([1.0, 2.0])
    data = tf.py_func(lambda: np.float32(3.0), [], tf.float32)
    loss = tf.reduce_sum(v) * data + tf.nn.l2_loss(v)
    step = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    session.run(step)
    assert session.run(v).tolist() == [1.0 - 4.0, 2.0 - 5.0]


def test_strings_are_values_for_python():
    text = tf.constant("hello")
    length = tf.py_func(lambda t: np.int64(len(t)), [text], tf.int64)
    assert tf.Session().run([text, length]) == [b"hello", 5]


def test_settings_are_taken():
    config = tf.ConfigProto(allow_soft_placement=True, gpu_options=tf.GPUOptions(allow_growth=True))
    config.gpu_options.per_process_gpu_memory_fraction = 0.4
    with tf.Session(config=config) as session, tf.device("/gpu:1"):
        assert (
            session.run(tf.constant(2) * 3, options=tf.RunOptions(), run_metadata=tf.RunMetadata())
            == 6
        )
        assert session.make_callable(tf.constant(2.0))() == 2.0
