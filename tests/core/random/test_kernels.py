"""What all distributions have in common: shapes, dtypes, streams, and values that never change."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.core.laws import BFLOAT16, FLOATS, KEY
from weft.core import random as rk
from weft.core.random.lanes import CHUNK

# Each draws ``shape`` elements from (key, counter); used where all must behave alike.
SHAPED: dict[str, Callable[..., Any]] = {
    "uniform": rk.uniform,
    "normal": rk.normal,
    "truncated_normal": rk.truncated_normal,
    "exponential": rk.exponential,
    "gamma": partial(rk.gamma, alpha=0.7),
    "randint": partial(rk.randint, high=1000),
    "bernoulli": partial(rk.bernoulli, p=0.3),
}
# Results at key 1, counter 2.
PINNED = {
    "uniform": [0.7383471727371216, 0.9002684354782104, 0.3391403555870056],
    "normal": [-0.7116290330886841, -0.2526523172855377, 0.9909310936927795],
    "truncated_normal": [0.6052765250205994, 1.1853281259536743, -0.3948967456817627],
    "exponential": [0.3033410608768463, 0.10506227612495422, 1.0813411474227905],
    "gamma": [0.7172825932502747, 0.5285978317260742, 0.10507561266422272],
    "randint": [900, 52, 745],
    "bernoulli": [False, True, False],
    "normal64": [-0.25265230646123354, 0.130884514542039, -0.6900295890753845],
    "permutation": [1, 5, 3, 6, 4, 2, 7, 0],
    "categorical": [3, 0, 3, 1, 1, 0, 1, 3],
    "subset": [2, 0, 3, 1],
}

CONTINUOUS = ["uniform", "normal", "truncated_normal", "exponential", "gamma"]


@pytest.mark.parametrize("draw", SHAPED.values(), ids=SHAPED)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3), (5,)])
def test_shapes(draw: Callable[..., Any], shape: tuple[int, ...]) -> None:
    sample = draw(KEY, 0, shape)
    assert isinstance(sample, np.ndarray)
    assert sample.shape == shape
    assert sample.flags.writeable


@pytest.mark.parametrize("draw", SHAPED.values(), ids=SHAPED)
def test_an_element_depends_on_its_position_alone(draw: Callable[..., Any]) -> None:
    long = draw(KEY, 3, (CHUNK + 100,))
    for n in (1, 2, 7, CHUNK - 1, CHUNK + 1):
        assert np.array_equal(draw(KEY, 3, n), long[:n])
    assert np.array_equal(draw(KEY, 3, (2, 3, 5)).ravel(), long[:30])


@pytest.mark.parametrize("draw", SHAPED.values(), ids=SHAPED)
def test_key_and_counter_choose_the_stream(draw: Callable[..., Any]) -> None:
    base = draw(KEY, 0, 64)
    assert np.array_equal(draw(KEY, 0, 64), base)
    assert not np.array_equal(draw(KEY + 1, 0, 64), base)
    assert not np.array_equal(draw(KEY, 16, 64), base)


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_continuous_dtypes(name: str, dtype: np.dtype) -> None:
    sample = SHAPED[name](KEY, 0, 1000, dtype=dtype)
    assert sample.dtype == dtype
    assert np.all(np.isfinite(sample.astype(np.float64)))


@pytest.mark.parametrize("name", [name for name in CONTINUOUS if name != "gamma"])
def test_half_precision_is_the_rounded_float32(name: str) -> None:
    single = SHAPED[name](KEY, 0, 1000)
    for dtype in (np.dtype(np.float16), BFLOAT16):
        half = SHAPED[name](KEY, 0, 1000, dtype=dtype)
        expected = single.astype(dtype)
        differs = half != expected
        assert np.all(expected[differs] == 1)  # only where rounding up would touch the bound
        assert np.count_nonzero(differs) < 10


@pytest.mark.parametrize("draw", SHAPED.values(), ids=SHAPED)
def test_bad_shapes(draw: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="negative"):
        draw(KEY, 0, (2, -1))
    with pytest.raises(TypeError, match="Received"):
        draw(KEY, 0, 2.5)


@pytest.mark.parametrize(
    ("shape", "dtype", "blocks"),
    [
        ((), "float32", 1),
        ((0,), "float32", 0),
        ((8,), "float32", 1),
        ((9,), "float16", 2),
        ((8,), "float64", 2),
        ((3, 3), "int8", 3),
        ((17,), BFLOAT16, 3),
    ],
)
def test_blocks_for(shape: tuple[int, ...], dtype: Any, blocks: int) -> None:
    assert rk.blocks_for(shape, dtype) == blocks


@pytest.mark.parametrize("name", ["uniform", "normal", "exponential"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_draw_reads_just_the_blocks_it_claims(name: str, dtype: str) -> None:
    n = 24
    blocks = rk.blocks_for(n, dtype)
    whole = SHAPED[name](KEY, 0, 3 * n, dtype=dtype)
    for i in range(3):
        part = SHAPED[name](KEY, i * blocks, n, dtype=dtype)
        assert np.array_equal(part, whole[i * n : (i + 1) * n])


def test_pinned_values() -> None:
    """Fix the streams: a change here breaks every stored experiment."""
    drawn = {name: draw(1, 2, 3).tolist() for name, draw in SHAPED.items()}
    drawn["normal64"] = rk.normal(1, 2, 3, dtype="float64").tolist()
    drawn["permutation"] = rk.permutation(1, 2, 8).tolist()
    weights = [0.1, 0.2, 0.3, 0.4]
    drawn["categorical"] = rk.categorical(1, 2, logits=weights, num_samples=8).tolist()
    drawn["subset"] = rk.categorical(
        1, 2, probabilities=weights, num_samples=4, replacement=False
    ).tolist()
    assert drawn == PINNED
