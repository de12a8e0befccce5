"""source and symbolic: programs that stand alone and compute the same numbers."""

import subprocess
import sys

import numpy as np
import pytest

import weft as wf
from tests.ops import conformance as c
from weft.autodiff.text.kernels import KernelText
from weft.core.errors import ArgumentError, ArgumentTypeError
from weft.graph.text.expressions import Names

F = wf.nn.functional


def run(text, name):
    scope = {}
    exec(text, scope)
    return scope[name]


# -- symbolic -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "point", "text"),
    [
        (lambda x: wf.sin(x) * x, [1.3], "return np.sin(x) + x * np.cos(x)"),
        (lambda x: x**2, [1.3], "return 2.0 * x"),
        (lambda x, y: x * y**2, [1.3, 0.7], "return y ** 2"),
        (lambda x: x - (1 - x), [1.3], "return"),
        (lambda x: wf.sin(x**2) * wf.exp(-x), [1.3], "np.cos"),
        (lambda x: wf.log(1 + wf.exp(x)), [1.3], "1.0 /"),
        (lambda x: x**3 / (1 + x), [1.3], "return"),
        (lambda x: wf.relu(x) * wf.sigmoid(x), [1.3], "def sigmoid_kernel"),
        (lambda x: wf.atan2(x, 2.0) ** x, [1.3], "return"),
    ],
)
def test_symbolic(fn, point, text):
    made = wf.autodiff.symbolic(fn)
    assert text in made
    expected = wf.grad(fn)(*(wf.tensor(np.float64(v)) for v in point)).item()
    assert run(made, "derivative")(*point) == pytest.approx(expected, rel=1e-12)


def test_symbolic_by_several_arguments():
    made = wf.autodiff.symbolic(lambda x, y: x * y**2, argnums=(0, 1))
    assert run(made, "derivative")(3.0, 2.0) == (4.0, 12.0)
    assert run(wf.autodiff.symbolic(lambda x: x * x, argnums=(0,)), "derivative")(3.0) == (6.0,)
    made = wf.autodiff.symbolic(lambda x, y: wf.sin(x * y), argnums=[0, 1])
    assert run(made, "derivative")(0.5, 2.0) == pytest.approx((2 * np.cos(1), 0.5 * np.cos(1)))


def test_symbolic_by_another_argument():
    made = wf.autodiff.symbolic(lambda x, y: x * y**2, argnums=1)
    assert run(made, "derivative")(2.0, 3.0) == 12.0


# -- source ---------------------------------------------------------------------------------------


def network(params, x):
    h = F.layer_norm(wf.tanh(x @ params["w"] + params["b"]), (3,))
    h = F.gelu(h) + wf.cumsum(h, axis=1)
    return wf.logsumexp(h, axis=1).mean() + wf.softmax(h, axis=1)[0, 1] + wf.prod(h[:1])


def sample(dtype=np.float64):
    rng = np.random.default_rng(0)
    params = {"w": rng.normal(size=(2, 3)).astype(dtype), "b": rng.normal(size=3).astype(dtype)}
    return params, rng.normal(size=(5, 2)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_source_of_a_network(dtype):
    params, x = sample(dtype)
    tensors = {name: wf.tensor(v) for name, v in params.items()}
    text = wf.autodiff.source(network, tensors, wf.tensor(x))
    value, (dw, db, dx) = run(text, "network")(params["w"], params["b"], x)
    expected, (grads, expected_dx) = wf.value_and_grad(network, (0, 1))(tensors, wf.tensor(x))
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype is np.float32 else {"rtol": 1e-10}
    np.testing.assert_allclose(value, expected.item(), **tolerance)
    np.testing.assert_allclose(dw, grads["w"].numpy(), **tolerance)
    np.testing.assert_allclose(db, grads["b"].numpy(), **tolerance)
    np.testing.assert_allclose(dx, expected_dx.numpy(), **tolerance)
    assert value.dtype == dtype


def test_source_needs_numpy_alone(tmp_path):
    params, x = sample()
    text = wf.autodiff.source(network, {k: wf.tensor(v) for k, v in params.items()}, wf.tensor(x))
    assert "weft" not in text
    path = tmp_path / "program.py"
    path.write_text(
        text + "value, _ = network(np.ones((2, 3)), np.ones(3), np.ones((5, 2)))\nprint(value)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", str(path)], capture_output=True, text=True, check=True
    )
    expected = network({"w": wf.ones((2, 3)), "b": wf.ones(3)}, wf.ones((5, 2))).item()
    assert float(done.stdout) == pytest.approx(expected, rel=1e-4)


