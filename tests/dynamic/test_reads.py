"""Numbers that code read, wherever it takes them, and what is known of values ahead."""

from __future__ import annotations

import numpy as np

import weft as wf

NAN = float("nan")
rng = np.random.default_rng(1)
table = wf.tensor(rng.normal(0, 1, (20, 6)), requires_grad=True)


def values(results):
    return [float(x) for x in results]


def test_numbers_that_became_data_since_a_plan_was_made():
    """Where many numbers are met in one place they are data, and code counts its values anew."""
    sign = wf.tensor(1.0, dtype=wf.float64)

    def loss(pair):
        word, scale = pair
        h = table[word]
        for _ in range(3):
            h = wf.sin(h / scale)
            if h.sum().item() > 0:
                h = h * 1.25
            if h.sum() > 0.3:
                h = h - 0.25
        total = (h * h).sum()
        return total * 2.0 if (h * h * sign).sum() > 0 else total * sign

    function = wf.batched(loss)
    few = [(i, 0.5 + i / 100) for i in range(6)]
    many = [(i, 1.5 + i / 50) for i in range(12)]
    for examples in (few, few, few, many, many, many):
        function(examples)
    sign.fill_(-1.0)
    np.testing.assert_allclose(values(function(few)), values(map(loss, few)), rtol=1e-12)
    assert function.plan().stats()["differed"] == len(few)


def states(words):
    return [table[word] for word in words]


WORDS = [[1, 2, 3], [4, 5], [6, 7, 8, 9], [10]]


def assert_like_alone(function, loss, planned):
    """Call twice more than it takes to have plans; results are those of one by one."""
    for _ in range(4):
        found, expected = function(WORDS), [loss(words) for words in WORDS]
        np.testing.assert_allclose(values(found), values(expected), rtol=1e-12)
    assert function.plan().stats()["planned"] == planned


def test_numbers_may_be_computed_of_as_many_as_one_likes():
    """A running total depends on all that were read: what it was made of is no nest."""

    def loss(words):
        h, total = sum(states(words)), 0.0
        for _ in range(1200):
            total += h[0].item()
        return h.sum() * 2.0 if total > 0 else h.sum()

    assert_like_alone(wf.batched(loss), loss, planned=len(WORDS))


def test_running_totals_are_looked_at_step_by_step():
    """Each total is computed of the one before, and not of all numbers anew."""
    limit = wf.tensor(1.0, dtype=wf.float64)

    def loss(words):
        total, steps, loudness = 0.0, 0, sum(states(words)).abs().sum() * limit
        while total < 40.0:
            total, steps = total + loudness.item(), steps + 1
        return loudness * steps

    function = wf.batched(loss)
    for value in (1.0, 1.0, 1.0, 1.001, 0.3, 0.3):
        limit.fill_(value)
        expected = [loss(words) for words in WORDS]
        np.testing.assert_allclose(values(function(WORDS)), values(expected), rtol=1e-12)


def test_numbers_are_compared_with_any_others():
    def loss(words):
        a, b = sum(states(words)).tolist()[:2]
        answers = [a < 10**400, a > -(10**400), a == NAN, b >= 2**53 + 1, b != a]
        answers += [a + b < 10**400, abs(a) > float("-inf"), -a < NAN, a <= True]
        return table[sum(answers)].sum()

    assert_like_alone(wf.batched(loss), loss, planned=len(WORDS))


def test_numbers_of_other_examples_are_no_path():
    """What another example has read may be another number the next time, and is not looked at."""
    kept = []

    def loss(words):
        h = sum(states(words))
        score = h.sum().item()
        if words is WORDS[0]:
            kept.append(score)
        other = kept[0] + 1.0 if words is not WORDS[-1] else kept.pop() + 1.0
        return h.sum() * 2.0 if score > other else h.sum()

    function = wf.batched(loss)
    for scale in (1.0, 1.0, 1.0, -1.0, -1.0, 1.0):
        with wf.no_grad():
            table.mul_(scale)
        found, expected = function(WORDS), [loss(words) for words in WORDS]
        np.testing.assert_allclose(values(found), values(expected), rtol=1e-12)
