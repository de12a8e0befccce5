"""jit for many sizes: few programs, the results of eager code, the bits of code for known sizes."""

from __future__ import annotations

import random

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from weft.capture import sized_traces
from weft.capture.jitted import Jitted


def compilations(jitted) -> int:
    """Return how many programs a jitted function has compiled for what it has run."""
    fixed = [trace for paths in jitted._traces.values() for trace in paths]
    traces = [*fixed, *jitted._sized.traces()]
    return sum(len(trace.executables()) for trace in traces)


class Words(wf.nn.Module):
    """Embedded words, something over time, a dense layer for each word."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.embed = wf.nn.Embedding(9, 8)
        self.over_time = (
            wf.nn.LSTM(8, 8, batch_first=True)
            if kind == "lstm"
            else wf.nn.MultiheadAttention(8, 2, batch_first=True)
        )
        self.norm, self.drop = wf.nn.BatchNorm1d(8), wf.nn.Dropout(0.25)
        self.out = wf.nn.Linear(8, 9)

    def forward(self, words):
        h = self.embed(words)
        h, _ = self.over_time(h) if self.kind == "lstm" else self.over_time(h, h, h)
        n, t, d = h.shape
        return self.out(self.drop(self.norm(h.reshape(n * t, d))))


class Rows(wf.nn.Module):
    """A network on rows, with all that looks at a whole batch."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = wf.nn.Sequential(
            wf.nn.Linear(5, 8), wf.nn.LayerNorm(8), wf.nn.ReLU(), wf.nn.Dropout(0.25)
        )
        self.out = wf.nn.Linear(8, 9)

    def forward(self, x):
        return self.out(self.layers(x))


def step_of(make):
    """Return a network and a step that trains it."""
    wf.manual_seed(0)
    net = make()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        scores, y = net(x), y.reshape(-1)
        loss = F.cross_entropy(scores, y)
        loss.backward()
        optimizer.step()
        right = (scores.argmax(-1) == y).sum()
        return loss, right / y.shape[0], y.shape[0]

    return net, step


def words(n: int, t: int, seed: int = 0):
    rng = np.random.default_rng(1000 * n + t + seed)
    return wf.tensor(rng.integers(0, 9, (n, t))), wf.tensor(rng.integers(0, 9, (n, t)))


def rows(n: int):
    rng = np.random.default_rng(n)
    return wf.tensor(rng.normal(size=(n, 5)).astype(np.float32)), wf.tensor(rng.integers(0, 9, n))


def check_equal_to_eager(make, batches):
    """Train eagerly and jitted on the same batches; return the jitted step."""
    (net, eager), (compiled, step) = step_of(make), step_of(make)
    jitted = wf.jit(step)
    for batch in batches:
        results = []
        for run in (eager, jitted):
            wf.manual_seed(5)
            results.append(run(*batch))
        (loss, share, count), (found, found_share, found_count) = results
        np.testing.assert_allclose(found.numpy(), loss.numpy(), rtol=2e-4)
        assert found_share.item() == pytest.approx(share.item(), abs=1.01 / count)
        assert (type(found_count), found_count) == (int, count)
    for a, b in zip(net.state_dict().values(), compiled.state_dict().values(), strict=True):
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=2e-3, atol=2e-4)
    return jitted


def check_few_programs(jitted, most: int) -> None:
    stats = jitted.stats()
    assert stats["eager_calls"] == 0
    assert stats["recordings"] <= most
    assert compilations(jitted) <= most


def shuffled(count: int, some: int | None) -> list[int]:
    """Return the sizes 1 to a count in random order, or some of them with 1 and the count."""
    sizes = random.Random(0).sample(range(2, count), count - 2 if some is None else some)
    return [*sizes[:2], 1, *sizes[2:], count, sizes[0]]


def test_batches_of_any_size_take_three_programs():
    check_few_programs(check_equal_to_eager(Rows, map(rows, shuffled(512, 8))), 3)


