"""PyTorch's keywords mean what PyTorch means, and no spelling changes numbers silently."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import weft as wf
from weft.core.bytecode import use_of_result
from weft.core.op import load_all, registry

X = np.array([[1.0, 5.0, 2.0, 5.0], [7.0, 2.0, 0.0, 2.0]], np.float32)
N = np.array([7, -7, 8, -9])


@pytest.fixture
def x():
    return wf.tensor(X)


# -- other names of parameters -------------------------------------------------------------------

SPELLINGS = {
    "input": lambda x: (wf.exp(input=x), wf.exp(x)),
    "input and other": lambda x: (wf.add(input=x, other=x), x + x),
    "input and other, of no rule": lambda x: (wf.maximum(input=x, other=-x), wf.maximum(x, -x)),
    "one tensor as both": lambda x: (wf.mul(input=x, other=x), x * x),
    "other of a method": lambda x: (x.maximum(other=-x), wf.maximum(x, -x)),
    "input of a reduction": lambda x: (wf.sum(input=x, dim=1, keepdim=True), x.sum(1, True)),
    "input of a composite": lambda x: (wf.quantile(input=x, q=0.3, dim=1), wf.quantile(x, 0.3, 1)),
    "input of a list": lambda x: (wf.tile(input=[1, 2], dims=(2,)), wf.tensor([1, 2, 1, 2])),
    "where": lambda x: (wf.where(x > 2, input=x, other=0), wf.where(x > 2, x, 0)),
    "lerp": lambda x: (wf.lerp(x, end=-x, weight=0.25), wf.lerp(x, -x, 0.25)),
    "dims of flip": lambda x: (wf.flip(x, dims=(0, 1)), wf.tensor(X[::-1, ::-1].copy())),
    "flip by several axes": lambda x: (x.flip(0, 1), wf.tensor(X[::-1, ::-1].copy())),
    "dims of roll": lambda x: (x.roll(1, dims=1), wf.tensor(np.roll(X, 1, 1))),
    "dims of rot90": lambda x: (wf.rot90(x, 1, dims=(1, 0)), wf.tensor(np.rot90(X, 1, (1, 0)))),
    "dim1 and dim2": lambda x: (wf.diagonal(x, dim1=1, dim2=0), wf.tensor(np.diagonal(X.T))),
    "dim0 and dim1": lambda x: (wf.swapaxes(x, dim0=0, dim1=1), x.T),
    "size": lambda x: (wf.broadcast_to(x[0], size=(3, 4)), wf.tensor(np.stack([X[0]] * 3))),
    "N of vander": lambda x: (wf.vander(x[0], N=2), wf.vander(x[0], 2)),
    "value of scatter": lambda x: (
        wf.scatter(x, 1, wf.tensor([[0], [1]]), value=9.0),
        wf.scatter(x, 1, wf.tensor([[0], [1]]), 9.0),
    ),
    "alpha of add": lambda x: (wf.add(x, x, alpha=2), 3 * x),
    "alpha of sub": lambda x: (x.sub(1, alpha=3), x - 3),
    "alpha in place": lambda x: (x.clone().add_(x, alpha=-1), 0 * x),
    "rounding_mode None": lambda x: (wf.div(x, 3, rounding_mode=None), x / 3),
    "rounding_mode floor": lambda x: (
        wf.tensor(N).div(2, rounding_mode="floor"),
        wf.tensor(N // 2),
    ),
    "rounding_mode trunc": lambda x: (
        wf.div(wf.tensor(N), 2, rounding_mode="trunc"),
        wf.tensor([3, -3, 4, -4]),
    ),
    "rounding_mode of floats": lambda x: (
        wf.div(-x, 3, rounding_mode="trunc"),
        wf.tensor(np.trunc(-X / 3)),
    ),
    "dtype of cumsum": lambda x: (
        wf.cumsum(wf.tensor(N), dim=0, dtype=wf.float64),
        wf.tensor(np.cumsum(N, dtype=np.float64)),
    ),
    "dtype of cumprod": lambda x: (
        wf.tensor(N).cumprod(0, dtype=wf.float32),
        wf.tensor(np.cumprod(N, dtype=np.float32)),
    ),
    "dtype of mean": lambda x: (x.mean(dim=1, dtype=wf.float64), wf.tensor(X.mean(1, "f8"))),
    "dtype of nansum": lambda x: (wf.nansum(x, dtype=wf.float64), wf.tensor(X.sum(dtype="f8"))),
    "dim of norm, a method": (
        lambda x: (x.norm(2, dim=1, keepdim=True), wf.tensor(np.linalg.norm(X, 2, 1, True)))
    ),
    "dtype of norm": lambda x: (wf.norm(x, dtype=wf.float64), x.double().norm()),
    "ddof": lambda x: (wf.var(x, ddof=1), wf.tensor(X.var(ddof=1))),
    "unbiased": lambda x: (wf.std(x, unbiased=True), wf.tensor(X.std(ddof=1))),
    "unbiased with dim": lambda x: (x.var(dim=1, unbiased=False), wf.tensor(X.var(1))),
    "correction with dim": lambda x: (
        wf.std(x, dim=(0, 1), correction=1, keepdim=True),
        wf.tensor(X.std(ddof=1, keepdims=True)),
    ),
    "correction 0.0 with dim": lambda x: (wf.std(x, dim=0, correction=0.0), wf.tensor(X.std(0))),
    "largest": lambda x: (wf.topk(x, 1, dim=1, largest=False).indices, wf.tensor([[0], [2]])),
    "as_tuple": lambda x: (wf.nonzero(x, as_tuple=False), wf.argwhere(x)),
    "other of max": lambda x: (x.max(other=x * 0 + 2), wf.maximum(x, 2)),
    "dim of amax": lambda x: (wf.amax(x, dim=1), x.max(axis=1)),
    "unitriangular": lambda x: (
        wf.linalg.solve_triangular(x[:, :2], x, upper=True, unitriangular=True),
        wf.linalg.solve_triangular(x[:, :2], x, upper=True, unit_diagonal=True),
    ),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_keyword_of_pytorch(name, x):
    got, expected = SPELLINGS[name](x)
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-6)


REFUSED = {
    "std with dim": (lambda x: wf.std(x, dim=0), ValueError, "correction=1 or unbiased=True"),
    "var with keepdim": (lambda x: x.var(0, keepdim=True), ValueError, "correction=0"),
    "std of both": (lambda x: x.std(dim=0, unbiased=True, correction=1), ValueError, "once"),
    "unbiased": (lambda x: x.std(unbiased=3), TypeError, "True or False. Received: 3"),
    "norm by place": (lambda x: wf.norm(x, 1), ValueError, "say ord= .* p= "),
    "norm method": (lambda x: x.norm(2), ValueError, "say ord= .* p= "),
    "median method": (lambda x: x.median(), ValueError, r"wf\.median\(x\).*dim=0"),
    "median by place": (lambda x: x.median(0), ValueError, r"Received: \(0,\)"),
    "repeat method": (lambda x: x.repeat(2), ValueError, r"tile.*x\.repeat\(2\)"),
    "repeat by place": (lambda x: x.repeat(2, 1), ValueError, r"x\.repeat\(2, 1\)"),
    "max of tensors": (lambda x: wf.max(x, x), TypeError, r"wf\.maximum"),
    "max by a 0-d tensor": (lambda x: wf.max(x, wf.tensor(0)), TypeError, r"wf\.maximum"),
    "max of other and dim": (lambda x: x.max(dim=0, other=x), TypeError, "leave dim out"),
    "pairs of no axis": (lambda x: x.max(keepdim=True), TypeError, "dim= is missing"),
    "pairs of two axes": (lambda x: x.min(dim=(0, 1)), TypeError, r"dim .*Received: \(0, 1\)"),
    "eigh": (lambda x: wf.linalg.eigh(x[:, :2]), ValueError, "not symmetric; say UPLO='L'"),
    "eigvalsh": (lambda x: wf.linalg.eigvalsh(x[:, :2]), ValueError, "not symmetric"),
    "unfold of an image": (lambda x: wf.nn.functional.unfold(x[None], 2), ValueError, "C, H, W"),
    "two spellings": (lambda x: wf.sum(x, axis=0, dim=0), TypeError, "axis and dim are the same"),
    "two spellings, by place": (lambda x: x.sum(0, dim=1), TypeError, "Received: axis and dim=1"),
    "composite, two spellings": (lambda x: wf.quantile(x, 0.5, 0, dim=1), TypeError, "the same"),
    "operand twice": (lambda x: wf.exp(x, input=x), TypeError, "x and input are the same"),
    "unknown": (lambda x: wf.sum(x, dmi=0), TypeError, "unexpected keyword argument 'dmi'"),
    "unknown of a composite": (lambda x: wf.tile(x, dmi=0), TypeError, "unexpected.*'dmi'"),
    "missing operand": (lambda x: x.add(), TypeError, "add: the argument 'y' is missing"),
    "no operand": (lambda x: wf.exp(), TypeError, "exp: the argument 'x' is missing"),
    "missing attribute": (lambda x: x.split(), TypeError, "split: the argument 'sizes' is missing"),
    "too many": (lambda x: wf.exp(x, x), TypeError, "exp"),
    "too many of two": (lambda x: wf.mul(x, x, x), TypeError, "mul"),
    "input twice": (lambda x: wf.mul(x, x, input=x), TypeError, "x and input are the same"),
    "alpha": (lambda x: wf.add(x, x, alpha=x), TypeError, "alpha must be a number"),
    "rounding_mode": (lambda x: wf.div(x, 2, rounding_mode="up"), ValueError, "Received: 'up'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, x):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=f"(?s){message}") as caught:
        call(x)
    assert isinstance(caught.value, (wf.WeftError, TypeError))


def test_help_shows_the_declared_signature():
    assert str(inspect.signature(wf.exp)).startswith("(x: ")
    assert "keywords" not in str(inspect.signature(wf.sum))


def test_operators_of_python_take_no_keywords():
    operation = wf.Tensor.__add__
    wf.tensor(1.0) + 1  # the generated function takes the place of the stub
    assert operation is not wf.Tensor.__add__ or operation.__name__ == "operation"
    assert wf.Tensor.__add__.__code__.co_varnames[:2] == ("x", "y")
    assert wf.Tensor.__add__.__defaults__ is None


def test_every_rule_for_keywords_has_the_operands():
    load_all()
    for record in registry.values():
        if record.keyword_rule is not None:
            assert set(record.inputs) <= set(record.rule_parameters), record.name
            assert record.rule_keywords, record.name


# -- values and indices --------------------------------------------------------------------------


def reference_pair(name, array, axis):
    if name in ("max", "min"):
        at = {"max": np.argmax, "min": np.argmin}[name](array, axis, keepdims=True)
    else:
        order = np.argsort(array, axis, kind="stable")
        at = order.take([(array.shape[axis] - 1) // 2], axis) if name == "median" else order
    return np.take_along_axis(array, at, axis), at


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("name", ["max", "min", "median", "sort"])
def test_dim_gives_values_and_indices(name, axis, x):
    values, indices = reference_pair(name, X, axis)
    keep = {} if name == "sort" else {"keepdim": True}
    for pair in (getattr(wf, name)(x, dim=axis, **keep), getattr(x, name)(dim=axis, **keep)):
        assert pair._fields == ("values", "indices")
        np.testing.assert_array_equal(pair.values.numpy(), values)
        np.testing.assert_array_equal(pair.indices.numpy(), indices)
        assert pair.indices.dtype == wf.int64
    if keep:
        dropped = getattr(x, name)(dim=axis)
        np.testing.assert_array_equal(dropped.values.numpy(), values.squeeze(axis))
        np.testing.assert_array_equal(dropped.indices.numpy(), indices.squeeze(axis))


def test_keepdim_alone_is_pytorchs_too(x):
    assert x.max(1, keepdim=True).indices.shape == (2, 1)


def test_sort_downwards_keeps_equals_in_order(x):
    values, indices = x.sort(dim=1, descending=True)
    assert values.tolist() == [[5, 5, 2, 1], [7, 2, 2, 0]]
    assert indices.tolist() == [[1, 3, 2, 0], [0, 1, 3, 2]]


def test_running_extrema(x):
    values, indices = x.cummax(dim=1)
    assert values.tolist() == [[1, 5, 5, 5], [7, 7, 7, 7]]
    assert indices.tolist() == [[0, 1, 1, 3], [0, 0, 0, 0]]
    assert wf.cummin(x, dim=0).indices.tolist() == [[0, 0, 0, 0], [0, 1, 1, 1]]


def test_mode_is_the_least_of_the_most_frequent(x):
    assert x.mode(dim=1).values.tolist() == [5, 2]
    assert wf.mode(x).indices.tolist() == [3, 3]
    assert wf.mode(x, 0, True).values.shape == (1, 4)


def test_median_of_nan_is_the_first_nan():
    x = wf.tensor([[1.0, np.nan, 0.0, np.nan], [4.0, 3.0, 2.0, 1.0]])
    values, indices = x.median(dim=1)
    assert indices.tolist() == [1, 2]
    assert np.isnan(values[0].item())
    assert values[1].item() == 2.0


@pytest.mark.parametrize("name", ["max", "min", "median", "sort", "mode", "cummax"])
def test_gradients_go_to_the_elements_at_the_indices(name):
    x = wf.tensor(X, requires_grad=True)
    values, indices = getattr(x, name)(dim=1)
    (values * 2).sum().backward()
    expected = np.zeros_like(X)
    rows = np.arange(2).reshape((2,) + (1,) * (indices.ndim - 1))
    np.add.at(expected, (rows, indices.numpy()), 2.0)
    np.testing.assert_array_equal(x.grad.numpy(), expected)


NAMES = ["max", "min", "median", "sort", "mode", "cummin"]


@pytest.mark.parametrize("name", NAMES)
def test_pairs_in_graphs_compiled_and_batched(name, x):
    def pair(t):
        return getattr(t, name)(dim=-1)

    expected = [part.numpy() for part in pair(x)]
    with wf.Graph() as graph:
        p = wf.placeholder((None, 4), wf.float32, name="p")
        outputs = pair(p)
        (slope,) = wf.gradients(outputs.values.sum(), [p])
    with wf.Session(graph) as session:
        *static, gradient = session.run([*outputs, slope], {p: X})
    compiled = wf.compile(pair, x)(x)
    assert compiled._fields == ("values", "indices")
    batched = wf.vmap(pair)(x)
    for got in (static, compiled, batched):
        for part, wanted in zip(got, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(part), wanted)
    assert gradient.sum() == expected[0].size


# -- taking a result in two ----------------------------------------------------------------------


def unpacked(x):
    v, i = x.max(1)
    return v, i


def unpacked_function(x):
    _, i = wf.min(x, 1)
    return i


def unpacked_sort(x):
    v, i = x.sort(descending=True)
    return v, i


def unpacked_median(x):
    v, i = wf.median(x, 1)
    return v, i


def unpacked_running(x):
    v, i = wf.cummax(x, 1)
    return v, i


TAKEN = {
    "unpacked": unpacked,
    "unpacked function": unpacked_function,
    "unpacked sort": unpacked_sort,
    "unpacked median": unpacked_median,
    "unpacked running": unpacked_running,
    "first": lambda x: x.max(1)[0],
    "second": lambda x: wf.max(x, 1)[1],
    "second of sort": lambda x: wf.sort(x)[1],
}


@pytest.mark.parametrize("name", TAKEN)
def test_taking_values_and_indices_apart_needs_dim(name, x):
    for _ in range(2):  # what was found out about a place in the code is kept
        with pytest.raises(ValueError, match=r"say dim= for PyTorch's pair.*or axis="):
            TAKEN[name](x)


def test_the_first_call_of_a_method_is_looked_at_too(tmp_path):
    source = "import weft as wf\nv, i = wf.tensor([[1.0, 2.0], [3.0, 0.0]]).min(0)\n"
    with pytest.raises(ValueError, match="min: unpacking into two names"):
        exec(compile(source, "program.py", "exec"), {})


def test_in_graphs_too():
    with wf.Graph(), pytest.raises(ValueError, match="say dim="):
        unpacked(wf.placeholder((2, 2), wf.float32, name="x"))


def test_what_says_axis_or_takes_no_pair_is_numpys(x):
    low, high = x.max(axis=1)
    assert (low.item(), high.item()) == (5, 7)
    first = wf.sort(x, axis=1)[0]
    assert first.tolist() == [1, 2, 5, 5]
    assert x.max(1)[-1].item() == 7
    assert x.max(0)[2].item() == 2
    rows = x.max(1)
    low, high = rows
    assert high.item() == 7
    assert x.max(0)[0:2].shape == (2,)
    assert x.max(1)[x.max(1) > 5].tolist() == [7]
    best, _ = x.max(dim=1)
    assert best.tolist() == [5, 7]


def test_a_call_that_unpacks_its_arguments_is_left_alone():
    code = compile("a, b = f(*c)", "program.py", "exec")
    assert use_of_result(code, max(range(len(code.co_code)))) is None


# -- methods that NumPy and PyTorch do not share -------------------------------------------------


def test_repeat_by_axis_is_numpys(x):
    assert x.repeat(2, axis=1).tolist() == np.repeat(X, 2, 1).tolist()
    assert x.repeat(2, dim=0).tolist() == np.repeat(X, 2, 0).tolist()
    assert x.repeat(2, axis=None).tolist() == np.repeat(X, 2).tolist()
    assert wf.repeat(x, 2).tolist() == np.repeat(X, 2).tolist()
    assert x.repeat(3, 1, 2).tolist() == np.tile(X, (3, 1, 2)).tolist()


def test_median_by_axis_is_numpys(x):
    assert x.median(axis=1).tolist() == np.median(X, 1).tolist()
    assert x.median(axis=None).item() == np.median(X)
    assert wf.median(x, 1).tolist() == np.median(X, 1).tolist()


def test_equal_of_tensors_is_one_truth_value(x):
    assert x.equal(x + 0) is True
    assert x.equal(x + 1) is False
    assert x.equal(x[:1]) is False
    assert wf.equal(x, x).shape == x.shape
    assert x.eq(x).shape == x.shape
    with pytest.raises(TypeError, match="equal: expected a tensor"):
        x.equal("text")


def test_methods_that_would_read_their_operands_otherwise_are_missing(x):
    for name in ("svd", "triangular_solve"):
        assert not hasattr(x, name)


# -- linalg --------------------------------------------------------------------------------------


def test_linalg_has_the_meaning_that_numpy_and_pytorch_share(x):
    stack = wf.tensor(np.arange(24.0).reshape(2, 3, 4))
    expected = np.diagonal(stack.numpy(), 0, 1, 2)
    assert wf.linalg.diagonal(stack).tolist() == expected.tolist()
    assert wf.linalg.diagonal(stack, dim1=0, dim2=1).shape == (4, 2)
    assert wf.linalg.vander(wf.tensor([2, 3]), N=3).tolist() == [[1, 2, 4], [1, 3, 9]]
    assert wf.vander(wf.tensor([2, 3]), 3).tolist() == [[4, 2, 1], [9, 3, 1]]
    assert wf.linalg.norm(x, 1).item() == np.linalg.norm(X, 1)
    assert wf.norm(x, ord=1).item() == np.linalg.norm(X, 1)
    assert wf.norm(x, p=1).item() == np.abs(X).sum()
    assert wf.norm(x, 1, 1).tolist() == np.abs(X).sum(1).tolist()
    u, s, vh = wf.linalg.svd(x)
    assert (u.shape, s.shape, vh.shape) == ((2, 2), (2,), (4, 4))
    assert np.abs((x @ vh[-1]).numpy()).max() < 1e-5
