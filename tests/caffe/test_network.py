"""Whole nets: phases, sharing, splits, losses, and Caffe's words for what is wrong."""

import numpy as np
import pytest

import weft as wf
from weft.caffe import load
from weft.caffe.catalogue import Limits
from weft.caffe.errors import CaffeError
from weft.caffe.inputs_protocol import ArraySource
from weft.caffe.message import NetParameter
from weft.caffe.network import Network
from weft.caffe.text import read_message

from .fuzzing import EVERY_LAYER
from .suite import SUITE, needs_suite


def net(text, phase="TEST", **options):
    return Network(read_message(text, NetParameter, name="net.prototxt"), phase, **options)


INPUT = 'input: "data" input_shape { dim: 2 dim: 3 } '
LABELLED = INPUT + 'input: "label" input_shape { dim: 2 } '
IP = """layer { name: "ip%s" type: "InnerProduct" bottom: "%s" top: "ip%s" %s
    inner_product_param { num_output: 3 weight_filler { type: "xavier" } } } """
LOSS = 'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "%s" bottom: "label" top: "loss" } '


def ip(name, bottom, more=""):
    return IP % (name, bottom, name, more)


def test_phases_levels_and_stages_choose_layers():
    rule = 'layer {{ name: "{0}" type: "ReLU" bottom: "data" top: "{0}" {1} }} '
    text = INPUT + "".join(
        rule.format(name, more)
        for name, more in {
            "train": "include { phase: TRAIN }",
            "test": "exclude { phase: TRAIN }",
            "deep": "include { min_level: 2 }",
            "staged": 'include { stage: "a" not_stage: "b" }',
        }.items()
    )
    assert net(text).output_names == ["test"]
    assert net(text, "TRAIN").output_names == ["train"]
    assert net(text, "TRAIN", level=2).output_names == ["train", "deep"]
    assert net(text, stages=["a"]).output_names == ["test", "staged"]
    assert net(text, stages=["a", "b"]).output_names == ["test"]


def test_tops_may_be_in_place():
    text = INPUT + ip(1, "data") + 'layer { name: "r" type: "ReLU" bottom: "ip1" top: "ip1" }'
    made = net(text)
    x = np.random.default_rng(0).normal(size=(2, 3)).astype("f")
    w, b = (p.value.detach().numpy() for p in made.learned_blobs())
    np.testing.assert_allclose(made(x).detach().numpy(), np.maximum(x @ w.T + b, 0), rtol=1e-6)


def test_blobs_that_several_layers_read_are_split_under_caffes_names():
    text = (
        LABELLED
        + ip(1, "data")
        + LOSS % "ip1"
        + ('layer { name: "acc" type: "Accuracy" bottom: "ip1" bottom: "label" top: "acc" }')
    )
    made = net(text)
    assert [step.name for step in made.steps] == [
        *("input", "label_input_1_split", "ip1", "ip1_ip1_0_split", "loss", "acc"),
    ]
    assert "label_input_1_split_1" in made.shapes
    assert made.output_names == ["loss", "acc"]


def test_loss_weights_count():
    weighed = LOSS.replace("}", "loss_weight: 0.25 }", 1) % "ip1"
    text = LABELLED + ip(1, "data", "loss_weight: 2") + weighed
    made = net(text)
    inputs = np.ones((2, 3), "f"), np.array([0, 2], "f")
    blobs = made.blobs(*inputs)
    expected = 0.25 * float(blobs["loss"]) + 2 * float(blobs["ip1"].sum())
    assert float(made.loss(*inputs)) == pytest.approx(expected, rel=1e-6)


def test_a_loss_need_not_name_its_top():
    made = net(LABELLED + ip(1, "data") + LOSS.replace('top: "loss"', "") % "ip1")
    assert float(made.loss(np.ones((2, 3), "f"), np.zeros(2, "f"))) > 0


def test_parameters_of_one_name_are_one():
    shared = 'param { name: "w" lr_mult: 2 } param { name: "b" decay_mult: 0 }'
    made = net(INPUT + ip(1, "data", shared) + ip(2, "ip1", shared.replace("lr_mult: 2", "")))
    blobs = made.learned_blobs()
    assert [(b.name, b.lr_mult, b.decay_mult) for b in blobs] == [("ip1/0", 2, 1), ("ip1/1", 1, 0)]
    assert made.layer_blobs("ip1")[0] is made.layer_blobs("ip2")[0]
    assert len(list(made.parameters())) == 2


