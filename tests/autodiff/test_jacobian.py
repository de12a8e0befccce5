"""jacfwd, jacrev, jacobian, hessian, hvp: shapes, trees, modes, sparsity."""

import numpy as np
import pytest

import weft as wf
from weft.autodiff.coloring import color
from weft.core.errors import ArgumentError, ArgumentTypeError, DTypeError, GradientError, ShapeError
from weft.core.tape import next_order

JACOBIANS = [wf.jacfwd, wf.jacrev, wf.jacobian]


def array(*shape, seed=0):
    return wf.tensor(np.random.default_rng(seed).normal(size=shape))


def differences(fn, x, eps=1e-6):
    """Return the Jacobian of a function of one array by central differences."""
    columns = []
    for index in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[index] = eps
        ahead, behind = fn(wf.tensor(x.numpy() + step)), fn(wf.tensor(x.numpy() - step))
        columns.append((ahead.numpy() - behind.numpy()) / (2 * eps))
    return np.stack(columns, -1).reshape((*columns[0].shape, *x.shape))


@pytest.mark.parametrize("transform", JACOBIANS)
@pytest.mark.parametrize(
    ("fn", "shape"),
    [
        (lambda x: wf.sin(x) @ x.T, (2, 3)),
        (lambda x: wf.prod(x, axis=0), (2, 3)),
        (lambda x: (x * x).sum(), (4,)),
        (lambda x: wf.outer(x, x), (3,)),
        (wf.exp, ()),
        (lambda x: wf.stack([x, x * x]), ()),
        (lambda x: x[:0], (3,)),
        (lambda x: x * 2, (0,)),
        (lambda x: wf.tensor(np.ones(2)), (3,)),
    ],
)
def test_agrees_with_differences(transform, fn, shape):
    x = array(*shape)
    found = transform(fn)(x)
    expected = differences(fn, x) if x.size else np.zeros((0, 0))
    assert found.shape == (*fn(x).shape, *x.shape)
    np.testing.assert_allclose(found.numpy(), expected.reshape(found.shape), atol=1e-7)


@pytest.mark.parametrize("transform", JACOBIANS)
def test_trees_in_and_out(transform):
    def fn(params, x):
        return {"y": params["w"] @ x, "s": params["b"] * 2}

    params, x = {"w": array(2, 3), "b": array(2, seed=1)}, array(3, seed=2)
    found = transform(fn, argnums=(0, 1))(params, x)
    by_params, by_x = found["y"]
    assert (by_params["w"].shape, by_params["b"].shape, by_x.shape) == ((2, 2, 3), (2, 2), (2, 3))
    np.testing.assert_allclose(by_x.numpy(), params["w"].numpy())
    np.testing.assert_allclose(found["s"][0]["b"].numpy(), 2 * np.eye(2))
    assert not np.any(found["s"][1].numpy())


@pytest.mark.parametrize("transform", JACOBIANS)
def test_aux(transform):
    found, aux = transform(lambda x: (x * x, {"x": x, "n": 3}), has_aux=True)(array(2))
    assert found.shape == (2, 2)
    assert aux["n"] == 3
    assert aux["x"].tolist() == array(2).tolist()


def test_hessian_in_every_mode_and_graph():
    def fn(x):
        return (wf.tanh(x @ x) * x.sum()).sum() + wf.prod(x)

    x = array(3)
    expected = wf.hessian(fn)(x).numpy()
    np.testing.assert_allclose(expected, expected.T, atol=1e-12)
    np.testing.assert_allclose(expected, differences(wf.grad(fn), x), atol=1e-6)
    for outer in JACOBIANS:
        for inner in JACOBIANS:
            np.testing.assert_allclose(outer(inner(fn))(x).numpy(), expected, atol=1e-10)
    with wf.Graph() as graph:
        symbol = wf.placeholder((3,), wf.float64, name="x")
        made = wf.hessian(fn)(symbol)
    np.testing.assert_allclose(wf.Session(graph).run(made, {symbol: x}), expected, atol=1e-10)


