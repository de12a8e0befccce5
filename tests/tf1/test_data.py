"""tf.data: datasets, iterators, and what they say."""

import numpy as np
import pytest

import weft.tf1 as tf
from weft.data import encode_example, write_tfrecords

Dataset = tf.data.Dataset


@pytest.fixture(autouse=True)
def _fresh():
    tf.reset_default_graph()


def values(dataset, session=None):
    """Return all elements of a dataset."""
    element = dataset.make_one_shot_iterator().get_next()
    found = []
    with tf.Session() as sess:
        while True:
            try:
                found.append(sess.run(element))
            except tf.errors.OutOfRangeError as error:
                assert "End of sequence" in str(error)  # noqa: PT017  (the loop ends here)
                return found


def listed(dataset):
    return [np.asarray(x).tolist() for x in values(dataset)]


def test_sources():
    x, y = np.arange(6, dtype=np.float32).reshape(3, 2), np.arange(3)
    found = values(Dataset.from_tensor_slices((x, y)))
    assert [(a.tolist(), int(b)) for a, b in found] == [([0, 1], 0), ([2, 3], 1), ([4, 5], 2)]
    (whole,) = values(Dataset.from_tensors({"x": x}))
    assert whole["x"].tolist() == x.tolist()
    assert listed(Dataset.range(2, 8, 3)) == [2, 5]
    assert listed(Dataset.from_tensor_slices(["a", "b"])) == [b"a", b"b"]
    assert listed(Dataset.from_tensor_slices(tf.constant([1.5, 2.5]))) == [1.5, 2.5]
    named = values(Dataset.from_tensor_slices({"b": [1, 2], "a": [3, 4]}))
    assert named[1] == {"b": 2, "a": 4}


def test_what_is_known_of_elements():
    dataset = Dataset.from_tensor_slices((np.zeros((5, 2), np.float32), [1] * 5)).batch(2)
    assert dataset.output_types == (tf.float32, tf.int32)
    assert [s.as_list() for s in dataset.output_shapes] == [[None, 2], [None]]
    sure = Dataset.range(4).batch(2, drop_remainder=True)
    assert sure.output_shapes.as_list() == [2]
    x, y = dataset.make_one_shot_iterator().get_next()
    assert (x.shape.as_list(), x.dtype, y.dtype) == ([None, 2], tf.float32, tf.int32)


