"""Checks of options: what is right comes back, what is not is told with its owner and its name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft.core.options import as_choice, as_count, as_number, as_probability, label_of


class Layer:
    """Something with options."""


def test_messages_begin_with_a_class_or_a_function() -> None:
    assert label_of(Layer()) == "Layer"
    assert label_of("read_csv") == "read_csv"


def test_what_is_right_comes_back() -> None:
    assert as_count("f", "n", np.int8(3)) == 3
    assert as_count("f", "n", 0, least=0) == 0
    assert type(as_number("f", "x", 2)) is int
    assert type(as_number("f", "x", np.float32(0.5))) is float
    assert as_number("f", "x", float("inf"), least=0.0) == float("inf")
    assert [as_probability("f", "p", p) for p in (0, 0.25, 1.0)] == [0, 0.25, 1.0]
    assert as_choice("f", "mode", "sum", ("sum", "mean")) == "sum"


@pytest.mark.parametrize(
    ("check", "value", "options", "error", "message"),
    [
        (as_count, 0, {}, ValueError, "must be at least 1. Received: 0"),
        (as_count, 2.5, {}, TypeError, "must be an integer. Received: .*2.5"),
        (as_number, True, {}, TypeError, "must be a number. Received: True"),
        (as_number, "1", {}, TypeError, "must be a number. Received: '1'"),
        (as_number, -0.5, {"least": 0.0}, ValueError, "must be at least 0. Received: -0.5"),
        (as_number, float("nan"), {"least": 0.0}, ValueError, "must be at least 0. Received: nan"),
        (as_probability, 1.5, {}, ValueError, r"must lie in \[0, 1\]. Received: 1.5"),
        (as_probability, float("nan"), {}, ValueError, r"must lie in \[0, 1\]. Received: nan"),
        (as_choice, "d", {"choices": ("a", "b", "c")}, ValueError, "must be 'a', 'b' or 'c'. Rec"),
        (as_choice, None, {"choices": ("a",)}, ValueError, "must be 'a'. Received: None"),
    ],
)
def test_what_is_wrong_is_told(
    check: Any, value: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^Layer: size {message}"):
        check(Layer(), "size", value, **options)