def test_tensors_from_outside_are_parameters():
    w = wf.tensor(np.array([1.0, 2.0]), requires_grad=True)
    text = wf.autodiff.source(lambda x: (x * w).sum(), wf.tensor(np.ones(2)))
    value, (dx,) = run(text, "program")(np.array([3.0, 4.0]), w.numpy())
    assert (value, dx.tolist()) == (11.0, [1.0, 2.0])


def test_results_that_are_no_number_take_their_gradient():
    text = wf.autodiff.source(lambda x: (x * x, x.sum(), x > 0), wf.tensor(np.ones(2)))
    found = run(text, "program")(np.array([3.0, 4.0]), np.array([1.0, 10.0]))
    assert found[0].tolist() == [9.0, 16.0]
    assert found[-1][0].tolist() == [7.0, 81.0]


def test_own_rules_and_checkpoints():
    @wf.custom_vjp
    def clipped(x):
        return x * 1.0

    clipped.defvjp(lambda x: (x * 1.0, None), lambda _, g: (wf.clip(g, -1, 1),))
    fn = wf.checkpoint(lambda x: (3 * clipped(wf.sin(x))).sum())
    x = np.array([0.3, 1.0])
    _, (dx,) = run(wf.autodiff.source(fn, wf.tensor(x)), "program")(x)
    np.testing.assert_allclose(dx, np.cos(x))


def test_source_of_loops_and_branches():
    def looped(x):
        x = wf.scan(lambda c, row: (wf.sin(c) * row, c), x[0], x, reverse=True)[1]
        x = wf.while_loop(lambda s: s.sum() < 30, lambda s: s * s + 1, x)
        return wf.cond(x.sum() > 100, lambda: x.sum() + 1, lambda: (x * x).sum() - 1)

    x = wf.tensor(np.random.default_rng(0).normal(size=(3, 2)))
    text = wf.autodiff.source(looped, x)
    assert all(
        word in text for word in ("for row in x[::-1]:", "while np.sum(", "stack.pop()", "if ")
    )
    value, (dx,) = run(text, "looped")(x.numpy())
    assert value == pytest.approx(looped(x).item())
    np.testing.assert_allclose(dx, wf.grad(looped)(x).numpy(), rtol=1e-10)


# -- kernels --------------------------------------------------------------------------------------

UNWRITABLE = {
    # Routines of LAPACK, and loops over rows.
    *(
        "cholesky",
        "cholesky_info",
        "eigh",
        "eigvalsh",
        "lstsq_solution",
        "lu_factor",
        "matrix_rank",
    ),
    *("getitem_arrays", "pinv", "setitem_arrays", "size_value", "triangular_solve"),
    # Series and recurrences that run until all elements have converged.
    *("airy_ai", "airy_ai_slope", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"),
    *("i0", "i0e", "i1", "i1e", "modified_bessel_k0", "modified_bessel_k1"),
    *("scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "orthogonal_polynomial"),
    *("gamma_draw_slope", "igamma", "igamma_slope", "igammac", "von_mises_draw"),
    "exchange",  # other processes are needed
}


def test_kernels_of_the_registry_can_be_written():
    refused, met = set(), set()
    for case in c.cases():
        op = case.op
        if op is None or op.name in met:
            continue
        met.add(op.name)
        recorder, _ = c.record_call(op, c.Arguments.of(case.drawn()).map(c.to_tensor))
        dtypes = [None if x is None else x.dtype for x in recorder.inputs]
        kernels = KernelText(Names({"np"}))
        try:
            name = kernels.call(op, dtypes, recorder.attrs)
        except ArgumentError:
            refused.add(op.name)
            continue
        scope = {"np": np}
        exec("\n\n".join([*sorted(kernels.imports), *kernels.parts]), scope)
        assert callable(eval(name, scope))
    assert {name for name in refused if not name.startswith("random_")} <= UNWRITABLE


def test_mistakes_are_explained():
    with pytest.raises(ArgumentTypeError, match=r"takes \(x\); give an example.*missing.*'x'"):
        wf.autodiff.source(lambda x: x * x)
    with pytest.raises(ArgumentTypeError, match="takes a function"):
        wf.autodiff.source(3)

    with pytest.raises(ArgumentError, match=r"random_dropout cannot.*it draws random numbers"):
        wf.autodiff.source(lambda x: F.dropout(x).sum(), wf.tensor([1.0]))
