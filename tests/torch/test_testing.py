"""torch.testing: what is close enough, and what is said of what is not."""

from __future__ import annotations

import pytest

from weft import torch
from weft.torch.testing import assert_close


def test_close_values_pass():
    assert_close(torch.ones(3), torch.ones(3) + 1e-7)
    assert_close({"a": [torch.ones(2), 1]}, {"a": [torch.ones(2), 1]})
    assert_close(torch.tensor([float("nan")]), torch.tensor([float("nan")]), equal_nan=True)
    assert_close(torch.ones(2), torch.ones(2, dtype=torch.float64), check_dtype=False)
    assert_close(torch.ones(2, dtype=torch.bfloat16), torch.full((2,), 1.01, dtype=torch.bfloat16))


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        ([1.0, 2.0, 4.0], [1.0, 2.0, 3.0], r"Mismatched elements: 1 / 3 \(33.3%\)"),
        ([1.0, 2.0, 4.0], [1.0, 2.0, 3.0], r"absolute difference: 1.0 at index \(2,\)"),
        ([1, 2], [1, 3], "not equal"),
        ([1.0], [1.0, 2.0], "'shape' do not match"),
        ([float("nan")], [float("nan")], "not close"),
    ],
)
def test_differences_are_described(actual, expected, text):
    with pytest.raises(AssertionError, match=text):
        assert_close(torch.tensor(actual), torch.tensor(expected))


def test_nests_name_the_item():
    with pytest.raises(AssertionError, match=r"item \['a'\]\[1\]"):
        assert_close({"a": [torch.ones(1), 2.0]}, {"a": [torch.ones(1), 3.0]})
    with pytest.raises(AssertionError, match="length"):
        assert_close([1], [1, 2])
    with pytest.raises(AssertionError, match="keys"):
        assert_close({"a": 1}, {"b": 1})
    with pytest.raises(AssertionError, match="dtype"):
        assert_close(torch.ones(1), torch.ones(1, dtype=torch.float64))
    with pytest.raises(ValueError, match="both"):
        assert_close(1.0, 1.0, rtol=0.1)
    with pytest.raises(AssertionError, match="mine"):
        assert_close(1.0, 2.0, msg="mine")
