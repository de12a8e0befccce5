"""Tensors of the face: results, dtypes, and what they say of themselves."""

from __future__ import annotations

import pickle
from collections import deque

import numpy as np
import pytest

import weft as wf
from tests.opaque import opaque  # noqa: F401  (a fixture)
from weft import torch


def test_results_of_pytorch():
    x = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
    values, indices = x.max(1)
    assert values.tolist() == [5, 7]
    assert indices.tolist() == [1, 0]
    assert x.max().item() == 7
    assert torch.max(x, x.t()).tolist() == [[1, 7], [7, 2]]
    assert x.std().item() == pytest.approx(np.std(x.numpy(), ddof=1))
    assert x.repeat(2, 1).shape == (4, 2)
    assert x.size() == torch.Size([2, 2])
    assert x.size(0) == 2
    assert repr(x.shape) == "torch.Size([2, 2])"
    assert torch.sum(input=x, dim=1, keepdim=True).shape == (2, 1)
    assert x.sort(descending=True).indices.tolist() == [[1, 0], [0, 1]]
    assert x.median().item() == 2
    assert torch.equal(x, x.clone())
    assert x.norm(1).item() == 15


def test_out_is_written():
    out = torch.empty(2)
    assert torch.add(torch.ones(2), 1, out=out) is out
    assert out.tolist() == [2, 2]
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    torch.max(torch.eye(2), 0, out=(values, indices))
    assert indices.tolist() == [0, 1]


def test_promotion():
    single, double = torch.ones(2), torch.tensor(1.5, dtype=torch.float64)
    assert (single + double).dtype == torch.float32
    assert (torch.ones(2, dtype=torch.int64) + double).dtype == torch.float64
    assert (torch.ones(2, dtype=torch.int32) * 1.5).dtype == torch.float32
    assert torch.result_type(single, double) == torch.float32
    with pytest.raises(RuntimeError, match="result type Float can't be cast"):
        torch.ones(2, dtype=torch.int64).add_(torch.ones(2))


def test_weft_tensors_pass_through():
    x = wf.tensor([3.0, 1.0])
    assert torch.sort(x).values.tolist() == [1, 3]
    assert isinstance(x, torch.Tensor)
    assert wf.sum(torch.ones(3)).item() == 3
    layer = torch.nn.Linear(2, 1)
    assert layer(x).shape == (1,)
    assert isinstance(wf.nn.Linear(2, 1), torch.nn.Linear)


def test_devices():
    assert not torch.cuda.is_available()
    assert torch.ones(1).device == torch.device("cpu")
    assert torch.ones(1).to("cpu").to(torch.device("cpu"), torch.float64).dtype == torch.float64
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.autograd.Variable(torch.ones(1)).cuda()
    with pytest.raises(AssertionError, match="CUDA"):
        torch.ones(1, device="cuda")


def test_tensors_that_are_resized_stay_where_they_are(opaque):  # noqa: F811  (the fixture)
    x = torch.arange(6.0, device="opaque:0").resize_(2, 4)
    assert (str(x.device), x.tolist()) == ("opaque:0", [[0, 1, 2, 3], [4, 5, 0, 0]])


def test_contexts_and_defaults_of_devices():
    with torch.device("reference"):
        assert str(torch.nn.Linear(2, 2)(torch.ones(2)).device) == "reference"
        assert torch.ones(1, device="cpu").device == torch.device("cpu")
    assert torch.get_default_device() == torch.ones(1).device == torch.device("cpu")
    torch.set_default_device(torch.device("reference"))
    try:
        assert torch.get_default_device() == torch.ones(1).device == torch.device("reference")
    finally:
        torch.set_default_device(None)
    assert torch.get_default_device() == torch.ones(1).device == torch.device("cpu")


def test_repr():
    assert repr(torch.tensor([1.0, 2.5])) == "tensor([1.0000, 2.5000])"
    assert repr(torch.tensor([1.0, 2.0])) == "tensor([1., 2.])"
    assert repr(torch.ones(1, dtype=torch.int32)) == "tensor([1], dtype=torch.int32)"
    assert repr(torch.ones(1, requires_grad=True)) == "tensor([1.], requires_grad=True)"


