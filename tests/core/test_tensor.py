"""The Tensor: attributes, reading values, protocols, value semantics, printing, copying."""

import copy
import pickle

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentTypeError, DTypeError, GradientError, ShapeError


def leaf(*values):
    return wf.tensor(np.array(values), requires_grad=True)


# -- attributes -----------------------------------------------------------------------------------


def test_attributes():
    x = wf.tensor(np.zeros((2, 3), np.float32))
    assert (x.shape, x.ndim, x.size, x.dtype) == ((2, 3), 2, 6, wf.float32)
    assert (x.nbytes, x.itemsize, x.device) == (24, 4, "cpu")
    assert (x.dim(), x.numel(), len(x)) == (2, 6, 2)
    assert x.requires_grad is False
    assert x.is_leaf
    assert x.grad is None


def test_a_tensor_is_not_called_directly():
    with pytest.raises(ArgumentTypeError, match=r"wf.tensor\(data\)"):
        wf.Tensor([1.0])


def test_tensors_take_no_new_attributes():
    with pytest.raises(AttributeError):
        wf.tensor(1.0).colour = "red"


# -- reading --------------------------------------------------------------------------------------


def test_item_and_lists():
    assert wf.tensor([[2.5]]).item() == 2.5
    assert type(wf.tensor(3).item()) is int
    assert type(wf.tensor(True).item()) is bool
    assert wf.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ShapeError, match=r"item\(\) needs a tensor with one element; .*\(2,\)"):
        wf.tensor([1.0, 2.0]).item()


def test_numbers_and_truth():
    assert float(wf.tensor([2.5])) == 2.5
    assert int(wf.tensor(2.9)) == 2
    assert bool(wf.tensor([1.0]))
    assert not wf.tensor(0)
    with pytest.raises(ShapeError, match=r"shape \(2,\) is ambiguous; use x.any\(\) or x.all\(\)"):
        bool(wf.tensor([1.0, 2.0]))
    with pytest.raises(ShapeError, match="ambiguous"):
        bool(wf.tensor(np.zeros(0)))
    with pytest.raises(ShapeError, match=r"float\(\)"):
        float(wf.tensor([1.0, 2.0]))


def test_as_an_index():
    assert [10, 20, 30][wf.tensor(1)] == 20
    for bad in (wf.tensor(1.0), wf.tensor([1]), wf.tensor(True)):
        with pytest.raises(TypeError, match="0-d integer tensors"):
            [10, 20, 30][bad]


def test_length_iteration_and_membership():
    x = wf.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert [row.tolist() for row in x] == [[1.0, 2.0], [3.0, 4.0]]
    assert 3.0 in x
    assert 5.0 not in x
    for use in (len, iter):
        with pytest.raises(TypeError, match="0-d tensor"):
            use(wf.tensor(1.0))


def test_iteration_is_differentiated():
    x = leaf(1.0, 2.0)
    a, b = x
    (a * b * b).backward()
    assert x.grad.tolist() == [4.0, 4.0]


# -- NumPy and others -----------------------------------------------------------------------------


def test_numpy_is_a_read_only_view():
    x = wf.tensor([1.0, 2.0])
    view = x.numpy()
    assert np.shares_memory(view, x.numpy())
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 5.0


def test_array_protocol():
    x = wf.tensor([1.0, 2.0])
    copied = np.array(x)
    copied[0] = 100.0
    assert x.tolist() == [1.0, 2.0]
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.shares_memory(np.asarray(x), x.numpy())
    with pytest.raises(ValueError, match="needs a copy"):
        np.array(x, dtype=np.float64, copy=False)


def test_numpy_functions_read_tensors():
    assert np.mean(wf.tensor([1.0, 3.0]).numpy()) == 2.0
    assert np.array([wf.tensor(1.0), wf.tensor(2.0)]).tolist() == [1.0, 2.0]


def test_array_and_tensor_operators_give_tensors():
    x, a = wf.tensor(np.array([1.0, 2.0])), np.array([10.0, 20.0])
    for result in (a + x, x + a, a * x, a - x, a / x, a**x, np.float64(2.0) * x):
        assert isinstance(result, wf.Tensor)
    assert (a - x).tolist() == [9.0, 18.0]


def test_dlpack_hands_over_a_copy():
    x = wf.tensor([1.0, 2.0])
    other = np.from_dlpack(x)
    assert other.tolist() == [1.0, 2.0]
    other[0] = 100.0
    assert x.tolist() == [1.0, 2.0]


# -- creation and value semantics -----------------------------------------------------------------


def test_creation_copies():
    data = np.array([1.0, 2.0])
    x = wf.tensor(data)
    data[0] = 100.0
    assert x.tolist() == [1.0, 2.0]


