"""Errors in the words of the class whose tensors were given."""

from __future__ import annotations

import pytest

import weft as wf
from weft.core.errors import AxisError, ShapeError
from weft.core.tensor import Tensor
from weft.core.wording import worded, words_of


class Loud(Tensor):
    __slots__ = ()

    @staticmethod
    def _words(error, function, given):
        return RuntimeError(f"{function} of {sorted(given)}: {sorted(error.facts)}")


def loud(*shape):
    x = wf.ones(shape)
    x.__class__ = Loud
    return x


def test_words_are_those_of_the_first_operand_that_has_some():
    error, x = ShapeError("plain", size=3), wf.ones(2)
    assert worded(error, "f", dict, (x, 1, None)) is error
    assert str(worded(error, "f", dict, (x, [1, loud(2)]))) == "f of []: ['size']"
    assert words_of(((), [x])) is None


def test_operators_say_what_they_were_given():
    with pytest.raises(RuntimeError, match=r"add of \['x', 'y'\]: \['shapes'\]"):
        loud(2) + wf.ones(3)
    with pytest.raises(RuntimeError, match=r"sum of .*'keepdims', 'x'.*: \['axis', 'ndim"):
        wf.sum(loud(2), 5)


def test_functions_of_several_operators_too():
    with pytest.raises(RuntimeError, match=r"mse_loss of \['input', 'target'\]"):
        wf.nn.functional.mse_loss(loud(2), wf.ones(3))


def test_facts_stay_with_an_error():
    with pytest.raises(AxisError) as caught:
        wf.sum(wf.ones(2), 5)
    assert caught.value.facts == {"axis": 5, "ndim": 1}
    with pytest.raises(AxisError) as caught:
        wf.sum(wf.ones((2, 2)), (0, -2))
    assert caught.value.facts == {"twice": 0}
