"""Reductions of nothing, over nothing, and over axes of size 1: as in eager mode."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.errors import WeftError
from weft.core.op import F

DTYPES = [
    *("bool", "int8", "float16", "float32"),
    *(pytest.param(dtype, marks=pytest.mark.long) for dtype in ("uint32", "int64", "float64")),
]
NAMES = ("sum", "mean", "prod", "max", "min", "any", "all", "argmax", "argmin", "count_nonzero")
NAMES += ("var", "std", "logsumexp", "vector_norm")
CASES = (
    *(((0, 40_000), 1), ((0, 40_000), 0), ((2, 0, 40_000), 2), ((3, 0), 1), ((0, 3), 0)),
    *(((0,), None), ((40_000, 0), 0), ((1, 40_000), 0), ((40_000, 1), 1), ((1, 1), None)),
    *(((2, 1, 3), 1), ((2, 0, 3), (0, 1))),
)


def values(shape, dtype):
    return wf.tensor(np.arange(np.prod(shape)).reshape(shape).astype(dtype))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_is_eager(name, dtype):
    reduce, defined = getattr(F, name), []
    for shape, axis in CASES:
        x = values(shape, dtype)
        try:
            defined.append((x, axis, reduce(x, axis=axis).numpy()))
        except WeftError as error:  # there is no identity; compiling says so too
            with pytest.raises(type(error)):
                wf.compile(lambda x, axis=axis: reduce(x, axis=axis), x)
    operands, axes, expected = zip(*defined, strict=True)

    def all_of_them(*xs):
        return [reduce(x, axis=axis) for x, axis in zip(xs, axes, strict=True)]

    found = wf.compile(all_of_them, *operands)(*operands)
    for a, b, x in zip(found, expected, operands, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        wide = (a.numpy().astype(np.float64), b.astype(np.float64))
        np.testing.assert_allclose(*wide, rtol=1e-6, err_msg=str(x.shape))
