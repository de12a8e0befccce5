"""tf.train.Saver: there and back, what is kept, TensorFlow's own checkpoints, and what is wrong."""

import os
from pathlib import Path

import numpy as np
import pytest

import weft.io as wio
import weft.tf1 as tf
from tests.io.test_bundle import INDEX, VERSION_1, of_tensorflow


@pytest.fixture(autouse=True)
def _fresh():
    tf.reset_default_graph()


def two_variables():
    w = tf.get_variable("layer/w", initializer=np.arange(6, dtype=np.float32).reshape(2, 3))
    n = tf.Variable(np.int64(7), trainable=False, name="step")
    return w, n


def initialized(session):
    session.run(tf.global_variables_initializer())


def test_values_there_and_back(tmp_path):
    w, n = two_variables()
    saver = tf.train.Saver()
    with tf.Session() as sess:
        initialized(sess)
        sess.run([tf.assign(w, w * 2), tf.assign_add(n, 1)])
        prefix = saver.save(sess, str(tmp_path / "model.ckpt"))
    assert prefix == str(tmp_path / "model.ckpt")
    with tf.Session() as sess:
        saver.restore(sess, prefix)
        assert sess.run(w).tolist() == [[0, 2, 4], [6, 8, 10]]
        assert sess.run(n) == 8
    assert sorted(wio.load(prefix + ".safetensors")) == ["layer/w", "step"]


def test_names_of_ones_own(tmp_path):
    w, n = two_variables()
    with tf.Session() as sess:
        initialized(sess)
        tf.train.Saver({"weights": w}).save(sess, str(tmp_path / "a"))
        tf.train.Saver([n]).save(sess, str(tmp_path / "b"))
        assert tf.train.list_variables(str(tmp_path / "a")) == [("weights", [2, 3])]
        assert tf.train.list_variables(str(tmp_path / "b")) == [("step", [])]
        sess.run(tf.assign(w, tf.zeros([2, 3])))
        tf.train.Saver({"weights": w}).restore(sess, str(tmp_path / "a"))
        assert sess.run(w)[1, 2] == 5


def test_steps_and_how_many_are_kept(tmp_path):
    two_variables()
    step = tf.train.get_or_create_global_step()
    saver = tf.train.Saver(max_to_keep=2)
    with tf.Session() as sess:
        initialized(sess)
        assert tf.train.latest_checkpoint(str(tmp_path)) is None
        for i in range(4):
            sess.run(tf.assign(step, i))
            last = saver.save(sess, str(tmp_path / "model"), global_step=step)
    assert last == str(tmp_path / "model-3")
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == [
        *("checkpoint", "model-2.meta", "model-2.safetensors", "model-3.meta"),
        "model-3.safetensors",
    ]
    assert saver.last_checkpoints == [str(tmp_path / f"model-{i}") for i in (2, 3)]
    assert tf.train.latest_checkpoint(str(tmp_path)) == last
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == last
    assert state.all_model_checkpoint_paths == saver.last_checkpoints
    assert tf.train.checkpoint_exists(last)
    assert not tf.train.checkpoint_exists(str(tmp_path / "model-0"))
    again = tf.train.Saver()
    again.recover_last_checkpoints(state.all_model_checkpoint_paths)
    assert again.last_checkpoints == saver.last_checkpoints


def test_relative_folders_move(tmp_path, monkeypatch):
    two_variables()
    monkeypatch.chdir(tmp_path)
    os.mkdir("run")
    with tf.Session() as sess:
        initialized(sess)
        saver = tf.train.Saver()
        saver.save(sess, "./run/model.ckpt", global_step=5)
        assert 'model_checkpoint_path: "model.ckpt-5"' in Path("run/checkpoint").read_text()
        os.rename("run", "moved")
        found = tf.train.latest_checkpoint("moved")
        assert found == os.path.join("moved", "model.ckpt-5")
        saver.restore(sess, found)
        saver.save(sess, "here")
        assert tf.train.latest_checkpoint(".") == os.path.join(".", "here")


def test_the_file_of_tensorflow_is_read(tmp_path):
    (tmp_path / "checkpoint").write_text(
        'model_checkpoint_path: "a\\"b\\303\\\\c"\n'
        'all_model_checkpoint_paths: "/x/1"\n'
        "last_preserved_timestamp: 1.5\nnonsense\n"
    )
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == os.path.join(str(tmp_path), 'a"bÃ\\c')
    assert state.all_model_checkpoint_paths == ["/x/1"]
    (tmp_path / "checkpoint").write_text("\0nothing")
    assert tf.train.get_checkpoint_state(str(tmp_path)) is None


