"""Values read in the middle: examples wait for one another, and go on by their own branches."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.dynamic import many_calls, suspension

W = wf.tensor(np.random.default_rng(0).normal(0, 0.4, (4, 4)), requires_grad=True)


def collatz(x):
    """Go on until a value is small: each example takes another number of steps."""
    h = wf.tensor(np.full(4, float(x)))
    steps = 0
    while h.abs().sum() > 1.0 and steps < 20:
        h = wf.tanh(h @ W) * 0.9 if h[0] > 0 else h @ W * 0.7
        steps += 1
    return (h * h).sum(), steps


def both(examples):
    alone = [collatz(x) for x in examples]
    W.grad = None
    sum(loss for loss, _ in alone).backward()
    return alone, W.grad.numpy().copy()


@pytest.mark.parametrize("kind", [suspension.GreenletTask, suspension.ThreadTask, None])
def test_examples_go_on_by_their_own_branches(kind, monkeypatch):
    if kind is not None:
        monkeypatch.setattr(many_calls, "task_class", lambda: kind)
    else:  # neither: each value that is read runs what was put off so far
        monkeypatch.setattr(many_calls, "task_class", lambda: suspension.ThreadTask)
    examples = [0.5, -2.0, 3.0, 1.5, -0.2]
    alone, expected = both(examples)
    function = wf.batched(collatz)
    function.reads = kind is not None
    together = function(examples)
    assert [steps for _, steps in together] == [steps for _, steps in alone]
    np.testing.assert_allclose(
        [float(x) for x, _ in together], [float(x) for x, _ in alone], rtol=1e-12
    )
    W.grad = None
    sum(loss for loss, _ in together).backward()
    np.testing.assert_allclose(W.grad.numpy(), expected, rtol=1e-11)


def test_examples_that_read_run_together():
    seen = []

    def reads(x):
        h = wf.tensor(x) * 2.0
        seen.append(float(h))
        return h + 1.0

    function = wf.batched(reads)
    function([1.0, 2.0, 3.0])
    assert seen == [2.0, 4.0, 6.0]
    assert function.plan().stats()["rounds"] == 2


def test_an_error_ends_those_that_wait():
    ended = []

    def waits(x):
        try:
            if float(wf.tensor(x) + 1.0) > 2.5:
                raise KeyError(x)
        finally:
            ended.append(x)
        return wf.tensor(x)

    with pytest.raises(KeyError) as caught:
        wf.batched(waits)([1.0, 2.0, 0.5])
    assert "example 1 of 3" in caught.value.__notes__[0]
    assert sorted(ended) == [0.5, 1.0, 2.0]


LOG = []


def changes_a_list(x):
    LOG.append(x)
    y = float(wf.tensor(x) * 2.0)
    return wf.tensor(y + len(LOG))


def test_what_is_outside_must_not_change_while_examples_wait():
    LOG.clear()
    with pytest.raises(
        ValueError, match=r"changed while example 0 was suspended at test_susp.*:\d"
    ):
        wf.batched(changes_a_list)([1.0, 2.0])


def reads_and_writes(example):
    """Note in what it was given how far it came, read a value, and take the note back."""
    shared, x = example
    shared["open"] += 1
    y = float(wf.tensor(x) * 2.0)
    result = wf.tensor(y + shared["open"])
    shared["open"] -= 1
    return result


def test_what_examples_share_must_not_change_while_they_wait():
    shared = {"open": 0}
    with pytest.raises(ValueError, match=r"a dict, which examples of this call share, was changed"):
        wf.batched(reads_and_writes)([(shared, 1.0), (shared, 2.0)])


def test_an_example_may_change_what_is_its_own():
    found = wf.batched(reads_and_writes)([({"open": 0}, 1.0), ({"open": 0}, 2.0)])
    assert [float(x) for x in found] == [3.0, 5.0]


def marks(node):
    node.parts[0].seen = float(wf.tensor(node.value) + 1.0)
    return wf.tensor(node.parts[0].seen) * 2.0


class Part:
    def __init__(self, value=0.0, parts=()):
        self.value, self.parts, self.seen = value, list(parts), None


def test_parts_of_two_structures_are_watched():
    common = Part()
    with pytest.raises(ValueError, match="a Part, which examples of this call share"):
        wf.batched(lambda node: marks(node) * float(marks(node)))(
            [Part(1.0, [common]), Part(2.0, [common])]
        )
    found = wf.batched(marks)([Part(1.0, [Part()]), Part(2.0, [Part()])])
    assert [float(x) for x in found] == [4.0, 6.0]


def test_what_nobody_reads_runs_in_the_end_as_one():
    def walk(count):
        h, costs = wf.tensor(np.ones(4)), []
        for _ in range(count):
            h = wf.tanh(h @ W)
            costs.append((h * h).sum())
            if float(h.sum()) > 100.0:
                break
        return sum(costs)

    function, counts = wf.batched(walk), [3, 5, 2]
    for _ in range(2):
        found = function(counts)
        np.testing.assert_allclose(
            [float(x) for x in found], [float(walk(n)) for n in counts], rtol=1e-12
        )
    squares = [b for b in function.plan().batches if b.signature.name == "mul"]
    assert [b.size for b in squares] == [10]


def test_what_waited_is_there_when_it_is_read_after_all():
    def walk(count):
        h, total = wf.tensor(np.ones(4)), wf.tensor(0.0, dtype=wf.float64)
        for i in range(count):
            h = wf.tanh(h @ W)
            total = total + (h * h).sum()
            if i % 2 and float(h.sum()) > 100.0:
                break
            if i == 3 and float(total) > 100.0:
                break
        return total

    function, counts = wf.batched(walk), [3, 6, 2, 5]
    for _ in range(3):
        np.testing.assert_allclose(
            [float(x) for x in function(counts)], [float(walk(n)) for n in counts], rtol=1e-12
        )


def test_a_batched_function_inside_learns_while_examples_wait():
    """What an inner function keeps of its calls is nothing that examples change."""
    inner = wf.batched(lambda h: wf.tanh(h @ W))

    def outer(x):
        first, second = inner([wf.tensor(np.full(4, x)), wf.tensor(np.full(4, -x))])
        h = first if first.sum() > 0 else second * 2.0
        (third,) = inner([h])
        return third.sum() if third[0] > 0 else (third * third).sum()

    examples = [0.5, -2.0, 3.0, 1.5]
    function = wf.batched(outer)
    for _ in range(3):
        expected = [float(outer(x)) for x in examples]
        np.testing.assert_allclose([float(x) for x in function(examples)], expected, rtol=1e-12)
    assert function.plan().stats()["why not planned"] == "the code calls a batched function"


@pytest.mark.parametrize("kind", [suspension.GreenletTask, suspension.ThreadTask])
def test_examples_of_a_function_inside_read_what_is_put_off_around_them(kind, monkeypatch):
    monkeypatch.setattr(many_calls, "task_class", lambda: kind)
    ended = []

    def scaled(x, score):
        try:
            h = wf.tanh(wf.tensor(np.full(4, x)) @ W)
            if h.sum() > 1e9 or score.item() > 3.0:
                raise ValueError("too much")
            return h.sum() * score if score > 0 else h.sum() - score.item()
        finally:
            ended.append(x)

    inner = wf.batched(scaled)

    def outer(x):
        score = wf.tensor(np.full(4, x)).sum() * 0.5
        return sum(inner([1.0, x, -x], score)) + score

    function = wf.batched(outer)
    function.reads = inner.reads = True
    examples = [0.5, -2.0, 1.25, 1.5]
    for _ in range(3):
        expected = [float(outer(x)) for x in examples]
        np.testing.assert_allclose([float(x) for x in function(examples)], expected, rtol=1e-12)
    ended.clear()
    with pytest.raises(ValueError, match="too much"):
        function([*examples, 4.0, 1.0])
    assert len(ended) == 6 * 3  # those that were waiting were ended, too
