"""Models of configurations: layers by name, architectures, and what both are built from."""

import numpy as np
import pytest

import weft as wf
from weft.cli.assemble import build_run
from weft.cli.config import read_source
from weft.cli.timing import layer_calls, time_call
from weft.core.errors import WeftError
from weft.nn import models
from weft.train.names import ARCHITECTURES, LAYERS, OPTIMIZERS, SCHEDULES

HEAD = """\
seed = 5
loss = "{loss}"
[data]
batch_size = 4
target = "{target}"
[data.source]
{data}
[optimizer]
type = "sgd"
[model]
"""
IMAGES = 'type = "shapes"\nn = 40\nsize = 16\nclasses = 4'
POINTS = 'type = "blobs"\nn = 40'
WAVES = 'type = "sines"\nn = 40\nlength = 12'
TEXT = 'type = "characters"\nsource = "pydoc"\nlength = 8\nlimit = 400'


def built(tmp_path, data, model, loss="cross_entropy", target="last"):
    path = tmp_path / "c.toml"
    path.write_text(HEAD.format(loss=loss, data=data, target=target) + model)
    return build_run(read_source(path))


# -- layers --------------------------------------------------------------------------------------


def test_branches_residuals_and_shared_layers(tmp_path):
    run = built(
        tmp_path,
        IMAGES,
        """
        layers = [
            {type = "Conv2d", name = "stem", out_channels = 4, kernel_size = 3, padding = 1},
            {type = "Conv2d", name = "a", out_channels = 4, kernel_size = 3, padding = 1},
            {share = "a", name = "again", inputs = ["a"]},
            {type = "Add", inputs = ["again", "stem"], name = "sum"},
            {type = "Conv2d", name = "b", out_channels = 2, kernel_size = 1, inputs = ["input"]},
            {type = "Concat", inputs = ["sum", "b"]},
            {type = "GroupNorm", num_groups = 2},
            {type = "GlobalAvgPool"},
            {type = "Flatten"},
            {type = "Linear", out_features = 4},
        ]
        """,
    )
    net = run.model
    x = wf.randn(3, 3, 16, 16)
    stem = net.stem(x)
    joined = wf.concat([net.a(net.a(stem)) + stem, net.b(x)], 1)
    expected = net.linear_1(net.groupnorm_1(joined).mean(axis=(2, 3)))
    np.testing.assert_allclose(net(x).numpy(), expected.numpy(), rtol=1e-5)
    names = [name for name, _ in net.named_parameters()]
    assert sum(name.startswith("a.") for name in names) == 2
    assert not any("again" in name for name in names)


def test_sizes_come_from_the_input_and_draws_are_those_of_a_program(tmp_path):
    run = built(
        tmp_path,
        POINTS,
        'layers = [{type = "Linear", name = "p", out_features = 6}, {type = "LayerNorm"}, '
        '{type = "Linear", name = "q", out_features = 3}]',
    )
    wf.manual_seed(5)
    first, second = wf.nn.Linear(2, 6), wf.nn.Linear(6, 3)
    assert np.array_equal(run.model.p.weight.numpy(), first.weight.numpy())
    assert np.array_equal(run.model.q.weight.numpy(), second.weight.numpy())


def test_recurrent_layers_give_their_first_output(tmp_path):
    model = """
    layers = [
        {type = "LSTM", name = "lstm", hidden_size = 5, batch_first = true},
        {type = "Select"},
        {type = "Linear", name = "head", out_features = 1},
    ]
    """
    run = built(tmp_path, WAVES, model, loss="mse")
    x = wf.randn(2, 12, 1)
    expected = run.model.head(run.model.lstm(x)[0][:, -1])
    assert np.array_equal(run.model(x).numpy(), expected.numpy())


def test_parts_of_a_tuple_and_several_outputs(tmp_path):
    net = models.LayerGraph(["x"], outputs=["lstm.0", "head"])
    net.append("lstm", wf.nn.LSTM(3, 4, batch_first=True))
    net.append("state", wf.nn.Identity(), ["lstm.1"])
    net.append("head", wf.nn.Linear(4, 2), ["state"])
    sequence, last = net(wf.zeros(2, 5, 3))
    assert sequence.shape == (2, 5, 4)
    assert last.shape == (1, 2, 2)


def test_mistakes_in_a_layer_graph():
    with pytest.raises(WeftError, match="at least one input"):
        models.LayerGraph([])
    net = models.LayerGraph(["a", "b"])
    net.append("sum", models.Add(), ["a", "b"])
    with pytest.raises(WeftError, match="named 'sum' already"):
        net.append("sum", wf.nn.ReLU())
    with pytest.raises(WeftError, match=r"no earlier input or layer 'c'; have: a, b, sum"):
        net.append("r", wf.nn.ReLU(), ["c"])
    with pytest.raises(WeftError, match="no earlier layer 'q' to share"):
        net.append("s", "q")
    with pytest.raises(WeftError, match=r"takes 2 inputs \(a, b\). Received: 1"):
        net(wf.zeros(1))
    with pytest.raises(WeftError, match=r"one shape. Received: \(2,\), \(3,\)"):
        net(wf.zeros(2), wf.zeros(3))


