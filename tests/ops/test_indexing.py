"""Indexing against NumPy on random shapes and indices, and what assignment must never change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import weft as wf
from tests.ops import conformance  # noqa: F401  (loads every operator)
from weft.autodiff.reverse import gradients
from weft.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    GradientError,
    IndexOutOfRange,
    ShapeError,
    WeftError,
)
from weft.core.modes import no_grad
from weft.core.op import F, registry
from weft.core.shape import type_of
from weft.core.tensor import Tensor, make_leaf
from weft.ops.index._spec import ARRAY, indexed_shape, split_index
from weft.ops.index.scatter_add import scatter_add_at, scatter_add_rows

examples = settings(max_examples=150, deadline=None)


def leaf(array, requires_grad=True):
    return make_leaf(np.array(array), requires_grad, None)


def gradient(y, x, g):
    return gradients([y], [x], [leaf(g, False)], retain_graph=True)[0].numpy()


# -- strategies ------------------------------------------------------------------------------------


@st.composite
def integer_arrays(draw, size, shape):
    """Draw integers that are valid for an axis; none are for an axis of size 0."""
    if size == 0:
        return np.zeros((0,), np.int64)
    dtype = draw(st.sampled_from((np.int64, np.int32, np.uint8)))
    low = 0 if dtype is np.uint8 else -size
    return draw(hnp.arrays(dtype, shape, elements=st.integers(low, size - 1)))


def one_item(draw, shape, axis, selector_shape):
    """Return an item for one axis, or a mask of several, and how many axes it takes."""
    size = shape[axis]
    kind = draw(st.sampled_from(("integer", "slice", "array", "mask")))
    if kind == "integer" and size:
        return draw(st.integers(-size, size - 1)), 1
    if kind == "array":
        return draw(integer_arrays(size, selector_shape)), 1
    if kind == "mask":
        covered = draw(st.integers(1, len(shape) - axis))
        return draw(hnp.arrays(bool, shape[axis : axis + covered])), covered
    return draw(st.slices(size)), 1


@st.composite
def shapes_and_indices(draw):
    """Draw a shape, and an index for it of any kind and mixture."""
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    selector_shape = draw(st.sampled_from(((), (1,), (3,), (2, 3))))
    items, axis, masks = [], 0, 0
    while axis < len(shape) and draw(st.integers(0, 5)):
        item, taken = one_item(draw, shape, axis, selector_shape)
        if isinstance(item, np.ndarray) and item.dtype == bool:
            masks += 1
            if masks > 1:  # two masks select together only if their counts agree
                item, taken = slice(None), 1
        items.append(item)
        axis += taken
        if draw(st.integers(0, 7)) == 0:
            items.append(None)
    if draw(st.integers(0, 3)) == 0:
        items.insert(draw(st.integers(0, len(items))), ...)
        items = align_after_ellipsis(items, shape)
    return shape, tuple(items)


def align_after_ellipsis(items, shape):
    """Drop the items behind an ellipsis if they would meet other axes than they were made for."""
    used = sum(
        item.ndim if isinstance(item, np.ndarray) and item.dtype == bool else 1
        for item in items
        if item is not None and item is not ...
    )
    place = next(i for i, item in enumerate(items) if item is ...)
    return items if used == len(shape) else items[: place + 1]


def read(x, index):
    """Return x[index] by NumPy, or None where it refuses: index arrays may not broadcast."""
    try:
        return x[index]
    except IndexError:
        return None


def as_index(index, convert):
    return tuple(convert(i) if isinstance(i, np.ndarray) else i for i in index)


# -- reading ---------------------------------------------------------------------------------------


@examples
@given(shapes_and_indices())
def test_reading_is_numpys(case):
    shape, index = case
    x = np.arange(float(np.prod(shape))).reshape(shape)
    expected = read(x, index)
    if expected is None:
        with pytest.raises(WeftError):
            leaf(x)[index]
        return
    for convert in (np.asarray, lambda i: leaf(i, False)):
        found = leaf(x)[as_index(index, convert)]
        np.testing.assert_array_equal(found.numpy(), expected, strict=True)


@examples
@given(shapes_and_indices())
def test_gradient_adds_at_every_place_read(case):
    shape, index = case
    x = leaf(np.zeros(shape))
    places = read(np.arange(x.size).reshape(shape), index)
    if places is None:
        return
    g = np.random.default_rng(0).normal(size=places.shape)
    expected = np.bincount(places.ravel(), g.ravel(), x.size).reshape(shape)
    np.testing.assert_allclose(gradient(x[index], x, g), expected, atol=1e-12)


@examples
@given(shapes_and_indices())
def test_shape_rule_knows_the_shape(case):
    shape, index = case
    expected = read(np.zeros(shape), index)
    if expected is None:
        return
    spec, arrays = split_index(index)
    hash(spec)
    found = indexed_shape(shape, spec, [type_of(a) for a in arrays])
    assert len(found) == expected.ndim
    unknown = [(a, b) for a, b in zip(found, expected.shape, strict=True) if a != b]
    assert all(a is None for a, _ in unknown)
    assert not unknown or any(a.dtype == bool for a in arrays)


@pytest.mark.parametrize(
    "index",
    [
        [],
        [[0, 1], [1, 0]],
        [True, False],
        True,
        False,
        np.True_,
        (..., True),
        ((0, 1), 1),
        np.int8(1),
        np.array(1),
        (np.uint64(1), [2, 0]),
        ([0, 1], ..., [1, 2]),
        (slice(None, None, -1), None, [0, 0]),
        (slice(np.int64(0), np.int64(1)),),
    ],
    ids=repr,
)
def test_lists_numbers_and_booleans(index):
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(leaf(x)[index].numpy(), x[index], strict=True)


def test_zero_dimensional_integer_tensor_is_an_index():
    x = leaf(np.arange(6.0).reshape(2, 3))
    i = leaf(np.array(1), False)
    assert x[i].tolist() == [3.0, 4.0, 5.0]
    assert x[i, i].item() == 4.0
    assert x[: i.item()].shape == (1, 3)
    assert x[:i].shape == (1, 3)


def test_objects_with_index_are_integers():
    class Two:
        def __index__(self):
            return 2

    assert leaf(np.arange(3.0))[Two()].item() == 2.0


def test_reading_gives_a_value_not_a_view():
    x = leaf(np.arange(3.0), False)
    row = x[:2]
    x[0] = 9.0
    assert row.tolist() == [0.0, 1.0]


def test_iteration_and_unpacking():
    a, b = leaf(np.arange(4.0).reshape(2, 2))
    assert a.tolist() == [0.0, 1.0]
    assert b.tolist() == [2.0, 3.0]


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (2, IndexOutOfRange, "index 2 is out of range for axis 0 of size 2; use -2..1"),
        ((0, -4), IndexOutOfRange, "index -4 is out of range for axis 1 of size 3"),
        ((..., 3), IndexOutOfRange, "index 3 is out of range for axis 1 of size 3"),
        ((0, 0, 0), IndexOutOfRange, "shape (2, 3). Received: 3 indices"),
        ((..., 0, ...), IndexOutOfRange, "only one ellipsis"),
        ([0, 1, 2], IndexOutOfRange, "index[2] = 2 is out of range for axis 0 of size 2"),
        ((0, [[5]]), IndexOutOfRange, "index[0, 0] = 5 is out of range for axis 1 of size 3"),
        ((..., [0, -4]), IndexOutOfRange, "index[1] = -4 is out of range for axis 1 of size 3"),
        ((np.ones(2, bool), 5), IndexOutOfRange, "index 5 is out of range for axis 1"),
        (1.0, ArgumentTypeError, "Received: float 1.0 at position 0"),
        ((0, "a"), ArgumentTypeError, "Received: str 'a' at position 1"),
        ([0.5], ArgumentTypeError, "Received: dtype float32 at position 0"),
        (np.ones(2), ArgumentTypeError, "Received: dtype float64 at position 0"),
        (slice(0, 1.5), ArgumentTypeError, "the stop of a slice must be an integer"),
        (slice(None, None, 0), ArgumentError, "step of a slice must not be zero"),
        (np.ones((2, 2), bool), ShapeError, "(2, 3) from axis 0 of a tensor of shape (2, 3)"),
        ((slice(None), [True]), ShapeError, "(3,) from axis 1"),
        (([0, 1], [0, 1, 2]), ShapeError, "Received: shapes (2,), (3,)"),
        ([0, [1]], ShapeError, "ragged"),
    ],
    ids=repr,
)
def test_bad_index_is_explained(index, error, message):
    x = leaf(np.zeros((2, 3)))
    with pytest.raises(error) as read_error:
        x[index]
    assert message in str(read_error.value)
    with pytest.raises(error) as write_error:
        leaf(np.zeros((2, 3)), False)[index] = 1.0
    assert message in str(write_error.value)


def test_error_names_the_line_of_the_tensor():
    x = leaf(np.zeros(2)) * 2.0
    with pytest.raises(IndexOutOfRange, match=r"test_indexing\.py"):
        x[5]


# -- writing ---------------------------------------------------------------------------------------


@examples
@given(shapes_and_indices(), st.booleans())
def test_writing_is_numpys(case, broadcast):
    shape, index = case
    expected = np.arange(float(np.prod(shape))).reshape(shape)
    target = read(expected, index)
    if target is None:
        return
    start = expected.copy()
    value = np.random.default_rng(0).normal(size=() if broadcast else target.shape)
    expected[index] = value
    x = leaf(start, False)
    x[index] = leaf(value, False)
    np.testing.assert_array_equal(x.numpy(), expected, strict=True)
    new = F.index_set(leaf(start), index, leaf(value))
    np.testing.assert_array_equal(new.numpy(), expected, strict=True)


@examples
@given(shapes_and_indices(), st.booleans())
def test_gradient_of_writing_goes_to_what_is_left(case, broadcast):
    shape, index = case
    x = leaf(np.zeros(shape))
    places = read(np.arange(x.size).reshape(shape), index)
    if places is None:
        return
    value = leaf(np.ones(() if broadcast else places.shape))
    g = np.random.default_rng(0).normal(size=shape)
    new = F.index_set(x, index, value)
    flat, writer = np.ravel(places), np.full(x.size, -1)
    writer[flat] = np.arange(flat.size)
    expected = np.where(writer.reshape(shape) < 0, g, 0.0)
    np.testing.assert_array_equal(gradient(new, x, g), expected)
    stays = writer[flat] == np.arange(flat.size)
    received = np.where(stays, g.ravel()[flat], 0.0).reshape(places.shape)
    expected = received.sum() if broadcast else received
    np.testing.assert_allclose(gradient(new, value, g), expected, atol=1e-12)


def test_assignment_leaves_saved_activations_alone():
    x = leaf(np.array([1.0, 2.0]))
    h = x * 3.0
    y = (h * h).sum()  # saves h
    h[0] = 100.0
    y.backward()
    assert x.grad.tolist() == [18.0, 36.0]
    assert h.tolist() == [100.0, 6.0]


def test_assignment_is_recorded():
    x, v = leaf(np.array([1.0, 2.0, 3.0])), leaf(np.array(5.0))
    y = x * 2.0
    y[1] = v
    (y * y).sum().backward()
    assert x.grad.tolist() == [8.0, 0.0, 24.0]
    assert v.grad.item() == 10.0


def test_assignment_changes_no_other_tensor():
    x = leaf(np.arange(4.0), False)
    alias, part, array = x.detach(), x[1:], x.numpy()
    x[:] = 7.0
    assert x.tolist() == [7.0] * 4
    assert alias.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert part.tolist() == [1.0, 2.0, 3.0]
    assert array.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_overlapping_assignment_reads_before_it_writes():
    x = leaf(np.arange(4.0), False)
    x[1:] = x[:-1]
    assert x.tolist() == [0.0, 0.0, 1.0, 2.0]
    x[::-1] = x
    assert x.tolist() == [2.0, 1.0, 0.0, 0.0]


def test_exclusive_buffer_is_written_in_place():
    x = leaf(np.zeros(3), False)
    buffer = id(x._value)
    x[0] = 1.0
    x[leaf(np.array([1, 2]), False)] = 2.0
    assert id(x._value) == buffer
    assert x.tolist() == [1.0, 2.0, 2.0]


def test_failed_assignment_changes_nothing():
    x = leaf(np.zeros(3), False)
    with pytest.raises(ShapeError, match=r"\(3,\).*Received: a value of shape \(2,\)"):
        x[:] = leaf(np.ones(2), False)
    with pytest.raises(IndexOutOfRange, match=r"index\[1\] = 3"):
        x[[0, 3]] = 1.0
    assert x.tolist() == [0.0] * 3


def test_leaf_is_written_only_without_recording():
    x = leaf(np.zeros(2))
    with pytest.raises(GradientError, match="no_grad"):
        x[0] = 1.0
    assert x.tolist() == [0.0, 0.0]
    with no_grad():
        x[0] = 1.0
    assert x.tolist() == [1.0, 0.0]
    assert x.requires_grad
    assert x.is_leaf


def test_result_written_without_recording_is_cut_off():
    x = leaf(np.zeros(2))
    y = x * 2.0
    with no_grad():
        y[0] = 1.0
    assert y.tolist() == [1.0, 0.0]
    assert not y.requires_grad


def test_numbers_and_lists_enter_unrounded():
    x = leaf(np.zeros(3), False)
    x[0] = 0.1
    x[1:] = [0.2, 0.3]
    assert x.tolist() == [0.1, 0.2, 0.3]


def test_values_are_cast_to_the_dtype():
    x = leaf(np.zeros(2, np.int32), False)
    x[0] = 2.7
    x[1] = leaf(np.array(3.9))
    assert x.dtype == np.int32
    assert x.tolist() == [2, 3]
    assert not x.requires_grad


@pytest.mark.parametrize(
    ("value", "error"),
    [("text", ArgumentTypeError), (None, ArgumentTypeError), (float("nan"), ArgumentError)],
)
def test_values_that_do_not_fit_are_refused(value, error):
    x = leaf(np.zeros(2, np.int64), False)
    with pytest.raises(error, match=r"Received|cannot write"):
        x[0] = value
    assert x.tolist() == [0, 0]


def test_augmented_assignment_through_an_index():
    x = leaf(np.arange(3.0), False)
    x[1:] += 10.0
    assert x.tolist() == [0.0, 11.0, 12.0]


# -- scatter-add kernels ---------------------------------------------------------------------------


@examples
@given(st.integers(1, 5), st.integers(0, 6), st.sampled_from(((), (1,), (3,), (2, 2))))
def test_scatter_add_rows(rows, count, inner):
    rng = np.random.default_rng(rows * 10 + count)
    index = rng.integers(-rows, rows, count)
    values = rng.normal(size=(count, *inner))
    expected = np.zeros((rows, *inner))
    np.add.at(expected, index, values)
    found = scatter_add_rows((rows, *inner), index, values, values.dtype)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_scatter_add_at_any_index():
    shape, values = (3, 4), np.arange(6.0).reshape(3, 2)
    for index in ((slice(None), np.array([1, 1])), (np.array([[0], [1], [0]]), np.array([3, -1]))):
        expected = np.zeros(shape)
        np.add.at(expected, index, values)
        np.testing.assert_array_equal(scatter_add_at(shape, index, values, values.dtype), expected)


def test_half_precision_is_accumulated_wider():
    ones = np.ones(5000, np.float16)
    total = scatter_add_rows((1,), np.zeros(5000, int), ones, ones.dtype)
    assert total.dtype == np.float16
    assert total[0] == 5000.0  # adding in float16 would stop at 2048


def test_integers_are_added_exactly():
    big = np.array([2**60, 1])
    assert scatter_add_rows((1,), np.zeros(2, int), big, big.dtype)[0] == 2**60 + 1


# -- particular operators --------------------------------------------------------------------------


def test_padding_row_receives_no_gradient():
    weight = leaf(np.ones((3, 2)))
    y = F.embedding(weight, leaf(np.array([[1, 0], [1, 2]]), False), padding_idx=1)
    assert gradient(y, weight, np.ones((2, 2, 2))).tolist() == [[1, 1], [0, 0], [1, 1]]


def test_embedding_in_half_precision_sums_gradients_wider():
    weight = leaf(np.ones((1, 1), np.float16))
    y = F.embedding(weight, leaf(np.zeros(4096, int), False))
    g = gradient(y, weight, np.ones((4096, 1), np.float16))
    assert g.dtype == np.float16
    assert g.item() == 4096.0


def test_sorting_downwards_is_stable():
    x = leaf(np.array([1.0, 2.0, 1.0, 2.0, np.nan]), False)
    assert F.argsort(x, descending=True).tolist() == [4, 1, 3, 0, 2]


@pytest.mark.parametrize("descending", [False, True])
def test_the_gradient_of_many_sorted_ties_goes_to_where_each_came_from(descending):
    rng = np.random.default_rng(0)
    x, weights = leaf(rng.integers(0, 9, (7, 900)).astype(np.float64)), rng.random((7, 900))
    (F.sort(x, descending=descending) * weights).sum().backward()
    expected = np.empty_like(weights)
    order = F.argsort(x, descending=descending).numpy()
    np.put_along_axis(expected, order, weights, -1)
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@pytest.mark.parametrize("largest", [True, False])
def test_topk_of_long_axes_takes_the_first_of_equals(largest):
    x = np.random.default_rng(0).integers(0, 9, (3, 700))
    values, indices = F.topk(leaf(x, False), 100, largest=largest)
    order = np.argsort(-x if largest else x, axis=-1, kind="stable")[:, :100]
    np.testing.assert_array_equal(indices.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order, -1))


def test_topk_names_its_parts():
    best = F.topk(leaf(np.array([3.0, 1.0, 4.0])), 2)
    assert best.values.tolist() == [4.0, 3.0]
    assert best.indices.tolist() == [2, 0]
    assert best.values.requires_grad
    assert not best.indices.requires_grad


def test_ties_share_the_gradient_of_scatter_reduce():
    x, src = leaf(np.array([2.0, 0.0])), leaf(np.array([2.0, 1.0, 2.0]))
    y = F.scatter_reduce(x, 0, leaf(np.array([0, 0, 0]), False), src, "amax")
    np.testing.assert_allclose(gradient(y, x, np.array([3.0, 1.0])), [1.0, 1.0])
    np.testing.assert_allclose(gradient(y, src, np.array([3.0, 1.0])), [1.0, 0.0, 1.0])


@examples
@given(
    hnp.arrays(np.int64, st.tuples(st.just(2), st.integers(0, 9)), elements=st.integers(0, 5)),
    hnp.arrays(np.int64, st.tuples(st.just(2), st.integers(0, 4)), elements=st.integers(-1, 6)),
    st.booleans(),
)
def test_searching_lines_is_searching_each(lines, values, right):
    lines = np.sort(lines, axis=-1)
    found = F.searchsorted(leaf(lines, False), leaf(values, False), right=right).numpy()
    for row in range(2):
        side = "right" if right else "left"
        np.testing.assert_array_equal(found[row], np.searchsorted(lines[row], values[row], side))


def test_index_operators_yield_int64():
    x = leaf(np.array([[3.0, 1.0], [0.0, 2.0]]))
    results = [F.argsort(x), *F.nonzero(x), F.argwhere(x), F.topk(x, 1).indices]
    results += [*F.tril_indices(2), F.searchsorted(x[0], x[1]), F.one_hot(F.argsort(x))]
    assert all(isinstance(r, Tensor) and r.dtype == np.int64 for r in results)


def test_composites_take_lists():
    x = [[1.0, 2.0], [3.0, 4.0]]
    assert F.scatter_add(x, 0, [[1, 0]], [[5.0, 6.0]]).tolist() == [[1, 8], [8, 4]]
    assert F.scatter(x, 1, [[0], [0]], 0).tolist() == [[0, 2], [0, 4]]
    assert F.take_along_axis(x, [[1], [0]]).tolist() == [[2], [3]]
    assert F.put_along_axis(x, [[1], [0]], [[7], [8]]).tolist() == [[1, 7], [8, 4]]
    assert F.index_select(x, 1, [1]).tolist() == [[2], [4]]
    assert F.index_add(x, 0, [1], [[1, 1]]).tolist() == [[1, 2], [4, 5]]
    assert F.index_set(x, 0, [0, 9]).tolist() == [[0, 9], [3, 4]]
    assert F.masked_fill(x, [True, False], 0).tolist() == [[0, 2], [0, 4]]
    assert F.masked_select(x, [[True], [False]]).tolist() == [1, 2]
    assert F.narrow(x, 0, 1, 1).tolist() == [[3, 4]]
    assert F.one_hot([1, 0]).tolist() == [[0, 1], [1, 0]]
    assert F.topk([3, 1, 2], 1).indices.tolist() == [0]
    assert F.unique([3, 1, 3]).tolist() == [1, 3]
    assert F.searchsorted([1.0, 2.0], 1.5).item() == 1
    assert F.bucketize([0, 9], [1, 2]).tolist() == [0, 2]
    assert F.argwhere([0, 5]).tolist() == [[1]]
    assert F.flatnonzero(x).tolist() == [0, 1, 2, 3]


def test_no_operator_of_this_package_writes_its_inputs():
    x = np.arange(6.0).reshape(2, 3)
    x.flags.writeable = False
    for name in ("sort", "argsort", "nonzero"):
        registry[name](x)
    F.setitem(x, np.float64(1.0), (0,))
    assert x[0, 0] == 0.0


def test_embedding_takes_the_index_first_among_network_functions():
    weight = leaf(np.array([[0.0, 1.0], [2.0, 3.0]]))
    index = wf.tensor([[1, 0, 1]])
    found = wf.nn.functional.embedding(index, weight, padding_idx=0)
    assert found.tolist() == [[[2.0, 3.0], [0.0, 1.0], [2.0, 3.0]]]
    found.sum().backward()
    assert weight.grad.tolist() == [[0.0, 0.0], [2.0, 2.0]]
    assert wf.nn.functional.embedding(input=index, weight=weight).shape == (1, 3, 2)


# -- counts that are tensors, numbers beside tensors ----------------------------------------------


@pytest.mark.parametrize("repeats", [2, [2], np.array([2]), wf.tensor([2]), wf.tensor(2)])
def test_one_count_repeats_all_elements(repeats):
    x = wf.tensor([[1, 2, 3]])
    assert wf.repeat(x, repeats, axis=1).tolist() == [[1, 1, 2, 2, 3, 3]]
    assert wf.repeat(x, repeats).tolist() == [1, 1, 2, 2, 3, 3]
    assert wf.repeat(x, wf.tensor([1, 0, 2]), axis=1).tolist() == [[1, 3, 3]]


def test_numbers_are_searched_in_the_dtype_of_the_sequence():
    ticks = wf.tensor([1, 2, 4], dtype="uint64")
    assert wf.searchsorted(ticks, 3).item() == 2
    assert wf.searchsorted(ticks.to("float64"), 2.0, side="right").item() == 2


def test_what_is_unique_has_names():
    found = wf.unique_all(wf.tensor([3.0, np.nan, 1.0, 3.0]))
    assert found._fields == ("values", "indices", "inverse_indices", "counts")
    assert found.indices.tolist() == [2, 0, 1]
    assert wf.unique_counts([2, 2])._fields == ("values", "counts")
    assert wf.unique_inverse([2, 2]).inverse_indices.tolist() == [0, 0]
    assert wf.tensor([2, 1, 2]).unique_values().tolist() == [1, 2]


def test_differences_keep_the_dtype_beside_numbers():
    assert wf.diff(wf.tensor([1, 3]), prepend=0).dtype == wf.int64
    assert wf.diff(wf.tensor([1, 3]), append=0.5).dtype == wf.float32
    assert wf.grad(lambda a: wf.diff(wf.ones(2), prepend=a).sum())(wf.tensor(0.0)).item() == -1.0


GRADIENTS_OF_INDEXING = {
    "getitem": lambda g: F.getitem_adjoint(g, (4, 3), ((0, 2, None),)),
    "getitem_arrays": lambda g: F.getitem_arrays_adjoint(g, [np.array([0, 1])], (4, 3), (ARRAY,)),
    "gather": lambda g: F.gather_adjoint(g, np.zeros((2, 3), np.int64), (4, 3), 0),
    "take": lambda g: F.take_adjoint(g, np.array([0, 1]), (4, 3), 0),
}


@pytest.mark.parametrize("name", GRADIENTS_OF_INDEXING)
def test_gradients_of_indexing_refuse_another_shape(name):
    """Compiled code writes as many elements as were read, wherever the gradient ends."""
    put_back = GRADIENTS_OF_INDEXING[name]
    with wf.Graph():
        assert put_back(wf.placeholder((2, 3), wf.float32)).shape == (4, 3)
        with pytest.raises(ShapeError, match=r"g must have shape \(2, 3\).*\(40, 3\)"):
            put_back(wf.placeholder((40, 3), wf.float32))
