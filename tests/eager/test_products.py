"""Large matrix products in eager mode run on machine code, however their operands lie."""

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from tests.threads import num_threads
from weft.backends.cpu.runtime.arena import ALIGNMENT
from weft.backends.cpu.runtime.buffers import POOLED_FROM
from weft.backends.cpu.runtime.memory import ProgramMemory
from weft.core.errors import ShapeError
from weft.core.op import find_op
from weft.eager import array_program
from weft.eager.array_program import SMALL_ARENA
from weft.eager.products import LARGE_PRODUCT, make_product_chooser
from weft.eager.uses import operations

M, N, K = 520, 514, 509
assert M * N * K >= LARGE_PRODUCT


@pytest.fixture(autouse=True)
def _switched_on(monkeypatch):
    monkeypatch.setattr(wf.config, "eager_kernels", True)


def normal(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def runs_on_code(*types):
    """Tell whether machine code was made for operands of some types, and has taken over."""
    met = [(key, uses[key]) for uses, key in operations.known if key in uses]
    return any(key == (types, ()) and use.run is not None for key, use in met)


def assert_product(found, expected, depth=K):
    scale = np.sqrt(depth) * (1e-5 if found.dtype == np.float32 else 4e-14)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=scale)


SHAPES = {
    "square": ((M, K), (K, N)),
    "batch": ((5, 230, 300), (5, 300, 400)),
    "rows of a batch": ((3, 180, K), (K, N)),
    "shared left": ((300, 400), (4, 400, 300)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("turned", ["", "x", "y", "xy"])
@pytest.mark.parametrize("name", SHAPES)
def test_products_of_operands_that_lie_in_any_order(name, turned, dtype):
    operands, types = [], []
    for seed, (which, shape) in enumerate(zip("xy", SHAPES[name], strict=True)):
        is_turned = which in turned
        *batch, rows, columns = shape
        stored = (*batch, columns, rows) if is_turned else shape
        tensor = wf.tensor(normal(seed, *stored, dtype=dtype))
        operands.append(tensor.swapaxes(-1, -2) if is_turned else tensor)
        types.append((stored, np.dtype(dtype), is_turned))
    found = wf.matmul(*operands).numpy()
    x, y = (operand.numpy() for operand in operands)
    assert_product(found, np.matmul(x, y), x.shape[-1])
    assert runs_on_code(*types)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("lead", [(M,), (4, 130)])
def test_dense_layers_and_their_gradients(lead, bias, monkeypatch):
    def run():
        x = wf.tensor(normal(0, *lead, K), requires_grad=True)
        weight = wf.tensor(normal(1, N, K), requires_grad=True)
        b = wf.tensor(normal(2, N), requires_grad=True) if bias else None
        y = F.linear(x, weight, b)
        y.backward(wf.tensor(normal(3, *lead, N)))
        leaves = [x, weight, *([b] if bias else [])]
        return [y.numpy(), *(leaf.grad.numpy() for leaf in leaves)]

    found = run()
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    for a, b in zip(found, run(), strict=True):
        assert_product(a, b, 4 * K)


def test_gradients_of_gradients(monkeypatch):
    def run():
        x = wf.tensor(normal(0, M, K), requires_grad=True)
        y = wf.tensor(normal(1, K, N), requires_grad=True)
        (g,) = wf.grad(lambda x: (wf.matmul(x, y) ** 2).mean(), argnums=(0,))(x)
        (g * g).sum().backward()
        return y.grad.numpy()

    found = run()
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    np.testing.assert_allclose(found, run(), rtol=0, atol=1e-4 * np.abs(found).max())


def test_threads_and_earlier_products_do_not_change_a_bit():
    x, y = wf.tensor(normal(0, M, K)), wf.tensor(normal(1, K, N))
    found = []
    for threads in (1, 2, 2):
        with num_threads(threads):
            found.append(wf.matmul(x, y).numpy())
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[1], found[2])


def test_special_values_spread_as_numpy_has_them():
    x, y = normal(0, M, K), normal(1, K, N)
    x[3, 4], y[5, 6], y[7, 8] = np.nan, np.inf, -np.inf
    found = wf.matmul(wf.tensor(x), wf.tensor(y)).numpy()
    with np.errstate(invalid="ignore"):
        expected = x @ y
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))


def test_operands_with_gaps_and_half_precision_go_to_the_reference():
    x, y = normal(0, M, 2 * K), normal(1, K, N)
    apart = wf.tensor(x)[:, ::2]
    assert_product(wf.matmul(apart, wf.tensor(y)).numpy(), apart.numpy() @ y)
    half = [wf.tensor(a.astype(np.float16)) for a in (x[:, :K], y)]
    wide = [a.numpy().astype(np.float32) for a in half]
    expected = np.matmul(*wide).astype(np.float16)
    np.testing.assert_allclose(wf.matmul(*half).numpy(), expected, rtol=2e-3, atol=1e-2)


def test_code_computes_in_aligned_memory(monkeypatch):
    lend, lent = ProgramMemory.lend_arena, []

    def watch(self, arena):
        lent.append((arena.nbytes, arena.__array_interface__["data"][0] % ALIGNMENT))
        assert lent[-1][1] == 0  # before code stores there by whole vectors
        lend(self, arena)

    monkeypatch.setattr(ProgramMemory, "lend_arena", watch)
    # How large packed blocks are depends on the machine; some lie below what the pool gives out.
    for rows in (36, 50, 70, 100, 190):
        monkeypatch.setattr(array_program, "_workspace", array_program.Workspace())
        x, y = wf.tensor(normal(0, 570 // rows, K, rows)), wf.tensor(normal(1, K, N))
        wf.matmul(x.swapaxes(1, 2), y)
    assert any(SMALL_ARENA < nbytes < POOLED_FROM for nbytes, _ in lent)


def test_wrong_shapes_are_reported_as_always():
    x = wf.tensor(normal(0, 700, 700))
    with pytest.raises(ShapeError, match=r"got \(700, 700\) @ \(701, 700\)"):
        wf.matmul(x, wf.tensor(normal(1, 701, 700)))
    with pytest.raises(ShapeError, match="bias must have shape"):
        F.linear(x, x, wf.tensor(normal(2, 3)))


PRODUCTS = ("matmul", "linear", "conv", "conv_input_grad", "conv_weight_grad")


@pytest.mark.parametrize("name", PRODUCTS)
def test_small_products_and_numbers_go_straight_to_the_kernel(name):
    calls = []
    choose = make_product_chooser(find_op(name), lambda *args: calls.append(args))
    settings = ((1,), ((0, 0),), (1,), 1)
    rest = {
        "matmul": (),
        "linear": (None,),
        "conv": settings,
        "conv_input_grad": ((3,), *settings),
        "conv_weight_grad": ((3,), *settings),
    }[name]
    small = np.ones((3, 3))
    for args in ((small, small), (small, 2.0), (np.ones(1 << 14), np.ones(1 << 14))):
        choose(*args, *rest)
    assert len(calls) == 3


@pytest.mark.parametrize(("m", "k", "n"), [(64, 4096, 64), (2047, 16, 4095)])
def test_neither_few_multiplications_nor_small_operands_are_large_products(m, k, n):
    calls = []
    choose = make_product_chooser(find_op("matmul"), lambda *args: calls.append(args))
    choose(np.ones((m, k), np.float32), np.ones((k, n), np.float32))
    assert len(calls) == 1