def test_permissive_sharing_asks_only_for_the_count():
    text = (
        'input: "x" input_shape { dim: 2 dim: 6 } '
        'layer { name: "a" type: "InnerProduct" bottom: "x" top: "y" param { name: "w" } '
        "inner_product_param { num_output: 2 bias_term: false } } "
        'layer { name: "b" type: "InnerProduct" bottom: "y" top: "z" '
        'param { name: "w" share_mode: %s } '
        "inner_product_param { num_output: 6 bias_term: false } }"
    )
    made = net(text % "PERMISSIVE")
    x = np.ones((2, 6), "f")
    w = np.arange(12, dtype="f").reshape(2, 6)
    made.set_blob("a", 0, w)
    np.testing.assert_allclose(made(x).detach().numpy(), x @ w.T @ w.reshape(6, 2).T)
    with pytest.raises(CaffeError, match=r"Cannot share param 'w' owned by layer 'a': shape mism"):
        net(text % "STRICT")


def test_lr_mult_0_needs_no_gradient():
    made = net(INPUT + ip(1, "data", "param { lr_mult: 0 }"))
    assert [p.value.requires_grad for p in made.learned_blobs()] == [False, True]


def test_propagate_down_cuts_gradients():
    text = LABELLED + ip(1, "data") + ip(2, "ip1", "propagate_down: false") + LOSS % "ip2"
    made = net(text, "TRAIN")
    made.loss(np.ones((2, 3), "f"), np.zeros(2, "f")).backward()
    assert made.layer_blobs("ip1")[0].grad is None
    assert made.layer_blobs("ip2")[0].grad is not None


def test_a_net_trains_compiled():
    text = LABELLED + ip(1, "data") + LOSS % "ip1"
    made = net(text, "TRAIN")
    optimizer = wf.optim.SGD(made.parameters(), lr=0.5)
    x, y = wf.tensor(np.eye(2, 3, dtype="f")), wf.tensor(np.array([0, 2], "f"))

    @wf.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = made.loss(x, y)
        loss.backward()
        optimizer.step()
        return loss

    losses = [float(step(x, y)) for _ in range(60)]
    assert losses[-1] < 0.1 < losses[0]


def every_layer(phase):
    """Return the net of all layers, and what it is given."""
    made = net(EVERY_LAYER, phase)
    rng = np.random.default_rng(0)
    given = made.next_inputs() | {
        "data": rng.normal(size=(2, 4, 8, 8)).astype("f"),
        "label": np.array([1, 3], "f"),
    }
    return made, [wf.tensor(given[name]) for name in made.input_names]


@pytest.mark.parametrize("phase", ["TRAIN", "TEST"])
def test_all_layers_compile_and_compute_what_they_do_eagerly(phase):
    made, inputs = every_layer(phase)
    start = {name: value.clone() for name, value in made.state_dict().items()}

    def step(*given):
        for parameter in made.parameters():
            parameter.grad = None
        loss = made.loss(*given)
        loss.backward()
        return loss

    results = []
    for function in (step, wf.jit(step)):
        made.load_state_dict(start)
        for module in made.modules():
            for name in module._transient:
                module.__dict__[name].zero_()
        wf.manual_seed(3)
        losses = [float(function(*inputs)) for _ in range(3)]
        grads = [p.grad.numpy().copy() for p in made.parameters() if p.grad is not None]
        results.append([losses, *grads, *(b.numpy().copy() for b in made.buffers())])
    for eager, compiled in zip(*results, strict=True):
        np.testing.assert_allclose(compiled, eager, rtol=1e-4, atol=1e-5)