def test_stages():
    numbers = Dataset.range(7)
    assert listed(numbers.map(lambda x: x * x).filter(lambda x: x > 5)) == [9, 16, 25, 36]
    assert listed(numbers.batch(3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert listed(numbers.batch(3, drop_remainder=True)) == [[0, 1, 2], [3, 4, 5]]
    assert listed(numbers.skip(5).repeat(2)) == [5, 6, 5, 6]
    assert listed(numbers.take(-1)) == list(range(7))
    assert listed(numbers.skip(-1)) == []
    assert listed(numbers.take(2).concatenate(Dataset.range(1))) == [0, 1, 0]
    assert listed(numbers.shard(3, 1)) == [1, 4]
    assert listed(numbers.take(3).prefetch(1).cache().repeat(2)) == [0, 1, 2] * 2
    assert listed(numbers.apply(lambda d: d.take(1))) == [0]
    pairs = values(Dataset.zip((numbers, {"b": numbers.skip(5)})))
    assert [(int(a), int(b["b"])) for a, b in pairs] == [(0, 5), (1, 6)]
    assert [tuple(map(int, x)) for x in values(numbers.skip(5).enumerate(3))] == [(3, 5), (4, 6)]


def test_functions_of_later_versions():
    numbers = Dataset.range(5)
    stage = tf.data.experimental.map_and_batch(lambda x: x + 1, 2, drop_remainder=True)
    assert listed(numbers.apply(stage)) == [[1, 2], [3, 4]]
    mixed = numbers.apply(tf.data.experimental.shuffle_and_repeat(5, 2, seed=1))
    assert sorted(listed(mixed)) == sorted([*range(5)] * 2)
    assert tf.data.get_output_types(numbers) == tf.int64
    assert tf.data.get_output_shapes(numbers).as_list() == []
    element = tf.data.make_one_shot_iterator(numbers).get_next()
    iterator = tf.data.make_initializable_iterator(numbers)
    other = iterator.get_next()
    with tf.Session() as sess:
        sess.run(iterator.initializer)
        assert sess.run([element, other]) == [0, 0]
    with pytest.raises(AttributeError, match=r"use tf\.data\.TextLineDataset and tf\.decode_csv"):
        tf.data.experimental.make_csv_dataset  # noqa: B018  (reading it is the test)


def test_functions_of_several_components():
    dataset = Dataset.from_tensor_slices((np.float32([[1, 2], [3, 4]]), [0, 1]))
    mapped = dataset.map(lambda x, y: {"sum": tf.reduce_sum(x), "y": tf.cast(y, tf.float32)})
    assert [(d["sum"], d["y"]) for d in values(mapped)] == [(3.0, 0.0), (7.0, 1.0)]
    again = mapped.map(lambda d: d["sum"] + d["y"])
    assert listed(again) == [3.0, 8.0]


def test_shuffling_follows_seeds():
    dataset = Dataset.range(20).shuffle(20, seed=3)
    first = listed(dataset)
    assert first != list(range(20))
    assert sorted(first) == list(range(20))
    assert listed(Dataset.range(20).shuffle(20, seed=3)) == first
    assert listed(Dataset.range(20).shuffle(20, seed=4)) != first
    twice = listed(dataset.repeat(2))
    assert twice[:20] == first
    assert twice[20:] != first
    same = listed(Dataset.range(20).shuffle(20, 3, reshuffle_each_iteration=False).repeat(2))
    assert same[:20] == same[20:]
    assert sorted(listed(Dataset.range(20).shuffle(5))) == list(range(20))


def test_generators():
    def rows():
        for i in range(1, 4):
            yield [i] * i, f"text {i}"

    dataset = Dataset.from_generator(rows, (tf.int32, tf.string), ([None], []))
    assert [(a.tolist(), b) for a, b in values(dataset)] == [
        ([1], b"text 1"),
        ([2, 2], b"text 2"),
        ([3, 3, 3], b"text 3"),
    ]
    padded = dataset.padded_batch(2, ([None], []), (-1, ""))
    first, second = values(padded)
    assert first[0].tolist() == [[1, -1], [2, 2]]
    assert second[0].tolist() == [[3, 3, 3]]
    wide = values(dataset.map(lambda a, b: a).padded_batch(3, [4]))
    assert wide[0].tolist() == [[1, 0, 0, 0], [2, 2, 0, 0], [3, 3, 3, 0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="smaller size than the input"):
        values(dataset.map(lambda a, b: a).padded_batch(3, [2]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"different shapes.*padded_batch"):
        values(dataset.batch(2))
    counted = Dataset.from_generator(range, tf.int64, args=(3,))
    assert listed(counted) == [0, 1, 2]
    with pytest.raises(TypeError, match="expected structure"):
        values(Dataset.from_generator(lambda: [(1, 2, 3)], (tf.int32, tf.int32)))
    with pytest.raises(TypeError, match="could not be converted"):
        values(Dataset.from_generator(lambda: ["x"], tf.int32))
    with pytest.raises(TypeError, match=r"of shape \(2,\) where an element of shape \(3,\)"):
        values(Dataset.from_generator(lambda: [[1, 2]], tf.int32, [3]))


def test_flat_map_and_interleave():
    dataset = Dataset.from_tensor_slices([2, 3]).map(lambda n: tf.cast(n, tf.int64))
    assert listed(dataset.flat_map(Dataset.range)) == [0, 1, 0, 1, 2]
    turns = dataset.interleave(lambda n: Dataset.range(n * 10, n * 10 + n), cycle_length=2)
    assert listed(turns) == [20, 30, 21, 31, 32]
    blocks = dataset.interleave(
        lambda n: Dataset.from_tensors(n).repeat(4), cycle_length=2, block_length=2
    )
    assert listed(blocks) == [2, 2, 3, 3, 2, 2, 3, 3]
    with pytest.raises(TypeError, match="must return a `Dataset`"):
        dataset.flat_map(lambda n: n)


def test_files(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\r\n\nlast")
    (tmp_path / "b.txt").write_text("more\n")
    names = [str(tmp_path / name) for name in ("a.txt", "b.txt")]
    lines = [b"one", b"two", b"", b"last", b"more"]
    assert listed(tf.data.TextLineDataset(names)) == lines
    assert listed(Dataset.from_tensor_slices(names).flat_map(tf.data.TextLineDataset)) == lines
    assert listed(Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)) == [
        name.encode() for name in names
    ]
    for kind in ("none", "gzip"):
        write_tfrecords(
            tmp_path / kind,
            [encode_example({"x": [i, i + 1], "s": f"{i}"}) for i in range(3)],
            compression=kind,
        )

    def parse(record):
        features = {"x": tf.FixedLenFeature([2], tf.int64), "s": tf.FixedLenFeature([], tf.string)}
        found = tf.parse_single_example(record, features)
        return found["x"] * 10, found["s"]

    dataset = tf.data.TFRecordDataset([str(tmp_path / "none")]).map(parse).batch(2)
    assert [x.tolist() for x, _ in values(dataset)] == [[[0, 10], [10, 20]], [[20, 30]]]
    assert len(values(tf.data.TFRecordDataset(str(tmp_path / "gzip"), "GZIP"))) == 3
    (tmp_path / "bytes").write_bytes(b"HabcdefF")
    pieces = tf.data.FixedLengthRecordDataset(str(tmp_path / "bytes"), 3, 1, 1)
    assert listed(pieces) == [b"abc", b"def"]
    with pytest.raises(tf.errors.DataLossError, match="checksum of a record's length"):
        values(tf.data.TFRecordDataset(names[0]))
    with pytest.raises(tf.errors.NotFoundError, match="no such file"):
        values(tf.data.TextLineDataset(str(tmp_path / "none.txt")))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Excess bytes"):
        values(tf.data.FixedLengthRecordDataset(names[0], 4))
    with pytest.raises(tf.errors.InvalidArgumentError, match="'', 'GZIP' or 'ZLIB'"):
        tf.data.TextLineDataset(names, "XZ")


def test_initializable_iterators():
    x = tf.placeholder(tf.float32, [None, 2])
    size = tf.placeholder(tf.int64, [])
    iterator = Dataset.from_tensor_slices(x).batch(size).make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as sess:
        with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"):
            sess.run(element)
        for rows in (2, 3):
            sess.run(iterator.initializer, {x: np.ones((rows, 2)), size: 2})
            assert sess.run(element).shape == (2, 2)
        assert sess.run(element).shape == (1, 2)
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(element)
        other = tf.Session()
        with pytest.raises(tf.errors.FailedPreconditionError):
            other.run(element)
    with pytest.raises(ValueError, match=r"one-shot iterator.*make_initializable_iterator"):
        Dataset.from_tensor_slices(x).make_one_shot_iterator()
    with pytest.raises(ValueError, match="does not have an initializer"):
        Dataset.range(3).make_one_shot_iterator().initializer  # noqa: B018  (reading it is the test)


def test_reinitializable_iterators():
    train, valid = Dataset.range(3), Dataset.range(10, 12)
    iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
    element = iterator.get_next()
    begin_train, begin_valid = iterator.make_initializer(train), iterator.make_initializer(valid)
    with tf.Session() as sess:
        sess.run(begin_train)
        assert [sess.run(element) for _ in range(2)] == [0, 1]
        sess.run(begin_valid)
        assert [sess.run(element) for _ in range(2)] == [10, 11]
        sess.run(begin_train)
        assert sess.run(element) == 0
    with pytest.raises(TypeError, match="Expected output types"):
        iterator.make_initializer(Dataset.from_tensor_slices([1.5]))
    with pytest.raises(TypeError, match="Expected output shapes"):
        iterator.make_initializer(train.batch(2))
    with pytest.raises(ValueError, match=r"make_initializer\(dataset\)"):
        iterator.initializer  # noqa: B018  (reading it is the test)


def test_feedable_iterators():
    handle = tf.placeholder(tf.string, [])
    a = Dataset.range(3).make_one_shot_iterator()
    b = Dataset.range(5, 8).make_initializable_iterator()
    chosen = tf.data.Iterator.from_string_handle(handle, tf.int64, [])
    element = chosen.get_next() * 2
    with tf.Session() as sess:
        handle_a, handle_b = sess.run([a.string_handle(), b.string_handle()])
        sess.run(b.initializer)
        found = [int(sess.run(element, {handle: h})) for h in (handle_a, handle_b, handle_a)]
        assert found == [0, 10, 2]
        with pytest.raises(tf.errors.InvalidArgumentError, match="no handle of an iterator"):
            sess.run(element, {handle: b"nonsense"})


def test_a_run_takes_one_element():
    x, y = Dataset.zip((Dataset.range(9), Dataset.range(9))).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert [tuple(map(int, sess.run((x + y, x)))) for _ in range(3)] == [(0, 0), (2, 1), (4, 2)]


def test_training_from_a_dataset():
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(64, 3)).astype(np.float32)
    targets = inputs @ np.float32([[1.0], [-2.0], [0.5]])
    dataset = Dataset.from_tensor_slices((inputs, targets)).shuffle(64, seed=0).repeat().batch(16)
    x, y = dataset.make_one_shot_iterator().get_next()
    w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
    step = tf.train.GradientDescentOptimizer(0.2).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(60):
            sess.run(step)
        np.testing.assert_allclose(sess.run(w)[:, 0], [1.0, -2.0, 0.5], atol=0.02)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: Dataset.from_tensor_slices(3), ValueError, "first dimension"),
        (lambda: Dataset.from_tensor_slices(([1, 2], [1])), ValueError, "not compatible"),
        (lambda: Dataset.range(3).map(3), TypeError, "takes a function"),
        (lambda: Dataset.range(3).map(lambda x: None), TypeError, "returned None"),
        (lambda: Dataset.range(3).filter(lambda x: x), TypeError, "scalar boolean"),
        (lambda: Dataset.zip((Dataset.range(3), 3)), TypeError, "expected a tf.data.Dataset"),
        (lambda: Dataset.from_generator(3, tf.int32), TypeError, "must be callable"),
        (lambda: Dataset.range(3).padded_batch(2, ([], [])), ValueError, "padded_shapes must be"),
    ],
)
def test_what_is_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_sizes_must_be_positive():
    with pytest.raises(tf.errors.InvalidArgumentError, match="greater than zero"):
        values(Dataset.range(3).batch(0))
