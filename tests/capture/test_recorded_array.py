"""NumPy arrays as arguments of jitted functions: what is recorded, and what runs eagerly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as wf

W = wf.tensor(np.arange(9.0, dtype=np.float32).reshape(3, 3))

RECORDED: dict[str, Callable[[Any], Any]] = {
    "a tensor": lambda x: wf.tensor(x) * 2,
    "a slice": lambda x: wf.tensor(x[1:]) * 2,
    "steps": lambda x: wf.tensor(x[::-2]) * 2,
    "new axes": lambda x: wf.tensor(x[None, ..., :2]) * 2,
    "a row": lambda x: wf.tensor(x[1]) * 2,
    "an element of a part": lambda x: wf.tensor(x[1:][np.int64(-1)][2]) * 2,
    "beside a tensor": lambda x: (W + x) * (x - W) / (x[0] - W * 0 + 1.0) + W @ x,
    "compared with a tensor": lambda x: wf.where(x > W, W, x[0]),
    "other shapes": lambda x: wf.tensor(x.T.reshape(-1, 1).copy().ravel()) * 2,
    "other axes": lambda x: wf.tensor(x[None].transpose(2, 0, 1)) + wf.tensor(x[:, None].T),
    "another dtype": lambda x: wf.tensor(x.astype(np.float64)) + wf.tensor(x.astype("f")),
    "sizes": lambda x: wf.ones(*x.shape) * len(x) + x.size + np.ndim(x) + np.shape(x)[0] + x.nbytes,
    "its class": lambda x: wf.ones(2) * (2 if isinstance(x, np.ndarray) else 3),
    "stacked": lambda x: wf.stack([wf.tensor(x), wf.tensor(x[::-1])]),
}
LEFT: dict[str, Callable[[Any], Any]] = {
    "asarray": lambda x: wf.tensor(np.asarray(x)) * 2,
    "array": lambda x: wf.tensor(np.array(x)) * 2,
    "a list of arrays": lambda x: wf.tensor([x, x]) * 2,
    "a buffer": lambda x: wf.tensor(np.frombuffer(memoryview(x), "f")),
    "a ufunc": lambda x: wf.tensor(np.exp(x)),
    "arithmetic": lambda x: wf.tensor(x + 1),
    "a function": lambda x: wf.tensor(np.concatenate([x, x])),
    "a method": lambda x: wf.tensor(np.float32(x.sum())),
    "an array as an index": lambda x: wf.tensor(x[np.array([1, 0])]),
    "a mask": lambda x: wf.tensor(x[[True, False, True]]),
    "floats as integers": lambda x: wf.tensor(x.astype(np.int32)),
    "a number": lambda x: float(x[0, 0]) * wf.ones(2),
    "a truth": lambda x: wf.ones(2) if (x > 3).any() else wf.zeros(2),
    "rows one by one": lambda x: sum(wf.tensor(row) for row in x),
    "the array itself": lambda x: x,
    "a part": lambda x: x[1:],
    "a nest with the array": lambda x: [x, wf.tensor(x)],
    "a text": lambda x: (str(x), wf.tensor(x))[1],
    "a write": lambda x: (x.__setitem__(0, 9.0), wf.tensor(x))[1],
    "an order": lambda x: wf.tensor(x.reshape(-1, order="F")),
}


def flat(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in flat(item)]
    return [np.asarray(value)]


def check(function: Callable[[Any], Any]) -> Any:
    """Compare calls of a function with eager ones, each with another array; return the jitted."""
    jitted = wf.jit(function)
    for k in range(4):
        mine, theirs = (np.arange(9, dtype=np.float32).reshape(3, 3) + k for _ in range(2))
        found, expected = jitted(mine), function(theirs)
        assert type(found) is type(expected)
        for a, b in zip(flat(found), flat(expected), strict=True):
            np.testing.assert_array_equal(a, b)
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(mine, theirs)
    return jitted


@pytest.mark.parametrize("name", RECORDED)
def test_what_takes_no_values_is_recorded(name: str) -> None:
    stats = check(RECORDED[name]).stats()
    assert (stats["recordings"], stats["eager_calls"]) == (1, 0)


@pytest.mark.parametrize("name", LEFT)
@pytest.mark.filterwarnings("ignore:.*eagerly")
def test_what_numpy_computes_is_never_a_constant(name: str) -> None:
    stats = check(LEFT[name]).stats()
    assert (stats["recordings"], stats["eager_calls"]) == (0, 4)


@pytest.mark.filterwarnings("ignore:.*eagerly")
def test_what_is_kept_is_of_each_call() -> None:
    kept: list[Any] = []

    def keep(x: Any) -> Any:
        kept.append(x[1:])
        return wf.tensor(x) * 2

    jitted = wf.jit(keep)
    for k in range(3):
        jitted(np.full(3, k, np.float32))
    assert [type(part) for part in kept] == [np.ndarray] * 3
    assert [part.tolist() for part in kept] == [[k, k] for k in range(3)]


def test_parts_follow_the_sizes_of_calls() -> None:
    def halves(x: Any) -> Any:
        n = x.shape[0]
        return wf.tensor(x[: n // 2, :-1]).sum() + wf.tensor(x[n // 2 :, None]).sum() * 2 + len(x)

    jitted = wf.jit(halves)
    for n in (4, 7, 9, 12, 30, 31):
        x = np.random.default_rng(n).normal(size=(n, 3))
        np.testing.assert_allclose(jitted(x).numpy(), halves(x).numpy(), rtol=1e-12)
    assert jitted.stats()["eager_calls"] == 0


def test_unknown_attributes_are_those_of_arrays() -> None:
    def ask(x: Any) -> Any:
        return wf.tensor(x) * (1 if hasattr(x, "numpy") else 2)

    jitted = wf.jit(ask)
    assert jitted(np.ones(2)).tolist() == [2.0, 2.0]
    assert jitted.stats()["recordings"] == 1
