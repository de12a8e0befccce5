"""Numbers that code read and has kept are Python's own when the call ends."""

from __future__ import annotations

import json
from collections import deque
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import weft as wf

table = wf.tensor(np.random.default_rng(2).normal(0, 1, (20, 6)))
WORDS = [[1, 2, 3], [4, 5], [6, 7, 8, 9], [10]]


class Scored:
    """A result that is an object of the user's."""

    def __init__(self, loss, score):
        self.loss = loss
        self.score = score


class Slotted:
    __slots__ = ("nothing", "score")

    def __init__(self, score):
        self.score = score


class Pair(NamedTuple):
    score: float
    word: int


def array_of(score):
    found = np.empty(2, object)
    found[0] = [score]
    return found


RETURNED = {
    "an object": Scored,
    "objects in a list": lambda loss, score: [Scored(loss, Pair(score, 1))],
    "a key": lambda loss, score: {score: loss},
    "a key of many": lambda loss, score: {(1, score): loss, "others": [{-score: 1.0}]},
    "a set": lambda loss, score: [loss, {score, 1.0}],
    "a queue": lambda loss, score: Scored(loss, deque([(score, 1)])),
    "slots": lambda loss, score: (loss, Slotted(score)),
    "an array of objects": lambda loss, score: (loss, array_of(score)),
}


def numbers_in(x) -> list[Any]:
    """Return all that is no collection, tensor or object."""
    if isinstance(x, wf.Tensor):
        return []
    if isinstance(x, dict):
        return numbers_in([*x, *x.values()])
    if isinstance(x, np.ndarray):
        return numbers_in(x.tolist())
    if isinstance(x, (list, tuple, set, deque)):
        return [y for part in x for y in numbers_in(part)]
    if isinstance(x, Slotted):
        return [x.score]
    return numbers_in(vars(x)) if isinstance(x, Scored) else [x]


@pytest.mark.parametrize("name", RETURNED)
def test_what_is_returned_holds_plain_numbers(name):
    made = RETURNED[name]

    def loss(words):
        h = sum(table[word] for word in words)
        score = h.sum().item()
        return made(h.sum() if score > 0 else h[0], score)

    function = wf.batched(loss)
    for _ in range(4):
        found, expected = function(WORDS), [loss(words) for words in WORDS]
        numbers = numbers_in(found)
        assert [type(x) for x in numbers] == [type(x) for x in numbers_in(expected)]
        json.dumps([x for x in numbers if x is not None])


class Best:
    """What is best so far: it changes in some calls only."""

    score: ClassVar[float] = -1e9
    kept: ClassVar[list[Any]] = []


def watching(name, holder, limit):
    """Return a function that keeps numbers above a limit, in one of several ways."""
    best = 0.0

    def loss(words):
        nonlocal best
        score = (sum(table[word] for word in words).sum() * limit).item()
        if score > 1e6:
            if name == "a list":
                holder["list"].append(score)
            elif name == "entries":
                holder["list"].append([(score, Pair(score, words[0]))])
            elif name == "a class":
                Best.score = score
                Best.kept.append({"score": score})
            elif name == "a variable":
                best = score
            elif name == "an example":
                words.append(Scored(None, score))
            if name == "an error":
                holder["list"].append(score)
                raise ValueError("too much")
        return sum(table[word] for word in words[:1]).sum()

    return loss, lambda: best


@pytest.mark.parametrize(
    "name", ["a list", "entries", "a class", "a variable", "an example", "an error"]
)
def test_what_code_has_changed_holds_plain_numbers(name):
    holder: dict[str, list[Any]] = {"list": []}
    limit = wf.tensor(1.0, dtype=wf.float64)
    Best.score, Best.kept = -1e9, []
    examples = [list(words) for words in WORDS]
    loss, best = watching(name, holder, limit)
    function = wf.batched(loss)
    for value in (1.0, 1.0, 1e9):
        limit.fill_(value)
        try:
            function(examples)
        except ValueError:
            assert name == "an error"
    numbers = numbers_in([holder, Best.score, Best.kept, best(), examples])
    assert {type(x) for x in numbers} <= {float, int, str, type(None)}
    assert max(x for x in numbers if type(x) is float) > 1e6
