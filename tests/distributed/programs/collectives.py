"""Collective operations on several processes, eager, in graphs and in jitted functions."""

import numpy as np
import pytest

import weft as wf
from weft import distributed as dist

RANK, SIZE = dist.rank(), dist.size()


def of_rank(rank, shape=(4, 3), dtype=np.float64):
    """Return the array that a process has."""
    return np.random.default_rng(rank).uniform(0.5, 1.5, shape).astype(dtype)


ALL = [of_rank(r) for r in range(SIZE)]
MINE = ALL[RANK]
WHOLE = np.stack(ALL)
SHAPED = np.stack([of_rank(r, (SIZE * 2, SIZE)) for r in range(SIZE)])


def parts(axis):
    return np.split(SHAPED.sum(0), SIZE, axis)[RANK]


CASES = [
    (dist.all_reduce, MINE, WHOLE.sum(0)),
    (lambda x: dist.all_reduce(x, "mean"), MINE, WHOLE.mean(0)),
    (lambda x: dist.all_reduce(x, "max"), MINE, WHOLE.max(0)),
    (lambda x: dist.all_reduce(x, "min"), MINE, WHOLE.min(0)),
    (lambda x: dist.all_reduce(x, "prod"), MINE, WHOLE.prod(0)),
    (lambda x: dist.all_reduce(x, "pairwise"), MINE, WHOLE.sum(0)),
    (lambda x: dist.broadcast(x, SIZE - 1), MINE, ALL[-1]),
    (lambda x: dist.reduce(x, 1), MINE, WHOLE.sum(0) * (RANK == 1)),
    (dist.all_gather, MINE, np.concatenate(ALL)),
    (lambda x: dist.all_gather(x, axis=1), MINE, np.concatenate(ALL, 1)),
    (dist.reduce_scatter, SHAPED[RANK], parts(0)),
    (lambda x: dist.reduce_scatter(x, axis=-1), SHAPED[RANK], parts(1)),
    (
        lambda x: dist.all_to_all(x, axis=0, join=1),
        SHAPED[RANK],
        np.concatenate([np.split(a, SIZE)[RANK] for a in SHAPED], 1),
    ),
    (lambda x: dist.shift(x, 1), MINE, ALL[RANK - 1]),
]


def check_values():
    for fn, given, expected in CASES:
        np.testing.assert_allclose(fn(wf.tensor(given)).numpy(), expected, rtol=1e-14)


def check_graphs_and_jitted_functions_give_the_same():
    for fn, given, expected in CASES:
        jitted = wf.jit(lambda x, fn=fn: fn(x * 2.0) * 0.5)
        for _ in range(2):
            factor = 2.0 ** (SIZE - 1) if expected is CASES[4][2] else 1.0
            found = jitted(wf.tensor(given)).numpy()
            np.testing.assert_allclose(found, expected * factor, rtol=1e-14)
        with wf.Graph() as graph:
            x = wf.placeholder(given.shape, "float64")
            y = fn(x)
        np.testing.assert_allclose(wf.Session(graph).run(y, {x: given}), expected, rtol=1e-14)


def check_gradients_are_those_of_the_sum_of_all_losses():
    for fn, given, _ in CASES:
        x = wf.tensor(given, requires_grad=True)
        weights = weights_like(fn(x))
        (fn(x) * weights).sum().backward()
        eager = x.grad.numpy()
        direction = np.random.default_rng(200 + RANK).standard_normal(given.shape)
        assert_is_derivative(fn, given, direction, (eager * direction).sum())
        jitted = wf.jit(gradient_of(fn, weights), strict=True)
        for _ in range(2):
            given_again = wf.tensor(given, requires_grad=True)
            np.testing.assert_allclose(jitted(given_again).numpy(), eager, rtol=1e-12)


def gradient_of(fn, weights):
    return lambda v: wf.gradients((fn(v) * weights).sum(), v)


def weights_like(y):
    return wf.tensor(np.random.default_rng(100 + RANK).standard_normal(y.shape))


def assert_is_derivative(fn, given, direction, slope):
    """Compare a slope, added over all processes, with differences of the total loss."""
    step = 1e-6
    total = []
    for sign in (1, -1):
        y = fn(wf.tensor(given + sign * step * direction))
        total.append(float(dist.all_reduce((y * weights_like(y)).sum())))
    found = float(dist.all_reduce(wf.tensor(np.float64(slope))))
    np.testing.assert_allclose(found, (total[0] - total[1]) / (2 * step), rtol=1e-6)


def check_tangents():
    for fn, given, _ in CASES:
        direction = np.random.default_rng(RANK).standard_normal(given.shape)
        _, found = wf.jvp(fn, (wf.tensor(given),), (wf.tensor(direction),))
        step = 1e-6
        high, low = (fn(wf.tensor(given + s * step * direction)).numpy() for s in (1, -1))
        np.testing.assert_allclose(found.numpy(), (high - low) / (2 * step), rtol=1e-6, atol=1e-8)


