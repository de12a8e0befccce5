"""One batched function, called by several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import weft as wf
from tests.dynamic.trees import TreeNet, random_trees

THREADS, CALLS = 4, 6


def test_threads_may_call_one_batched_function():
    net = TreeNet(4)
    trees = random_trees(32, 2, 8)
    alone = [float(net.loss(tree)) for tree in trees]
    function = wf.batched(net.loss)

    def call(seed):
        rng, wrong = np.random.default_rng(seed), 0
        for _ in range(CALLS):
            order = rng.permutation(len(trees))[:12].tolist()
            found = [float(x) for x in function([trees[i] for i in order])]
            wrong += not np.allclose(found, [alone[i] for i in order], rtol=1e-12)
        return wrong

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(call, range(THREADS))) == [0] * THREADS


def test_threads_may_differentiate_it():
    net = TreeNet(4)
    trees = random_trees(16, 2, 6)
    mean = wf.batched(net.loss, reduce="mean")
    expected = [g.numpy() for g in wf.gradients(mean(trees), net.parameters)]

    def call(_):
        found = wf.gradients(mean(trees), net.parameters)
        return all(np.allclose(g.numpy(), e) for g, e in zip(found, expected, strict=True))

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(call, range(2 * THREADS)))


def test_a_function_that_changes_begins_anew_in_all_threads():
    factor = {"value": 1.0}
    function = wf.batched(lambda x: wf.tensor(x) * factor["value"])

    def call(_):
        return [float(x) for x in function([1.0, 2.0])]

    with ThreadPoolExecutor(THREADS) as pool:
        for value in (1.0, 2.0, 3.0):
            factor["value"] = value
            assert list(pool.map(call, range(8))) == [[value, 2 * value]] * 8
