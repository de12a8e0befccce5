"""wf.Function and wf.custom_vjp."""

import gc
import subprocess
import sys
import weakref
from textwrap import dedent

import numpy as np
import pytest

import weft as wf
from weft.autodiff.check import check_grads
from weft.core.errors import ArgumentError, ArgumentTypeError, GradientError


def leaf(*values):
    return wf.tensor(np.array(values), requires_grad=True)


class Cube(wf.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class Exp(wf.Function):
    """Saves its output."""

    @staticmethod
    def forward(ctx, x):
        y = wf.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class SumAndProduct(wf.Function):
    @staticmethod
    def forward(ctx, x, y, scale=1.0):
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        return x + y, x * y * scale

    @staticmethod
    def backward(ctx, g_sum, g_product):
        x, y = ctx.saved_tensors
        return g_sum + g_product * y * ctx.scale, g_sum + g_product * x * ctx.scale


# -- gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [Cube, Exp])
def test_derivatives_of_every_mode_and_order(function):
    check_grads(function.apply, [np.array([0.5, -1.5])], order=3)


def test_several_outputs_in_every_mode():
    args = [np.array([0.5, -1.5]), np.array([2.0, 3.0])]
    check_grads(SumAndProduct.apply, args, order=2)
    check_grads(lambda x, y: SumAndProduct.apply(x, y, scale=3.0), args, order=2)


def test_unused_output_arrives_as_zeros():
    seen = []

    class Watched(SumAndProduct):
        @staticmethod
        def backward(ctx, g_sum, g_product):
            seen.append((g_sum.tolist(), g_product.tolist()))
            return SumAndProduct.backward(ctx, g_sum, g_product)

    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    Watched.apply(x, y)[1].sum().backward()
    assert seen == [([0.0, 0.0], [1.0, 1.0])]
    assert x.grad.tolist() == [3.0, 4.0]


def test_forward_is_not_recorded_and_one_node_stands_for_it():
    x = leaf(2.0)
    y = Cube.apply(x)
    assert y.grad_fn.op.name == "Cube"
    assert y.grad_fn.parents == (x._node,)


def test_without_need_nothing_is_recorded():
    assert not Cube.apply(wf.tensor(2.0)).requires_grad
    with wf.no_grad():
        assert not Cube.apply(leaf(2.0)).requires_grad


def test_needs_input_grad_and_other_arguments():
    seen = []

    class Scale(wf.Function):
        @staticmethod
        def forward(ctx, x, factor, y, *, extra=0.0):
            seen.append(ctx.needs_input_grad)
            ctx.factor = factor
            return x * factor + y + extra

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None, None

    x = leaf(1.0)
    Scale.apply(x, 3.0, wf.tensor(np.array([1.0])), extra=2.0).backward()
    assert seen == [(True, False, False)]
    assert x.grad.tolist() == [3.0]


def test_inputs_may_be_returned():
    class Identity(wf.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return 10 * g

    x = leaf(1.0)
    y = Identity.apply(x)
    assert y is not x
    (y * x).backward()
    assert x.grad.tolist() == [11.0]


def test_non_tensor_outputs_pass_through():
    class WithNote(wf.Function):
        @staticmethod
        def forward(ctx, x):
            return "note", x * 2, None

        @staticmethod
        def backward(ctx, note, g, nothing):
            assert note is None
            assert nothing is None
            return g * 2

    x = leaf(1.0)
    note, y, nothing = WithNote.apply(x)
    assert (note, nothing) == ("note", None)
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_non_differentiable_outputs():
    class Split(wf.Function):
        @staticmethod
        def forward(ctx, x):
            rest = x * 0.5
            ctx.mark_non_differentiable(rest)
            return x * 2, rest, wf.argmax(x)

        @staticmethod
        def backward(ctx, g, g_rest, g_index):
            return g * 2

    y, rest, index = Split.apply(leaf(1.0, 2.0))
    assert (y.requires_grad, rest.requires_grad, index.requires_grad) == (True, False, False)


def test_used_twice_in_one_graph():
    x = leaf(2.0)
    (Cube.apply(x) * Cube.apply(Cube.apply(x))).backward()
    assert x.grad.tolist() == [12 * 2.0**11]


def test_retain_graph_and_freed_graph():
    x = leaf(2.0)
    y = Cube.apply(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [24.0]
    with pytest.raises(GradientError, match=r"behind Cube .*freed"):
        y.backward()


# -- mistakes -------------------------------------------------------------------------------------


def returning(*grads):
    class Wrong(wf.Function):
        @staticmethod
        def forward(ctx, x, k):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return grads

    return Wrong


@pytest.mark.parametrize(
    ("grads", "message"),
    [
        ((), r"Wrong.backward must return 2 gradient\(s\).*Received: 0"),
        ((None, None, 1.0), "must return 2 .*Received: 3"),
        ((None, wf.tensor(1.0)), "argument 1, which is not a tensor"),
        ((1.0, None), "must return tensors. Received for argument 0: float"),
        ((wf.tensor(np.ones(3)), None), r"shape \(1,\) for argument 0. Received: \(3,\)"),
    ],
)
def test_wrong_gradients_are_named(grads, message):
    y = returning(*grads).apply(leaf(1.0), 5)
    with pytest.raises(GradientError, match=message):
        y.backward()


def test_surplus_nones_are_allowed():
    returning(None, None, None).apply(leaf(1.0), 5).backward()


def test_wrong_use_is_explained():
    with pytest.raises(ArgumentTypeError, match=r"call Cube.apply"):
        Cube()
    with pytest.raises(
        GradientError, match="'x' requires gradients and must be passed by position"
    ):
        Cube.apply(x=leaf(1.0))

    class Nothing(wf.Function):
        @staticmethod
        def forward(ctx, x):
            return 3

    with pytest.raises(ArgumentTypeError, match=r"must return a tensor .* Received: int"):
        Nothing.apply(leaf(1.0))

    class BadSave(wf.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3)

    with pytest.raises(ArgumentTypeError, match=r"takes tensors .* Received: int"):
        BadSave.apply(leaf(1.0))


def test_gradient_dtype_follows_the_input():
    class Wide(wf.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.to(wf.float64)

    x = wf.tensor([1.0], requires_grad=True)
    Wide.apply(x).backward()
    assert x.grad.dtype == wf.float32


def test_forward_mode_refuses_a_backward_outside_weft():
    class ByNumPy(wf.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return wf.tensor(g.numpy() * 2)

    x = np.ones(2)
    with pytest.raises(GradientError, match="must be written in Weft operations"):
        wf.jvp(ByNumPy.apply, (x,), (x,))


# -- memory ---------------------------------------------------------------------------------------


def test_saved_outputs_do_not_keep_the_graph_alive():
    x = leaf(1.0)
    y = Exp.apply(x)
    node = weakref.ref(y.grad_fn)
    gc.disable()
    try:
        del y
        assert node() is None, "a reference cycle holds the node"
    finally:
        gc.enable()


def test_saved_values_are_freed_by_backward():
    x = leaf(1.0)
    y = Exp.apply(x)
    context = weakref.ref(y.grad_fn.saved.ctx)
    y.backward()
    assert context() is None


# -- debugging ------------------------------------------------------------------------------------


def test_pdb_stops_in_backward():
    program = """
        import weft as wf

        class Double(wf.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                seen = g * 2
                breakpoint()
                return seen

        x = wf.tensor([1.5], requires_grad=True)
        Double.apply(x).backward()
        print("gradient", x.grad.item())
    """
    commands = "p seen.item()\nup\ndown\np type(ctx).__name__\ncontinue\n"
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)],
        input=commands,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "2.0" in done.stdout
    assert "'Context'" in done.stdout
    assert "gradient 2.0" in done.stdout


# -- custom_vjp -----------------------------------------------------------------------------------


def make_log1pexp():
    @wf.custom_vjp
    def log1pexp(x):
        return wf.log(1.0 + wf.exp(x))

    def fwd(x):
        y = wf.log(1.0 + wf.exp(x))
        return y, (x, "residual")

    def bwd(residuals, g):
        x, note = residuals
        assert note == "residual"
        return (g * (1.0 - 1.0 / (1.0 + wf.exp(x))),)

    log1pexp.defvjp(fwd, bwd)
    return log1pexp


def test_custom_vjp_in_every_mode():
    check_grads(make_log1pexp(), [np.array([0.5, -1.0])], order=2)


def test_custom_vjp_is_stable_where_the_plain_derivative_is_not():
    x = leaf(100.0)
    make_log1pexp()(x).backward(wf.tensor(np.ones(1)))
    assert x.grad.tolist() == [1.0]


def test_custom_vjp_with_trees_and_fixed_arguments():
    def weighted(power, params, x):
        return {"out": (params["w"] * x + params["b"]) * power}

    f = wf.custom_vjp(weighted, nondiff_argnums=(0,))

    def fwd(power, params, x):
        return weighted(power, params, x), (params["w"], x)

    def bwd(power, residuals, g):
        w, x = residuals
        g = g["out"] * power
        return {"b": g, "w": g * x}, g * w

    f.defvjp(fwd, bwd)
    args = [{"w": np.array([2.0, 3.0]), "b": np.array([0.1, 0.2])}, np.array([1.0, -1.0])]
    check_grads(lambda params, x: f(3.0, params, x), args, order=2)
    check_grads(lambda params, x: f(3.0, x=x, params=params), args, order=2)


def test_custom_vjp_none_is_zero():
    f = wf.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda x, y: (x * y, y), lambda y, g: (g * y, None))
    x, y = leaf(2.0), leaf(3.0)
    f(x, y).backward()
    assert x.grad.tolist() == [3.0]
    assert y.grad is None


def test_custom_vjp_runs_the_plain_function_where_nothing_is_differentiated():
    calls = []
    f = wf.custom_vjp(lambda x: calls.append("plain") or x * 2)
    f.defvjp(lambda x: (calls.append("fwd") or x * 2, None), lambda _, g: (g * 2,))
    f(wf.tensor(1.0))
    f(leaf(1.0))
    assert calls == ["plain", "fwd"]


def test_custom_vjp_mistakes_are_explained():
    f = wf.custom_vjp(lambda x: x * 2)
    with pytest.raises(GradientError, match="call defvjp"):
        f(leaf(1.0))
    f.defvjp(lambda x: x * 2, lambda _, g: (g,))
    with pytest.raises(GradientError, match=r"pair \(result, residuals\)"):
        f(leaf(1.0))
    f.defvjp(lambda x: (x * 2, None), lambda _, g: g)
    with pytest.raises(GradientError, match=r"tuple of 1 gradient\(s\).*Received: Tensor"):
        f(leaf(1.0)).backward()
    h = wf.custom_vjp(lambda p: p["a"] * 2)
    h.defvjp(lambda p: (p["a"] * 2, None), lambda _, g: ({"b": g},))
    with pytest.raises(GradientError, match=r"missing \['a'\], unexpected \['b'\]"):
        h({"a": leaf(1.0)}).backward()
    with pytest.raises(ArgumentTypeError, match="expects a function"):
        wf.custom_vjp(3)
    k = wf.custom_vjp(lambda x, *, scale: x * scale)
    k.defvjp(lambda x: (x, None), lambda _, g: (g,))
    with pytest.raises(ArgumentError, match="keyword-only"):
        k(leaf(1.0), scale=2.0)


def test_saved_tensors_are_where_they_were():
    """On a device that works in the memory of the host, of which the values do not tell."""

    class Power(wf.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * x
            ctx.save_for_backward(x, y, None)
            return y * x

        @staticmethod
        def backward(ctx, g):
            x, y, none = ctx.saved_tensors
            assert none is None
            assert g.device == x.device == y.device == "reference"
            return (2 * x * x + y) * g

    x = wf.tensor([1.0, 2.0], device="reference", requires_grad=True)
    Power.apply(x).sum().backward()
    assert x.grad.device == "reference"
    assert x.grad.tolist() == [3.0, 12.0]
