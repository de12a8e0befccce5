"""Damaged files: an error that says so, or a net; never a crash, a hang, or all memory."""

import random
import resource
import time

import numpy as np
import pytest

from weft.caffe.binary import parse_message, serialize_message
from weft.caffe.catalogue import Limits
from weft.caffe.errors import CaffeError
from weft.caffe.message import MESSAGES, NetParameter, SolverParameter
from weft.caffe.network import Network
from weft.caffe.text import print_message, read_message
from weft.caffe.weights import copy_weights, net_proto

from .fuzzing import EVERY_LAYER, OLD, mutated_bytes, mutated_text

SMALL = Limits(blob=2**18, parameters=2**18)
SECONDS = 5.0  # of the processor, for one file
MORE_MEMORY = 1 << 20  # KiB
SOLVER = """
net: "net.prototxt" test_iter: 100 test_interval: 500 base_lr: 0.01 lr_policy: "step" gamma: 0.1
stepsize: 10 stepvalue: 3 display: 100 max_iter: 1000 momentum: 0.9 weight_decay: 5e-4
snapshot: 5000 snapshot_prefix: "p" solver_mode: CPU type: "SGD" net_param { layer { name: "x" } }
"""


def built(text):
    """Read and build a net; return whether it is one."""
    try:
        net = read_message(text, NetParameter)
        Network(net, "TEST", limits=SMALL)
    except CaffeError:
        return False
    return True


def run(cases, work):
    """Do the work of every case within the limits; return how many were sound."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sound = 0
    for case in cases:
        start = time.thread_time()
        sound += work(case)
        assert time.thread_time() - start < SECONDS, case[:3000]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MORE_MEMORY
    return sound


def texts(count, seed):
    rng = random.Random(seed)
    return (mutated_text(rng.choice((EVERY_LAYER, EVERY_LAYER, OLD)), rng) for _ in range(count))


def test_the_nets_are_sound():
    assert built(EVERY_LAYER)
    assert built(OLD)


def test_mutated_nets():
    assert 0 < run(texts(150, 1), built) < 150


def read_solver(text):
    try:
        made = read_message(text, SolverParameter)
    except CaffeError:
        return False
    assert str(read_message(print_message(made), SolverParameter)) == str(made)
    return True


def test_mutated_solvers():
    rng = random.Random(2)
    assert run((mutated_text(SOLVER, rng) for _ in range(300)), read_solver)


TARGET = """input: "x" input_shape { dim: 2 dim: 3 }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
            inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
    layer { name: "bn" type: "BatchNorm" bottom: "y" top: "z" }"""


def models(count, seed):
    net = Network(read_message(TARGET, NetParameter), "TEST")
    data = serialize_message(net_proto(net))
    rng = random.Random(seed)
    return net, (mutated_bytes(data, rng) for _ in range(count))


def copied(net):
    def work(data):
        try:
            copy_weights(net, parse_message(data, NetParameter))
        except CaffeError:
            return False
        return True

    return work


def test_mutated_models():
    net, cases = models(400, 3)
    assert 0 < run(cases, copied(net)) < 400
    assert np.isfinite(net(np.ones((2, 3), "f")).detach().numpy()).shape == (2, 4)


@pytest.mark.parametrize("name", ["BlobProto", "Datum", "SolverState", "LayerParameter"])
def test_bytes_that_are_no_message(name):
    rng = random.Random(4)
    for _ in range(100):
        data = rng.randbytes(rng.randint(0, 60))
        try:
            made = parse_message(data, MESSAGES[name])
        except CaffeError:
            continue
        assert parse_message(serialize_message(made), MESSAGES[name]) == made or "nan" in str(made)


@pytest.mark.long
def test_a_hundred_thousand_mutated_texts():
    run(texts(25_000, 5), built)
    rng = random.Random(6)
    run((mutated_text(SOLVER, rng) for _ in range(75_000)), read_solver)


@pytest.mark.long
def test_ten_thousand_mutated_models():
    net, cases = models(10_000, 7)
    run(cases, copied(net))
