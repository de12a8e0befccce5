"""The path of an operation: lifting, promotion, interpreters, errors."""

import gc
import weakref
from contextlib import suppress

import numpy as np
import pytest

import weft as wf
from weft.core import dispatch
from weft.core.errors import ArgumentTypeError, DTypeError, ShapeError, WeftError
from weft.core.modes import current_interpreter, interpret_with, modes
from weft.core.op import registry


class Recorder:
    """Runs everything eagerly and keeps what it saw."""

    def __init__(self, below=None):
        self.below = below
        self.seen = []

    def apply(self, op, inputs, attrs):
        self.seen.append((op.name, [x.dtype.name for x in inputs if x is not None], attrs))
        with interpret_with(self.below):
            if self.below is None:
                return op.specialized.execute(inputs, attrs)
            return self.below.apply(op, inputs, attrs)


# -- lifting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [2, 2.0, True, [2.0, 3.0], (2, 3), np.float64(2.0), np.ones(2)])
def test_operands_are_lifted_on_either_side(other):
    x = wf.tensor(np.array([1.0, 5.0]))
    expected = np.array([1.0, 5.0]) + np.asarray(other)
    assert (x + other).tolist() == expected.tolist()
    assert (other + x).tolist() == expected.tolist()
    assert wf.add(other, x).tolist() == expected.tolist()


def test_numbers_alone_make_tensors():
    assert (wf.add(1, 2).dtype, wf.add(1, 2).item()) == (wf.int64, 3)
    assert wf.add(1.0, 2).dtype == wf.float32


def test_lifting_copies():
    data = np.array([1.0, 2.0])
    y = wf.positive(data)
    data[0] = 100.0
    assert y.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("operand", "error", "message"),
    [
        ("text", TypeError, r"add: y must be a tensor, an array or a number. Received: str 'text'"),
        (None, TypeError, "y must be a tensor"),
        ([[1, 2], [3]], ValueError, "ragged"),
        ([1, "a"], TypeError, "must hold numbers"),
        ([2**70], TypeError, "beyond 64 bits"),
        (np.array([1j]), TypeError, "complex128"),
        (object(), TypeError, "Received: object"),
        (2**70, TypeError, "does not fit in int64"),
    ],
)
def test_what_cannot_be_lifted_is_named(operand, error, message):
    with pytest.raises(error, match=message) as caught:
        wf.add(wf.tensor([1, 2]), operand)
    assert isinstance(caught.value, WeftError)


# -- promotion ------------------------------------------------------------------------------------


def test_operands_meet_in_a_common_dtype():
    f32, f64, i8 = (wf.tensor([1, 2], dtype=d) for d in ("float32", "float64", "int8"))
    assert (f32 + f64).dtype == wf.float64
    assert (f32 + i8).dtype == wf.float32
    assert (i8 + 1).dtype == wf.int8
    assert (i8 + 1.5).dtype == wf.float32
    assert (f32 * 2).dtype == (2 * f32).dtype == wf.float32
    assert wf.exp(i8).dtype == wf.float32


def test_integers_that_do_not_fit_are_refused():
    with pytest.raises(DTypeError, match="300 does not fit in int8"):
        wf.tensor([1], dtype=wf.int8) + 300


def test_casts_are_recorded():
    x = wf.tensor([1.0], requires_grad=True)
    (x * np.array([2.0])).backward()
    assert (x.grad.dtype, x.grad.item()) == (wf.float32, 2.0)


def test_signed_zero_and_equal_keys_of_scalars():
    x = wf.tensor(np.array([1.0]))
    assert np.signbit((x * -0.0).item())
    assert not np.signbit((x * 0.0).item())
    assert (x * True).item() == (x * 1).item() == (x * 1.0).item() == 1.0


def test_scalars_in_other_dtypes_are_not_mixed_up():
    for dtype in ("float32", "float64", "float16"):
        assert (wf.tensor([0.5], dtype=dtype) + 0.1).dtype == dtype


# -- interpreters ---------------------------------------------------------------------------------


def test_an_interpreter_sees_promoted_operands_and_canonical_attributes():
    recorder = Recorder()
    x = wf.tensor([[1.0, 2.0]])
    with interpret_with(recorder):
        y = wf.sum(x + np.array([1.0]), axis=-1)
    assert y.tolist() == [5.0]
    names = [name for name, _, _ in recorder.seen]
    assert names == ["cast", "add", "sum"]
    assert recorder.seen[1][1] == ["float64", "float64"]
    assert recorder.seen[2][2][0] == (1,)


