"""caffe.io: images, blobs and datums."""

import numpy as np
import pytest

from weft.caffe import io
from weft.caffe.errors import CaffeError


def test_blobs_and_datums_go_both_ways():
    values = np.arange(12, dtype="f").reshape(1, 3, 4)
    blob = io.array_to_blobproto(values, diff=values * 2)
    np.testing.assert_array_equal(io.blobproto_to_array(blob), values)
    np.testing.assert_array_equal(io.blobproto_to_array(blob, True), values * 2)
    data = io.arraylist_to_blobprotovector_str([values, values[0]])
    assert [a.shape for a in io.blobprotovector_str_to_arraylist(data)] == [(1, 3, 4), (3, 4)]
    for array in (values, values.astype(np.uint8)):
        datum = io.array_to_datum(array, label=7)
        np.testing.assert_array_equal(io.datum_to_array(datum), array)
        assert datum.label == 7
    with pytest.raises(CaffeError, match="three axes"):
        io.array_to_datum(np.ones(3))


def test_transformers_prepare_images_as_a_net_wants_them():
    made = io.Transformer({"data": (1, 3, 4, 5)})
    made.set_transpose("data", (2, 0, 1))
    made.set_channel_swap("data", (2, 1, 0))
    made.set_raw_scale("data", 255)
    made.set_mean("data", np.array([1, 2, 3]))
    made.set_input_scale("data", 0.5)
    image = np.random.default_rng(0).random((4, 5, 3)).astype("f")
    expected = image.transpose(2, 0, 1)[::-1] * 255 - np.array([1, 2, 3])[:, None, None]
    prepared = made.preprocess("data", image)
    np.testing.assert_allclose(prepared, expected * 0.5, rtol=1e-5)
    np.testing.assert_allclose(made.deprocess("data", prepared), image, rtol=1e-4, atol=1e-5)
    assert made.preprocess("data", np.ones((9, 7, 3))).shape == (3, 4, 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.set_mean("data", np.ones(4)), "Mean channels incompatible"),
        (lambda t: t.set_mean("data", np.ones((3, 2, 2))), "Mean shape incompatible"),
        (lambda t: t.set_channel_swap("data", (0, 1)), "Channel swap needs"),
        (lambda t: t.set_transpose("data", (0, 1)), "Transpose order needs"),
        (lambda t: t.set_raw_scale("dta", 1), "dta is not one of the net inputs"),
    ],
)
def test_what_transformers_refuse(call, message):
    with pytest.raises(CaffeError, match=message):
        call(io.Transformer({"data": (1, 3, 4, 5)}))


def test_images_are_read(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 3), dtype=np.uint8)
    path = str(tmp_path / "a.png")
    image.fromarray(pixels).save(path)
    np.testing.assert_allclose(io.load_image(path), pixels / 255, rtol=1e-6)
    assert io.load_image(path, color=False).shape == (4, 6, 1)
    (tmp_path / "b.png").write_bytes(b"no image")
    with pytest.raises(CaffeError, match="cannot be read as an image"):
        io.load_image(str(tmp_path / "b.png"))


def test_sizes_of_images_change():
    ramp = np.tile(np.arange(4.0)[:, None, None], (1, 4, 2))
    smaller = io.resize_image(ramp, (2, 2))
    np.testing.assert_allclose(smaller[:, 0, 0], [0.5, 2.5])
    assert io.resize_image(ramp, (8, 8), interp_order=0).shape == (8, 8, 2)
    with pytest.raises(CaffeError, match="interp_order must be 0 or 1"):
        io.resize_image(ramp, (2, 2), interp_order=3)


def test_ten_crops():
    image = np.arange(16.0).reshape(4, 4, 1)
    crops = io.oversample([image], (2, 2))[..., 0]
    assert crops.shape == (10, 2, 2)
    assert crops[0].tolist() == [[0, 1], [4, 5]]
    assert crops[3].tolist() == [[10, 11], [14, 15]]
    assert crops[4].tolist() == [[5, 6], [9, 10]]
    assert crops[9].tolist() == [[6, 5], [10, 9]]
