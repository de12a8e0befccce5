"""Inputs of nets: what each layer reads, how it transforms, and that it resumes exactly."""

from __future__ import annotations

import gc
import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from PIL import Image

import weft as wf
from weft.caffe.errors import CaffeError
from weft.caffe.inputs.ahead import Ahead
from weft.caffe.inputs.databases import open_database
from weft.caffe.inputs.datum import encoded_datum, format_datum
from weft.caffe.inputs.hdf5 import Hdf5Output, read_hdf5, write_hdf5
from weft.caffe.inputs.images import read_pixels, resized
from weft.caffe.inputs.windows import read_windows
from weft.caffe.inputs.writing import (
    image_records,
    mean_of_database,
    write_arrays,
    write_database,
    write_hdf5_list,
    write_mean,
)
from weft.caffe.message import TEST, TRAIN, LayerParameter
from weft.data import DataFileError, DataFileMissingError

from .inputs.cases import data_layer, database, opened, pictures

# -- Data ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["LMDB", "LEVELDB"])
def test_records_come_in_order_and_again(tmp_path: Path, backend: str) -> None:
    images, _ = database(tmp_path / "db", backend)
    source = opened(data_layer(tmp_path / "db", backend, {"scale": 0.5}))
    assert source.shapes() == ((4, 3, 6, 8), (4,))
    for first in (0, 4, 8, 2):  # of ten: the third batch goes on at the beginning
        data, label = source.next()
        rows = np.arange(first, first + 4) % 10
        np.testing.assert_array_equal(data, images[rows].astype(np.float32) * np.float32(0.5))
        np.testing.assert_array_equal(label, rows)
        assert data.dtype == label.dtype == np.float32


def test_two_nets_read_one_database(tmp_path: Path) -> None:
    database(tmp_path / "db")
    one, other = opened(data_layer(tmp_path / "db")), opened(data_layer(tmp_path / "db"), TEST)
    one.next()
    np.testing.assert_array_equal(other.next()[1], np.arange(4))
    np.testing.assert_array_equal(one.next()[1], [4, 5, 6, 7])


