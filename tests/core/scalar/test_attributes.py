"""Attributes stay parameters unless a rule looks at them."""

from __future__ import annotations

import math

import pytest

from weft.core.scalar.attributes import Attribute

LOOKS = {
    "comparison": lambda a: a > 1,
    "equality": lambda a: a == 2.0,
    "arithmetic": lambda a: a + 1,
    "arithmetic from the left": lambda a: 1 / a,
    "truth": bool,
    "number": float,
    "size": abs,
    "mathematics": math.sqrt,
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_looking_gives_what_the_number_gives(look):
    seen = set()
    assert look(Attribute("slope", 2.0, seen)) == look(2.0)
    assert seen == {"slope"}


def test_a_negative_one_is_still_a_parameter():
    seen = set()
    negative = -Attribute("bound", 2.0, seen)
    assert (negative.text, (-negative).text, seen) == ("-bound", "bound", set())
    assert negative < 0
    assert seen == {"bound"}


def test_two_of_them_meet():
    seen = set()
    assert Attribute("a", 3, seen) - Attribute("b", 1, seen) == 2
    assert seen == {"a", "b"}


def test_sequences_are_looked_at_too():
    seen = set()
    axes = Attribute("axis", (0, 2), seen)
    assert ([*axes], len(axes), axes[1], seen) == ([0, 2], 2, 2, {"axis"})


def test_it_is_no_key():
    with pytest.raises(TypeError, match="unhashable"):
        hash(Attribute("a", 1, set()))
