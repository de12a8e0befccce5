"""Tensors in places are further arguments; which tensors are one object is part of a recording."""

import weft as wf
from weft.capture.held import HeldTensors, TensorIdentities, tensors_in
from weft.capture.watch.places import ItemPlace


def place(value):
    return ItemPlace({"h": value}, "h", "h")


def test_nests_of_tuples_of_plain_tensors_are_held():
    x, y = wf.zeros((2,)), wf.zeros((3,))
    assert tensors_in(x) == [x]
    assert tensors_in((x, (y,))) == [x, y]
    assert tensors_in((x, 1)) is None
    assert tensors_in([x]) is None
    assert tensors_in(()) is None
    assert tensors_in(wf.nn.Parameter(x)) is None


def test_held_tensors_are_arguments_behind_those_of_the_call():
    x, y = wf.zeros((2,)), wf.zeros((3,))
    assert HeldTensors([place((x, y))]).extended([1]) == (1, x, y)
    assert not HeldTensors([])


def test_places_must_hold_tensors_of_the_same_kinds():
    where = place((wf.zeros((2,)), wf.zeros((3,))))
    held = HeldTensors([where])
    w = wf.ones((2,)).requires_grad_()
    for value, holds in [
        ((wf.ones((2,)), wf.ones((3,))), True),
        ((wf.ones((3,)), wf.ones((3,))), False),
        ((wf.ones((2,), dtype="float64"), wf.ones((3,))), False),
        ((w, wf.ones((3,))), False),
        (wf.ones((2,)), False),
        (None, False),
    ]:
        where.put(value)
        assert held.hold() is holds


def test_tensors_are_the_same_ones_or_others():
    x, y, z = wf.zeros((2,)), wf.zeros((2,)), wf.zeros((2,))
    assert not TensorIdentities([x, y], {}, []).are_needed()
    alone = TensorIdentities([x, y], {}, [], aliases=[])
    assert alone.hold([y, x])
    assert not alone.hold([x, x])
    known = TensorIdentities([x, y], {0: x}, [z])
    assert known.hold([x, y])
    assert not known.hold([y, x])
    assert not known.hold([x, z])