@pytest.mark.parametrize("batches", [0, 1, 5])
def test_an_input_resumes_at_its_batch(tmp_path: Path, batches: int) -> None:
    database(tmp_path / "db")
    layer = data_layer(tmp_path / "db", transform={"crop_size": 3, "mirror": True}, rand_skip=7)
    source = opened(layer)
    for _ in range(batches):
        source.next()
    state, expected = source.state(), [source.next() for _ in range(3)]
    again = opened(layer)
    again.restore(state)
    for batch in expected:
        for found, wanted in zip(again.next(), batch, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_threads_end_with_their_inputs(tmp_path: Path) -> None:
    database(tmp_path / "db")
    source = opened(data_layer(tmp_path / "db"))
    source.next()
    assert any(t.name == "caffe-data" for t in threading.enumerate())
    del source
    gc.collect()
    assert not any(t.name == "caffe-data" for t in threading.enumerate())


def test_records_of_floats_and_of_encoded_images(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=(2, 1, 4, 4)).astype(np.float32)
    write_arrays(tmp_path / "floats", values, [3, 4])
    data, label = opened(data_layer(tmp_path / "floats", batch_size=2)).next()
    np.testing.assert_array_equal(data, values)
    np.testing.assert_array_equal(label, [3, 4])
    pixels = np.random.default_rng(2).integers(0, 256, (5, 7, 3), np.uint8)
    record = format_datum(encoded_datum(png(pixels), 9))
    write_database(tmp_path / "encoded", [(b"0", record)], "LMDB")
    layer = data_layer(tmp_path / "encoded", batch_size=1)
    np.testing.assert_array_equal(opened(layer).next()[0][0], pixels[:, :, ::-1].transpose(2, 0, 1))
    layer.transform_param.force_gray = True
    assert opened(layer).shapes()[0] == (1, 1, 5, 7)


def png(pixels: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("backend", ["LMDB", "LEVELDB"])
def test_no_database(tmp_path: Path, backend: str) -> None:
    with pytest.raises(DataFileMissingError, match="convert-images"):
        opened(data_layer(tmp_path / "none", backend))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataFileError, match="expected a"):
        opened(data_layer(tmp_path / "empty", backend))
    write_database(tmp_path / "nothing", [], backend)
    with pytest.raises(CaffeError, match=r"'data': the database .* is empty"):
        opened(data_layer(tmp_path / "nothing", backend))
    with pytest.raises(CaffeError, match="exists; remove it"):
        write_arrays(tmp_path / "nothing", *pictures(), backend)


def test_bad_records_are_named(tmp_path: Path) -> None:
    write_database(tmp_path / "db", [(b"key7", b"\xff\xff\xff")], "LMDB")
    with pytest.raises(CaffeError, match=r"layer 'data': record b'key7' of .*: no Datum"):
        opened(data_layer(tmp_path / "db"))
    database(tmp_path / "good")
    with pytest.raises(CaffeError, match="batch_size must be positive"):
        opened(data_layer(tmp_path / "good", batch_size=0))
    with pytest.raises(CaffeError, match="encoded images"):
        opened(data_layer(tmp_path / "good", transform={"force_gray": True}))


def test_databases_grow(tmp_path: Path) -> None:
    records = [(b"%d" % i, bytes(10**7)) for i in range(8)]  # more than the first map holds
    assert write_database(tmp_path / "db", records, "LMDB") == 8


# -- transform_param -------------------------------------------------------------------------------


def test_windows_lie_in_the_middle_when_testing(tmp_path: Path) -> None:
    images, _ = database(tmp_path / "db")
    layer = data_layer(tmp_path / "db", transform={"crop_size": 3, "mean_value": [1, 2, 3]})
    data, _ = opened(layer, TEST).next()
    expected = images[:4, :, 1:4, 2:5] - np.float32([1, 2, 3])[:, None, None]
    np.testing.assert_array_equal(data, expected)


def test_windows_and_mirrors_are_drawn_when_training(tmp_path: Path) -> None:
    images, _ = database(tmp_path / "db", count=1)
    layer = data_layer(tmp_path / "db", transform={"crop_size": 3, "mirror": True}, batch_size=200)
    wf.manual_seed(0)
    data, _ = opened(layer, TRAIN).next()
    windows = {
        images[0, :, y : y + 3, x : x + 3][:, :, ::step].astype(np.float32).tobytes()
        for y in range(4)
        for x in range(6)
        for step in (1, -1)
    }
    found = {image.tobytes() for image in data}
    assert found <= windows
    assert len(found) > 40  # of 48, in 200 draws


def test_the_mean_of_a_file_is_taken_where_the_window_lies(tmp_path: Path) -> None:
    images, _ = database(tmp_path / "db")
    mean = mean_of_database(tmp_path / "db")
    np.testing.assert_allclose(mean, images.mean(0), rtol=1e-6)
    write_mean(tmp_path / "mean.binaryproto", mean)
    transform = {"mean_file": str(tmp_path / "mean.binaryproto"), "crop_size": 4}
    data, _ = opened(data_layer(tmp_path / "db", transform=transform), TEST).next()
    np.testing.assert_allclose(data, images[:4, :, 1:5, 2:6] - mean[:, 1:5, 2:6], rtol=1e-6)
    with pytest.raises(CaffeError, match="not both"):
        opened(data_layer(tmp_path / "db", transform={**transform, "mean_value": [1.0]}))
    write_mean(tmp_path / "mean.binaryproto", mean[:, 1:])
    with pytest.raises(CaffeError, match=r"the mean of mean_file has the shape \(3, 5, 8\)"):
        opened(data_layer(tmp_path / "db", transform=transform))


def test_transforms_that_do_not_fit(tmp_path: Path) -> None:
    database(tmp_path / "db")
    with pytest.raises(CaffeError, match="crop_size is 7, but an image is 6 x 8"):
        opened(data_layer(tmp_path / "db", transform={"crop_size": 7}))
    with pytest.raises(CaffeError, match=r"one for each of the 3 channels. Received: 2"):
        opened(data_layer(tmp_path / "db", transform={"mean_value": [1.0, 2.0]}))


# -- HDF5Data, HDF5Output --------------------------------------------------------------------------


def hdf5_layer(listing: Path, **param: Any) -> Any:
    options = {"source": str(listing), "batch_size": 4, **param}
    return LayerParameter(name="h", type="HDF5Data", top=["data", "label"], hdf5_data_param=options)


def two_files(folder: Path) -> Any:
    rows = np.random.default_rng(0).normal(size=(10, 2, 3)).astype(np.float32)
    for name, part in (("a", np.s_[:6]), ("b", np.s_[6:])):
        arrays = {"data": rows[part], "label": np.arange(10)[part], "other": np.zeros(2)}
        write_hdf5(folder / f"{name}.h5", arrays)
    (folder / "list.txt").write_text(f"{folder / 'a.h5'}\n\n{folder / 'b.h5'}\n")
    return rows


def test_rows_of_files_come_in_order_and_again(tmp_path: Path) -> None:
    rows = two_files(tmp_path)
    source = opened(hdf5_layer(tmp_path / "list.txt"))
    assert source.shapes() == ((4, 2, 3), (4,))
    for first in (0, 4, 8, 2):
        data, label = source.next()
        places = np.arange(first, first + 4) % 10
        np.testing.assert_array_equal(label, places)
        np.testing.assert_array_equal(data, rows[places])


def test_rows_that_lie_in_memory_need_no_thread(tmp_path: Path) -> None:
    rows = two_files(tmp_path)
    (tmp_path / "one.txt").write_text(str(tmp_path / "a.h5"))
    source = opened(hdf5_layer(tmp_path / "one.txt"))
    data, _ = source.next()
    np.testing.assert_array_equal(data, rows[:4])
    assert not any(t.name == "caffe-data" for t in threading.enumerate())


def test_an_error_ahead_comes_where_it_would_and_again() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("damaged")

    ahead = Ahead(items(), 3)
    assert next(ahead) == 1
    for _ in range(2):
        with pytest.raises(ValueError, match="damaged"):
            next(ahead)
    ahead.close()
    assert list(Ahead((i for i in range(4)), 2)) == [0, 1, 2, 3]


@pytest.mark.parametrize("shuffle", [False, True])
def test_rows_of_files_resume(tmp_path: Path, shuffle: bool) -> None:
    two_files(tmp_path)
    layer = hdf5_layer(tmp_path / "list.txt", shuffle=shuffle)
    source = opened(layer)
    seen = [source.next()[1] for _ in range(5)]
    assert sorted(np.concatenate(seen)) == sorted(2 * list(range(10)))
    assert (np.concatenate(seen).tolist() == 2 * list(range(10))) is not shuffle
    state, expected = source.state(), source.next()
    again = opened(layer)
    again.restore(state)
    np.testing.assert_array_equal(again.next()[0], expected[0])


def test_files_of_hdf5_that_do_not_fit(tmp_path: Path) -> None:
    two_files(tmp_path)
    with pytest.raises(DataFileError, match="no dataset 'names'; it has data, label, other"):
        read_hdf5(tmp_path / "a.h5", ["names"])
    layer = hdf5_layer(tmp_path / "list.txt")
    layer.top.append("other")
    with pytest.raises(CaffeError, match="the same number of rows"):
        opened(layer)
    (tmp_path / "none.txt").write_text("\n")
    with pytest.raises(CaffeError, match="lists no HDF5 file"):
        opened(hdf5_layer(tmp_path / "none.txt"))
    (tmp_path / "bad.h5").write_bytes(b"\x89HDF")
    with pytest.raises(DataFileError, match="cannot be read"):
        read_hdf5(tmp_path / "bad.h5", ["data"])


def test_values_in_other_files_are_refused(tmp_path: Path) -> None:
    two_files(tmp_path)
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["data"] = h5py.ExternalLink(str(tmp_path / "a.h5"), "data")
        file.create_dataset("label", (4,), "f4", external=[(str(tmp_path / "a.h5"), 0, 16)])
        file.create_dataset("huge", (2**40,), "f4", chunks=(2**20,))
    for name in ("data", "label"):
        with pytest.raises(DataFileError, match="expected values in this file itself"):
            read_hdf5(tmp_path / "link.h5", [name])
    with pytest.raises(DataFileError, match="more than the file can hold"):
        read_hdf5(tmp_path / "link.h5", ["huge"])


def test_what_is_written_is_read(tmp_path: Path) -> None:
    out = Hdf5Output(tmp_path / "out.h5")
    rows = np.arange(12, dtype=np.float32).reshape(6, 2)
    out.write(rows[:4], rows[:4, 0])
    out.write(rows[4:], rows[4:, 0])
    with pytest.raises(CaffeError, match="now they have"):
        out.write(np.zeros((1, 3)), np.zeros(1))
    out.close()
    data, label = read_hdf5(tmp_path / "out.h5", ["data", "label"])
    np.testing.assert_array_equal(data, rows)
    np.testing.assert_array_equal(label, rows[:, 0])
    write_hdf5_list(tmp_path / "list.txt", rows, rows[:, 0])
    np.testing.assert_array_equal(opened(hdf5_layer(tmp_path / "list.txt")).next()[0], rows[:4])


# -- ImageData -------------------------------------------------------------------------------------


def image_files(folder: Path, count: int = 5) -> Any:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (count, 6, 8, 3), np.uint8)
    for number, image in enumerate(pixels):
        (folder / f"a picture {number}.png").write_bytes(png(image))
    lines = [f"a picture {number}.png {number + 1}" for number in range(count)]
    (folder / "list.txt").write_text("\n".join(lines))
    return pixels[:, :, :, ::-1].transpose(0, 3, 1, 2)