@pytest.mark.parametrize("kind", ["lstm", "attention"])
def test_words_of_any_length_take_three_programs(kind):
    batches = [words(3, t) for t in shuffled(64, 4)]
    check_few_programs(check_equal_to_eager(lambda: Words(kind), batches), 3)


@pytest.mark.long
def test_all_batch_sizes_take_three_programs():
    check_few_programs(check_equal_to_eager(Rows, map(rows, shuffled(512, None))), 3)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["lstm", "attention"])
def test_all_lengths_take_three_programs(kind):
    batches = [words(3, t) for t in shuffled(256, None)]
    check_few_programs(check_equal_to_eager(lambda: Words(kind), batches), 3)


def test_batch_size_and_length_change_at_a_time():
    sizes = [(4, 9), (3, 7), (2, 2), (9, 9), (6, 2), (4, 9)]
    jitted = check_equal_to_eager(lambda: Words("attention"), [words(n, t) for n, t in sizes])
    check_few_programs(jitted, 2)


def weights_after(first, batch):
    """Return the weights after one step, which is taken after others that are forgotten."""
    net, step = step_of(lambda: Words("lstm"))
    begin = {name: wf.tensor(value.numpy()) for name, value in net.state_dict().items()}
    jitted = wf.jit(step)
    for other in first:
        jitted(*other)
    net.load_state_dict(begin)
    for p in net.parameters():
        p.grad = None
    wf.manual_seed(9)
    loss, _, _ = jitted(*batch)
    grads = [p.grad.numpy().tobytes() for p in net.parameters()]
    return jitted, loss.numpy().tobytes(), grads


def test_bits_are_those_of_code_for_known_sizes():
    known, *expected = weights_after([], words(4, 6))
    sized, *found = weights_after([words(3, 5), words(2, 9)], words(4, 6))
    assert known.stats()["recordings"] == 1
    assert sized.stats()["recordings"] == 2
    assert found == expected


def test_convolutions_are_recorded_once_and_compiled_for_each_size():
    wf.manual_seed(0)
    net = wf.nn.Conv2d(1, 2, 3)
    jitted = wf.jit(lambda x: net(x).mean(0))
    for n in (4, 3, 5, 2):
        x = wf.ones(n, 1, 6, 6)
        np.testing.assert_allclose(
            jitted(x).detach().numpy(), net(x).mean(0).detach().numpy(), rtol=1e-5
        )
    assert jitted.stats()["recordings"] == 2
    assert jitted.stats()["eager_calls"] == 0


def test_caches_that_are_passed_on_grow():
    wf.manual_seed(0)
    layer = wf.nn.Linear(4, 4)

    def decode(x, cache):
        cache = wf.cat([cache, layer(x)], 1)
        return (x @ cache.transpose(1, 2)).softmax(-1) @ cache, cache

    jitted = wf.jit(decode)
    cache = other = wf.zeros(1, 1, 4)
    with wf.no_grad():
        for i in range(8):
            x = wf.full((1, 1, 4), float(i))
            (expected, cache), (found, other) = decode(x, cache), jitted(x, other)
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5)
    assert other.shape == (1, 9, 4)
    check_few_programs(jitted, 3)


def test_caches_that_are_kept_grow():
    class Cache:
        def __init__(self):
            self.rows = wf.zeros(1, 4)

    cache, seen = Cache(), wf.zeros(1, 4)

    @wf.jit
    def decode(x):
        cache.rows = wf.cat([cache.rows, x])
        return cache.rows.sum(0) / cache.rows.shape[0]

    for i in range(8):
        x = wf.full((1, 4), float(i))
        seen = wf.cat([seen, x])
        np.testing.assert_allclose(decode(x).numpy(), seen.numpy().mean(0), rtol=1e-6)
    assert cache.rows.tolist() == seen.tolist()
    check_few_programs(decode, 3)