def test_dtypes_of_creation():
    assert wf.tensor(1.0).dtype == wf.tensor([1.0, 2]).dtype == wf.float32
    assert wf.tensor(1).dtype == wf.int64
    assert wf.tensor(True).dtype == np.bool_
    assert wf.tensor(np.float64(1.0)).dtype == wf.float64
    assert wf.tensor([1, 2], dtype=wf.float16).dtype == wf.float16
    with pytest.raises(DTypeError, match="int64"):
        wf.tensor([1], requires_grad=True)


def test_nothing_aliases():
    x = wf.tensor([1.0, 2.0, 3.0])
    row, same, shaped = x[1:], x.detach(), x.reshape(3, 1)
    x[1] = 50.0
    x += 1.0
    assert row.tolist() == [2.0, 3.0]
    assert same.tolist() == [1.0, 2.0, 3.0]
    assert shaped.tolist() == [[1.0], [2.0], [3.0]]
    row[0] = -1.0
    assert x.tolist() == [2.0, 51.0, 4.0]


def test_two_names_of_one_tensor_change_together():
    x = wf.tensor([1.0])
    y = x
    y += 1.0
    assert x is y
    assert x.item() == 2.0


def test_fill_zero_and_copy():
    x = wf.tensor([1.0, 2.0])
    kept = x.numpy()
    assert x.zero_() is x
    assert x.tolist() == [0.0, 0.0]
    assert x.fill_(3).tolist() == [3.0, 3.0]
    assert x.copy_([5, 6]).tolist() == [5.0, 6.0]
    assert x.copy_(wf.tensor(7.0)).tolist() == [7.0, 7.0]
    assert (x.dtype, kept.tolist()) == (wf.float32, [1.0, 2.0])
    with pytest.raises(ShapeError, match=r"\(3,\) does not fill \(2,\)"):
        x.copy_(np.ones(3))
    with pytest.raises(ArgumentTypeError, match="Received: str 'text'"):
        x.copy_("text")


def test_clone_is_differentiated():
    x = leaf(2.0)
    y = x.clone()
    y *= 3.0
    y.backward()
    assert (x.item(), x.grad.item()) == (2.0, 3.0)


def test_conversion():
    x = wf.tensor([1.5, 2.5])
    assert x.to(wf.float64).dtype == wf.float64
    assert x.to("cpu") is x
    assert x.to(wf.float32) is x
    assert x.int().tolist() == [1, 2]
    assert x.astype("int8").dtype == wf.int8
    assert x.to(wf.tensor([1], dtype=wf.float16)).dtype == wf.float16
    with pytest.raises(ValueError, match="'cuda'"):
        x.to("cuda")


# -- operators ------------------------------------------------------------------------------------


def test_comparisons():
    x = wf.tensor([1.0, 2.0])
    assert (x == [1.0, 5.0]).tolist() == [True, False]
    assert (x != 1.0).tolist() == [False, True]
    assert (x > 1.0).tolist() == [False, True]
    assert (1.0 < x).tolist() == [False, True]  # noqa: SIM300  (the reflected operator)
    assert (x == None) is False  # noqa: E711  (what a careless program writes)
    assert (x == "text") is False


def test_hash_is_identity():
    x, y = wf.tensor(1.0), wf.tensor(1.0)
    assert len({x: 1, y: 2}) == 2
    assert {x: 1}[x] == 1


