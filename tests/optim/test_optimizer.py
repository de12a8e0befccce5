"""The optimizer around a rule: groups, hooks, state, errors."""

import numpy as np
import pytest

import weft as wf
from tests.optim.parameters import leaf, with_grad
from weft import optim
from weft.optim import eager_step

# -- stepping --------------------------------------------------------------------------------------


def test_the_usual_loop_converges():
    w = leaf(3.0, -2.0)
    optimizer = optim.Adam([w], lr=0.1)
    for _ in range(300):
        optimizer.zero_grad()
        ((w - wf.tensor([1.0, 2.0])) ** 2).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(w.detach().numpy(), [1.0, 2.0], atol=1e-2)


def test_minimize_is_zero_grad_backward_step():
    w = with_grad([1.0], [100.0])
    optim.SGD([w], lr=0.1).minimize((w * w).sum())
    np.testing.assert_allclose(w.detach().numpy(), [0.8], rtol=1e-6)


def test_closure_is_called_with_gradients_enabled():
    w = leaf(1.0)
    optimizer = optim.SGD([w], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with wf.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 1.0
    np.testing.assert_allclose(w.detach().numpy(), [0.8], rtol=1e-6)


def test_a_parameter_without_gradient_is_left_alone():
    w, v, frozen = with_grad([1.0], [1.0]), leaf(2.0), wf.tensor([3.0])
    optimizer = optim.Adam([w, v, frozen])
    optimizer.step()
    assert v.detach().tolist() == [2.0]
    assert list(optimizer.state) == [w]


def test_steps_count_per_parameter():
    w, v = with_grad([1.0], [1.0]), leaf(1.0)
    optimizer = optim.Adam([w, v], lr=0.1)
    optimizer.step()
    v.grad = wf.tensor([1.0])
    optimizer.step()
    assert (optimizer.state[w]["step"], optimizer.state[v]["step"]) == (2, 1)
    np.testing.assert_allclose(v.detach().numpy(), [0.9], rtol=1e-6)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad(set_to_none):
    w = with_grad([1.0], [np.inf])
    optim.SGD([w]).zero_grad(set_to_none)
    assert w.grad is None if set_to_none else w.grad.tolist() == [0.0]


def test_results_computed_before_a_step_keep_their_value(monkeypatch):
    monkeypatch.setattr(eager_step, "LARGE", 2)
    w = leaf(*range(6))
    optimizer = optim.SGD([w], lr=1.0)
    old, view = w.detach(), w.numpy()
    w.grad = wf.tensor([1.0] * 6)
    optimizer.step()
    assert old.tolist() == view.tolist() == [0, 1, 2, 3, 4, 5]
    del old, view
    loss = (w * w).sum()
    optimizer.step()
    loss.backward()  # of the values at the time of the product
    assert w.grad.tolist() == [1 + 2 * (i - 1) for i in range(6)]


def test_a_large_parameter_is_updated_in_its_own_buffer(monkeypatch):
    monkeypatch.setattr(eager_step, "LARGE", 2)
    w = leaf(*range(6))
    w.grad = wf.tensor([1.0] * 6)
    optimizer = optim.SGD([w], lr=1.0)
    optimizer.step()
    address = w._value.__array_interface__["data"][0]
    optimizer.step()
    assert w._value.__array_interface__["data"][0] == address
    assert w.detach().tolist() == [-2, -1, 0, 1, 2, 3]


def test_nothing_is_recorded():
    w = with_grad([1.0], [1.0])
    optim.Adam([w]).step()
    assert w.is_leaf
    assert w.requires_grad


# -- groups ----------------------------------------------------------------------------------------


def test_groups_have_their_own_hyperparameters():
    w, v = with_grad([1.0], [1.0]), with_grad([1.0], [1.0])
    groups = [{"params": [w]}, {"params": v, "lr": 0.5, "name": "head"}]
    optimizer = optim.SGD(groups, lr=0.1)
    optimizer.step()
    np.testing.assert_allclose([w.item(), v.item()], [0.9, 0.5])
    optimizer.param_groups[0]["lr"] = 1.0
    optimizer.step()
    np.testing.assert_allclose([w.item(), v.item()], [-0.1, 0.0], atol=1e-7)


def test_multipliers_scale_rate_and_decay():
    w, v = with_grad([1.0], [0.0]), with_grad([1.0], [1.0])
    groups = [{"params": [w], "decay_mult": 2.0}, {"params": [v], "lr_mult": 3.0, "decay_mult": 0}]
    optimizer = optim.SGD(groups, lr=0.1, weight_decay=0.5)
    optimizer.step()
    np.testing.assert_allclose([w.item(), v.item()], [1 - 0.1 * 1.0, 1 - 0.3])
    assert optimizer.param_groups[1]["lr"] == 0.1


def test_named_parameters():
    w, v = leaf(1.0), leaf(2.0)
    optimizer = optim.SGD([("w", w), ("v", v)])
    assert optimizer.param_groups[0]["param_names"] == ["w", "v"]
    assert list(optimizer.parameters()) == [w, v]


def test_match_groups():
    named = [("conv.weight", leaf(1.0)), ("conv.bias", leaf(1.0)), ("fc.bias", leaf(1.0))]
    rules = {"fc.*": {"lr_mult": 10.0}, "*.bias": {"decay_mult": 0.0}}
    optimizer = optim.SGD(optim.match_groups(named, rules), lr=0.1)
    found = [(g["param_names"], g["lr_mult"], g["decay_mult"]) for g in optimizer.param_groups]
    assert found == [
        (["conv.weight"], 1.0, 1.0),
        (["fc.bias"], 10.0, 1.0),
        (["conv.bias"], 1.0, 0.0),
    ]
    with pytest.raises(ValueError, match="'fd"):
        optim.match_groups(named, {"fd.*": {}})


def test_a_group_can_be_added_later():
    w, v = with_grad([1.0], [1.0]), with_grad([1.0], [1.0])
    optimizer = optim.SGD([w], lr=0.1)
    optimizer.add_param_group({"params": [v], "lr": 0.2})
    optimizer.step()
    np.testing.assert_allclose([w.item(), v.item()], [0.9, 0.8])


def test_an_option_can_be_switched_on_later():
    w = with_grad([1.0], [1.0])
    optimizer = optim.Adam([w])
    optimizer.step()
    optimizer.param_groups[0]["amsgrad"] = True
    optimizer.step()
    assert "max_exp_avg_sq" in optimizer.state[w]


class Net(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = wf.nn.Parameter(wf.tensor([1.0]))


BAD_PARAMS = [
    (lambda: leaf(1.0), TypeError, r"one tensor; write \[tensor\]"),
    (list, ValueError, "at least one parameter"),
    (Net, TypeError, "model.parameters"),
    (lambda: 3, TypeError, "Received: int"),
    (lambda: [1.0], TypeError, "number 0 is no tensor. Received: float"),
    (lambda: [("a", leaf(1.0)), leaf(1.0)], TypeError, "name all parameters"),
    (lambda: [leaf(1.0) * 2], ValueError, "result of an operation"),
    (lambda: [leaf(1.0)] * 1 + [{"params": []}], TypeError, "no tensor. Received: dict"),
    (lambda: [{"lr": 0.1}], ValueError, "needs 'params'"),
    (lambda: [{"params": [leaf(1.0)], "learning_rate": 1.0}], ValueError, "'learning_rate'"),
    (lambda: [{"params": [leaf(1.0)], "momentun": 1.0}], ValueError, "did you mean 'momentum'"),
]


@pytest.mark.parametrize(("make", "error", "message"), BAD_PARAMS)
def test_bad_parameters(make, error, message):
    with pytest.raises(error, match=message):
        optim.SGD(make(), lr=0.1)


def test_a_parameter_given_twice():
    w = leaf(1.0)
    with pytest.raises(ValueError, match="given twice"):
        optim.SGD([w, w])
    with pytest.raises(ValueError, match="given twice"):
        optim.SGD([{"params": [w]}, {"params": [w]}])


def test_a_parameter_whose_shape_comes_later():
    layer = wf.nn.LazyLinear(2)
    optimizer = optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    layer(wf.ones((1, 3)))
    before = np.array(layer.weight.detach())
    optimizer.minimize(layer(wf.ones((1, 3))).sum())
    np.testing.assert_allclose(layer.weight.detach().numpy(), before - 0.1, rtol=1e-5)


BAD_OPTIONS = [
    ("SGD", {"lr": -0.1}, "lr must be finite and not negative. Received: -0.1"),
    ("SGD", {"lr": np.nan}, "lr must be finite"),
    ("SGD", {"lr": np.inf}, "lr must be finite"),
    ("SGD", {"lr": "fast"}, "lr must be a number. Received: 'fast'"),
    ("SGD", {"lr": None}, "lr must be a number"),
    ("SGD", {"lr": True}, "lr must be a number"),
    ("SGD", {"momentum": -1.0}, "momentum"),
    ("SGD", {"weight_decay": -1.0}, "weight_decay"),
    ("SGD", {"nesterov": True}, "momentum > 0"),
    ("SGD", {"nesterov": True, "momentum": 0.9, "dampening": 0.1}, "dampening = 0"),
    ("SGD", {"nesterov": 1}, "True or False"),
    ("Adam", {"betas": (0.9, 1.0)}, "betas must be at least 0 and less than 1"),
    ("Adam", {"betas": 0.9}, "tuple of numbers"),
    ("Adam", {"betas": "ab"}, "tuple of numbers"),
    ("Adam", {"eps": -1e-8}, "eps"),
    ("Adadelta", {"rho": 1.5}, "between 0 and 1"),
    ("RMSprop", {"alpha": -0.5}, "between 0 and 1"),
    ("Adam", {"eps": (1e-8, 1e-3)}, "eps must be a number"),
    ("Rprop", {"etas": (1.5, 1.2)}, "below 1 and one above"),
    ("Rprop", {"step_sizes": (1.0,)}, "step_sizes must be 2 numbers"),
    ("Adafactor", {"eps": 1e-3}, "eps must be a pair"),
    ("Adafactor", {"beta2_decay": 0.1}, "beta2_decay must be <= 0"),
    ("Adafactor", {"d": 0.5}, "d must be >= 1"),
    ("Muon", {"ns_steps": 100}, "ns_steps must be less than 100"),
    ("Muon", {"adjust_lr_fn": "none"}, "'match_rms_adamw' or None. Received: 'none'"),
    ("Muon", {"ns_coefficients": (1.0, 2.0)}, "ns_coefficients must be 3 numbers"),
    ("LBFGS", {"line_search_fn": "armijo"}, "'strong_wolfe'. Received: 'armijo'"),
    ("LBFGS", {"max_iter": 0}, "max_iter must be a positive integer"),
]


@pytest.mark.parametrize(("name", "options", "message"), BAD_OPTIONS)
def test_bad_options(name, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(optim, name)([leaf(1.0)], **options)


def test_betas_of_another_length():
    with pytest.raises(ValueError, match="betas must be 2 numbers"):
        optim.Adam([{"params": [leaf(1.0)], "betas": (0.9, 0.9, 0.9)}])


def test_a_loss_is_no_closure():
    w = leaf(1.0)
    with pytest.raises(TypeError, match=r"step\(loss=...\)"):
        optim.SGD([w]).step((w * w).sum())


# -- hooks -----------------------------------------------------------------------------------------


class Scaling:
    def __init__(self, events, verdict=True):
        self.events, self.verdict = events, verdict

    def scale(self, loss):
        return loss * 2.0

    def accept(self, optimizer):
        self.events.append(("check", optimizer.t))
        return self.verdict


def test_order_of_a_step():
    w, events = with_grad([1.0], [1.0]), []
    optimizer = optim.SGD([w], lr=1.0)
    optimizer.loss_scaling = Scaling(events)
    optimizer.register_step_pre_hook(lambda o: events.append(("before", o.t, w.item())))
    optimizer.register_step_post_hook(lambda o: events.append(("after", o.t, w.item())))
    optimizer.step()
    assert events == [("check", 0), ("before", 0, 1.0), ("after", 1, 0.0)]


def test_a_refused_step_changes_nothing():
    w, events = with_grad([1.0], [1.0]), []
    optimizer = optim.SGD([w], lr=1.0)
    optimizer.loss_scaling = Scaling(events, verdict=False)
    optimizer.register_step_pre_hook(lambda o: events.append("before"))
    optimizer.step()
    assert events == [("check", 0)]
    assert (w.item(), optimizer.t) == (1.0, 0)


def test_hooks_can_be_removed_and_change_gradients():
    w = with_grad([1.0], [100.0])
    optimizer = optim.SGD([w], lr=1.0)
    handle = optimizer.register_step_pre_hook(lambda o: optim.clip_grad_value_(o.parameters(), 0.5))
    optimizer.step()
    assert w.item() == 0.5
    handle.remove()
    handle.remove()
    w.grad = wf.tensor([100.0])
    optimizer.step()
    assert w.item() == -99.5
    handle.restore()
    handle.restore()
    w.grad = wf.tensor([100.0])
    optimizer.step()
    assert w.item() == -100.0
    with pytest.raises(TypeError, match="callable"):
        optimizer.register_step_post_hook(3)


def test_repr_shows_groups():
    text = repr(optim.SGD([leaf(1.0)], lr=0.5))
    assert "SGD" in text
    assert "1 parameters, lr=0.5" in text


def test_optimizer_from_a_transform():
    rule = optim.transform.chain(optim.transform.sign(), optim.transform.scale(-0.25))
    w = with_grad([1.0, 1.0], [3.0, -4.0])
    optim.TransformOptimizer([w], rule).step()
    assert w.detach().tolist() == [0.75, 1.25]
    with pytest.raises(TypeError, match="takes a transform"):
        optim.TransformOptimizer([w], 3)


# -- hyperparameters changed between steps ---------------------------------------------------------


@pytest.mark.parametrize("name", ["lr", "weight_decay", "eps"])
def test_numpy_numbers_do_not_widen_the_state(name):
    w = with_grad([1.0], [1.0])
    optimizer = optim.Adam([w])
    optimizer.param_groups[0][name] = np.float64(0.1)
    optimizer.param_groups[0]["betas"] = (np.float64(0.9), np.float64(0.99))
    optimizer.step()
    assert w.dtype == optimizer.state[w]["exp_avg"].dtype == np.float32


def test_a_bad_change_is_noticed_at_the_next_step():
    w = with_grad([1.0], [1.0])
    optimizer = optim.SGD([w], lr=0.1)
    optimizer.step()
    optimizer.param_groups[0]["lr"] = np.nan
    with pytest.raises(ValueError, match="lr must be finite"):
        optimizer.step()
    optimizer.param_groups[0].update(lr=0.1, nesterov=True)
    with pytest.raises(ValueError, match="momentum > 0"):
        optimizer.step()