def image_layer(folder: Path, **param: Any) -> Any:
    options = {"source": str(folder / "list.txt"), "root_folder": f"{folder}/", "batch_size": 2}
    return LayerParameter(
        name="i", type="ImageData", top=["data", "label"], image_data_param={**options, **param}
    )


def test_images_of_a_list(tmp_path: Path) -> None:
    pixels = image_files(tmp_path)
    source = opened(image_layer(tmp_path))
    for first in (0, 2, 4):
        data, label = source.next()
        rows = np.arange(first, first + 2) % 5
        np.testing.assert_array_equal(data, pixels[rows])
        np.testing.assert_array_equal(label, rows + 1)
    assert opened(image_layer(tmp_path, is_color=False)).shapes()[0] == (2, 1, 6, 8)
    assert opened(image_layer(tmp_path, new_height=3, new_width=5)).shapes()[0] == (2, 3, 3, 5)


def test_shuffled_images_resume(tmp_path: Path) -> None:
    image_files(tmp_path)
    layer = image_layer(tmp_path, shuffle=True, rand_skip=3)
    source = opened(layer)
    for _ in range(4):
        source.next()
    state, expected = source.state(), source.next()[1]
    again = opened(layer)
    again.restore(state)
    np.testing.assert_array_equal(again.next()[1], expected)


