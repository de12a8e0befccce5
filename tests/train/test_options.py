"""The options of classes and functions, read off their signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest

import weft as wf
from weft.train.options import HIDDEN, accepted_kinds, kind_of, options_of

Sizes = int | tuple[int, ...]


class Base:
    def __init__(self, size: Sizes, mode: Literal["a", "b"] = "a", dtype: Any = None) -> None:
        """Take some options."""


class Derived(Base):
    def __init__(self, act: Callable[[Any], Any], rate: float | None = None, **options: Any):
        super().__init__(**options)


def test_options_of_bases_follow_behind_keywords() -> None:
    found = {option.name: option for option in options_of(Derived, HIDDEN, bases=True)}
    assert list(found) == ["rate", "size", "mode"]  # no functions, no dtype
    assert found["size"].required
    assert found["size"].kinds == {"an integer", "a list"}
    assert found["rate"].may_be_none
    assert found["mode"].default == "a"


def test_a_function_has_its_own_options_only() -> None:
    found = list(options_of(wf.data.make_moons, HIDDEN, bases=False))
    assert [option.name for option in found] == ["n", "noise", "seed"]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (3, None),
        ([1, 2], None),
        ("3", "size must be a list or an integer. Received: '3' (a string)"),
        (True, "size must be a list or an integer. Received: True (true or false)"),
    ],
)
def test_the_kind_of_a_value_is_checked(value: Any, problem: str | None) -> None:
    size = next(iter(options_of(Base, HIDDEN, bases=True)))
    assert size.problem(value) == problem


def test_kinds_of_annotations() -> None:
    assert accepted_kinds("float", __name__) == {"a number", "an integer"}
    assert accepted_kinds("list[int] | None", __name__) == {"a list"}
    assert accepted_kinds("Any", __name__) is None
    assert kind_of(1.5) == "a number"
    assert kind_of(None) == "a NoneType"