def test_arithmetic_operators():
    x = wf.tensor(np.array([5.0, -3.0]))
    assert (-x).tolist() == [-5.0, 3.0]
    assert abs(x).tolist() == [5.0, 3.0]
    assert (+x).tolist() == [5.0, -3.0]
    assert (x // 2).tolist() == [2.0, -2.0]
    assert (x % 2).tolist() == [1.0, 1.0]
    assert (2 - x).tolist() == [-3.0, 5.0]
    assert (1 / x).tolist() == [0.2, 1 / -3.0]
    assert (2.0**x).tolist() == [32.0, 0.125]
    assert (x @ x).item() == 34.0


# -- printing, copying, pickling ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: wf.tensor(1.5), "tensor(1.5)"),
        (lambda: wf.tensor([1, 2]), "tensor([1, 2])"),
        (lambda: wf.tensor([True]), "tensor([ True])"),
        (lambda: wf.tensor(np.array([1.0])), "tensor([1.], dtype=float64)"),
        (lambda: wf.tensor([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
        (lambda: wf.tensor([1.0], requires_grad=True) * 2, "tensor([2.], grad_fn=<mul>)"),
        (lambda: wf.tensor([1.0, 2.5], dtype="bfloat16"), "tensor([1. , 2.5], dtype=bfloat16)"),
        (lambda: wf.zeros((0, 3)), "tensor([], dtype=float32, shape=(0, 3))"),
    ],
)
def test_repr(make, text):
    assert repr(make()) == text


def test_format():
    assert f"{wf.tensor(1.23456):.2f}" == "1.23"
    assert f"{wf.tensor([1.0])}" == "tensor([1.])"


def test_deepcopy_of_leaves():
    x = leaf(1.0)
    (x * 2.0).backward()
    y = copy.deepcopy(x)
    assert y.requires_grad
    assert y.grad.tolist() == [2.0]
    with wf.no_grad():
        y += 1.0
    assert x.item() == 1.0
    (y * 3.0).backward()
    assert (x.grad.item(), y.grad.item()) == (2.0, 5.0)
    shared = copy.deepcopy([x, x])
    assert shared[0] is shared[1]
    with pytest.raises(GradientError, match=r"only leaves can be deep-copied"):
        copy.deepcopy(x * 2.0)


def test_pickle():
    x = pickle.loads(pickle.dumps(leaf(1.0, 2.0)))
    assert x.tolist() == [1.0, 2.0]
    assert x.requires_grad
    (x * 2.0).backward(np.ones(2))
    assert x.grad.tolist() == [2.0, 2.0]


# -- switching gradients off and on ---------------------------------------------------------------


def test_a_frozen_leaf_keeps_its_gradient():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    x.requires_grad_(False)
    assert not (x * 2.0).requires_grad
    assert x.grad.tolist() == [2.0, 4.0]
    x.requires_grad_(True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]
    x.requires_grad_(False)
    x.grad = None
    assert x.grad is None


def test_a_graph_recorded_before_freezing_still_finds_its_leaf():
    x = leaf(1.0, 2.0)
    loss = (x * x).sum()
    x.requires_grad_(False)
    x.requires_grad_(True)
    loss.backward()
    assert x.grad.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("grad", [wf.tensor([1, 2]), wf.tensor([1.0, 2.0])])
def test_a_gradient_has_the_dtype_of_its_tensor(grad):
    with pytest.raises(DTypeError, match=r"\.grad must have dtype float64\. Received: (int|fl)"):
        leaf(1.0, 2.0).grad = grad


# -- replacing the value --------------------------------------------------------------------------


def test_copy_records_its_source():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0) * 2.0
    kept = y * 1.0
    y.copy_(x * 3.0)
    (y * y).sum().backward()
    assert x.grad.tolist() == [18.0, 36.0]
    assert kept.tolist() == [6.0, 8.0]


def test_copy_broadcasts_casts_and_forgets():
    x = leaf(1.0, 2.0) * 2.0
    x.copy_(wf.tensor(7, dtype=wf.float32))
    assert x.tolist() == [7.0, 7.0]
    assert (x.dtype, x.requires_grad) == (wf.float64, False)
    x.zero_()
    x[0] = 1.0
    assert x.fill_(2).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        (300, TypeError, "300 does not fit in int8"),
        (float("nan"), ValueError, "nan into int8"),
        (1j, TypeError, "Received: complex"),
        (np.zeros(2, "M8[s]"), TypeError, "Received: ndarray"),
        ([[1], [1, 2]], ValueError, "into int8"),
        ("a", TypeError, "Received: str"),
        (None, TypeError, "Received: NoneType"),
        (np.ones(3), ShapeError, r"\(3,\)"),
    ],
)
def test_copy_refuses_what_cannot_be_held(value, error, match):
    x = wf.tensor(np.zeros(2, np.int8))
    with pytest.raises(wf.WeftError, match=match) as raised:
        x.copy_(value)
    assert isinstance(raised.value, error)
    assert x.tolist() == [0, 0]


# -- odd company ----------------------------------------------------------------------------------


def test_equality_with_a_stranger_is_false():
    stranger = object()
    assert (wf.tensor(1.0) == stranger) is False
    assert (wf.tensor(1.0) != stranger) is True


def test_a_format_that_does_not_fit_says_so():
    with pytest.raises(wf.WeftError, match=r"'\.2f' .* shape \(2,\)"):
        f"{wf.tensor([1.0, 2.0]):.2f}"
    with pytest.raises(ValueError, match=r"'d' .* float32"):
        f"{wf.tensor(1.0):d}"
    assert f"{wf.tensor([1.0, 2.0]):>18}" == "  tensor([1., 2.])"


def test_contains_of_a_shape_that_does_not_fit():
    assert 2.0 in wf.tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match=r"\(2,\) .*\(3,\)"):
        _ = [1, 2, 3] in wf.tensor([1.0, 2.0])


def test_dlpack_never_shares():
    x = wf.tensor([1.0, 2.0])
    np.from_dlpack(x)[0] = 5.0
    assert x.tolist() == [1.0, 2.0]
    with pytest.raises(BufferError, match="copy=False"):
        x.__dlpack__(copy=False)


def test_exclusive_only_without_other_holders():
    x = wf.tensor([1.0, 2.0])
    assert x._exclusive() is not None
    y = x.detach()
    assert x._exclusive() is None
    del y
    view = x.numpy()
    assert x._exclusive() is None
    del view
    assert x._exclusive() is not None


def test_iterating_records_one_node():
    x = wf.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    rows = list(x)
    assert {row.grad_fn.parents[0].op.name for row in rows} == {"unbind"}
    (rows[0] * rows[2]).sum().backward()
    assert x.grad.tolist() == [[5.0, 6.0], [0.0, 0.0], [1.0, 2.0]]