def test_sizes_are_changed_as_opencv_does() -> None:
    # cv2.resize(np.uint8([[0, 100, 200, 40]]), (2, 1)) is [[50, 120]]: two neighbours, halves.
    found = resized(np.uint8([[[0, 100, 200, 40]]]), 1, 2)
    np.testing.assert_array_equal(found, [[[50, 120]]])


def test_image_lists_that_do_not_fit(tmp_path: Path) -> None:
    image_files(tmp_path)
    with pytest.raises(CaffeError, match="both new_height and new_width"):
        opened(image_layer(tmp_path, new_height=3))
    (tmp_path / "list.txt").write_text("a picture 0.png cat\n")
    with pytest.raises(DataFileError, match="entry 1: expected a file and its label"):
        opened(image_layer(tmp_path))
    (tmp_path / "list.txt").write_text("none.png 3\n")
    with pytest.raises(DataFileMissingError, match=r"none\.png"):
        opened(image_layer(tmp_path))


@pytest.mark.parametrize("encoded", [False, True])
def test_images_become_a_database(tmp_path: Path, encoded: bool) -> None:
    pixels = image_files(tmp_path)
    records = image_records(tmp_path, tmp_path / "list.txt", encoded=encoded, check_size=True)
    assert write_database(tmp_path / "db", records, "LMDB") == 5
    data, label = opened(data_layer(tmp_path / "db")).next()
    np.testing.assert_array_equal(data, pixels[:4])
    np.testing.assert_array_equal(label, [1, 2, 3, 4])
    keys = [key for key, _ in open_database(tmp_path / "db", "LMDB").records()]
    assert keys[0] == b"00000000_a picture 0.png"


