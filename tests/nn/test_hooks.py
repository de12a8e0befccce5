"""Hooks around forward and backward."""

import numpy as np
import pytest

import weft as wf
from weft import nn


def test_forward_hooks_see_and_replace():
    layer, seen = nn.Linear(2, 2), []
    before = layer.register_forward_pre_hook(lambda m, args: (args[0] * 0,))
    after = layer.register_forward_hook(
        lambda m, args, out: seen.append(args[0].tolist()) or out + 1
    )
    y = layer(wf.ones(2))
    assert seen == [[0.0, 0.0]]
    np.testing.assert_allclose(y.numpy(), layer.bias.numpy() + 1)
    before.remove()
    after.remove()
    after.remove()
    assert not layer._hooks


def test_hooks_with_kwargs_and_prepend():
    class Scale(nn.Module):
        def forward(self, x, factor=1.0):
            return x * factor

    layer, order = Scale(), []
    layer.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"factor": 3.0}), with_kwargs=True
    )
    layer.register_forward_hook(lambda m, a, out: order.append("second"))
    layer.register_forward_hook(
        lambda m, a, k, out: order.append(k), with_kwargs=True, prepend=True
    )
    assert layer(wf.ones(1), factor=2.0).tolist() == [3.0]
    assert order == [{"factor": 3.0}, "second"]
    layer.register_forward_pre_hook(lambda m, args, kwargs: 5, with_kwargs=True)
    with pytest.raises(TypeError, match=r"a pair \(args, kwargs\)"):
        layer(wf.ones(1))


def test_hook_remover_is_a_context():
    layer, calls = nn.ReLU(), []
    with layer.register_forward_hook(lambda *_: calls.append(1)):
        layer(wf.ones(1))
    layer(wf.ones(1))
    assert calls == [1]
    with pytest.raises(TypeError, match=r"callable\. Received: 3"):
        layer.register_forward_hook(3)


def test_full_backward_hook_sees_all_gradients():
    layer, seen = nn.Bilinear(2, 3, 1), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    x1, x2 = wf.randn(2, requires_grad=True), wf.randn(3, requires_grad=True)
    (layer(x1, x2) * 2.0).sum().backward()
    ((grad_input, grad_output),) = seen
    assert grad_output[0].tolist() == [2.0]
    np.testing.assert_allclose(grad_input[0].numpy(), x1.grad.numpy())
    np.testing.assert_allclose(grad_input[1].numpy(), x2.grad.numpy())


def test_backward_hooks_replace_gradients():
    layer = nn.Linear(2, 2, bias=False)
    layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 10.0,))
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0] * 0.0 + 7.0,))
    x = wf.ones(2, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]
    np.testing.assert_array_equal(layer.weight.grad.numpy(), 10.0)


def test_backward_hook_without_differentiable_input():
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].tolist())))
    layer(wf.ones(2)).backward()
    assert seen == [((None,), [1.0])]
    with wf.no_grad():
        layer(wf.ones(2))
    assert len(seen) == 1


def test_backward_hook_of_several_outputs_and_other_arguments():
    class Split(nn.Module):
        def forward(self, x, times):
            return {"a": x * times, "b": (x * 2, "text")}

    layer, seen = Split(), []
    handle = layer.register_full_backward_hook(lambda m, gi, go: seen.append((len(gi), len(go))))
    x = wf.ones(2, requires_grad=True)
    out = layer(x, 3)
    assert out["b"][1] == "text"
    (out["a"] + out["b"][0]).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    assert seen == [(2, 2)]
    handle.remove()
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0],))
    with pytest.raises(ValueError, match=r"None or 2 gradient\(s\). Received: 1"):
        layer(x, 3)["a"].sum().backward()