def test_hessian_of_trees_is_a_tree_of_trees():
    found = wf.hessian(lambda p: (p["a"] ** 2).sum() * p["b"])({"a": array(2), "b": array()})
    assert found["a"]["a"].shape == (2, 2)
    assert found["a"]["b"].shape == (2,)
    assert found["b"]["b"].item() == 0.0


def test_third_derivative():
    found = wf.jacfwd(wf.hessian(lambda x: (x**4).sum()))(wf.tensor(np.array([1.0, 2.0])))
    assert [found[i, i, i].item() for i in range(2)] == [24.0, 48.0]


def test_hvp_is_the_hessian_times_a_vector():
    def fn(x, y):
        return (wf.sin(x) * y).sum() ** 2

    x, y, u, v = (array(3, seed=i) for i in range(4))
    full = wf.hessian(fn, argnums=(0, 1))(x, y)
    along_x, along_y = wf.hvp(fn, (x, y), (u, v))
    np.testing.assert_allclose(along_x.numpy(), (full[0][0] @ u + full[0][1] @ v).numpy())
    np.testing.assert_allclose(along_y.numpy(), (full[1][0] @ u + full[1][1] @ v).numpy())
    single = wf.hvp(lambda p: fn(p["x"], y), ({"x": x},), ({"x": u},))
    np.testing.assert_allclose(single["x"].numpy(), (full[0][0] @ u).numpy())


# -- sparsity -------------------------------------------------------------------------------------


def tridiagonal(x):
    inner = x[1:-1] ** 2 - x[:-2] * x[2:]
    return wf.concat([x[:1] * x[1:2], inner, x[-1:] * x[-2:-1]])


def band(n, width):
    i = np.arange(n)
    return np.abs(i[:, None] - i) <= width


def test_a_banded_jacobian_takes_as_many_passes_as_colors():
    calls = []

    def fn(x):
        calls.append(1)
        return tridiagonal(x)

    x = array(50)
    pattern = band(50, 1)
    found = wf.jacobian(fn, sparsity=pattern)(x).numpy()
    np.testing.assert_allclose(found, wf.jacfwd(tridiagonal)(x).numpy())
    assert color(pattern).needed == 3
    assert len(calls) <= 5


def test_rows_are_colored_where_that_takes_fewer_passes():
    pattern = np.zeros((20, 20), bool)
    pattern[0] = True  # a full row: all columns overlap, but two rows at most do
    pattern[np.arange(20), np.arange(20)] = True
    x = array(20)

    def fn(x):
        return wf.concat([x[1:].sum().reshape((1,)) * x[:1], x[1:] ** 2])

    np.testing.assert_allclose(
        wf.jacobian(fn, sparsity=pattern)(x).numpy(), wf.jacrev(fn)(x).numpy()
    )


def test_a_sparse_jacobian_is_differentiable():
    x = array(6)

    def loss(x):
        return (wf.jacobian(tridiagonal, sparsity=band(6, 1))(x) ** 2).sum()

    def dense(x):
        return (wf.jacfwd(tridiagonal)(x) ** 2).sum()

    np.testing.assert_allclose(wf.grad(loss)(x).numpy(), wf.grad(dense)(x).numpy())


# -- mistakes -------------------------------------------------------------------------------------


def test_mistakes_are_explained():
    x = array(3)
    with pytest.raises(ArgumentTypeError, match="takes a function"):
        wf.jacfwd(x)
    with pytest.raises(DTypeError, match="has_aux"):
        wf.jacrev(wf.argmax)(x)
    with pytest.raises(ShapeError, match="a column for each of the 3"):
        wf.jacobian(lambda x: x, sparsity=np.eye(2))(x)
    with pytest.raises(ShapeError, match="must be a matrix"):
        wf.jacobian(lambda x: x, sparsity=[True])
    with pytest.raises(ArgumentTypeError, match="truth values"):
        wf.jacobian(lambda x: x, sparsity="diagonal")
    with pytest.raises(ArgumentError, match="one tensor to one tensor"):
        wf.jacobian(lambda x: (x, x), sparsity=np.eye(3))(x)
    with pytest.raises(GradientError, match="one number"):
        wf.hvp(lambda x: x, (x,), (x,))
    with wf.Graph():
        symbol = wf.placeholder((None,), wf.float64, name="x")
        with pytest.raises(ShapeError, match="sizes must be known"):
            wf.jacrev(lambda x: x * 2)(symbol)