# -- WindowData ------------------------------------------------------------------------------------


def window_layer(folder: Path, transform: Any = None, **param: Any) -> Any:
    options = {"source": str(folder / "windows.txt"), "root_folder": f"{folder}/", "batch_size": 8}
    return LayerParameter(
        name="w",
        type="WindowData",
        top=["data", "label"],
        window_data_param={**options, **param},
        transform_param={"crop_size": 4, **(transform or {})},
    )


WINDOWS = """# 0
a picture 0.png
3
6
8
3
2 0.9 0 0 3 3
1 0.7 2 1 5 4
0 0.1 4 2 7 5
"""


def test_windows_of_objects_and_background(tmp_path: Path) -> None:
    pixels = image_files(tmp_path, 1)
    (tmp_path / "windows.txt").write_text(WINDOWS)
    images, windows = read_windows(tmp_path / "windows.txt")
    assert images == ["a picture 0.png"]
    assert [w.box for w in windows] == [(0, 0, 3, 3), (2, 1, 5, 4), (4, 2, 7, 5)]
    data, label = opened(window_layer(tmp_path, {"mean_value": [5.0]}, cache_images=True)).next()
    cut = {2: np.s_[:, 0:4, 0:4], 1: np.s_[:, 1:5, 2:6], 0: np.s_[:, 2:6, 4:8]}
    assert label[:6].tolist() == [0] * 6  # a quarter are objects, and they come last
    assert set(label[6:]) <= {1, 2}
    for image, number in zip(data, label, strict=True):
        np.testing.assert_array_equal(image, pixels[0][cut[int(number)]] - np.float32(5))


def test_windows_with_their_surroundings(tmp_path: Path) -> None:
    image_files(tmp_path, 1)
    (tmp_path / "windows.txt").write_text(WINDOWS)
    layer = window_layer(tmp_path, {"mirror": True}, context_pad=1, crop_mode="square")
    data, _ = opened(layer).next()
    assert data.shape == (8, 3, 4, 4)
    for text, why in ((WINDOWS[:-20], "fewer follow"), (WINDOWS.replace("0.1", "x"), "could not")):
        (tmp_path / "windows.txt").write_text(text)
        with pytest.raises(DataFileError, match=why):
            read_windows(tmp_path / "windows.txt")


# -- MemoryData ------------------------------------------------------------------------------------


def test_arrays_in_memory() -> None:
    size = {"batch_size": 2, "channels": 1, "height": 2, "width": 2}
    source = opened(LayerParameter(name="m", type="MemoryData", memory_data_param=size))
    with pytest.raises(CaffeError, match="set_input_arrays"):
        source.next()
    rows = np.arange(16.0).reshape(4, 1, 2, 2)
    source.close()
    source.set_arrays(rows, np.arange(4))
    assert [source.next()[1].tolist() for _ in range(3)] == [[0, 1], [2, 3], [0, 1]]
    with pytest.raises(CaffeError, match=r"a multiple of batch_size, 2. Received: 3"):
        source.set_arrays(rows[:3], np.arange(3))
    with pytest.raises(CaffeError, match=r"takes data \(n, 1, 2, 2\)"):
        source.set_arrays(rows.reshape(4, 4), np.arange(4))


def test_layers_that_bring_no_data() -> None:
    with pytest.raises(CaffeError, match="'ReLU' brings no data; Data, HDF5Data"):
        opened(LayerParameter(name="r", type="ReLU"))


def test_pixels_in_the_order_of_opencv(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(png(np.uint8([[[255, 0, 7]]])))
    assert read_pixels(str(tmp_path / "x.png"))[:, 0, 0].tolist() == [7, 0, 255]
