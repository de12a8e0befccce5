"""Image transforms: against pillow and direct formulas; the same for arrays and tensors."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
from weft.core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from weft.data.transforms import (
    CenterCrop,
    ColorJitter,
    Compose,
    CutMix,
    Grayscale,
    MixUp,
    Normalize,
    Pad,
    RandomApply,
    RandomChoice,
    RandomCrop,
    RandomErasing,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
    ToTensor,
)
from weft.data.transforms.colour import shifted_hue
from weft.data.transforms.geometry import rotated
from weft.data.transforms.resample import resize

Array = np.ndarray[Any, Any]
IMAGE = np.random.default_rng(0).integers(0, 256, (13, 17, 3), np.uint8)

RANDOM: list[Any] = [
    RandomCrop(8, padding=2),
    RandomHorizontalFlip(),
    RandomVerticalFlip(),
    RandomRotation(40),
    ColorJitter(0.4, 0.4, 0.4, 0.3),
    RandomErasing(p=1.0),
    RandomResizedCrop(9),
    RandomGrayscale(0.5),
    RandomApply(CenterCrop(3)),
    RandomChoice([CenterCrop(3), CenterCrop(4)]),
]
FIXED: list[Any] = [
    Resize(8),
    Resize((5, 20), "bicubic"),
    Resize((5, 20), "nearest"),
    CenterCrop(9),
    CenterCrop(20),
    Pad((1, 2, 3, 4), fill=7),
    Grayscale(),
    Grayscale(3),
]


def name_of(transform: Any) -> str:
    return type(transform).__name__


def as_tensor(image: Array) -> wf.Tensor:
    return wf.tensor(np.ascontiguousarray(image.transpose(2, 0, 1)))


@pytest.mark.parametrize("transform", [*FIXED, *RANDOM], ids=name_of)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_arrays_and_tensors_agree_and_keep_their_kind(transform: Any, dtype: Any) -> None:
    image = IMAGE if dtype == np.uint8 else (IMAGE / 255).astype(dtype)
    wf.manual_seed(3)
    array = transform(image)
    wf.manual_seed(3)
    tensor = transform(as_tensor(image))
    assert isinstance(array, np.ndarray)
    assert isinstance(tensor, wf.Tensor)
    assert array.dtype == tensor.dtype == dtype
    np.testing.assert_array_equal(array.transpose(2, 0, 1), tensor.numpy())
    assert array.flags.c_contiguous
    assert tensor.numpy().flags.c_contiguous


@pytest.mark.parametrize("transform", RANDOM, ids=name_of)
def test_seed_decides(transform: Any) -> None:
    def run(seed: int) -> list[Array]:
        wf.manual_seed(seed)
        return [transform(IMAGE) for _ in range(10)]

    for a, b in zip(run(1), run(1), strict=True):
        np.testing.assert_array_equal(a, b)
    pairs = zip(run(1), run(2), strict=True)
    assert any(a.shape != b.shape or (a != b).any() for a, b in pairs)


@pytest.mark.parametrize("transform", [*FIXED, *RANDOM], ids=name_of)
def test_grey_images_without_channels(transform: Any) -> None:
    result = transform(IMAGE[:, :, 0])
    assert result.ndim == (3 if getattr(transform, "channels", 1) == 3 else 2)
    assert transform(wf.tensor(IMAGE[None, :, :, 0])).ndim == 3


@pytest.mark.parametrize("transform", [*FIXED, *RANDOM], ids=name_of)
def test_original_is_not_changed(transform: Any) -> None:
    before = IMAGE.copy()
    transform(IMAGE)
    np.testing.assert_array_equal(IMAGE, before)


@pytest.mark.parametrize("size", [(5, 4), (13, 30), (40, 7), (1, 1), (64, 64)])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "nearest"])
def test_resize_is_pillow_s(size: tuple[int, int], interpolation: str) -> None:
    image_module = pytest.importorskip("PIL.Image")
    grey = IMAGE[:, :, 0].astype(np.float32)
    method = getattr(image_module.Resampling, interpolation.upper())
    theirs = np.asarray(image_module.fromarray(grey).resize(size[::-1], method))
    np.testing.assert_allclose(Resize(size, interpolation)(grey), theirs, rtol=1e-5, atol=1e-3)


def test_resize_of_bytes_rounds_once() -> None:
    small = Resize((6, 7))
    exact = small(IMAGE.astype(np.float64))
    np.testing.assert_array_equal(small(IMAGE), np.rint(exact).astype(np.uint8))


def test_resize_without_antialias_interpolates() -> None:
    line = np.arange(8.0)[:, None, None]
    out = resize(line, 4, 1, "bilinear", antialias=False)
    np.testing.assert_allclose(out[:, 0, 0], [0.5, 2.5, 4.5, 6.5])


def test_resize_of_the_shorter_side() -> None:
    assert Resize(26)(IMAGE).shape == (26, 34, 3)
    assert Resize(26)(IMAGE.transpose(1, 0, 2)).shape == (34, 26, 3)
    np.testing.assert_array_equal(Resize((13, 17))(IMAGE), IMAGE)


def test_constant_images_stay_constant() -> None:
    flat = np.full((11, 7, 1), 0.3)
    for interpolation in ("bilinear", "bicubic", "nearest"):
        for antialias in (True, False):
            out = Resize((5, 19), interpolation, antialias)(flat)
            np.testing.assert_allclose(out, 0.3, rtol=1e-12)


def test_to_tensor_and_normalize() -> None:
    x = ToTensor()(IMAGE)
    assert (x.shape, x.dtype) == ((3, 13, 17), wf.float32)
    np.testing.assert_allclose(x.numpy(), IMAGE.transpose(2, 0, 1) / 255, rtol=1e-6)
    assert ToTensor()(IMAGE[:, :, 0]).shape == (1, 13, 17)
    np.testing.assert_array_equal(ToTensor()(x).numpy(), x.numpy())
    assert ToTensor()(np.full((2, 2), 3.0)).tolist() == [[[3, 3], [3, 3]]]
    y = Normalize([0.5, 0.4, 0.3], [0.1, 0.2, 0.3])(x).numpy()
    np.testing.assert_allclose(y[1], (x.numpy()[1] - 0.4) / 0.2, rtol=1e-5)
    assert Normalize(0.5, 0.5)(x).dtype == wf.float32


def test_pillow_images_are_taken() -> None:
    image_module = pytest.importorskip("PIL.Image")
    image = image_module.fromarray(IMAGE)
    np.testing.assert_array_equal(CenterCrop(4)(image), CenterCrop(4)(IMAGE))
    assert ToTensor()(image).shape == (3, 13, 17)


def test_crops_and_pads() -> None:
    np.testing.assert_array_equal(CenterCrop((5, 7))(IMAGE), IMAGE[4:9, 5:12])
    grown = CenterCrop(21)(IMAGE)
    np.testing.assert_array_equal(grown[4:17, 2:19], IMAGE)
    assert grown[:4].sum() == 0
    padded = Pad((1, 2), mode="reflect")(IMAGE)
    np.testing.assert_array_equal(padded, np.pad(IMAGE, ((2, 2), (1, 1), (0, 0)), "reflect"))
    assert Pad(3)(IMAGE).shape == (19, 23, 3)
    wf.manual_seed(0)
    crops = [RandomCrop(5)(IMAGE) for _ in range(50)]
    assert all(crop.shape == (5, 5, 3) for crop in crops)
    corner = IMAGE[:5, :5]
    assert len({crop.tobytes() for crop in crops}) > 20
    whole = RandomCrop((13, 17))(IMAGE)
    np.testing.assert_array_equal(whole, IMAGE)
    assert RandomCrop(30, pad_if_needed=True, mode="edge")(corner).shape == (30, 30, 3)


def test_flips() -> None:
    np.testing.assert_array_equal(RandomHorizontalFlip(1.0)(IMAGE), IMAGE[:, ::-1])
    np.testing.assert_array_equal(RandomVerticalFlip(1.0)(IMAGE), IMAGE[::-1])
    np.testing.assert_array_equal(RandomHorizontalFlip(0.0)(IMAGE), IMAGE)
    wf.manual_seed(0)
    share = np.mean([(RandomHorizontalFlip(0.3)(IMAGE) != IMAGE).any() for _ in range(1000)])
    assert share == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
def test_quarter_turns_are_exact(interpolation: str) -> None:
    square = IMAGE[:13, :13]
    for quarter in range(4):
        turned = rotated(square, 90 * quarter, interpolation, False, 0)
        np.testing.assert_array_equal(turned, np.rot90(square, quarter))
    tall = rotated(IMAGE, 90, interpolation, True, 0)
    np.testing.assert_array_equal(tall, np.rot90(IMAGE))


def test_rotation_is_pillow_s_nearest() -> None:
    image_module = pytest.importorskip("PIL.Image")
    theirs = np.asarray(image_module.fromarray(IMAGE).rotate(31, fillcolor=(9, 9, 9)))
    ours = rotated(IMAGE, 31, "nearest", False, 9)
    assert (ours == theirs).mean() > 0.97  # points on the border between pixels may round apart
    assert RandomRotation((45, 45), expand=True, fill=9)(IMAGE).shape == (22, 22, 3)


def test_grey_is_pillow_s() -> None:
    image_module = pytest.importorskip("PIL.Image")
    theirs = np.asarray(image_module.fromarray(IMAGE).convert("L")).astype(int)
    assert np.abs(Grayscale()(IMAGE)[:, :, 0].astype(int) - theirs).max() <= 1
    three = Grayscale(3)(IMAGE)
    np.testing.assert_array_equal(three[:, :, 0], three[:, :, 2])


@given(shift=st.floats(-0.5, 0.5), rgb=st.tuples(*[st.floats(0, 1)] * 3))
def test_hue_is_colorsys_s(shift: float, rgb: tuple[float, float, float]) -> None:
    h, s, v = colorsys.rgb_to_hsv(*rgb)
    expected = colorsys.hsv_to_rgb((h + shift) % 1, s, v)
    ours = shifted_hue(np.array(rgb)[None, None], shift)[0, 0]
    np.testing.assert_allclose(ours, expected, atol=1e-6)


def test_colour_jitter_parts() -> None:
    x = IMAGE / 255
    np.testing.assert_allclose(ColorJitter(brightness=(0.5, 0.5))(x), x * 0.5)
    grey = x @ [0.299, 0.587, 0.114]
    mixed = np.clip(x * 2 - grey[:, :, None], 0, 1)
    np.testing.assert_allclose(ColorJitter(saturation=(2, 2))(x), mixed, atol=1e-12)
    mixed = np.clip(0.5 * x + 0.5 * grey.mean(), 0, 1)
    np.testing.assert_allclose(ColorJitter(contrast=(0.5, 0.5))(x), mixed, atol=1e-12)
    np.testing.assert_array_equal(ColorJitter()(IMAGE), IMAGE)
    assert ColorJitter(0.5, 0.5, 0.5, 0.5)(IMAGE[:, :, :1]).shape == (13, 17, 1)


def test_erasing() -> None:
    wf.manual_seed(0)
    for value in (7, (7, 7, 7)):
        erased = RandomErasing(1.0, value=value)(IMAGE)
        hit = (erased == 7).all(axis=2)
        rows, columns = np.flatnonzero(hit.any(axis=1)), np.flatnonzero(hit.any(axis=0))
        assert hit.sum() >= len(rows) * len(columns) * 0.99
    noise = RandomErasing(1.0, value="random")(IMAGE)
    assert noise.dtype == np.uint8
    assert (noise != IMAGE).any()
    np.testing.assert_array_equal(RandomErasing(0.0)(IMAGE), IMAGE)


def test_resized_crop_of_extreme_formats() -> None:
    assert RandomResizedCrop(8, scale=(1.0, 1.0))(np.zeros((2, 100, 3))).shape == (8, 8, 3)
    assert RandomResizedCrop((4, 6))(np.zeros((1, 1, 1))).shape == (4, 6, 1)


def test_compose() -> None:
    pipeline = Compose([Resize(8), ToTensor(), Normalize(0.5, 0.5)])
    assert pipeline(IMAGE).shape == (3, 8, 10)
    assert "Resize" in repr(pipeline)
    assert Compose([])(IMAGE) is IMAGE


def batch(n: int = 6) -> tuple[wf.Tensor, wf.Tensor]:
    images = np.arange(n, dtype=np.float32)[:, None, None, None] * np.ones((n, 2, 8, 8), np.float32)
    return wf.tensor(images), wf.arange(n)


@pytest.mark.parametrize("mix", [MixUp(6), CutMix(6), MixUp(6, 0.2), CutMix(6, 0.2)])
def test_mixing_keeps_labels_in_step_with_pixels(mix: Any) -> None:
    wf.manual_seed(0)
    for _ in range(20):
        x, y = mix(batch())
        assert (x.shape, y.shape, x.dtype, y.dtype) == (
            (6, 2, 8, 8),
            (6, 6),
            wf.float32,
            wf.float32,
        )
        np.testing.assert_allclose(y.numpy().sum(axis=1), 1, rtol=1e-5)
        # image i is constant i, so its mean is the expectation of the label
        np.testing.assert_allclose(
            x.numpy().mean(axis=(1, 2, 3)), y.numpy() @ np.arange(6), rtol=1e-4, atol=1e-5
        )


def test_mixing_with_probability_zero_and_soft_labels() -> None:
    x, y = MixUp(6, p=0.0)(batch())
    np.testing.assert_array_equal(x.numpy(), batch()[0].numpy())
    np.testing.assert_array_equal(y.numpy(), np.eye(6))
    _, again = CutMix(6)((x, y))
    np.testing.assert_allclose(again.numpy().sum(axis=1), 1, rtol=1e-5)


def run(transform: Any, image: Any = IMAGE) -> Any:
    return lambda: transform()(image)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Resize(0), ArgumentError, "size must be at least 1"),
        (lambda: Resize((1, 2, 3)), ArgumentError, "an int or .height, width."),
        (lambda: Resize(3, "cubic"), ArgumentError, "interpolation must be"),
        (lambda: RandomHorizontalFlip(1.5), ArgumentError, r"p must lie in \[0, 1\]"),
        (lambda: RandomRotation((3, 1)), ArgumentError, "ordered"),
        (lambda: RandomRotation("x"), ArgumentTypeError, "must be a number"),
        (lambda: ColorJitter(hue=0.6), ArgumentError, "hue must lie"),
        (lambda: ColorJitter(brightness=(-1, 1)), ArgumentError, "at least 0"),
        (lambda: Grayscale(2), ArgumentError, "1 or 3"),
        (lambda: Pad((1, 2, 3)), ArgumentError, "padding must be"),
        (lambda: Pad(-1), ArgumentError, "at least 0"),
        (lambda: Pad(1, mode="wrap"), ArgumentError, "mode must be"),
        (lambda: RandomErasing(scale=(0.5, 2)), ArgumentError, r"scale must lie in \[0, 1\]"),
        (lambda: RandomErasing(scale=0.5), ArgumentTypeError, "scale must be a pair"),
        (lambda: Normalize(0, 0), ArgumentError, "std is above 0"),
        (lambda: Normalize("a", 1), ArgumentTypeError, "expected numbers"),
        (lambda: Compose([3]), ArgumentTypeError, "callable"),
        (lambda: RandomChoice([]), ArgumentError, "at least one"),
        (run(lambda: Normalize(0, 1)), DTypeError, "ToTensor"),
        (run(lambda: Normalize([1, 2], 1), IMAGE / 255), ShapeError, "2 values for an image of 3"),
        (run(lambda: RandomCrop(50)), ShapeError, "does not fit"),
        (run(lambda: Resize(5), IMAGE[None]), ShapeError, "item by item"),
        (run(lambda: Resize(5), IMAGE.astype(int)), DTypeError, "Received: int64"),
        (run(lambda: Resize(5), "cat.png"), ArgumentTypeError, "Received: str"),
        (run(lambda: Resize(5), IMAGE[:0]), ShapeError, "no pixels"),
        (run(lambda: RandomResizedCrop(5), IMAGE[:0]), ShapeError, "no pixels"),
        (run(Grayscale, IMAGE[:, :, :2]), ShapeError, "1 or 3 channels"),
        (run(lambda: RandomErasing(1.0, value=(1, 2))), ShapeError, "2 entries"),
        (lambda: MixUp(3)(batch()), ArgumentError, "class numbers must lie"),
        (lambda: MixUp(3)(3), ArgumentTypeError, "a batch"),
        (lambda: MixUp(3)((IMAGE, np.zeros(13, int))), DTypeError, "images must be floats"),
        (lambda: MixUp(3)((np.zeros((2, 1)), np.zeros(3, int))), ShapeError, "expected images"),
        (lambda: MixUp(3)((np.zeros((2, 1)), np.zeros(2))), DTypeError, "must be integers"),
        (lambda: MixUp(3)((np.zeros((2, 1)), np.zeros((2, 2)))), ShapeError, "3 classes"),
        (lambda: CutMix(3)((np.zeros((2, 1)), np.zeros(2, int))), ShapeError, "channels, height"),
        (lambda: MixUp(3, alpha=0), ArgumentError, "alpha must be"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    wf.manual_seed(0)
    with pytest.raises(error, match=message):
        call()