def test_outputs_are_written_to_files(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "out.h5"
    text = (
        LABELLED
        + f"""layer {{ name: "h" type: "HDF5Output" bottom: "data" bottom: "label"
        hdf5_output_param {{ file_name: "{path}" }} }}"""
    )
    made = net(text)
    assert not path.exists()
    for i in range(2):
        made.blobs(np.full((2, 3), i, "f"), np.full(2, i, "f"))
    with h5py.File(path, "r") as file:
        assert file["label"][:].tolist() == [0, 0, 1, 1]
        assert file["data"].shape == (4, 3)


def test_data_layers_take_given_arrays():
    text = 'layer { name: "in" type: "Data" top: "data" top: "label" data_param { source: "x" } } '
    arrays = ArraySource(np.ones((4, 3)), np.zeros(4), batch=2)
    made = net(text + ip(1, "data") + LOSS % "ip1", "TRAIN", inputs={"in": arrays})
    assert made.shapes["data"] == (2, 3)
    assert float(made.loss()) > 0
    assert made.input_names == ["data", "label"]


def test_dummy_data_is_drawn_anew_unless_it_is_constant():
    text = """layer { name: "d" type: "DummyData" top: "a" top: "b" dummy_data_param {
        shape { dim: 2 dim: 3 } data_filler { type: "gaussian" } data_filler { value: 2 } } }"""
    made = net(text)
    first, second = made.next_inputs(), made.next_inputs()
    assert first["b"].tolist() == [[2, 2, 2]] * 2
    assert (first["a"] != second["a"]).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ip(1, "data"), r"Unknown bottom blob 'data' \(layer 'ip1', bottom index 0\)"),
        (INPUT + ip(1, "data") + ip(1, "data"), "Top blob 'ip1' produced by multiple sources"),
        (
            INPUT + 'layer { name: "c" type: "Convolutoin" bottom: "data" top: "c" }',
            r"Unknown layer type: Convolutoin \(layer 'c'.*did you mean Convolution",
        ),
        (
            LABELLED + 'layer { name: "h" type: "HDF5Output" bottom: "data" bottom: "label" }',
            "file_name must be specified",
        ),
        ('layer { name: "i" type: "Input" top: "x" }', "gives no shape"),
        (
            INPUT + ip(1, "data", "include { phase: TEST } exclude { phase: TRAIN }"),
            "Specify either include rules or exclude rules; not both",
        ),
        (INPUT + ip(1, "data", "loss_weight: 1 loss_weight: 2"), "specified once per top"),
        (INPUT + ip(1, "data", "propagate_down: [true, true]"), "either 0 or bottom_size times"),
        ('input: "x" input_shape { dim: 70000 dim: 70000 }', "blob size exceeds INT_MAX"),
        ('input: "x" input_shape { dim: -1 }', "sizes must not be negative"),
        ('input: "x"', "inputs need an input_shape each"),
        (
            INPUT + 'layer { name: "p" type: "InnerProduct" bottom: "data" top: "data" '
            "inner_product_param { num_output: 2 } }",
            "cannot be done in place",
        ),
        (
            LABELLED + 'layer { name: "l" type: "SoftmaxWithLoss" bottom: "data" bottom: "label" '
            "propagate_down: [true, true] }",
            "cannot backpropagate to label inputs",
        ),
    ],
)
def test_errors_are_caffes(text, message):
    with pytest.raises(CaffeError, match=message):
        net(text)


def test_large_nets_are_refused_before_memory_is_taken():
    text = INPUT + ip(1, "data").replace("num_output: 3", "num_output: 700000000")
    with pytest.raises(CaffeError, match=r"more than the 1073741824 .* Limits\(parameters=...\)"):
        net(text)
    with pytest.raises(CaffeError, match="blob size exceeds 5: "):
        net(INPUT, limits=Limits(blob=5))


def test_inputs_are_checked():
    made = net(INPUT + ip(1, "data"))
    with pytest.raises(CaffeError, match=r"takes data. Received: 0 inputs and .'dta'"):
        made(dta=np.ones((2, 3), "f"))
    with pytest.raises(CaffeError, match="is not given data"):
        made()


@needs_suite
@pytest.mark.parametrize(
    ("path", "count"),
    [
        ("examples/mnist/lenet.prototxt", 431080),
        ("examples/cifar10/cifar10_quick.prototxt", 145578),
        ("examples/cifar10/cifar10_full.prototxt", 89578),
    ],
)
def test_deploy_nets_of_caffe_run(path, count):
    made = load(SUITE / path)
    (name,) = made.input_names
    result = made(np.ones(made.shapes[name], "f"))
    np.testing.assert_allclose(result.detach().numpy().sum(1), 1, rtol=1e-5)
    assert sum(blob.value.numel() for blob in made.learned_blobs()) == count


NETS = {
    "bvlc_alexnet": (60965224, 227, 256),
    "bvlc_reference_caffenet": (60965224, 227, 256),
    "bvlc_googlenet": (6998552, 224, 32),
}


@needs_suite
@pytest.mark.long
@pytest.mark.parametrize("name", NETS)
def test_large_deploy_nets_of_caffe_run(name):
    made = load(SUITE / "models" / name / "deploy.prototxt")
    result = made(np.ones(made.shapes["data"], "f"))
    np.testing.assert_allclose(result.detach().numpy().sum(1), 1, rtol=1e-5)
    assert sum(blob.value.numel() for blob in made.learned_blobs()) == NETS[name][0]


@needs_suite
@pytest.mark.long
@pytest.mark.parametrize("name", NETS)
def test_large_nets_of_caffe_run_forward_and_backward_at_their_sizes(name):
    _, size, batch = NETS[name]
    rng = np.random.default_rng(0)
    images = rng.standard_normal((batch, 3, size, size), dtype="f")
    labels = rng.integers(0, 1000, batch)
    path = SUITE / "models" / name / "train_val.prototxt"
    made = load(path, phase="TRAIN", inputs={"data": (images, labels)})
    loss = made.loss()
    loss.backward()
    # Chance: log(1000); GoogLeNet has two more losses of weight 0.3.
    assert 6 < float(loss) < 14
    assert all(np.isfinite(p.grad.numpy()).all() for p in made.parameters())