# -- what results depend on -----------------------------------------------------------------------


def rows(x):
    return wf.stack([x.sum(), x.prod()])


def cubes(x):
    return (x**3).sum()


RESULTS = {
    "jacrev": wf.jacrev(rows),
    "jacfwd": wf.jacfwd(rows),
    "jacobian": wf.jacobian(rows),
    "jacobian, sparse": wf.jacobian(lambda x: x * x, sparsity=np.eye(3, dtype=bool)),
    "jacrev of jacrev": wf.jacrev(wf.jacrev(cubes)),
    "jacrev of jacfwd": wf.jacrev(wf.jacfwd(cubes)),
    "jacrev of vmap": wf.jacrev(wf.vmap(lambda v: v**2)),
    "jacrev of a checkpoint": wf.jacrev(wf.checkpoint(rows)),
    "hessian": wf.hessian(cubes),
    "hvp": lambda x: wf.hvp(cubes, (x,), (x.detach(),)),
    "grad": wf.grad(cubes),
    "vjp": lambda x: wf.vjp(rows, x)[1](wf.ones(2, dtype="float64"))[0],
    "vjp under vmap": lambda x: wf.vmap(wf.vjp(rows, x)[1])(wf.eye(2, dtype="float64"))[0],
    "vmap of grad": wf.vmap(wf.grad(lambda v: v**2)),
    "beside": lambda x: wf.jacrev(lambda x: (rows(x), x * 2), has_aux=True)(x)[1],
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_require_gradients_as_arguments_do(name):
    fn, x = RESULTS[name], array(3)
    assert not fn(x).requires_grad
    leaf = x.detach().requires_grad_()
    assert fn(leaf).requires_grad
    with wf.no_grad():
        assert not fn(leaf).requires_grad
    second = wf.jacfwd(fn)(x).numpy()
    np.testing.assert_allclose(wf.jacrev(fn)(x).numpy(), second, atol=1e-12)


def test_pulling_recorded_cotangents_back_under_vmap():
    _, pull = wf.vjp(rows, array(3))
    given = wf.eye(2, dtype="float64", requires_grad=True)
    wf.vmap(pull)(given)[0].sum().backward()
    assert given.grad.shape == (2, 2)


def test_the_mode_is_chosen_without_changing_what_is_drawn():
    def noisy(x):
        return x.sum() * wf.randn(2, dtype="float64")

    found = []
    for transform in (wf.jacobian, wf.jacrev):
        wf.manual_seed(3)
        found.append(transform(noisy)(array(3)).numpy())
    np.testing.assert_array_equal(*found)


# -- what the chosen mode keeps --------------------------------------------------------------------


def long_function(x):
    for _ in range(10):
        x = wf.sin(x)
    return wf.concat([x, x, x])


def test_forward_mode_leaves_nothing_on_the_tape():
    x = wf.tensor(np.ones(3))
    before = next_order()
    wf.jacobian(long_function)(x)
    assert next_order() == before + 1  # no node was made between
    wf.jacobian(lambda x: long_function(x).sum())(x)
    assert next_order() > before + 10  # reverse mode makes them


def test_forward_mode_leaves_no_adjoint_in_a_graph():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float64)
        wf.jacobian(long_function)(x)
    assert sum(node.op.name == "sin" for node in graph) <= 10  # traced once
    assert not any("gradients" in node.scope for node in graph)