def test_missing_names_say_what_to_use():
    with pytest.raises(AttributeError, match="sparse tensors are not served"):
        torch.sparse_coo_tensor  # noqa: B018  (the access raises)
    with pytest.raises(AttributeError, match=r"'stft': complex numbers are not served"):
        torch.stft  # noqa: B018  (likewise)
    with pytest.raises(AttributeError, match=r"PyTorch's face does not serve it; docs/faces"):
        torch.cuda.CUDAGraph  # noqa: B018  (likewise)


def test_functions_that_write():
    x = torch.tensor([-1.0, 4.0])
    assert torch.sqrt_(torch.abs_(x)) is x
    assert x.tolist() == [1, 2]


def test_backward_says_what_is_wrong():
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        (w * 2).backward()
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        torch.ones(1).backward()
    loss = (w * w).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        loss.backward()
    with pytest.raises(RuntimeError, match="Tensor that requires grad"):
        w.numpy()
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        torch.autograd.grad(w.sum(), [w, torch.ones(1, requires_grad=True)])


def test_in_place_methods():
    torch.manual_seed(0)
    x = torch.zeros(100)
    assert x.normal_() is x
    assert 0.5 < x.std().item() < 1.5
    assert x.uniform_(2, 3).min().item() >= 2
    assert torch.zeros(3).masked_fill_(torch.tensor([True, False, True]), 2.0).tolist() == [2, 0, 2]
    index = torch.tensor([[0], [1]])
    assert torch.zeros(2, 2).scatter_(1, index, 1.0).tolist() == [[1, 0], [0, 1]]
    assert torch.ones(2).relu_().clamp_(max=0.5).tolist() == [0.5, 0.5]


def test_functions_of_ones_own():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            assert x.max(0).values is not None
            return 3 * x**2 * g

    x = torch.tensor([2.0], requires_grad=True)
    Cube.apply(x).sum().backward()
    assert x.grad.item() == 12


def test_functions_of_ones_own_with_a_context_set_up_and_one_derivative():
    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(x, w):
            return x.mm(w)

        @staticmethod
        def setup_context(ctx, inputs, output):
            assert output.shape == (3, 4)
            ctx.save_for_backward(*inputs)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g.mm(w.t()), x.t().mm(g) if ctx.needs_input_grad[1] else None

    torch.manual_seed(0)
    x, w = (torch.randn(*n, dtype=torch.float64, requires_grad=True) for n in ((3, 2), (2, 4)))
    assert torch.autograd.gradcheck(Linear.apply, (x, w))
    y = Linear.apply(x, w).square().sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    torch.testing.assert_close(g, 2 * x @ w @ w.t())
    with pytest.raises(RuntimeError, match="trying to differentiate twice"):
        g.sum().backward()


def test_second_derivatives_are_checked():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0].detach() * g

    x = torch.tensor([1.5], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Square.apply, x)
    assert not torch.autograd.gradgradcheck(Square.apply, x, raise_exception=False)
    assert torch.autograd.gradgradcheck(lambda t: t**3, x)


def test_products_with_derivatives():
    x, v = torch.tensor([1.0, 2.0]), torch.tensor([1.0, -1.0])
    products = torch.autograd.functional
    assert products.jvp(lambda t: t**2, x, v)[1].tolist() == [2, -4]
    value, found = products.hvp(lambda t: (t**3).sum(), x, v)
    assert (value.item(), found.tolist()) == (9, [6, -12])
    first, second = products.vhp(lambda a, b: (a * b**2).sum(), (x, v), (v, x))[1]
    assert (first.tolist(), second.tolist()) == ([2, -4], [4, 10])


def test_states_of_modules_stacked():
    models = [torch.nn.Linear(2, 3) for _ in range(4)]
    parameters, buffers = torch.func.stack_module_state(models)
    assert not buffers
    assert parameters["weight"].shape == (4, 3, 2)
    assert parameters["weight"].is_leaf
    assert parameters["weight"].requires_grad
    x = torch.ones(5, 2)
    call = torch.vmap(lambda p: torch.func.functional_call(models[0], p, (x,)))
    torch.testing.assert_close(call(parameters)[2], models[2](x))
    models[0].eval()
    with pytest.raises(RuntimeError, match="the same training/eval mode"):
        torch.func.stack_module_state(models)


