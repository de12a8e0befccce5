"""Examples, CSV, raw bytes and pictures, parsed by operations; TFRecords by Python."""

import io

import numpy as np
import pytest

import weft.tf1 as tf
from weft.data import encode_example


@pytest.fixture(autouse=True)
def _fresh():
    tf.reset_default_graph()


def run(x, feed=None):
    with tf.Session() as sess:
        return sess.run(x, feed)


def an_example():
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[3])),
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5, 1.5])),
                "raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"ab"])),
            }
        )
    )


def test_examples_there_and_back(tmp_path):
    example = an_example()
    content = example.SerializeToString()
    assert content == encode_example({"label": [3], "x": [0.5, 1.5], "raw": b"ab"})
    for found in (tf.train.Example.FromString(content), tf.train.Example()):
        found.ParseFromString(content)
        assert found.features.feature["label"].int64_list.value[0] == 3
        assert found.features.feature["x"].float_list.value == [0.5, 1.5]
        assert found.features.feature["raw"].bytes_list.value == [b"ab"]
        assert found.features.feature["raw"].WhichOneof("kind") == "bytes_list"
    made = tf.train.Example()
    made.features.feature["n"].int64_list.value.extend([1, 2])
    assert made.SerializeToString() == encode_example({"n": [1, 2]})
    with pytest.raises(TypeError, match="expected one of: int"):
        tf.train.Int64List(value=[1.5])
    with pytest.raises(TypeError, match="expected one of: bytes"):
        tf.train.BytesList(value=[1])


@pytest.mark.parametrize("kind", [None, "GZIP", tf.python_io.TFRecordCompressionType.ZLIB])
def test_records_by_python(tmp_path, kind):
    path = str(tmp_path / "a")
    options = None if kind is None else tf.python_io.TFRecordOptions(kind)
    with tf.python_io.TFRecordWriter(path, options) as writer:
        for i in range(3):
            writer.write(str(i).encode())
    assert list(tf.python_io.tf_record_iterator(path, options)) == [b"0", b"1", b"2"]
    with pytest.raises(tf.errors.DataLossError):
        list(tf.python_io.tf_record_iterator(__file__))
    with pytest.raises(tf.errors.NotFoundError):
        list(tf.python_io.tf_record_iterator(str(tmp_path / "none")))


FEATURES = {
    "label": tf.FixedLenFeature([], tf.int64),
    "x": tf.FixedLenFeature([2], tf.float32),
    "raw": tf.FixedLenFeature([], tf.string),
    "other": tf.FixedLenFeature([2], tf.float32, default_value=[7.0, 8.0]),
    "one": tf.FixedLenFeature([3], tf.int64, default_value=-1),
}


def test_single_examples():
    serialized = tf.placeholder(tf.string, [])
    found = tf.parse_single_example(serialized, FEATURES)
    assert found["x"].shape.as_list() == [2]
    assert found["label"].dtype == tf.int64
    numbers = tf.decode_raw(found["raw"], tf.uint8)
    values, raw = run((found, numbers), {serialized: an_example().SerializeToString()})
    assert values["label"] == 3
    assert values["x"].tolist() == [0.5, 1.5]
    assert values["raw"] == b"ab"
    assert values["other"].tolist() == [7.0, 8.0]
    assert values["one"].tolist() == [-1, -1, -1]
    assert raw.tolist() == [97, 98]


def test_batches_and_sparse_features():
    contents = [encode_example({"n": list(range(i)), "y": [i]}) for i in (2, 0, 1)]
    found = tf.parse_example(
        contents,
        {
            "n": tf.VarLenFeature(tf.int64),
            "y": tf.FixedLenFeature([1], tf.int64),
            "missing": tf.VarLenFeature(tf.string),
        },
    )
    dense = tf.sparse_tensor_to_dense(found["n"], default_value=-1)
    values, whole = run((found, dense))
    assert values["y"].tolist() == [[2], [0], [1]]
    assert values["n"].indices.tolist() == [[0, 0], [0, 1], [2, 0]]
    assert values["n"].values.tolist() == [0, 1, 0]
    assert values["n"].dense_shape.tolist() == [3, 2]
    assert values["missing"].dense_shape.tolist() == [3, 0]
    assert whole.tolist() == [[0, 1], [-1, -1], [0, -1]]
    assert found["n"].get_shape().as_list() == [None, None]
    with tf.Session():
        assert found["n"].eval().values.tolist() == [0, 1, 0]
    rows = tf.parse_example(
        contents, {"n": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}
    )
    assert run(rows["n"]).tolist() == [[0, 1], [0, 0], [0, 0]]
    single = tf.parse_single_example(contents[0], {"n": tf.VarLenFeature(tf.int64)})
    assert run(single["n"]).indices.tolist() == [[0], [1]]