def test_checkpoints_of_tensorflow_are_restored(tmp_path):
    prefix = str(of_tensorflow(tmp_path))
    w = tf.get_variable("w", [2])
    part = tf.get_variable("part", [300, 1], tf.uint8, initializer=tf.zeros_initializer())
    with tf.Session() as sess:
        tf.train.Saver().restore(sess, prefix)
        assert sess.run(w).tolist() == [1.5, -2.0]
        assert sess.run(part)[8, 0] == 1
    reader = tf.train.NewCheckpointReader(prefix)
    assert reader.has_tensor("names")
    assert reader.get_tensor("names").tolist() == [b"a", b"bcd", b""]
    assert reader.get_variable_to_shape_map()["part"] == [300, 1]
    assert reader.get_variable_to_dtype_map()["step"] == tf.int64
    assert b"part (uint8) [300, 1]" in reader.debug_string()
    assert tf.train.load_variable(prefix, "step") == 7


def test_a_meta_graph_is_found_while_the_process_lives(tmp_path):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.get_variable("w", initializer=np.ones((2, 1), np.float32))
    tf.matmul(x, w, name="y")
    with tf.Session() as sess:
        initialized(sess)
        sess.run(tf.assign(w, 3 * w))
        prefix = tf.train.Saver().save(sess, str(tmp_path / "m"))
    for _ in range(2):
        tf.reset_default_graph()
        with tf.Session() as sess:
            saver = tf.train.import_meta_graph(prefix + ".meta")
            saver.restore(sess, prefix)
            assert sess.run("y:0", {"x:0": [[1, 2]]}).tolist() == [[9.0]]
    graph = tf.Graph()
    with graph.as_default(), tf.Session(graph=graph) as sess:
        tf.train.import_meta_graph(prefix + ".meta").restore(sess, prefix)
        assert sess.run(graph.get_tensor_by_name("y:0"), {"x:0": [[1, 0]]}).tolist() == [[3.0]]


def test_meta_graphs_that_cannot_be_read_say_what_to_do(tmp_path):
    path = tmp_path / "m.meta"
    for content in (b"\x0a\x0c\x12", b"[1]", b'{"format": 3}', b"[" * 10000):
        path.write_bytes(content)
        with pytest.raises(tf.errors.UnimplementedError, match=r"is no file of Weft's.*restore"):
            tf.train.import_meta_graph(str(path))
    path.write_text('{"format": "weft tf1 graph", "graph": "gone", "saved": {}, "operations": []}')
    with pytest.raises(tf.errors.UnimplementedError, match="has ended"):
        tf.train.import_meta_graph(str(path))
    with pytest.raises(tf.errors.NotFoundError, match="does not exist"):
        tf.train.import_meta_graph(str(tmp_path / "none.meta"))


def test_what_is_wrong_is_said_in_tensorflows_words(tmp_path):
    with pytest.raises(ValueError, match="No variables to save"):
        tf.train.Saver()
    w, _ = two_variables()
    saver = tf.train.Saver()
    with tf.Session() as sess:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value layer/w"):
            saver.save(sess, str(tmp_path / "m"))
        initialized(sess)
        with pytest.raises(ValueError, match=r"Parent directory of .* doesn't exist"):
            saver.save(sess, str(tmp_path / "no" / "m"))
        with pytest.raises(ValueError, match="not a valid checkpoint"):
            saver.restore(sess, str(tmp_path / "none"))
        with pytest.raises(ValueError, match="when it is None"):
            saver.restore(sess, None)
        prefix = tf.train.Saver({"w": w}).save(sess, str(tmp_path / "m"))
        with pytest.raises(tf.errors.NotFoundError, match="Key layer/w not found in checkpoint"):
            saver.restore(sess, prefix)
    with pytest.raises(TypeError, match="not a Variable"):
        tf.train.Saver([tf.constant(1)])
    tf.reset_default_graph()
    other = tf.get_variable("w", [3, 2])
    whole = tf.get_variable("v", [2, 3], tf.int32, initializer=tf.zeros_initializer())
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"lhs shape= \[3,2\] rhs shape="):
            tf.train.Saver({"w": other}).restore(sess, prefix)
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected dtype int32 does not"):
            tf.train.Saver({"w": whole}).restore(sess, prefix)
        tf.train.Saver({"w": other}, reshape=True).restore(sess, prefix)
        assert sess.run(other).tolist() == [[0, 1], [2, 3], [4, 5]]


def test_damaged_and_old_checkpoints(tmp_path):
    w = tf.get_variable("w", [2])
    (tmp_path / "m").write_bytes(VERSION_1)
    saver = tf.train.Saver([w])
    with tf.Session() as sess:
        with pytest.raises(tf.errors.DataLossError, match="version 1, which is not read"):
            saver.restore(sess, str(tmp_path / "m"))
        (tmp_path / "n.index").write_bytes(INDEX[:-1])
        with pytest.raises(tf.errors.DataLossError, match="expected a table"):
            saver.restore(sess, str(tmp_path / "n"))
        (tmp_path / "o.safetensors").write_bytes(b"no")
        with pytest.raises(tf.errors.DataLossError, match="safetensors"):
            saver.restore(sess, str(tmp_path / "o"))
    with pytest.raises(tf.errors.NotFoundError, match="Failed to find any matching files"):
        tf.train.NewCheckpointReader(str(tmp_path / "none"))