def test_interpreters_nest_and_restore():
    outer, inner, before = Recorder(), None, modes.interpreters
    with interpret_with(outer):
        inner = Recorder(below=current_interpreter())
        with interpret_with(inner):
            wf.exp(wf.tensor(1.0))
        assert current_interpreter() is outer
    assert current_interpreter() is None
    assert len(outer.seen) == len(inner.seen) == 1
    assert modes.interpreters == before


def test_an_interpreter_is_removed_after_an_error():
    with pytest.raises(ZeroDivisionError), interpret_with(Recorder()):
        raise ZeroDivisionError
    assert current_interpreter() is None


def test_attributes_are_checked_before_an_interpreter_sees_them():
    recorder = Recorder()
    with interpret_with(recorder), pytest.raises(ValueError, match=r"sum: axis 5"):
        wf.sum(wf.tensor([1.0]), axis=5)
    assert not recorder.seen


# -- errors ---------------------------------------------------------------------------------------


def test_errors_name_operation_shapes_and_origin():
    x, y = wf.tensor(np.ones(3)), wf.tensor(np.ones(4))
    with pytest.raises(ShapeError) as caught:
        x + y
    message = str(caught.value)
    assert message.startswith("add: ")
    assert "(3,) and (4,)" in message
    assert "x from test_dispatch.py:" in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_kernel_errors_become_ours():
    op = registry["add"]
    error = dispatch.explain(op, MemoryError("too big"), (), ())
    assert isinstance(error, MemoryError)
    assert isinstance(error, WeftError)
    assert str(error).startswith("add: ")


def test_gradients_are_summed_over_broadcast_axes():
    g = np.arange(6.0).reshape(2, 3)
    assert dispatch.sum_to(g, (3,)).tolist() == [3.0, 5.0, 7.0]
    assert dispatch.sum_to(g, (2, 1)).tolist() == [[3.0], [12.0]]
    assert dispatch.sum_to(g, ()).shape == ()
    assert dispatch.sum_to(g, (2, 3)) is g
    assert dispatch.sum_to(wf.tensor(g), (3,)).tolist() == [3.0, 5.0, 7.0]


def test_unknown_arguments_are_python_s_errors():
    with pytest.raises(TypeError):
        wf.exp(wf.tensor(1.0), speed=3)
    with pytest.raises(ArgumentTypeError, match="must be a list or tuple of tensors"):
        wf.concat(3.0)


# -- data of any byte order, and errors ----------------------------------------------------------


def test_swapped_byte_order_is_turned():
    swapped = np.arange(3, dtype=">f4")
    assert (wf.ones(3) + swapped).tolist() == [1.0, 2.0, 3.0]
    assert wf.tensor(swapped).dtype == wf.float32
    assert wf.arange(4)[np.array([1, 2], ">i8")].tolist() == [1, 2]
    with pytest.raises(DTypeError, match="byte order"):
        wf.from_numpy(swapped)


def test_numpy_numbers_anywhere_in_a_list_keep_their_dtype():
    assert wf.tensor([1.0, np.float64(2.0)]).dtype == wf.float64
    assert wf.tensor([[1.0], [np.float64(2.0)]]).dtype == wf.float64


@pytest.mark.parametrize("swapped", [False, True])
def test_a_number_beyond_floats_names_the_operator(swapped):
    x = wf.tensor([1.0])
    with pytest.raises(DTypeError, match=r"^add: the Python integer of 401 digits"):
        _ = 10**400 + x if swapped else x + 10**400


def test_errors_leave_no_cycles():
    gc.disable()
    try:
        operand = wf.ones(3)
        alive = weakref.ref(operand)
        with suppress(ShapeError):
            wf.ones(2) + operand
        del operand
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32"])
def test_numbers_beside_tensors_of_their_kind_take_the_quick_way(dtype, monkeypatch):
    def fail(*args):
        raise AssertionError("the general way was taken")

    x = wf.tensor([1, 2, 3], dtype=dtype)
    monkeypatch.setattr(dispatch, "_applied", fail)
    found = [x * 2, 7 - x, x % 2, x < 3]
    assert [y.tolist() for y in found[:3]] == [[2, 4, 6], [6, 5, 4], [1, 0, 1]]
    assert [str(y.dtype) for y in found] == [dtype, dtype, dtype, "bool"]
