"""Programs that are one native call take the short way, with the same results."""

import numpy as np

import weft as wf


def compiled(x):
    return wf.compile(lambda x: (wf.sin(x) * 2, x.sum()), x)


def test_results_are_new_arrays_in_each_call():
    x = wf.tensor(np.arange(12.0).reshape(3, 4))
    fn = compiled(x)
    assert fn.executable._short is not None
    (first, total), (second, _) = fn(x), fn(x + 1)
    np.testing.assert_allclose(first.numpy(), 2 * np.sin(x.numpy()), rtol=1e-12)
    np.testing.assert_allclose(second.numpy(), 2 * np.sin(x.numpy() + 1), rtol=1e-12)
    assert total.shape == ()
    assert total.item() == 66


def test_arrays_that_do_not_suit_the_code_take_the_long_way():
    x = np.arange(24.0).reshape(3, 8)
    fn = compiled(wf.tensor(np.ascontiguousarray(x[:, ::2])))
    found, total = fn(x[:, ::2])
    np.testing.assert_allclose(found.numpy(), 2 * np.sin(x[:, ::2]), rtol=1e-12)
    assert total.item() == x[:, ::2].sum()


def test_programs_with_states_take_the_long_way():
    weight = wf.nn.Parameter(wf.ones(3))
    fn = wf.compile(lambda x: x * weight, wf.ones(3))
    assert fn.executable._short is None
    with wf.no_grad():
        weight.copy_(wf.full((3,), 5.0))
    assert fn(wf.ones(3)).tolist() == [5, 5, 5]


def test_indices_are_checked():
    fn = wf.compile(lambda x, i: wf.take(x, i, 0), wf.ones(3), wf.tensor([0, 1]))
    assert fn.executable._short is None
    assert fn(wf.tensor([1.0, 2.0, 3.0]), wf.tensor([2, 0])).tolist() == [3, 1]
