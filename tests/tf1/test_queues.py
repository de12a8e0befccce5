"""Queues, what fills them, readers of files, and batches."""

import threading

import numpy as np
import pytest

import weft.tf1 as tf
from weft.data import IterableSource, encode_example, write_tfrecords
from weft.tf1 import queues


@pytest.fixture(autouse=True)
def _fresh():
    tf.reset_default_graph()


def test_queues_hold_what_is_put_in():
    queue = tf.FIFOQueue(10, [tf.float32, tf.string], shapes=[[2], []])
    put = queue.enqueue([[1.0, 2.0], "a"])
    many = queue.enqueue_many([np.float32([[3, 4], [5, 6]]), ["b", "c"]])
    x, text = queue.dequeue()
    rows, texts = queue.dequeue_many(2)
    with tf.Session() as sess:
        sess.run(put)
        sess.run(many)
        assert sess.run(queue.size()) == 3
        found = sess.run([x, text])
        assert (found[0].tolist(), found[1]) == ([1, 2], b"a")
        found = sess.run([rows, texts])
        assert (found[0].tolist(), found[1].tolist()) == ([[3, 4], [5, 6]], [b"b", b"c"])
        assert not sess.run(queue.is_closed())
        sess.run(queue.close())
        assert sess.run(queue.is_closed())
        with pytest.raises(tf.errors.OutOfRangeError, match="is closed and has insufficient"):
            sess.run(x)
        with pytest.raises(tf.errors.CancelledError, match="is closed"):
            sess.run(put)
    with tf.Session() as other:
        assert other.run(queue.size()) == 0


def test_names_and_padding():
    queue = tf.PaddingFIFOQueue(10, [tf.int32], shapes=[[None]], names=["x"])
    put = [queue.enqueue({"x": [i] * i}) for i in (1, 3)]
    batch = queue.dequeue_many(2)["x"]
    with tf.Session() as sess:
        for operation in put:
            sess.run(operation)
        assert sess.run(batch).tolist() == [[1, 0, 0], [3, 3, 3]]


@pytest.fixture
def impatient(monkeypatch):
    """Threads that other tests of this process left may fill a queue, and are waited for."""
    monkeypatch.setattr(queues, "_PATIENCE_SECONDS", 0.5)


@pytest.mark.usefixtures("impatient")
def test_a_queue_that_nothing_fills_says_so():
    queue = tf.FIFOQueue(3, tf.int32)
    out = queue.dequeue()
    with (
        tf.Session() as sess,
        pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"nothing fills it: call tf\.train\.start_queue_runners",
        ),
    ):
        sess.run(out)
    with pytest.raises(ValueError, match="specified shapes"):
        queue.dequeue_many(2)
    with pytest.raises(ValueError, match="expected 2 components"):
        tf.FIFOQueue(3, [tf.int32, tf.int32]).enqueue([1])
    with pytest.raises(ValueError, match="Received: 1 shapes"):
        tf.FIFOQueue(3, [tf.int32, tf.int32], shapes=[[]])


@pytest.mark.usefixtures("impatient")
def test_threads_with_other_work_are_not_waited_for():
    stop, before = threading.Event(), set(threading.enumerate())

    def items():
        yield 1
        stop.wait(60)

    ahead = iter(IterableSource(items).prefetch(1))
    next(ahead)  # a thread of Weft's lives until the end
    others = set(threading.enumerate()) - before
    assert others
    assert not any(map(queues._may_run, others))
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="nothing fills"):
        sess.run(tf.FIFOQueue(3, tf.int32).dequeue())
    stop.set()


def test_threads_of_ones_own_fill_a_queue():
    queue = tf.FIFOQueue(2, tf.int32, shapes=[[]])
    value = tf.placeholder(tf.int32, [])
    put, out = queue.enqueue(value), queue.dequeue()
    coord = tf.train.Coordinator()
    with tf.Session() as sess:

        def fill():
            for i in range(8):
                sess.run(put, {value: i})

        thread = threading.Thread(target=fill)
        thread.start()
        assert [int(sess.run(out)) for _ in range(8)] == list(range(8))
        coord.request_stop()
        coord.join([thread])


def test_producers_end_after_their_epochs():
    queue = tf.train.string_input_producer(["a", "b"], num_epochs=2, shuffle=False)
    name = queue.dequeue()
    for _ in range(2):  # each session begins anew
        with tf.Session() as sess:
            coord = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess=sess, coord=coord)
            assert [sess.run(name) for _ in range(4)] == [b"a", b"b", b"a", b"b"]
            with pytest.raises(tf.errors.OutOfRangeError):
                sess.run(name)
            assert not coord.should_stop()
            coord.request_stop()
            coord.join(threads)
            assert coord.joined
    with pytest.raises(ValueError, match="non-null input"):
        tf.train.string_input_producer([])
    with pytest.raises(ValueError, match="num_epochs must be > 0"):
        tf.train.limit_epochs(tf.constant(1), 0)


def test_shuffled_producers_follow_seeds():
    def order(seed):
        tf.reset_default_graph()
        queue = tf.train.range_input_producer(20, shuffle=True, seed=seed)
        out = queue.dequeue_many(40)
        with tf.Session() as sess:
            tf.train.start_queue_runners(sess)
            return sess.run(out).tolist()

    assert order(1) == order(1) != order(2)
    assert sorted(order(1)[:20]) == list(range(20))
    assert order(1)[:20] != order(1)[20:]