@pytest.mark.parametrize("name", list(LAYERS))
def test_every_layer_has_options_of_known_kinds(name):
    entry = LAYERS[name]
    assert not {"device", "dtype", "self"} & entry.options.keys()


def test_joins():
    a, b = wf.tensor([[1.0, 2.0]]), wf.tensor([[3.0, 5.0]])
    assert models.Subtract()(b, a).tolist() == [[2.0, 3.0]]
    assert models.Multiply()(a, b).tolist() == [[3.0, 10.0]]
    assert models.Reshape([2, 1])(a).shape == (1, 2, 1)
    assert models.Permute([1, 0])(a).shape == (2, 1)
    assert models.Select(0, -1)(a).tolist() == [1.0]
    with pytest.raises(WeftError, match="no axis 5"):
        models.Select(0, 5)(a)
    with pytest.raises(WeftError, match="list of integers"):
        models.Reshape(3)


# -- architectures -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "data", "loss", "target"),
    [
        ('type = "mlp"\nout_features = 4\nhidden = [8]\nbatch_norm = true', IMAGES, None, None),
        ('type = "lenet"\nnum_classes = 4', IMAGES, None, None),
        ('type = "resnet18"\nnum_classes = 4\nwidth = 4\nsmall_input = true', IMAGES, None, None),
        ('type = "resnet34"\nnum_classes = 4\nwidth = 4', IMAGES, None, None),
        ('type = "resnet50"\nnum_classes = 4\nwidth = 4', IMAGES, None, None),
        (
            'type = "vgg"\nnum_classes = 4\ndepth = 11\nwidth = 2\nhidden = 8\npooled = 1',
            IMAGES.replace("16", "32"),
            None,
            None,
        ),
        ('type = "unet"\nnum_classes = 3\nwidth = 4\ndepth = 2', IMAGES, "mse", "input"),
        ('type = "vae"\nlatent = 2\nhidden = [8]', IMAGES, "vae", "input"),
        ('type = "gpt"\nn_layer = 1\nn_head = 2\nn_embd = 8', TEXT, None, None),
        ('type = "lstm_lm"\nembed_size = 4\nhidden_size = 8', TEXT, None, None),
    ],
    ids=lambda value: value.split('"')[1] if isinstance(value, str) and "type" in value else "",
)
def test_architectures_train(tmp_path, model, data, loss, target):
    run = built(tmp_path, data, model, loss or "cross_entropy", target or "last")
    outcome = run.objective(next(iter(run.loader("train"))))
    outcome.loss.backward()
    grads = [p.grad for p in run.model.parameters()]
    assert all(g is not None and np.isfinite(g.numpy()).all() for g in grads)


def test_all_architectures_are_tried_above():
    assert set(ARCHITECTURES) == {
        *("mlp", "lenet", "resnet18", "resnet34", "resnet50"),
        *("vgg", "unet", "lstm_lm", "gpt", "vae"),
    }


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (models.resnet18, 11_689_512),  # the published sizes
        (models.resnet34, 21_797_672),
        (models.resnet50, 25_557_032),
    ],
)
def test_residual_networks_have_the_published_size(make, count):
    assert sum(p.size for p in make().parameters()) == count


def test_zero_init_residual_begins_as_shortcuts():
    net = models.resnet18(num_classes=2, width=4, zero_init_residual=True)
    assert not net.layer1[0].bn2.weight.numpy().any()


def test_language_models_generate():
    tokens = wf.zeros(2, 3, dtype=wf.int64)
    for net in (
        models.GPT(7, block_size=4, n_layer=1, n_head=1, n_embd=4, classes_first=True),
        models.LSTMLanguageModel(7, 4, 4, tie_weights=True, num_layers=2, dropout=0.1),
    ):
        net.eval()
        made = net.generate(tokens, 6, top_k=2)
        assert made.shape == (2, 9)
        assert made.numpy().max() < 7
        greedy = net.generate(tokens, 4, temperature=0.0)
        assert np.array_equal(greedy.numpy(), net.generate(tokens, 4, temperature=0).numpy())
        for bad in ({"temperature": -1.0}, {"top_k": 0}):
            with pytest.raises(WeftError):
                net.generate(tokens, 1, **bad)


