"""Predicted steps: what the model says in cases that can be computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.distributed import Network, simulate
from weft.distributed.simulation.calibration import _network
from weft.distributed.simulation.measured import Gradient, MeasuredStep, StepEvent, measure
from weft.distributed.simulation.predictions import memory_of
from weft.distributed.simulation.timeline import MIB, bucketed, replayed, step_time

STEP = MeasuredStep(
    seconds=1.0,
    computing=0.9,
    gradients=(
        Gradient("last", 2 * MIB, 0.5, 0.05),
        Gradient("first", 30 * MIB, 0.9, 0.05),
    ),
    parameters=32 * MIB,
    slots=64 * MIB,
    activations=10 * MIB,
)
FAST = Network(latency=1e-9, bandwidth=1e15, addition=1e15)


def test_a_network_without_cost_costs_nothing():
    for zero in range(4):
        assert step_time(STEP, 2, FAST).total == pytest.approx(1.0)
        assert step_time(STEP, 64, FAST, zero=zero).total <= 1.0 + 1e-6


def test_what_is_sent_early_is_hidden_and_the_rest_is_not():
    slow = Network(latency=1e-9, bandwidth=64 * MIB, addition=1e15)
    # At two ranks a bucket of n bytes takes n / bandwidth: 2 MiB in 1/32 s, 30 MiB in 15/32 s.
    found = step_time(STEP, 2, slow)
    assert found.travel == pytest.approx(0.5, rel=1e-6)
    assert found.total == pytest.approx(0.9 + 15 / 32 + 0.05, rel=1e-6)
    assert found.exposed == pytest.approx(15 / 32 - 0.05, rel=1e-6)


def test_a_processor_that_copies_bytes_computes_less():
    slow = Network(latency=1e-9, bandwidth=64 * MIB, addition=1e15, occupied=0.5)
    free = Network(latency=1e-9, bandwidth=64 * MIB, addition=1e15)
    assert step_time(STEP, 2, slow).total > step_time(STEP, 2, free).total + 0.2


def events(*parts):
    """Return a step: seconds of computing, ("begin", number, bytes), ("wait", number)."""
    found = []
    for part in parts:
        if isinstance(part, float):
            found.append(StepEvent(part))
        elif part[0] == "begin":
            found.append(StepEvent(0.0, part[1], "mean", part[2] * MIB))
        else:
            found.append(StepEvent(0.0, part[1]))
    return tuple(found)


def test_a_step_with_exchanges_is_replayed_in_its_own_order():
    slow = Network(latency=1e-9, bandwidth=10 * MIB, addition=1e15)
    # At two ranks 1 MiB takes 0.1 s. The first is hidden, the second for a half.
    step = events(0.5, ("begin", 0, 1), 0.2, ("begin", 1, 2), 0.1, ("wait", 0), ("wait", 1), 0.05)
    found = replayed(step, 2, slow)
    assert found.total == pytest.approx(0.5 + 0.2 + 0.2 + 0.05, rel=1e-6)
    assert found.exposed == pytest.approx(0.1, rel=1e-6)
    assert found.travel == pytest.approx(0.3, rel=1e-6)


def test_exchanges_of_a_step_stand_in_one_line():
    slow = Network(latency=1e-9, bandwidth=10 * MIB, addition=1e15)
    step = events(("begin", 0, 3), ("begin", 1, 1), 0.1, ("wait", 1), 0.1, ("wait", 0))
    assert replayed(step, 2, slow).total == pytest.approx(0.5, rel=1e-6)


def test_exchanges_take_their_part_of_the_processor():
    slow = Network(latency=1e-9, bandwidth=10 * MIB, addition=1e15, occupied=0.5)
    hidden = events(("begin", 0, 1), 1.0, ("wait", 0))
    assert replayed(hidden, 2, slow).total == pytest.approx(1.05, rel=1e-6)
    short = events(("begin", 0, 1), 0.04, ("wait", 0))
    assert replayed(short, 2, slow).total == pytest.approx(0.1, rel=1e-6)
    full = Network(latency=1e-9, bandwidth=10 * MIB, addition=1e15, occupied=1.0)
    assert replayed(hidden, 2, full).total == pytest.approx(1.1, rel=1e-6)


def test_exchanges_cost_what_their_kind_does():
    network = Network(latency=1e-3, bandwidth=1e9, addition=1e9)
    assert network.exchange("mean", 1e6, 4) == network.all_reduce(1e6, 4)
    assert network.exchange("scatter", 1e6, 4) == network.reduce_scatter(1e6, 4)
    assert network.exchange("collect", 1e6, 4) == network.all_gather(1e6, 4)
    assert network.latency_of("mean", 4) == 2 * network.latency_of("whole", 4)


def test_a_network_is_found_by_its_times():
    # 1 ms of waiting, 8 MiB in 80 ms more than none; computing goes on at half its speed.
    found = _network(1e-3, 11e-3, 81e-3, 100.0, 50.0, ranks=2)
    assert found.all_reduce(8 * MIB, 2) == pytest.approx(81e-3)
    assert found.all_reduce(MIB, 2) == pytest.approx(11e-3)
    assert found.occupied == 0.5
    assert _network(1e-3, 11e-3, 81e-3, 50.0, 60.0, ranks=2).occupied == 0.0
    with pytest.raises(ValueError, match="two ranks or more"):
        wf.distributed.measure_network()


def test_a_parallel_step_is_measured_with_its_exchanges():
    model = wf.nn.Sequential(wf.nn.Linear(16, 32), wf.nn.ReLU(), wf.nn.Linear(32, 4))
    handle = wf.distributed.parallel(model, bucket_mib=0.001, first_bucket_mib=0.0001)
    optimizer = wf.optim.Adam(model.parameters())

    @wf.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = wf.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    found = measure(step, (wf.rand(8, 16), wf.tensor(np.arange(8) % 4)), runs=2)
    handle.close()
    begun = [e for e in found.events if e.how is not None]
    assert [e.size for e in begun] == [
        4 * sum(p.numel() for p in b.parameters) for b in handle.averager.buckets
    ]
    waited = [e.exchange for e in found.events if e.exchange is not None and e.how is None]
    assert sorted(waited) == [e.exchange for e in begun] == list(range(len(begun)))
    ready = {g.name: g.ready for g in found.gradients}
    assert ready["sequential/2/weight"] <= ready["sequential/0/weight"] <= found.computing
    assert 0 < found.alone < found.seconds
    assert simulate(found, 1).predictions[0].efficiency == 1.0
    slow = Network(latency=0.1, bandwidth=1e9)
    assert simulate(found, 2, network=slow).predictions[0].seconds > 0.2 * len(begun)
    assert simulate(found, 2, network=slow, zero=1).predictions[0].seconds > 0.1


def test_buckets_are_those_of_parallel():
    sizes = [0.5, 0.7, 20, 4, 3, 30, 1]
    gradients = [Gradient(str(i), int(n * MIB), i, 0.0) for i, n in enumerate(sizes)]
    found = [[g.name for g in b] for b in bucketed(gradients, 25 * MIB, MIB)]
    assert found == [["0"], ["1", "2", "3"], ["4"], ["5"], ["6"]]


def test_memory_follows_the_formulas():
    p, g, s, a = 32 * MIB, 32 * MIB, 64 * MIB, 10 * MIB
    assert memory_of(STEP, 8, 0) == p + g + s + a
    assert memory_of(STEP, 8, 1) == p + g + s // 8 + a
    assert memory_of(STEP, 8, 2) == p + g // 8 + s // 8 + a
    assert memory_of(STEP, 8, 3) == (p + g + s) // 8 + 30 * MIB + a


def test_bottlenecks_are_named():
    thin = Network(latency=1e-6, bandwidth=10 * MIB)
    far = Network(latency=1.0, bandwidth=1e15)
    assert simulate(STEP, 8, network=FAST).predictions[0].bottleneck == "computation"
    assert simulate(STEP, 8, network=thin).predictions[0].bottleneck == "bandwidth"
    assert simulate(STEP, 8, network=far).predictions[0].bottleneck == "latency"
    assert simulate(STEP, 8, memory="1M").predictions[0].bottleneck == "memory"


@pytest.mark.parametrize(
    ("memory", "advice"),
    [
        ("1G", "nothing needs to be divided"),
        ("100M", "divide by zero=1"),
        ("60M", "divide by zero=2"),
        ("41M", "divide by zero=3"),
        ("20M", "tensor parallel"),
        ("5M", "activations alone do not fit"),
        (None, "most memory is taken by what the optimizer keeps"),
    ],
)
def test_advice(memory, advice):
    assert advice in repr(simulate(STEP, [2, 1024], memory=memory))


def test_a_jitted_step_is_measured_and_unchanged():
    model = wf.nn.Sequential(wf.nn.Linear(16, 32), wf.nn.BatchNorm1d(32), wf.nn.Linear(32, 4))
    optimizer = wf.optim.Adam(model.parameters())

    @wf.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = wf.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    x, y = wf.rand(8, 16), wf.tensor(np.arange(8) % 4)
    step(x, y)
    before = [p.numpy().copy() for p in model.parameters()]
    found = measure(step, (x, y), runs=2)
    assert all(
        np.array_equal(p.numpy(), b) for p, b in zip(model.parameters(), before, strict=True)
    )
    sizes = sorted(p.numpy().nbytes for p in model.parameters())
    assert sorted(g.size for g in found.gradients) == sizes
    assert found.slots >= 2 * sum(sizes)
    ready = {g.name: g.ready for g in found.gradients}
    assert ready["sequential/2/weight"] <= ready["sequential/0/weight"] <= found.computing
    assert found.computing <= found.seconds * 1.000001


def test_bad_input():
    with pytest.raises(ValueError, match="numbers from 1 on"):
        simulate(STEP, [2, 0])
    with pytest.raises(ValueError, match="zero must be one of"):
        simulate(STEP, 2, zero=4)
    with pytest.raises(ValueError, match="there is no network 'fast'; there are '1gbit'"):
        simulate(STEP, 2, network="fast")
    with pytest.raises(TypeError, match="a network is a name"):
        simulate(STEP, 2, network=10)
    with pytest.raises(ValueError, match="latency must be positive"):
        Network(0, 1e9)
    with pytest.raises(ValueError, match="between 0 and 1"):
        Network(1e-6, 1e9, occupied=2)
    with pytest.raises(TypeError, match="jit made"):
        simulate(print, 2)
    with pytest.raises(ValueError, match="changes no parameters"):
        simulate(wf.jit(lambda x: x + 1), 2, inputs=(wf.ones(3),))
