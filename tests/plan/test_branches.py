"""Branches that need nothing of one another run at the same time, where that takes less time."""

from __future__ import annotations

import os

import numpy as np
import pytest

import weft as wf
from tests.backends.cpu.runtime.test_interrupts import posix, run
from tests.threads import assert_same_bits_on_threads, num_threads
from weft.compiler import stages
from weft.core.errors import AnomalyError
from weft.lower.kernels import LoopKernel, TogetherKernel, walk
from weft.lower.verify import verify
from weft.plan import branches

RNG = np.random.default_rng(0)


def array(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def mlp(width=64, depth=8):
    layers = [f for _ in range(depth) for f in (wf.nn.Linear(width, width), wf.nn.Tanh())]
    return wf.nn.Sequential(*layers)


def two_lstms():
    with wf.Graph() as graph:
        x = wf.placeholder((24, 4, 32), wf.float32, name="x")
        out = [wf.nn.LSTM(32, 32)(x)[0] for _ in range(2)]
    return graph, out, {x: array(24, 4, 32)}


def two_mlps():
    with wf.Graph() as graph:
        x = wf.placeholder((32, 64), wf.float32, name="x")
        out = [mlp()(x).sum() for _ in range(2)]
    return graph, out, {x: array(32, 64)}


def two_convolutional():
    """Kernels that two threads share already; a thread for each tower saves the waiting."""
    with wf.Graph() as graph:
        x = wf.placeholder((4, 8, 16, 16), wf.float32, name="x")
        out = [convolutions(x).sum() for _ in range(2)]
    return graph, out, {x: array(4, 8, 16, 16)}


def convolutions(x):
    for _ in range(4):
        x = wf.nn.Conv2d(8, 8, 3, padding=1)(x)
    return x


def in_a_loop():
    """Two towers in each turn of a scan."""
    nets = [mlp(64, 4) for _ in range(2)]

    def turn(carry, row):
        return tuple(net(c + row) for net, c in zip(nets, carry, strict=True)), ()

    with wf.Graph() as graph:
        xs = wf.placeholder((5, 32, 64), wf.float32, name="xs")
        (a, b), _ = wf.scan(turn, (wf.zeros(32, 64), wf.zeros(32, 64)), xs)
    return graph, [a, b], {xs: array(5, 32, 64)}


def with_dropout():
    """Random numbers: which stream an element gets does not depend on who draws it."""
    with wf.Graph() as graph:
        x = wf.placeholder((32, 64), wf.float32, name="x")
        out = [wf.nn.functional.dropout(mlp(64, 6)(x), 0.5) for _ in range(2)]
    return graph, out, {x: array(32, 64)}


def both_ways():
    with wf.Graph() as graph:
        x = wf.placeholder((24, 4, 32), wf.float32, name="x")
        out = wf.nn.LSTM(32, 32, bidirectional=True)(x)[0]
    return graph, [out], {x: array(24, 4, 32)}


TOWERS = {
    "lstm": two_lstms,
    "mlp": two_mlps,
    "conv": two_convolutional,
    "loop": in_a_loop,
    "dropout": with_dropout,
    "both ways": both_ways,
}


def planned(graph, fetches, feeds, threads=2):
    with num_threads(threads):
        return wf.Session(graph).executable(fetches, feeds).program


def chains_in(program):
    return [kernel for kernel in walk(program.kernels) if isinstance(kernel, TogetherKernel)]


@pytest.mark.parametrize("name", TOWERS)
def test_towers_are_chains_with_memory_apart(name):
    program = planned(*TOWERS[name]())
    assert chains_in(program)
    verify(program)


@pytest.mark.parametrize("name", ["lstm", "mlp", "conv", "loop", "both ways"])
def test_bits_are_those_of_one_thread(name):
    assert_same_bits_on_threads(*TOWERS[name]())


def test_memory_counts_from_a_size_on(monkeypatch):
    monkeypatch.setattr(stages, "known_program", lambda *_: None)
    monkeypatch.setattr(branches, "FOR_MEMORY", 1.0)
    assert chains_in(planned(*two_mlps()))
    monkeypatch.setattr(branches, "AMPLE", 0)
    assert not chains_in(planned(*two_mlps()))


def test_random_numbers_are_those_of_one_thread():
    results = []
    for threads in (1, 2):
        wf.manual_seed(7)
        graph, out, feeds = with_dropout()
        feeds = {name: np.ones((32, 64), np.float32) for name in feeds}
        with num_threads(threads):
            session = wf.Session(graph)
            results.append([session.run(out, feeds) for _ in range(2)])
    np.testing.assert_array_equal(results[0], results[1])


def test_the_text_shows_what_runs_beside_what():
    text = str(planned(*two_lstms()))
    assert "2 chains at the same time" in text
    assert text.count("beside") == 1


@pytest.mark.parametrize("threads", [1, 2])
def test_programs_that_gain_nothing_stay_as_they_are(threads):
    with wf.Graph() as graph:
        x = wf.placeholder((512, 512), wf.float32, name="x")
        large = [wf.tanh(x @ array(512, 512)) @ array(512, 512) for _ in range(2)]
        chain = mlp(512, 3)(x)
    feeds = {x: array(512, 512)}
    for fetches in (large, [chain]):
        assert not chains_in(planned(graph, fetches, feeds, threads))
    if threads == 1:
        assert not chains_in(planned(*two_lstms(), threads=1))


def test_training_writes_states_in_place_as_before():
    def trained(threads):
        wf.manual_seed(3)
        with wf.Graph() as graph:
            x = wf.placeholder((32, 64), wf.float32, name="x")
            nets = [mlp(64, 6) for _ in range(2)]
            loss = ((nets[0](x) - nets[1](x)) ** 2).mean()
            parameters = [p for net in nets for p in net.parameters()]
            step = wf.optim.Adam(parameters, lr=1e-2).minimize(loss)
        feeds = {x: np.linspace(-1, 1, 2048, dtype=np.float32).reshape(32, 64)}
        with num_threads(threads):
            session = wf.Session(graph)
            losses = [float(session.run([loss, step], feeds)[0]) for _ in range(5)]
            program = session.executable([loss, step], feeds).program
        return losses, [p.numpy().copy() for p in parameters], program

    losses, values, program = trained(2)
    alone, expected, serial = trained(1)
    assert losses == alone
    for a, b in zip(values, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(chains_in(program)) == 2
    assert program.memory.changed == serial.memory.changed
    assert program.memory.copied == ()


def test_recurrent_training_leaves_updates_until_nothing_can_fail():
    with wf.Graph() as graph:
        x = wf.placeholder((24, 4, 32), wf.float32, name="x")
        nets = [wf.nn.LSTM(32, 32) for _ in range(2)]
        loss = ((nets[0](x)[0] - nets[1](x)[0]) ** 2).mean()
        parameters = [p for net in nets for p in net.parameters()]
        step = wf.optim.SGD(parameters, lr=0.1).minimize(loss)
    feeds = {x: array(24, 4, 32)}
    program = planned(graph, [loss, step], feeds)
    assert len(chains_in(program)) >= 2
    assert program.memory.copied == ()
    verify(program)


def recurrent_training(count=2):
    """Return a graph that trains recurrent nets of their own losses, and what to fetch and feed."""
    wf.manual_seed(0)
    with wf.Graph() as graph:
        x = wf.placeholder((24, 8, 32), wf.float32, name="x")
        steps = []
        for _ in range(count):
            net = wf.nn.LSTM(32, 64)
            loss = (net(x)[0] ** 2).mean()
            steps += [loss, wf.optim.SGD(net.parameters(), lr=0.1).minimize(loss)]
    return graph, steps, {x: np.ones((24, 8, 32), np.float32)}


def test_updates_after_chains_go_on_in_chains():
    program = planned(*recurrent_training())
    loops, updates = chains_in(program)
    written = {view.buffer for _, view in program.commits}

    def writes(chain):
        return any(k.views[i].buffer in written for k in walk(chain) for i in k.written)

    assert not any(map(writes, loops.chains))
    assert all(map(writes, updates.chains))
    assert len(updates.chains) == 2
    assert program.memory.copied == ()
    verify(program)


def test_updates_in_chains_have_the_bits_of_one_thread():
    found = []
    for threads in (1, 2):
        graph, steps, feeds = recurrent_training()
        with num_threads(threads):
            session = wf.Session(graph)
            for _ in range(3):
                session.run(steps, feeds)
            found.append([float(session.run(loss, feeds)) for loss in steps[::2]])
    assert found[0] == found[1]


def test_an_index_out_of_range_in_a_chain_changes_no_state():
    table, nets = wf.nn.Embedding(10, 32), [wf.nn.LSTM(32, 32) for _ in range(2)]
    with wf.Graph() as graph:
        i = wf.placeholder((24, 4), wf.int64, name="i")
        loss = sum(net(table(i))[0].sum() for net in nets)
        step = wf.optim.SGD([*table.parameters(), *nets[0].parameters()], lr=0.1).minimize(loss)
    good, bad = np.zeros((24, 4), np.int64), np.full((24, 4), 10)
    with num_threads(2):
        session = wf.Session(graph)
        session.run([loss, step], {i: good})
        before = [p.numpy().copy() for p in (*table.parameters(), *nets[0].parameters())]
        for _ in range(3):
            with pytest.raises(IndexError, match="out of range"):
                session.run([loss, step], {i: bad})
        after = [p.numpy() for p in (*table.parameters(), *nets[0].parameters())]
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b)
        session.run([loss, step], {i: good})


def test_the_nan_trap_finds_the_node_in_a_chain(monkeypatch):
    monkeypatch.setattr(wf.config, "nan_trap", True)
    with wf.Graph() as graph:
        x = wf.placeholder((24, 4, 32), wf.float32, name="x")
        out = [wf.log(wf.nn.LSTM(32, 32)(x)[0] - 2.0).sum(), wf.nn.LSTM(32, 32)(x)[0].sum()]
    with num_threads(2):
        session = wf.Session(graph)
        for _ in range(2):
            with pytest.raises(AnomalyError, match="log"):
                session.run(out, {x: array(24, 4, 32)})


def test_a_profile_tells_which_thread_ran_a_chain(tmp_path):
    graph, out, feeds = two_lstms()
    with num_threads(2):
        session = wf.Session(graph)
        session.run(out, feeds)
        executable = session.executable(out, feeds)
        profile = executable.profile(list(feeds.values()))
        profile.save_chrome_trace(tmp_path / "trace.json")
    assert executable.stats()["kernels"]["together"] == 1
    assert all(found.minimum > 0 for found in profile.kernels)
    assert sum(found.minimum for found in profile.kernels) <= 1.5 * profile.seconds


def test_sizes_of_a_run_decide_whether_chains_run_at_the_same_time():
    with wf.Graph() as graph:
        x = wf.placeholder((24, None, 32), wf.float32, name="x")
        out = [wf.nn.LSTM(32, 32)(x)[0] for _ in range(2)]
    for threads in (1, 2):
        with num_threads(threads):
            session, plain = wf.Session(graph), wf.Session(graph, compiled=False)
            for batch in (1, 3, 64, 3, 200):
                feeds = {x: array(24, batch, 32)}
                for a, b in zip(session.run(out, feeds), plain.run(out, feeds), strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_plans_are_the_same_every_time():
    first, second = (str(planned(*two_mlps())) for _ in range(2))
    assert first == second


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks as on POSIX")
def test_a_forked_child_runs_chains():
    lines = run("""
        wf.set_num_threads(2)
        with wf.Graph() as graph:
            x = wf.placeholder((24, 4, 32), wf.float32, name="x")
            out = sum(wf.nn.LSTM(32, 32)(x)[0].sum() for _ in range(2))
        session, feeds = wf.Session(graph), {"x": np.ones((24, 4, 32), np.float32)}
        wanted = [session.run(out, feeds) for _ in range(3)][-1]
        child = os.fork()
        same = all(session.run(out, feeds) == wanted for _ in range(3))
        if child == 0:
            os._exit(0 if same else 1)
        print(same, os.waitpid(child, 0)[1])
    """)
    assert lines == ["True 0"]


@posix
def test_ctrl_c_ends_chains_whoever_runs_the_long_one():
    """Only the main thread hears of a signal; the long loop is in the chain that it has or not."""
    lines = run("""
        wf.set_num_threads(2)
        w = wf.ones(64, 64)

        def multiplied(n):
            start = wf.zeros_like(n), wf.ones(32, 64)
            turn = lambda s: (s[0] + 1, wf.tanh(s[1] @ w))
            return wf.while_loop(lambda s: s[0] < n, turn, start)[0]

        with wf.Graph() as graph:
            a = wf.placeholder((), wf.int64, name="a")
            b = wf.placeholder((), wf.int64, name="b")
            total = [multiplied(a), multiplied(b)]
        session = wf.Session(graph)
        session.run(total, {"a": 5, "b": 5})
        program = session.executable(total, {"a": 5, "b": 5}).program
        print(any(kernel.kind == "together" for kernel in program.kernels))
        for a, b in ((FOR_EVER, 5), (5, FOR_EVER), (FOR_EVER, FOR_EVER)):
            print(during(lambda: session.run(total, {"a": a, "b": b})))
            print([int(n) for n in session.run(total, {"a": 5, "b": 5})])
    """)
    assert lines == ["True", *["KeyboardInterrupt", "[5, 5]"] * 3]


def test_loops_are_in_chains_whole():
    program = planned(*two_lstms())
    (together,) = chains_in(program)
    for chain in together.chains[:2]:
        assert any(isinstance(kernel, LoopKernel) for kernel in chain)