def test_gpt_does_not_see_the_future():
    net = models.GPT(7, block_size=6, n_layer=2, n_head=2, n_embd=8).eval()
    a = wf.tensor([[1, 2, 3, 4]])
    b = wf.tensor([[1, 2, 6, 5]])
    np.testing.assert_allclose(net(a).numpy()[:, :2], net(b).numpy()[:, :2], rtol=1e-5)
    with pytest.raises(WeftError, match="block_size=6"):
        net(wf.zeros(1, 7, dtype=wf.int64))


def test_vae_loss_is_the_bound():
    loss = models.VAELoss(likelihood="gaussian", beta=2.0)
    x, target = wf.tensor([[1.0, 2.0]]), wf.tensor([[0.0, 0.0]])
    mean, log_variance = wf.tensor([[1.0]]), wf.tensor([[0.0]])
    found = loss((x, mean, log_variance), target)
    assert float(found["reconstruction"]) == pytest.approx(2.5)
    assert float(found["kl"]) == pytest.approx(0.5)
    assert float(found["loss"]) == pytest.approx(3.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: models.VGG(depth=12), "depth must be one of 11, 13, 16, 19"),
        (lambda: models.MLP(2, 2, hidden=3), "hidden must be a list"),
        (lambda: models.MLP(2, 2, activation="cube"), "activation must be"),
        (lambda: models.GPT(5, n_embd=5, n_head=2), "multiple of n_head"),
        (lambda: models.LSTMLanguageModel(5, 4, 8, tie_weights=True), "tie_weights needs one size"),
        (lambda: models.VAE(3), "must be lists of sizes"),
        (lambda: models.UNet(depth=0), "depth must be at least 1"),
        (lambda: models.VAELoss(likelihood="poisson"), "likelihood must be"),
    ],
)
def test_bad_architectures(make, message):
    with pytest.raises(WeftError, match=message):
        make()


# -- weights, freezing, timing -------------------------------------------------------------------

LAYERED = """
layers = [
    {type = "Linear", name = "body", out_features = 6}, {type = "ReLU"},
    {type = "Linear", name = "head", out_features = 3},
]
"""


def test_weights_and_freezing(tmp_path):
    first = built(tmp_path, POINTS, LAYERED)
    state = {name: x + 1.0 for name, x in first.model.state_dict().items()}
    wf.io.save(tmp_path / "w.safetensors", {f"old.{k}": v for k, v in state.items()})
    run = built(
        tmp_path,
        POINTS,
        'freeze = ["body.*"]\n'
        'weights = {path = "w.safetensors", skip = ["head.*"], rename = {"old." = ""}}\n' + LAYERED,
    )
    assert np.array_equal(run.model.body.weight.numpy(), state["body.weight"].numpy())
    assert not np.array_equal(run.model.head.weight.numpy(), state["head.weight"].numpy())
    assert [p.requires_grad for p in run.model.parameters()] == [False, False, True, True]
    with pytest.raises(WeftError, match=r"c.toml:\d+: weights: .*strict"):
        built(tmp_path, POINTS, 'weights = "w.safetensors"\n' + LAYERED)


def test_timing_takes_layers_apart(tmp_path):
    net = models.LayerGraph(["x"])
    net.append("fc", wf.nn.Linear(3, 3))
    net.append("twice", "fc")
    net.append("sum", models.Add(), ["twice", "x"])
    calls = layer_calls(net, [wf.zeros(2, 3)])
    assert [(call.name, call.kind) for call in calls] == [
        ("fc", "Linear"),
        ("fc", "Linear"),
        ("sum", "Add"),
    ]
    for call in calls:
        time_call(call, 2)
        assert call.forward > 0
        assert call.backward > 0


def test_every_optimizer_and_schedule_can_be_made():
    w = wf.nn.Parameter(wf.tensor([[1.0]]))
    for name in OPTIMIZERS:
        assert "lr" in OPTIMIZERS[name].options
        OPTIMIZERS[name].make([w])
    required = {"gamma": 0.5, "step_size": 2, "milestones": [1], "T_max": 2, "T_0": 2}
    required |= {"max_lr": 0.1, "base_lr": 0.01, "total_steps": 5, "max_iter": 3, "swa_lr": 0.1}
    for name in SCHEDULES:
        options = SCHEDULES[name].options
        wanted = {k: v for k, v in required.items() if k in options}
        SCHEDULES[name].make(wf.optim.SGD([w], lr=0.1, momentum=0.9), **wanted).step(
            *([1.0] if name == "plateau" else [])
        )


def test_layer_graph_calls_with_options():
    class Power(wf.nn.Module):
        def forward(self, x, by=1):
            return x**by

    net = models.LayerGraph(["x"])
    net.append("square", Power(), by=2)
    net.append("again", "square", by=3)
    assert float(net(wf.tensor(2.0))) == 64.0
