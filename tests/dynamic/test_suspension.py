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