def test_conditions_on_sizes_choose_the_path():
    @wf.jit
    def step(x):
        return x * 2 if x.shape[0] > 4 else x - x.shape[0]

    for n in (8, 6, 3, 2, 9, 4, 7):
        x = wf.ones(n)
        expected = x * 2 if n > 4 else x - n
        assert step(x).tolist() == expected.tolist()
    assert step.stats()["recordings"] == 3  # the first, and one for each arm
    assert "float32[n0]" in step.explain()


def test_sizes_that_python_needs_are_numbers_from_then_on():
    calls = []

    @wf.jit
    def step(x, y):
        rows = [x[i] for i in range(x.shape[0])]
        return sum(rows) * y.sum() / y.shape[0]

    for n, k in ((3, 4), (2, 5), (3, 6), (2, 7), (4, 8)):
        x, y = wf.ones(n, 2), wf.ones(k)
        calls.append(step(x, y).tolist())
    assert calls == [[n, n] for n in (3, 2, 3, 2, 4)]
    assert step.stats()["eager_calls"] == 0
    # the first; 2 rows, of any y; 3 rows, of any y; 4 rows, of any y
    assert step.stats()["recordings"] <= 4


def test_numbers_and_sizes_change_in_the_same_calls():
    step = wf.jit(lambda x, i: x.sum() * i + x.shape[0])
    for i, n in enumerate((4, 5, 6, 7, 8)):
        assert step(wf.ones(n), i).item() == n * i + n
    assert step.stats()["recordings"] <= 3


def test_arrays_have_sizes_as_tensors_do():
    @wf.jit
    def step(x):
        return wf.tensor(x).sum() + x.shape[0] * x.ndim + x.size

    for n in (4, 5, 6, 7):
        assert step(np.ones((n, 2), np.float32)).item() == 6 * n
    assert step.stats()["recordings"] == 2


def test_lengths_of_arrays_are_numbers():
    step = wf.jit(lambda x: wf.tensor(x).sum() / len(x))
    for n in (4, 5, 6, 7):
        assert step(np.full((n, 2), 3.0, np.float32)).item() == 6.0


def test_second_derivatives_go_through_calls_of_any_size():
    step = wf.jit(lambda x, w: (x.reshape(-1) * w * w).sum() / x.shape[0])
    for n in (3, 4, 5):
        w = wf.tensor(2.0, requires_grad=True)
        step(wf.ones(n, 2), w).backward(create_graph=True)
        first, w.grad = w.grad, None
        first.backward()
        assert (first.item(), w.grad.item()) == (8.0, 4.0)
    assert step.stats()["recordings"] == 2


def test_only_so_many_combinations_of_sizes_are_kept(monkeypatch):
    monkeypatch.setattr(sized_traces, "MOST_BOUND", 3)
    step = wf.jit(lambda x: x * 2)
    for n in (*range(2, 12), *range(2, 12)):
        assert step(wf.ones(n)).shape == (n,)
    assert len(step._sized.bound) == 3
    assert step.stats()["compiled_calls"] == 20
    assert step.stats()["recordings"] == 2


def test_a_user_s_error_does_not_end_recordings_for_many_sizes():
    def step(x):
        if x.shape[0] == 4:
            raise ValueError("four")
        return x.sum()

    jitted = wf.jit(step)
    assert jitted(wf.ones(3)).item() == 3.0
    with pytest.raises(ValueError, match="four"):
        jitted(wf.ones(4))
    for n in (5, 6, 7):
        assert jitted(wf.ones(n)).item() == n
    assert jitted.stats()["recordings"] == 2


def test_the_last_batch_of_an_epoch_takes_one_more_program(monkeypatch):
    made, begin = [], Jitted.__init__

    def note(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(Jitted, "__init__", note)
    x = np.random.default_rng(0).normal(size=(75, 4)).astype(np.float32)
    net = wf.nn.Linear(4, 1)
    net.compile(wf.optim.SGD(net.parameters(), lr=0.1), "mse")
    net.fit(x, x[:, :1], batch_size=32, epochs=3, verbose=0)
    assert made
    for jitted in made:
        check_few_programs(jitted, 2)
