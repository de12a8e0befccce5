"""Tensors from data, filled, in ranges and like others."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.errors import AllocationError, ArgumentTypeError, DTypeError, ShapeError, WeftError
from weft.core.tensor import Tensor
from weft.ops._memory import format_bytes


def same(found: Tensor, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(found.numpy(), expected, strict=True)


# -- from data ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.5, "float32"),
        (3, "int64"),
        (True, "bool"),
        ([1.0, 2.0], "float32"),
        ([1, 2.5], "float32"),
        ([[1, 2], [3, 4]], "int64"),
        ([True, False], "bool"),
        ([], "float32"),
        ([[], []], "float32"),
        (range(3), "int64"),
        (np.float64(2.0), "float64"),
        (np.arange(3, dtype=np.int8), "int8"),
        ([np.ones(2, np.float64), np.ones(2, np.float64)], "float64"),
    ],
)
def test_dtype_of_data(data, dtype):
    x = wf.tensor(data)
    assert x.dtype == dtype
    assert x.shape == np.shape(data)
    np.testing.assert_array_equal(x.numpy(), np.array(data))


def test_tensor_copies():
    source = np.zeros(3)
    x = wf.tensor(source)
    source[0] = 1.0
    assert x.tolist() == [0.0, 0.0, 0.0]
    y = wf.tensor(x)
    assert y is not x
    assert not np.shares_memory(y.numpy(), x.numpy())


def test_tensor_of_tensors():
    rows = [wf.tensor([1.0, 2.0]), wf.tensor([3.0, 4.0])]
    same(wf.tensor(rows), np.array([[1, 2], [3, 4]], np.float32))
    same(wf.tensor(rows, dtype="int8"), np.array([[1, 2], [3, 4]], np.int8))


def test_python_floats_reach_float64_unrounded():
    assert wf.tensor(0.1, dtype="float64").item() == 0.1
    assert wf.tensor([0.1, 1], dtype="float64").tolist() == [0.1, 1.0]


def test_requires_grad_makes_a_leaf_that_knows_its_line():
    x = wf.tensor([1.0], requires_grad=True)
    assert x.requires_grad
    assert x.is_leaf
    assert wf.zeros(2, requires_grad=True).requires_grad
    assert wf.ones_like(x, requires_grad=True).requires_grad
    assert not wf.ones_like(x).requires_grad
    y = wf.tensor([1.0, 2.0])
    with pytest.raises(ValueError, match=r"test_creation\.py"):
        _ = y + wf.tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("data", "error", "match"),
    [
        ([[1.0], [2.0, 3.0]], ValueError, "ragged"),
        ("text", TypeError, "str 'text'"),
        (["a"], TypeError, "must hold numbers"),
        (None, TypeError, "NoneType None"),
        (object(), TypeError, "object"),
        ({"a": 1}, TypeError, "dict"),
        ([None], TypeError, "must hold numbers"),
        (1j, TypeError, "complex"),
        (np.ones(2, complex), TypeError, "complex128 is not supported"),
        (np.array(["a"]), TypeError, "not supported"),
        ([2**70], TypeError, "must hold numbers|beyond 64 bits"),
        (2**70, TypeError, "must hold numbers|beyond 64 bits"),
    ],
)
def test_bad_data(data, error, match):
    with pytest.raises(error, match=match) as caught:
        wf.tensor(data)
    assert isinstance(caught.value, WeftError)


def test_bad_options():
    with pytest.raises(ArgumentTypeError, match="'float33'"):
        wf.tensor([1.0], dtype="float33")
    with pytest.raises(ValueError, match="'abacus'"):
        wf.tensor([1.0], device="abacus")
    with pytest.raises(DTypeError, match="int64"):
        wf.tensor([1], requires_grad=True)
    with pytest.raises(ArgumentTypeError, match=r"requires_grad.*'yes'"):
        wf.tensor([1.0], requires_grad="yes")


def test_asarray_copies_only_as_asked():
    source = np.zeros(2)
    shared, copied = wf.asarray(source, copy=False), wf.asarray(source)
    source[0] = 7.0
    assert shared.tolist() == [7.0, 0.0]
    assert copied.tolist() == [0.0, 0.0]
    x = wf.tensor([1.0])
    assert wf.asarray(x) is x
    assert wf.asarray(x, copy=True) is not x
    assert wf.asarray(x, dtype="float64").dtype == "float64"
    assert wf.asarray(x, copy=False) is x  # with its gradients
    with pytest.raises(ValueError, match="cannot convert float32 to float64"):
        wf.asarray(x, dtype="float64", copy=False)


def test_asarray_without_copy_refuses_what_needs_one():
    with pytest.raises(ValueError, match=r"only arrays and tensors.*list"):
        wf.asarray([1.0], copy=False)
    with pytest.raises(ValueError, match="float64 to float32"):
        wf.asarray(np.zeros(2), dtype="float32", copy=False)


def test_from_numpy_and_from_dlpack_share_memory():
    source = np.zeros(2)
    x, y = wf.from_numpy(source), wf.from_dlpack(source)
    source[0] = 7.0
    assert x.tolist() == y.tolist() == [7.0, 0.0]
    with pytest.raises(TypeError, match="Received: list"):
        wf.from_numpy([1.0])
    with pytest.raises(TypeError, match="Received: list"):
        wf.from_dlpack([1.0])


def test_foreign_arrays_are_read_through_their_protocol():
    class Foreign:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3.0)

    same(wf.tensor(Foreign()), np.arange(3.0))


# -- filled ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_shapes_as_tuple_or_arguments(name):
    make = getattr(wf, name)
    for shape in ((), (3,), (2, 3), (0,), (2, 0)):
        for x in (make(shape), make(*shape), make(list(shape), dtype="int8")):
            assert x.shape == shape
    assert make(3).shape == (3,)
    assert make(np.int64(3)).shape == (3,)
    assert make(2).dtype == "float32"


def test_filled_with_tensors():
    same(wf.full((2, 2), wf.tensor(7)), np.full((2, 2), 7))
    same(wf.full(2, wf.tensor(1.5, dtype="float64")), np.full(2, 1.5))
    same(wf.full((2,), wf.tensor(1.5), dtype="int8"), np.full(2, 1, np.int8))
    same(wf.full((2, 3), np.arange(3)), np.full((2, 3), np.arange(3)))
    same(wf.full_like(wf.zeros(2), wf.tensor(3)), np.full(2, 3, np.float32))
    same(wf.full_like(wf.zeros(1, 2), [wf.tensor(3), 1], dtype="int64"), np.array([[3, 1]]))
    for make in (lambda: wf.full((2,), wf.ones(3)), lambda: wf.full_like(wf.ones(2), wf.ones(3))):
        with pytest.raises(
            ValueError, match=r"fill_value of shape \(3,\) does not broadcast to \(2,\)"
        ):
            make()


def test_filled_values():
    same(wf.zeros(2, dtype="int8"), np.zeros(2, np.int8))
    same(wf.ones(2), np.ones(2, np.float32))
    same(wf.full((2,), 1.5), np.full(2, 1.5, np.float32))
    same(wf.full(2, 3), np.full(2, 3))
    same(wf.full((), True), np.array(True))
    same(wf.full(2, 3, dtype="float64"), np.full(2, 3.0))
    same(wf.eye(2), np.eye(2, dtype=np.float32))
    same(wf.eye(2, 3, k=-1, dtype="int64"), np.eye(2, 3, -1, dtype=np.int64))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: wf.zeros(-1), ShapeError, r"negative sizes.*\(-1,\)"),
        (lambda: wf.ones((2, -3)), ShapeError, r"\(2, -3\)"),
        (lambda: wf.zeros(2.5), TypeError, "2.5"),
        (lambda: wf.zeros("23"), TypeError, "'2'"),
        (lambda: wf.zeros(2, "float32"), TypeError, "'float32'"),
        (lambda: wf.zeros(None), TypeError, "None"),
        (lambda: wf.full((2,), "a"), TypeError, "'a'"),
        (lambda: wf.full((2,), 300, dtype="int8"), TypeError, "300.*int8"),
        (lambda: wf.full((2,), 0.5, dtype="int8"), TypeError, "0.5.*int8"),
        (lambda: wf.full((2,), float("nan"), dtype="int8"), TypeError, "nan.*int8"),
        (lambda: wf.full((2,), 10**400, dtype="float32"), TypeError, "float32"),
        (lambda: wf.eye(-1), ShapeError, "-1"),
        (lambda: wf.eye(2, k=0.5), TypeError, "k must be an integer"),
    ],
)
def test_bad_shapes_and_values(call, error, match):
    with pytest.raises(error, match=match) as caught:
        call()
    assert isinstance(caught.value, WeftError)


@pytest.mark.parametrize(
    "call",
    [
        lambda: wf.zeros(10**9, 10**9),
        lambda: wf.empty((2**62,)),
        lambda: wf.full(2**62, 1),
        lambda: wf.eye(2**40),
        lambda: wf.arange(2**60),
        lambda: wf.linspace(0, 1, 2**60),
        lambda: wf.ones((10**30,)),
    ],
)
def test_absurd_sizes_name_the_bytes(call):
    with pytest.raises(AllocationError, match=r"takes .* bytes\)"):
        call()


def test_format_bytes():
    assert format_bytes(0) == "0 bytes"
    assert format_bytes(2**30) == "1 GiB (1073741824 bytes)"
    assert format_bytes(10**40).endswith(f"YiB ({10**40} bytes)")


# -- like -----------------------------------------------------------------------------------------


def test_like():
    x = wf.tensor(np.ones((2, 0, 3), np.float64))
    for make in (wf.zeros_like, wf.ones_like, wf.empty_like):
        assert (make(x).shape, make(x).dtype) == (x.shape, x.dtype)
        assert make(x, dtype="int32").dtype == "int32"
    same(wf.full_like(wf.zeros(2), 7), np.full(2, 7, np.float32))
    assert np.signbit(wf.full_like(wf.zeros(1), -0.0).item())
    with pytest.raises(DTypeError, match=r"full_like: .*0.5.*int64"):
        wf.full_like(wf.arange(2), 0.5)


@pytest.mark.parametrize("data", [300, [300], [[1, 2], [300, 4]], -129])
def test_integers_that_do_not_fit_are_refused(data):
    with pytest.raises(DTypeError, match=r"tensor: data .* int8"):
        wf.tensor(data, dtype="int8")


@pytest.mark.parametrize("data", [float("nan"), [1.0, float("inf")]])
def test_numbers_without_an_integer_value_are_refused(data):
    with pytest.raises(WeftError, match=r"tensor: data .* int64"):
        wf.tensor(data, dtype="int64")


def test_floats_are_cut_and_rounded_once():
    same(wf.tensor([1.7, -1.7], dtype="int64"), np.array([1, -1]))
    same(wf.tensor([0.1, 2], dtype="float64"), np.array([0.1, 2.0]))
    same(wf.tensor(1e10, dtype="float16"), np.array(np.inf, np.float16))
    same(wf.tensor([2**53 + 1], dtype="int64"), np.array([2**53 + 1]))


@pytest.mark.parametrize("dtype", ["a", (1, 2, 3), ([1], 2), "<U3"])
def test_a_dtype_that_is_none(dtype):
    with pytest.raises(TypeError, match="dtype"):
        wf.zeros(2, dtype=dtype)


def test_a_device_that_is_none():
    with pytest.raises(WeftError, match=r"device must be one of 'cpu', .*'reference'"):
        wf.zeros(2, device=np.zeros(3))
