"""Old nets, upgraded: each form computes what today's does."""

import numpy as np
import pytest

from weft.caffe.errors import CaffeError
from weft.caffe.message import NetParameter, SolverParameter
from weft.caffe.network import Network
from weft.caffe.text import read_message
from weft.caffe.upgrade import V1_TYPES, is_old, upgraded, upgraded_solver

NEW = """
    layer { name: "data" type: "Input" top: "data"
            input_param { shape { dim: 1 dim: 2 dim: 6 dim: 6 } } }
    layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
            param { lr_mult: 1 decay_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
            convolution_param { num_output: 3 kernel_size: 3 weight_filler { type: "xavier" } } }
    layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
            pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
    layer { name: "norm" type: "LRN" bottom: "pool" top: "norm"
            lrn_param { local_size: 3 alpha: 0.5 } }
    layer { name: "relu" type: "ReLU" bottom: "norm" top: "norm" }
"""
INPUT = 'input: "data" input_dim: 1 input_dim: 2 input_dim: 6 input_dim: 6 '
V1 = (
    INPUT
    + """
    layers { name: "conv" type: CONVOLUTION bottom: "data" top: "conv"
             blobs_lr: 1 blobs_lr: 2 weight_decay: 1 weight_decay: 0
             convolution_param { num_output: 3 kernel_size: 3 weight_filler { type: "xavier" } } }
    layers { name: "pool" type: POOLING bottom: "conv" top: "pool"
             pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
    layers { name: "norm" type: LRN bottom: "pool" top: "norm"
             lrn_param { local_size: 3 alpha: 0.5 } }
    layers { name: "relu" type: RELU bottom: "norm" top: "norm" }
"""
)
V0 = (
    INPUT
    + """
    layers { layer { name: "conv" type: "conv" num_output: 3 kernelsize: 3
                     weight_filler { type: "xavier" } blobs_lr: 1 blobs_lr: 2
                     weight_decay: 1 weight_decay: 0 } bottom: "data" top: "conv" }
    layers { layer { name: "pool" type: "pool" pool: AVE kernelsize: 2 stride: 2 }
             bottom: "conv" top: "pool" }
    layers { layer { name: "norm" type: "lrn" local_size: 3 alpha: 0.5 }
             bottom: "pool" top: "norm" }
    layers { layer { name: "relu" type: "relu" } bottom: "norm" top: "norm" }
"""
)


def read(text):
    return read_message(text, NetParameter)


@pytest.mark.parametrize("old", [V1, V0], ids=["V1", "V0"])
def test_old_forms_are_todays_net(old):
    assert is_old(read(old))
    made, new = upgraded(read(old)), read(NEW)
    assert not is_old(made)
    assert list(made.layer)[1:] == list(new.layer)[1:]
    assert made.layer[0].input_param == new.layer[0].input_param


def test_old_and_new_compute_the_same():
    nets = [Network(read(text), "TEST") for text in (NEW, V1, V0)]
    rng = np.random.default_rng(0)
    x, w, b = (rng.normal(size=s).astype("f") for s in ((1, 2, 6, 6), (3, 2, 3, 3), (3,)))
    results = []
    for net in nets:
        net.set_blob("conv", 0, w)
        net.set_blob("conv", 1, b)
        results.append(net(x).detach().numpy())
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_options_of_data_move_to_transform_param():
    old = 'layers { name: "d" type: DATA data_param { scale: 2 mirror: true crop_size: 3 } }'
    (layer,) = upgraded(read(old)).layer
    assert (layer.transform_param.scale, layer.transform_param.mirror) == (2, True)
    assert layer.transform_param.crop_size == 3
    assert not layer.data_param.has("scale")


def test_statistics_of_batch_norm_are_never_learned():
    (layer,) = upgraded(read('layer { type: "BatchNorm" param { lr_mult: 1 } }')).layer
    assert [spec.lr_mult for spec in layer.param] == [0, 0, 0]


def test_every_old_type_has_a_name():
    from weft.caffe.schema import TYPES  # noqa: PLC0415  (the table under test)

    assert {*TYPES["V1LayerParameter"].enums["LayerType"].numbers} == {*V1_TYPES}


def test_names_and_sharing_of_old_blobs():
    old = 'layers { type: RELU param: "a" param: "b" blob_share_mode: PERMISSIVE }'
    (layer,) = upgraded(read(old)).layer
    assert [(s.name, s.which("share_mode")) for s in layer.param] == [
        ("a", "PERMISSIVE"),
        ("b", "STRICT"),
    ]


def test_types_of_solvers_become_strings():
    old = read_message("solver_type: ADAGRAD", SolverParameter)
    assert upgraded_solver(old).type == "AdaGrad"
    with pytest.raises(CaffeError, match="solver_type or type"):
        upgraded_solver(read_message('solver_type: SGD type: "SGD"', SolverParameter))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('layer { name: "a" } layers { name: "b" }', "one form or the other"),
        ('layers { layer { name: "a" type: "nothing" } }', "Unknown layer type 'nothing'"),
        (
            'layers { layer { name: "a" type: "relu" kernelsize: 3 } }',
            "Unknown parameter 'kernelsize' for layer type RELU",
        ),
        ('input: "x" input_dim: 3', "four numbers input_dim each. Received: 1"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(CaffeError, match=message):
        upgraded(read(text))