def test_transforms():
    x = torch.tensor([1.0, 2.0])
    assert torch.func.grad(lambda t: (t * t).sum())(x).tolist() == [2, 4]
    assert torch.vmap(lambda t: t.max(0).values)(torch.eye(2)).tolist() == [1, 1]
    assert torch.func.jacrev(lambda t: t * t)(x).tolist() == [[2, 0], [0, 4]]


SHOWN = {  # as PyTorch shows them
    "tensor(1.5000)": lambda: torch.tensor(1.5),
    "tensor([ True, False])": lambda: torch.tensor([True, False]),
    "tensor([nan, 1.])": lambda: torch.tensor([float("nan"), 1.0]),
    "tensor([    inf, -1.5000,  0.0000])": lambda: torch.tensor([float("inf"), -1.5, 0.0]),
    "tensor([1.0000e-05, 1.0000e+00])": lambda: torch.tensor([1e-5, 1.0]),
    "tensor([], size=(0, 3))": lambda: torch.zeros(0, 3),
    "tensor([], dtype=torch.int64)": lambda: torch.zeros(0, dtype=torch.int64),
    "tensor([0., 0.], dtype=torch.float64)": lambda: torch.zeros(2, dtype=torch.float64),
    "tensor([[   0,    1,    2,  ...,  997,  998,  999],\n"
    "        [1000, 1001, 1002,  ..., 1997, 1998, 1999]])": lambda: torch.arange(2000).view(2, -1),
    "tensor([[[0., 1.],\n         [2., 3.]],\n\n        [[4., 5.],\n         [6., 7.]]])": lambda: (
        torch.arange(8.0).view(2, 2, 2)
    ),
    "tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,\n"
    "        1.2857], requires_grad=True)": lambda: (
        torch.arange(10.0, requires_grad=False) / 7
    ).requires_grad_(True),
    "iinfo(min=-128, max=127, dtype=int8)": lambda: torch.iinfo(torch.int8),
}


@pytest.mark.parametrize("text", SHOWN)
def test_things_are_shown_as_pytorch_shows_them(text):
    assert repr(SHOWN[text]()) == text


def test_dtypes_are_pytorchs_and_numpys():
    x = torch.ones(2)
    assert repr(x.dtype) == str(torch.float32) == "torch.float32"
    assert x.dtype is torch.float is torch.float32
    assert isinstance(x.dtype, torch.dtype)
    assert x.dtype == np.dtype("float32") == x.dtype
    assert {np.dtype("float32"): 1}[torch.float32] == {torch.float32: 1}[np.dtype("float32")]
    assert torch.float32 != torch.float64
    assert x.dtype != "something else"
    assert wf.zeros(2, dtype=torch.float16).dtype == np.float16
    assert np.zeros(2, torch.int32).dtype == np.int32
    assert (x.dtype.itemsize, x.dtype.is_floating_point, torch.uint8.is_signed) == (4, True, False)
    assert pickle.loads(pickle.dumps(torch.int8)) is torch.int8
    assert repr(torch.bfloat16) == "torch.bfloat16"
    assert torch.promote_types(torch.int32, torch.float32) is torch.float32


def test_dtypes_of_the_face_reach_machine_code_as_numpys():
    @torch.compile
    def shifted(x):
        y = x[0]
        y += 1
        return x * 2 if x.dtype == torch.float32 else x

    assert torch.equal(shifted(torch.ones(2, 3))[0], torch.full((3,), 4.0))


@pytest.mark.parametrize("kind", [deque, list, tuple])
def test_data_may_be_any_sequence(kind):
    assert torch.equal(torch.tensor(kind([1.0, 2.0])), torch.tensor([1.0, 2.0]))
    assert torch.equal(torch.Tensor(kind([1, 2])), torch.tensor([1.0, 2.0]))
    assert torch.tensor(range(3)).tolist() == [0, 1, 2]


def test_text_of_a_single_element_is_a_number():
    assert f"{torch.tensor(3)} {torch.tensor(0.5, requires_grad=True)}" == "3 0.5"
    assert f"{torch.tensor(3.14159):.2f}" == "3.14"
    assert f"{torch.tensor([1.5])}" == "tensor([1.5000])"


def test_devices_of_tensors_are_devices():
    where = torch.ones(1).device
    assert isinstance(where, torch.device)
    assert (where.type, where.index) == ("cpu", None)
    assert where == torch.device("cpu")