def test_slices_and_batches():
    x, y = np.arange(10, dtype=np.float32).reshape(5, 2), np.arange(5)
    row, label = tf.train.slice_input_producer([x, y], shuffle=False, num_epochs=1)
    rows, labels = tf.train.batch([row, label], 2, allow_smaller_final_batch=True)
    assert rows.shape.as_list() == [None, 2]
    with tf.Session() as sess:
        tf.train.start_queue_runners(sess)
        found = [sess.run([rows, labels]) for _ in range(3)]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(rows)
    assert [b.tolist() for _, b in found] == [[0, 1], [2, 3], [4]]
    assert found[2][0].tolist() == [[8, 9]]


def test_final_batches_that_are_too_small_are_left_out():
    (number,) = tf.train.slice_input_producer([np.arange(5)], shuffle=False, num_epochs=1)
    batch = tf.train.batch([number], 2)
    with tf.Session() as sess:
        tf.train.start_queue_runners(sess)
        assert [sess.run(batch).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
        with pytest.raises(tf.errors.OutOfRangeError, match="requested 2, current size 1"):
            sess.run(batch)


def test_shuffled_batches():
    (number,) = tf.train.slice_input_producer([np.arange(100)], shuffle=False, num_epochs=1)
    batch = tf.train.shuffle_batch({"n": number}, 10, 60, min_after_dequeue=30, seed=1)["n"]
    with tf.Session() as sess:
        tf.train.start_queue_runners(sess)
        found = [sess.run(batch).tolist() for _ in range(10)]
    assert found[0] != list(range(10))
    assert sorted(x for part in found for x in part) == list(range(100))
    assert max(found[0]) >= 10


def test_batches_of_several_and_of_many():
    a, b = (tf.constant([i, i]) for i in (1, 2))
    joined = tf.train.batch_join([[a], [b]], 4)
    whole = tf.train.batch([tf.constant([[1], [2], [3]])], 2, enqueue_many=True)
    with tf.Session() as sess:
        tf.train.start_queue_runners(sess)
        assert sess.run(joined).tolist() == [[1, 1], [2, 2], [1, 1], [2, 2]]
        assert sess.run(whole).tolist() == [[1], [2]]
        assert sess.run(whole).tolist() == [[3], [1]]


def test_readers(tmp_path):
    paths = []
    for name in "ab":
        (tmp_path / name).write_text(f"head\n{name}1,1\n{name}2,2\n")
        paths.append(str(tmp_path / name))
    queue = tf.train.string_input_producer(paths, num_epochs=1, shuffle=False)
    reader = tf.TextLineReader(skip_header_lines=1)
    key, value = reader.read(queue)
    text, number = tf.decode_csv(value, [[""], [0]])
    with tf.Session() as sess:
        tf.train.start_queue_runners(sess)
        found = [tuple(sess.run([key, text, number])) for _ in range(4)]
        assert [x[1:] for x in found] == [(b"a1", 1), (b"a2", 2), (b"b1", 1), (b"b2", 2)]
        assert found[0][0] == paths[0].encode() + b":2"
        assert sess.run(reader.num_records_produced()) == 4
        assert sess.run(reader.num_work_units_completed()) == 1
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(value)


def test_readers_of_records_and_whole_files(tmp_path):
    path = str(tmp_path / "a.tfrecord")
    write_tfrecords(path, [encode_example({"x": i}) for i in range(5)])
    queue = tf.train.string_input_producer([path], shuffle=False)
    _, record = tf.TFRecordReader().read(queue)
    x = tf.parse_single_example(record, {"x": tf.FixedLenFeature([], tf.int64)})["x"]
    batch = tf.train.batch([x], 7)
    _, several = tf.TFRecordReader().read_up_to(queue, 3)
    whole = tf.WholeFileReader().read(queue)
    name = tf.IdentityReader().read(queue)
    pieces = tf.FixedLengthRecordReader(4).read(tf.train.string_input_producer([__file__]))
    with tf.Session() as sess:
        tf.train.start_queue_runners(sess)
        assert sess.run(batch).tolist() == [0, 1, 2, 3, 4, 0, 1]
        assert len(sess.run(several)) == 3
        assert sess.run(whole)[1] == (tmp_path / "a.tfrecord").read_bytes()
        assert sess.run(name) == [path.encode()] * 2
        try:
            sess.run(pieces)
        except tf.errors.InvalidArgumentError as error:
            assert "Excess bytes" in str(error)  # noqa: PT017  (the size of this file may fit)


def test_own_queue_runners():
    queue = tf.FIFOQueue(100, tf.float32, shapes=[[]])
    counter = tf.Variable(0.0)
    put = queue.enqueue(tf.assign_add(counter, 1.0))
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [put] * 2))
    batch = queue.dequeue_many(3)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        tf.train.start_queue_runners()
        assert sess.run(batch).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="give a queue and operations"):
        tf.train.QueueRunner(queue)
    with pytest.raises(ValueError, match="No default session"):
        tf.train.start_queue_runners()


def test_coordinators():
    coord = tf.train.Coordinator()
    with coord.stop_on_exception():
        raise KeyError("broken")
    assert coord.should_stop()
    assert coord.wait_for_stop(0)
    with pytest.raises(KeyError, match="broken"):
        coord.join()
    coord.clear_stop()
    coord.request_stop(tf.errors.OutOfRangeError(None, None, "end"))
    coord.join()
    calls = []
    coord.clear_stop()

    def once():
        calls.append(1)
        coord.request_stop()

    thread = tf.train.LooperThread.loop(coord, None, once)
    coord.join([thread])
    assert calls == [1]
