"""Modules of the face, and how they train."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import weft as wf
from weft import torch
from weft.torch import nn
from weft.torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.fc2 = nn.Linear(8, 3)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += 1
        x = F.relu(self.norm(self.fc1(x)), inplace=True)
        return F.log_softmax(self.fc2(torch.flatten(x, 1)), dim=1)


def data():
    torch.manual_seed(0)
    return torch.randn(16, 4), torch.randint(0, 3, (16,))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_step_eagerly_and_compiled(compiled):
    x, y = data()
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05, fused=False, foreach=None)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.nll_loss(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss

    run = torch.compile(step) if compiled else step
    losses = [run(x, y).item() for _ in range(8)]
    assert losses[-1] < losses[0]
    assert net.seen.item() == 8
    if compiled:
        assert "0 call(s) ran eagerly" in run.explain()


def test_modules_hold_tensors_of_the_face():
    net = Net()
    assert all(isinstance(p, nn.Parameter) for p in net.parameters())
    assert net.fc1.weight.max(0).values.shape == (4,)
    assert sorted(net._modules) == ["fc1", "fc2", "norm"]
    assert list(net._buffers) == ["seen"]
    assert isinstance(net.fc1, wf.nn.Linear)
    with pytest.raises(
        TypeError, match=r"cannot assign 'torch\.FloatTensor' as parameter 'weight'"
    ):
        net.fc1.weight = torch.ones(8, 4)


class Early(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(1, 1)


def test_modules_are_initialised_first():
    with pytest.raises(AttributeError, match=r"before Module\.__init__"):
        Early()
    net = Net()
    with pytest.raises(AssertionError, match="CUDA"):
        net.cuda()


def test_states_that_do_not_fit_are_refused_in_their_words():
    net = Net()
    state = net.state_dict()
    state.pop("fc1.bias")
    state["more"] = torch.ones(1)
    with pytest.raises(RuntimeError, match=r"Missing key\(s\) in state_dict: \"fc1.bias\""):
        net.load_state_dict(state)
    found = net.load_state_dict(state, strict=False)
    assert found.missing_keys == ["fc1.bias"]
    assert found.unexpected_keys == ["more"]
    with pytest.raises(RuntimeError, match=r"size mismatch for fc1\.weight"):
        net.load_state_dict({**net.state_dict(), "fc1.weight": torch.ones(2, 2)})


def test_losses_take_old_arguments():
    x, y = data()
    logits = torch.randn(16, 3)
    total = F.cross_entropy(logits, y, reduction="sum")
    assert F.cross_entropy(logits, y, None, False).item() == pytest.approx(total.item())
    assert nn.CrossEntropyLoss(size_average=False)(logits, y).item() == pytest.approx(total.item())
    assert nn.MSELoss()(x, x).item() == 0
    assert F.mse_loss(x, x, reduction="none").shape == x.shape


def test_recurrent_layers_and_packing():
    lstm = nn.LSTM(3, 5, num_layers=2, batch_first=True)
    output, (h, c) = lstm(torch.randn(2, 7, 3))
    assert output.max(2).indices.shape == (2, 7)
    assert h.shape == c.shape == (2, 2, 5)
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(2, 4, 3), [4, 2], batch_first=True)
    padded, lengths = nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)
    assert padded.shape == (2, 4, 5)
    assert lengths.tolist() == [4, 2]


def test_initial_values():
    layer = nn.Linear(4, 4)
    nn.init.constant_(layer.bias[1:3], 2.0)
    assert layer.bias[1:3].tolist() == [2, 2]
    nn.init.normal_(layer.weight, 0.0, 0.02)
    assert 0 < layer.weight.std().item() < 0.1


def test_schedules():
    w = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([w], lr=1.0, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    (w * w).sum().backward()
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.5
    with pytest.raises(ValueError, match="empty parameter list"):
        torch.optim.SGD([], lr=1.0)


def test_schedules_of_ones_own():
    class Warmup(torch.optim.lr_scheduler.LRScheduler):
        def __init__(self, optimizer, steps, last_epoch=-1):
            self.steps = steps
            super().__init__(optimizer, last_epoch)

        def get_lr(self):
            return [b * min(1.0, (self.last_epoch + 1) / self.steps) for b in self.base_lrs]

    class Halved(torch.optim.lr_scheduler.LambdaLR):
        def get_lr(self):
            return [rate / 2 for rate in super().get_lr()]

    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    schedule = Warmup(optimizer, 4)
    rates = []
    for _ in range(5):
        rates += schedule.get_last_lr()
        optimizer.step()
        schedule.step()
    assert rates == [0.25, 0.5, 0.75, 1.0, 1.0]
    again = Warmup(torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0), 4)
    again.load_state_dict(schedule.state_dict())
    assert (again.last_epoch, again._step_count) == (5, 6)
    halved = Halved(torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0), lambda e: 1.0 / (e + 1))
    halved.step()
    assert halved.get_last_lr() == [0.25]
    kinds = torch.optim.lr_scheduler
    assert isinstance(kinds.StepLR(optimizer, 1), kinds.LRScheduler)
    assert isinstance(kinds.ReduceLROnPlateau(optimizer), kinds._LRScheduler)
    with pytest.raises(NotImplementedError):
        kinds.LRScheduler(optimizer)


def test_parametrizations():
    class Positive(nn.Module):
        def forward(self, x):
            return x.exp()

    layer = nn.Linear(2, 1, bias=False)
    nn.utils.parametrize.register_parametrization(layer, "weight", Positive())
    layer(torch.ones(2)).sum().backward()
    assert nn.utils.parametrize.is_parametrized(layer)
    assert next(layer.parameters()).grad is not None
    vector = nn.utils.parameters_to_vector(layer.parameters())
    nn.utils.vector_to_parameters(vector * 0, layer.parameters())
    np.testing.assert_allclose(layer(torch.ones(2)).item(), 2.0, rtol=1e-6)


def test_weight_norm_has_pytorchs_names_and_takes_the_older_ones():
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
    names = ["parametrizations.weight.original0", "parametrizations.weight.original1"]
    assert list(layer.state_dict()) == ["bias", *names]
    assert [tuple(x.shape) for x in layer.state_dict().values()] == [(3,), (3, 1), (3, 2)]
    older = nn.utils.weight_norm(nn.Linear(2, 3))
    report = layer.load_state_dict(older.state_dict())
    assert not report.missing_keys
    np.testing.assert_allclose(layer.weight.detach(), older.weight.detach(), rtol=1e-6)
    layer(torch.ones(1, 2)).sum().backward()
    older(torch.ones(1, 2)).sum().backward()
    magnitude, direction = layer.parametrizations.weight.originals()
    np.testing.assert_allclose(magnitude.grad, older.weight_g.grad, rtol=1e-6)
    np.testing.assert_allclose(direction.grad, older.weight_v.grad, atol=1e-6)
    nn.utils.parametrize.remove_parametrizations(layer, "weight")
    assert list(layer.state_dict()) == ["bias", "weight"]
    assert isinstance(layer.weight, nn.Parameter)


@pytest.mark.parametrize("compiled", [False, True])
def test_spectral_norm_is_one_and_follows_training(compiled):
    torch.manual_seed(0)
    layer = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3), n_power_iterations=5)
    assert list(layer.state_dict())[1:] == [
        "parametrizations.weight.original",
        "parametrizations.weight.0._u",
        "parametrizations.weight.0._v",
    ]
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        loss = layer(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    run = torch.compile(step) if compiled else step
    losses = [run(torch.ones(2, 4)).item() for _ in range(5)]
    assert losses[-1] < losses[0]
    largest = torch.linalg.svdvals(layer.eval().weight.detach())[0].item()
    assert abs(largest - 1) < 0.05
    with pytest.raises(ValueError, match="n_power_iterations=0"):
        nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)


def test_the_older_spectral_norm_may_be_called_again_before_backward():
    torch.manual_seed(0)
    critic = nn.utils.spectral_norm(nn.Linear(3, 1))
    alone = copy.deepcopy(critic)
    loss = critic(torch.ones(2, 3)).mean()
    critic(torch.zeros(2, 3))
    loss.backward()
    alone(torch.ones(2, 3)).mean().backward()
    assert torch.equal(critic.weight_orig.grad, alone.weight_orig.grad)


def test_parametrizations_in_a_row_are_inverted_and_taken_back():
    class Doubled(nn.Module):
        def forward(self, x):
            return 2 * x

        def right_inverse(self, x):
            return x / 2

    parametrize = nn.utils.parametrize
    layer = nn.Linear(2, 2, bias=False)
    held, before = layer.weight, layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.parametrizations.weight.original is held
    np.testing.assert_array_equal(layer.weight.detach(), before)
    parametrize.register_parametrization(layer, "weight", Doubled())
    np.testing.assert_array_equal(layer.weight.detach(), 2 * before)
    layer.weight = torch.ones(2, 2)
    np.testing.assert_array_equal(held.detach(), np.full((2, 2), 0.25))
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert layer.weight is held
    with pytest.raises(ValueError, match="does not have a parameter, a buffer"):
        parametrize.register_parametrization(layer, "nothing", Doubled())
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(layer, "weight", nn.Flatten(0))


def test_norms_that_are_known_clip_and_that_are_not_finite_are_told():
    w = nn.Parameter(torch.zeros(2))
    w.grad = torch.tensor([3.0, 4.0])
    total = nn.utils.get_total_norm([w.grad])
    assert total.item() == 5.0
    nn.utils.clip_grads_with_norm_(w, 1.0, total)
    np.testing.assert_allclose(w.grad, [0.6, 0.8], rtol=1e-5)
    assert nn.utils.get_total_norm([]).item() == 0.0
    w.grad = torch.tensor([np.inf, 0.0])
    for clip in (
        lambda: nn.utils.clip_grad_norm_(w, 1.0, error_if_nonfinite=True),
        lambda: nn.utils.get_total_norm([w.grad], error_if_nonfinite=True),
    ):
        with pytest.raises(RuntimeError, match=r"The total norm of order 2\.0 .* is non-finite"):
            clip()


def test_modules_without_drawn_parameters():
    assert nn.utils.skip_init(nn.Linear, 5, 1).weight.shape == (1, 5)
    with pytest.raises(RuntimeError, match="Expected a Module"):
        nn.utils.skip_init(dict)
    with pytest.raises(RuntimeError, match="must support a 'device' arg"):
        nn.utils.skip_init(type("Own", (nn.Module,), {"__init__": lambda self: None}))


def test_hooks_around_states():
    net = nn.Sequential(nn.Linear(1, 1))
    seen = []
    net.register_state_dict_pre_hook(lambda m, prefix, keep_vars: seen.append(prefix))
    net[0].register_state_dict_post_hook(lambda m, s, prefix, meta: s.pop(f"{prefix}bias"))
    state = net.state_dict(prefix="net.")
    assert (list(state), seen) == (["net.0.weight"], ["net."])
    handle = net[0].register_load_state_dict_pre_hook(
        lambda m, s, prefix, *_: s.setdefault(f"{prefix}bias", torch.zeros(1))
    )
    net.register_load_state_dict_post_hook(lambda m, keys: seen.append(keys.missing_keys))
    given = {"0.weight": torch.ones(1, 1)}
    net.load_state_dict(given)
    assert (net[0].bias.item(), seen[-1], list(given)) == (0.0, [], ["0.weight"])
    handle.remove()
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0.bias"'):
        net.load_state_dict(given)


def test_containers_and_hooks():
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Identity()))
    seen = []
    net[0].register_forward_hook(lambda module, args, output: seen.append(output.max(0)))
    net(torch.ones(3, 2))
    assert seen[0].values.shape == (2,)
    assert [type(m).__name__ for m in net.modules()][:2] == ["Sequential", "Linear"]
    assert len(nn.ModuleList([nn.Linear(1, 1)])) == 1
    applied = []
    net.apply(lambda m: applied.append(isinstance(m, nn.Linear)))
    assert sum(applied) == 1


def test_unpooling_gives_gradients_to_all_that_name_a_place():
    x = torch.tensor([[[1.0, 2.0, float("inf")]]], requires_grad=True)
    out = F.max_unpool1d(x, torch.tensor([[[1, 1, 3]]]), 2)
    assert out.tolist() == [[[0, 2, 0, float("inf"), 0, 0]]]
    out[..., :3].sum().backward()
    assert x.grad.tolist() == [[[1, 1, 0]]]


def test_rows_of_tables_are_shortened_and_their_gradients_divided():
    table = torch.tensor([[3.0, 4.0], [0.3, 0.4]], requires_grad=True)
    index = torch.tensor([0, 0, 1])
    rows = F.embedding(index, table, max_norm=1.0, scale_grad_by_freq=True)
    np.testing.assert_allclose(rows.detach().numpy()[0], [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(table.detach().numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
    rows.sum().backward()
    assert table.grad.tolist() == [[1, 1], [1, 1]]
    table.grad = None
    bags = torch.tensor([[0, 0], [0, 1]])
    F.embedding_bag(bags, table, mode="sum", scale_grad_by_freq=True).sum().backward()
    assert table.grad.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(ValueError, match="scale_grad_by_freq goes with the modes"):
        F.embedding_bag(bags, table, mode="max", scale_grad_by_freq=True)


def test_a_linear_layer_and_its_cross_entropy():
    x, weight, target = torch.randn(4, 3), torch.randn(5, 3), torch.tensor([0, 4, 1, 2])
    together = F.linear_cross_entropy(x, weight, target, linear_bias=torch.ones(5), reduction="sum")
    apart = F.cross_entropy(F.linear(x, weight, torch.ones(5)), target, reduction="sum")
    assert together.item() == pytest.approx(apart.item(), rel=1e-6)


def test_attention_of_given_weights():
    x, one = torch.randn(5, 3, 4), torch.eye(4)
    weights = torch.randn(12, 4)
    given = (4, 2, weights, None, None, None, False, 0.0, one, None)
    out, seen = F.multi_head_attention_forward(x, x, x, *given, training=False)
    assert out.shape == (5, 3, 4)
    assert seen.shape == (3, 5, 5)
    with pytest.raises(NotImplementedError, match="static_k"):
        F.multi_head_attention_forward(x, x, x, *given, static_k=x)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: F.hardshrink(torch.tensor([-0.1, 2.0]), -1.0), [-0.1, 2.0]),
        (lambda: F.normalize(torch.tensor(-3.0), dim=0), -1),
        (lambda: F.avg_pool1d(torch.ones(1, 1, 4), (2,), ()), [[[1, 1]]]),
        (lambda: F.multi_margin_loss(torch.ones(3), torch.tensor([1])), 2 / 3),
        (lambda: F.hinge_embedding_loss(torch.tensor(0.25), torch.tensor(3.0)), 1),
        (lambda: F.pad(torch.tensor([[1.0, 2.0]]), (-2, 3), "replicate"), [[2, 2, 2]]),
        (lambda: F.interpolate(torch.ones(1, 1, 4, 4), 2, mode="bilinear", antialias=True),
         np.ones((1, 1, 2, 2))),
    ],
)  # fmt: skip
def test_shapes_and_values_that_pytorch_takes(call, expected):
    np.testing.assert_allclose(call().numpy(), expected, rtol=1e-6)


def test_fractional_pooling_takes_its_numbers_or_draws_them():
    x = torch.arange(64.0).view(1, 1, 8, 8)
    samples = torch.tensor([[[0.3, 0.7]]])
    fixed = torch.nn.FractionalMaxPool2d(3, output_size=(4, 4), _random_samples=samples)
    expected = torch.nn.functional.fractional_max_pool2d(
        x, 3, output_size=(4, 4), _random_samples=samples
    )
    assert torch.equal(fixed(x), expected)
    values, indices = torch.nn.FractionalMaxPool2d(2, output_ratio=0.5, return_indices=True)(x)
    assert torch.equal(values.flatten(), x.flatten()[indices.flatten()])
    assert torch.nn.FractionalMaxPool3d(2, output_size=2)(torch.ones(1, 1, 4, 4, 4)).shape[2:] == (
        2,
        2,
        2,
    )


@pytest.mark.parametrize("name", ["ASGD", "Rprop", "Adafactor", "Muon"])
def test_optimizers_lower_a_loss(name):
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(4, 3))
    optimizer = getattr(torch.optim, name)([weight], lr=0.05, foreach=False)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = (weight**2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_optimizers_are_shown_as_pytorch_shows_them():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.5)
    text = repr(optimizer)
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0")
    assert "    lr: 0.5\n" in text


def test_a_module_holds_its_own_tensors_before_those_of_its_parts():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Linear(1, 1)
            self.register_buffer("scale", torch.ones(1))
            self.weight = nn.Parameter(torch.ones(1))

    names = ["weight", "scale", "part.weight", "part.bias"]
    assert list(Net().state_dict()) == names
    assert [n for n, _ in Net().named_parameters()] == ["weight", "part.weight", "part.bias"]
    assert repr(Net().load_state_dict(Net().state_dict())) == "<All keys matched successfully>"


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "NAdam"])
def test_states_of_optimizers_have_the_layout_of_pytorch(name):
    def made(x):
        options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
        return getattr(torch.optim, name)([x], lr=0.1, **options)

    def train(x, optimizer):
        for _ in range(3):
            optimizer.zero_grad()
            (x**4 - x).sum().backward()
            optimizer.step()

    x = torch.linspace(-1, 1, 3).requires_grad_()
    optimizer = made(x)
    train(x, optimizer)
    state = optimizer.state_dict()
    assert set(state) == {"state", "param_groups"}
    assert list(state["state"]) == [0]
    assert all(isinstance(kept, torch.Tensor) for kept in state["state"][0].values())
    assert ("step" in state["state"][0]) == (name != "SGD")
    assert state["param_groups"][0]["foreach"] is None
    assert "foreach: None" in repr(optimizer)
    y = x.detach().clone().requires_grad_()
    other = made(y)
    other.load_state_dict(state)
    train(x, optimizer)
    train(y, other)
    assert torch.equal(x, y)
