"""Gradient clipping."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
from weft.core.errors import GradientError
from weft.optim import clip_grad_norm_, clip_grad_value_
from weft.optim.clip import total_norm


def params(*grads, dtype=np.float32):
    found = []
    for g in grads:
        w = wf.tensor(np.zeros(np.shape(g), dtype), requires_grad=True)
        w.grad = wf.tensor(np.asarray(g, dtype))
        found.append(w)
    return found


def test_norm_over_all_parameters():
    w, v = params([3.0, 0.0], [[4.0]])
    assert clip_grad_norm_(iter([w, v]), 1.0).item() == 5.0
    np.testing.assert_allclose(w.grad.numpy(), [0.6, 0.0], rtol=1e-6)
    np.testing.assert_allclose(v.grad.numpy(), [[0.8]], rtol=1e-6)


def test_short_gradients_are_left_alone():
    (w,) = params([0.3, 0.4])
    before = w.grad
    assert clip_grad_norm_(w, 1.0).item() == pytest.approx(0.5)
    assert w.grad is before


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30),
    st.sampled_from([1.0, 2.0, 3.0, np.inf]),
)
def test_norms(values, order):
    arrays = np.array_split(np.array(values), 3)
    assert total_norm(arrays, order) == pytest.approx(np.linalg.norm(values, order), rel=1e-9)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_huge_and_tiny_gradients(size):
    (w,) = params([3.0 * size, 4.0 * size])
    assert clip_grad_norm_(w, 1e-35).item() == pytest.approx(5.0 * size, rel=1e-5)


def test_nonfinite_gradients():
    (w,) = params([np.inf, 1.0])
    with pytest.raises(GradientError, match="inf"):
        clip_grad_norm_(w, 1.0, error_if_nonfinite=True)
    assert w.grad.tolist() == [np.inf, 1.0]
    (v,) = params([np.nan, 1.0])
    assert np.isnan(clip_grad_norm_(v, 1.0).item())
    assert np.isnan(v.grad.numpy()).all()


def test_no_gradients_and_empty_ones():
    assert clip_grad_norm_([], 1.0).item() == 0.0
    assert clip_grad_norm_([wf.tensor([1.0], requires_grad=True)], 1.0).item() == 0.0
    assert clip_grad_norm_(params([]), 1.0).item() == 0.0


def test_half_precision_does_not_overflow():
    (w,) = params([300.0, 400.0], dtype=np.float16)
    assert clip_grad_norm_(w, 1.0).item() == 500.0
    assert w.grad.dtype == np.float16


def test_value():
    (w,) = params([-2.0, 0.5, np.nan])
    clip_grad_value_([w], 1.0)
    assert w.grad.tolist()[:2] == [-1.0, 0.5]
    assert np.isnan(w.grad.tolist()[2])


def test_bad_arguments():
    (w,) = params([1.0])
    for call in (
        lambda: clip_grad_norm_(w, -1.0),
        lambda: clip_grad_norm_(w, 1.0, 0.0),
        lambda: clip_grad_value_(w, np.nan),
    ):
        with pytest.raises(ValueError, match="must be positive"):
            call()
    with pytest.raises(TypeError, match="expected parameters"):
        clip_grad_value_([3], 1.0)


# -- in recorded functions -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, np.inf])
@pytest.mark.parametrize("limit", [1.0, 1e6])
def test_norm_in_a_recorded_function(dtype, order, limit):
    w, v = params([3.0, 0.0, -7.0], [[4.0]], dtype=dtype)
    x, y = params([3.0, 0.0, -7.0], [[4.0]], dtype=dtype)
    clip = wf.jit(lambda: clip_grad_norm_([w, v], limit, order))
    expected = clip_grad_norm_([x, y], limit, order)
    tolerance = 1e-2 if dtype == np.float16 else 1e-6
    found = clip()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.numpy(), expected.numpy(), tolerance)
    for a, b in ((w, x), (v, y)):
        assert a.grad.dtype == b.grad.dtype
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), tolerance)


@pytest.mark.parametrize("grads", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [1e30, 1e30], [1e-30]])
def test_unusual_gradients_in_a_recorded_function(grads):
    (w,), (x,) = params(grads), params(grads)
    found = wf.jit(lambda: clip_grad_norm_([w], 1.0))()
    np.testing.assert_allclose(found.numpy(), clip_grad_norm_([x], 1.0).numpy(), 1e-6)
    np.testing.assert_allclose(w.grad.numpy(), x.grad.numpy(), 1e-6)


def test_nonfinite_gradients_in_a_recorded_function():
    (w,) = params([1.0, 2.0])
    clip = wf.jit(lambda: clip_grad_norm_([w], 1.0, error_if_nonfinite=True))
    clip()
    w.grad = wf.tensor([np.inf, 1.0])
    with pytest.raises(GradientError, match="inf"):
        clip()
    assert w.grad.tolist() == [np.inf, 1.0]


def test_values_in_a_recorded_function():
    (w,) = params([-3.0, 0.5, np.nan])
    wf.jit(lambda: clip_grad_value_([w], 1.0))()
    np.testing.assert_array_equal(w.grad.numpy(), [-1.0, 0.5, np.nan])


# -- in minimize ----------------------------------------------------------------------------------


def _one_step(minimize):
    w = wf.tensor([1.0, 2.0], requires_grad=True)
    other = wf.tensor([3.0], requires_grad=True)
    optimizer = wf.optim.SGD([w, other], lr=1.0)
    minimize(optimizer, w, other)
    return np.concatenate([w.numpy(), other.numpy()])


def _loss(w, other):
    return (w * wf.tensor([3.0, 0.0])).sum() + 4.0 * other.sum()


def test_minimize_clips_by_the_joint_norm():
    def eager(optimizer, w, other):
        optimizer.minimize(_loss(w, other), clip_norm=1.0)

    def jitted(optimizer, w, other):
        wf.jit(lambda: optimizer.minimize(_loss(w, other), clip_norm=1.0))()

    def in_a_graph(optimizer, w, other):
        with wf.Graph() as graph:
            step = optimizer.minimize(_loss(w, other), clip_norm=1.0)
        wf.Session(graph).run(step)

    expected = [1.0 - 0.6, 2.0, 3.0 - 0.8]
    for minimize in (eager, jitted, in_a_graph):
        np.testing.assert_allclose(_one_step(minimize), expected, rtol=1e-5)


def test_minimize_leaves_small_gradients_alone():
    found = _one_step(lambda o, w, other: o.minimize(_loss(w, other), clip_norm=100.0))
    np.testing.assert_allclose(found, [-2.0, 2.0, -1.0])


def test_minimize_names_a_bad_limit():
    with pytest.raises(ValueError, match="max_norm must be positive"):
        _one_step(lambda o, w, other: o.minimize(_loss(w, other), clip_norm=0.0))
