"""tf.summary: what is written, and read back."""

import numpy as np
import pytest

import weft as wf
import weft.tf1 as tf

pytest.importorskip("tensorboardX")


@pytest.fixture(autouse=True)
def _fresh():
    tf.reset_default_graph()


def test_summaries_are_written_and_read(tmp_path):
    x = tf.placeholder(tf.float32, [None], name="inputs")
    with tf.name_scope("layer"):
        tf.summary.scalar("loss value", tf.reduce_sum(x))
    tf.summary.histogram("x", x)
    tf.summary.image("picture", tf.reshape(x, [1, 2, 2, 1]))
    tf.summary.text("note", tf.constant("hello"))
    merged = tf.summary.merge_all()
    writer = tf.summary.FileWriter(str(tmp_path), tf.get_default_graph())
    with tf.Session() as sess:
        for step in range(2):
            found = sess.run(merged, {x: np.arange(4) + step})
            assert isinstance(found, bytes)
            writer.add_summary(found, step)
    writer.close()
    records = wf.summary.read(tmp_path)
    scalars = [(r.step, r.name, r.value) for r in records if r.kind == "scalar"]
    assert scalars == [(0, "layer/loss_value", 6.0), (1, "layer/loss_value", 10.0)]
    histogram = next(r.value for r in records if r.kind == "histogram")
    assert (histogram.min, histogram.max, histogram.num, histogram.sum) == (0, 3, 4, 6)
    assert sum(histogram.bucket) == 4
    assert next(r.value for r in records if r.kind == "image").startswith(b"\x89PNG")
    assert next(r.value for r in records if r.kind == "text") == "hello"
    assert {r.name for r in records} == {"layer/loss_value", "x", "picture/image/0", "note"}


def test_events_are_iterated(tmp_path):
    writer = tf.summary.FileWriter(str(tmp_path))
    summary = tf.Summary(value=[tf.Summary.Value(tag="a", simple_value=0.5)])
    summary.value.add(tag="b", simple_value=2)
    writer.add_summary(summary, 7)
    writer.add_graph(tf.Graph())
    writer.flush()
    writer.close()
    (path,) = tmp_path.iterdir()
    events = list(tf.train.summary_iterator(str(path)))
    found = [(e.step, v.tag, v.simple_value) for e in events for v in e.summary.value]
    assert found == [(7, "a", 0.5), (7, "b", 2.0)]
    assert any(e.graph_def for e in events)
    with pytest.raises(RuntimeError, match="closed FileWriter"):
        writer.add_summary(summary)
    writer.reopen()
    writer.add_summary(summary.SerializeToString())
    writer.close()


def test_histograms_are_in_tensorflows_buckets():
    histogram = tf.HistogramProto.of(np.array([-1.0, 0.0, 1.0, 1.0, 1e30]))
    assert sum(histogram.bucket) == 5
    assert histogram.sum_squares == pytest.approx(1e60)
    limits = dict(zip(histogram.bucket_limit, histogram.bucket, strict=True))
    (above_one,) = [limit for limit, count in limits.items() if count == 2]
    assert 1 < above_one < 1.1 * 1.1
    assert tf.HistogramProto.of(np.zeros(0)).num == 0


def test_graphs_are_shown_with_their_inputs(tmp_path):
    tensorboard = pytest.importorskip("tensorboardX.proto.graph_pb2")
    x = tf.placeholder(tf.float32, name="x")
    with tf.control_dependencies([tf.no_op(name="before")]):
        tf.add(x, x, name="y")
    found = tensorboard.GraphDef.FromString(tf.summary.graph_content(tf.get_default_graph()))
    (node,) = [node for node in found.node if node.name == "y"]
    assert list(node.input) == ["x", "x", "^before"]


def test_merging(tmp_path):
    assert tf.summary.merge_all() is None
    a = tf.summary.scalar("a", tf.constant(1.0), collections=["mine"])
    b = tf.summary.scalar("b", tf.constant(2.0), collections=["mine"], family="f")
    assert tf.summary.merge_all() is None
    merged = tf.summary.merge([a, b])
    with tf.Session() as sess:
        found = tf.Summary.FromString(sess.run(merged))
        assert [(v.tag, v.simple_value) for v in found.value] == [("a", 1.0), ("f/f/b", 2.0)]
        assert sess.run(tf.summary.merge_all("mine")) == found.SerializeToString()
        with pytest.raises(ValueError, match="Duplicate tag a"):
            sess.run(tf.summary.merge([a, a]))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: tf.summary.scalar("a", tf.zeros([2])), "takes one number"),
        (lambda: tf.summary.histogram("a", tf.constant([np.nan])), "Nan in summary histogram"),
        (lambda: tf.summary.image("a", tf.zeros([2, 2])), "Tensor must be 4-D"),
    ],
)
def test_values_that_cannot_be_shown(make, match):
    made = make()
    with tf.Session() as sess, pytest.raises(ValueError, match=match):
        sess.run(made)


def test_what_is_not_served():
    with pytest.raises(NotImplementedError, match="sounds"):
        tf.summary.audio("a", None, 1)
    with pytest.raises(TypeError, match="must be a string"):
        tf.summary.scalar(3, tf.constant(1.0))
    with pytest.raises(ValueError, match="no summaries to merge"):
        tf.summary.merge([])
    with pytest.raises(ValueError, match="no such field: audio"):
        tf.Summary.Value(audio=3)


def test_writers_take_only_summaries(tmp_path):
    writer = tf.summary.FileWriter(str(tmp_path))
    with pytest.raises(TypeError, match="a summary is bytes"):
        writer.add_summary(3.0, 1)
    with pytest.raises(TypeError, match="must be an instance of `Graph`"):
        writer.add_graph("graph")
    writer.close()


def test_pictures_are_stretched():
    made = tf.summary.image("p", tf.constant([[[[-1.0], [1.0]]]]), max_outputs=1)
    with tf.Session() as sess:
        (value,) = tf.Summary.FromString(sess.run(made)).value
    assert value.tag == "p/image"
    assert (value.image.height, value.image.width, value.image.colorspace) == (1, 2, 1)