def check_sending_and_receiving():
    def first(x):
        return dist.send(x * 3.0, 1)

    def second(like):
        return (dist.recv(like, 0) ** 2).sum()

    for wrap in (lambda fn: fn, wf.jit, wf.jit):
        if RANK == 0:
            x = wf.tensor(MINE, requires_grad=True)
            wrap(first)(x).backward()
            np.testing.assert_allclose(x.grad.numpy(), 2 * 9 * MINE)
        elif RANK == 1:
            like = wf.zeros(4, 3, dtype=wf.float64).requires_grad_()
            loss = wrap(second)(like)
            loss.backward()
            np.testing.assert_allclose(float(loss), ((3 * ALL[0]) ** 2).sum())
            np.testing.assert_array_equal(like.grad.numpy(), np.zeros((4, 3)))
    if RANK == 0:
        dist.send(wf.ones(2), 1)
    elif RANK == 1:
        with pytest.raises(dist.MismatchError, match=r"rank 1 expects float32\[3\] from rank 0"):
            dist.recv(wf.ones(3), 0)
        dist.world().exchanges.transport.receive(np.empty(2, np.float32), 0, 12)
    dist.barrier()


def check_every_dtype_moves_and_floats_of_16_bits_are_added():
    for name in ("bool", "int8", "uint16", "int64", "float16", "bfloat16", "float32"):
        x = wf.tensor(np.arange(3) + RANK).to(getattr(wf, name))
        gathered = dist.all_gather(x)
        assert gathered.dtype == x.dtype
        assert gathered.shape == (3 * SIZE,)
        if name != "bool":
            total = dist.all_reduce(x).to(wf.int64).numpy()
            np.testing.assert_array_equal(total, np.arange(3) * SIZE + SIZE * (SIZE - 1) // 2)


def check_groups():
    pair = dist.new_group([1, 0])
    rest = dist.new_group(range(SIZE))
    if RANK < 2:
        assert pair.rank == 1 - RANK
        found = dist.all_gather(wf.tensor([RANK]), group=pair).numpy()
        np.testing.assert_array_equal(found, [1, 0])
        jitted = wf.jit(lambda x: dist.all_reduce(x, group=pair))
        assert float(jitted(wf.tensor(1.0))) == 2.0
    else:
        assert pair.rank is None
        assert_raises(RuntimeError, "no member", lambda: dist.barrier(group=pair))
    assert float(dist.all_reduce(wf.tensor(1.0), group=rest)) == SIZE


def check_what_differs_is_named_by_rank():
    shape = (2, RANK + 1)
    assert_raises(
        dist.MismatchError,
        r"rank 1: sum of float32\[2, 2\]",
        lambda: dist.all_reduce(wf.ones(shape)),
    )
    dtype = wf.float32 if RANK else wf.float64
    assert_raises(
        dist.MismatchError,
        "rank 0: .*float64.*rank 1: .*float32",
        lambda: dist.all_gather(wf.ones(2, dtype=dtype)),
    )
    act = dist.all_reduce if RANK else dist.broadcast
    assert_raises(dist.MismatchError, "rank 0: broadcast.*rank 1: sum", lambda: act(wf.ones(2)))
    jitted = wf.jit(lambda x: dist.all_reduce(x * 2.0))
    assert_raises(dist.MismatchError, "rank 1: sum", lambda: jitted(wf.ones(shape)))
    dist.barrier()


def check_values_that_python_reads_do_not_part_the_processes():
    @wf.jit
    def step(x):
        if x.sum() > 2.5:  # differs from process to process
            return dist.all_reduce(x * 2.0)
        return dist.all_reduce(x * 3.0)

    for turn in range(4):
        mine = [float(turn + RANK), 0.0]
        everyone = [float(turn + r) for r in range(SIZE)]
        expected = sum(v * (2.0 if v > 2.5 else 3.0) for v in everyone)
        assert float(step(wf.tensor(mine))[0]) == expected


def check_an_exchange_goes_on_while_the_program_does():
    later = [dist.start_all_reduce(wf.full((3,), float(i))) for i in range(5)]
    assert float(dist.all_reduce(wf.tensor(1.0))) == SIZE
    for i, one in enumerate(later):
        np.testing.assert_array_equal(one.wait().numpy(), [i * SIZE] * 3)


def check_control_flow_communicates():
    def body(state):
        i, x = state
        return i + 1, dist.all_reduce(x, "mean") * 2.0

    @wf.jit
    def run(x):
        return wf.while_loop(lambda state: state[0] < 3, body, (wf.tensor(0), x))[1]

    mean = WHOLE.mean(0)
    np.testing.assert_allclose(run(wf.tensor(MINE)).numpy(), mean * 8, rtol=1e-14)


def assert_raises(kind, text, act):
    with pytest.raises(kind, match=text):
        act()


def check_the_network_can_be_measured():
    if SIZE == 1:
        with pytest.raises(ValueError, match="two ranks or more"):
            dist.measure_network()
        return
    found = dist.measure_network(repeats=2)
    assert 0 < found.latency < 10
    assert found.bandwidth > 1e4
    assert 0 <= found.occupied < 1
    assert len(set(dist.world().exchanges.transport.objects(found))) == 1