@pytest.mark.parametrize(
    ("features", "match"),
    [
        ({"z": tf.FixedLenFeature([], tf.int64)}, "Feature: z .*is required but could not be"),
        ({"x": tf.FixedLenFeature([], tf.int64)}, "Key: x.  Data types don't match"),
        ({"x": tf.FixedLenFeature([3], tf.float32)}, "Number of float32 values != expected"),
    ],
)
def test_examples_that_are_not_as_they_should_be(features, match):
    found = tf.parse_single_example(an_example().SerializeToString(), features)
    with pytest.raises(tf.errors.InvalidArgumentError, match=match):
        run(found)


def test_damaged_examples():
    found = tf.parse_single_example(b"\x0a\x7f", FEATURES)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse example input"):
        run(found)
    with pytest.raises(ValueError, match="features was empty"):
        tf.parse_single_example(b"", {})
    with pytest.raises(ValueError, match="Invalid feature a"):
        tf.parse_single_example(b"", {"a": 3})
    with pytest.raises(ValueError, match="allow_missing"):
        tf.parse_example([b""], {"a": tf.FixedLenSequenceFeature([], tf.int64)})
    with pytest.raises(tf.errors.InvalidArgumentError, match="to be a vector"):
        run(tf.parse_example(b"", {"a": tf.VarLenFeature(tf.int64)})["a"])


def test_raw_bytes():
    numbers = np.arange(4, dtype="<i2")
    assert run(tf.decode_raw(numbers.tobytes(), tf.int16)).tolist() == [0, 1, 2, 3]
    batch = tf.decode_raw([b"ab", b"cd"], tf.uint8)
    assert run(batch).tolist() == [[97, 98], [99, 100]]
    big = tf.decode_raw(numbers.astype(">i2").tobytes(), tf.int16, little_endian=False)
    assert run(big).tolist() == [0, 1, 2, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="length 3 that is not a multiple"):
        run(tf.decode_raw(b"abc", tf.int16))
    with pytest.raises(tf.errors.InvalidArgumentError, match="all be the same size"):
        run(tf.decode_raw([b"ab", b"c"], tf.uint8))


def test_csv():
    a, b, c = tf.decode_csv("1,2.5,x", [[0], [0.0], [""]])
    assert (a.dtype, b.dtype, c.dtype) == (tf.int32, tf.float32, tf.string)
    assert run([a, b, c]) == [1, 2.5, b"x"]
    columns = tf.decode_csv(['1,"a,b"', ",c"], [[7], ["none"]])
    found = run(columns)
    assert found[0].tolist() == [1, 7]
    assert found[1].tolist() == [b"a,b", b"c"]
    assert run(tf.decode_csv("1;2;3", [[0]], field_delim=";", select_cols=[2])) == [3]
    for line, match in (
        ("1", "Expect 2 fields but have 1"),
        ("x,1", "Field 0 .*not a valid int32"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=match):
            run(tf.decode_csv(line, [[0], [0]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Field 0 is required but missing"):
        run(tf.decode_csv(",1", [np.zeros(0, np.float32), [0]]))


def test_numbers_of_texts():
    assert run(tf.string_to_number(["1.5", "2"])).tolist() == [1.5, 2.0]
    assert run(tf.string_to_number("7", tf.int64)) == 7
    with pytest.raises(tf.errors.InvalidArgumentError, match="could not correctly convert"):
        run(tf.string_to_number("x"))


def test_files_and_pictures(tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 255, (3, 5, 3)).astype(np.uint8)
    file = io.BytesIO()
    pillow.fromarray(pixels).save(file, "PNG")
    path = str(tmp_path / "folder" / "a.png")
    run(tf.write_file(path, file.getvalue()))
    assert run(tf.matching_files(str(tmp_path / "folder" / "*.png"))).tolist() == [path.encode()]
    content = tf.read_file(path)
    assert run(tf.io.decode_png(content)).tolist() == pixels.tolist()
    assert run(tf.image.decode_image(content)).shape == (3, 5, 3)
    assert run(tf.io.decode_jpeg(content, channels=1)).shape == (3, 5, 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected an image"):
        run(tf.io.decode_image(b"no"))
    with pytest.raises(tf.errors.NotFoundError, match="No such file"):
        run(tf.read_file(str(tmp_path / "none")))
    with pytest.raises(ValueError, match="channels must be in"):
        tf.io.decode_image(content, channels=2)
