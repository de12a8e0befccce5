"""Numbers that code read, wherever it takes them, and what is known of values ahead."""

from __future__ import annotations

import numpy as np
import pytest

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


FROM_NUMPY = {
    "an array times it": lambda a, b: np.ones(3, np.float32) * a,
    "it minus an array": lambda a, b: a - np.ones(3, np.float16),
    "a scalar times it": lambda a, b: np.float32(2) * a,
    "in place": lambda a, b: np.multiply(np.ones(3, np.float32), a, out=np.zeros(3, np.float32)),
    "a function of it": lambda a, b: np.maximum(np.ones(3, np.float32), a),
    "a choice": lambda a, b: np.where(np.arange(3) > 1, a, np.float32(1)),
    "limits": lambda a, b: np.clip(np.ones(3, np.float32), -abs(a), abs(b)),
    "a comparison": lambda a, b: np.ones(3, np.float32) < a,
    "an outer product": lambda a, b: np.multiply.outer(np.ones(2, np.float32), a),
    "rows": lambda a, b: np.stack([a, b]),
    "a list": lambda a, b: np.array([[a, 1.0], [2.0, b]], np.float32),
    "a type": lambda a, b: np.ones(2, np.result_type(a, np.float32)),
    "a keyword": lambda a, b: np.full_like(np.ones(3, np.float32), fill_value=a),
    "itself": lambda a, b: np.exp(a),
}


@pytest.mark.parametrize("name", FROM_NUMPY)
def test_arrays_have_the_dtypes_that_floats_give_them(name):
    """A number that was read is weak, as Python's are: no array of 64 bits that decides."""

    def loss(words):
        return wf.tensor(FROM_NUMPY[name](*sum(states(words)).tolist()[:2])), table[words[0]]

    function = wf.batched(loss)
    for _ in range(3):
        for (found, _), words in zip(function(WORDS), WORDS, strict=True):
            expected, _ = loss(words)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5)


def test_nested_lists_of_numbers():
    def loss(words):
        h = sum(states(words)).reshape(3, 2)
        (_, a), (b, _), _ = h.tolist()
        is_nested = h[:, :0].tolist() == [[], [], []] and h.reshape(1, 3, 2).tolist()[0][0][1] == a
        return h.sum() * 2.0 if a > b and is_nested else h.sum() * is_nested

    function = wf.batched(loss)
    assert_like_alone(function, loss, planned=len(WORDS))
    with wf.no_grad():
        table.mul_(0.9)
    assert_like_alone(function, loss, planned=len(WORDS))
    assert function.plan().stats()["rounds"] == 1
