"""Steps of every optimizer, compiled: the same as node by node, to rounding."""

from __future__ import annotations

import numpy as np

import weft as wf
from tests.optim.test_graph_step import TS, XS, Static, every_optimizer
from weft.core.tree import flatten

STEPS = 8


@every_optimizer
def test_compiled_steps(make, monkeypatch):
    monkeypatch.setattr(wf.config, "debug_interpret", True)
    reference = Static(make)
    losses = [reference.step(i) for i in range(STEPS)]
    monkeypatch.setattr(wf.config, "debug_interpret", False)
    compiled = Static(make)
    fed = {compiled.x: XS[0], compiled.t: TS[0]}
    assert compiled.session.executable([compiled.loss, compiled.train], fed) is not None
    np.testing.assert_allclose([compiled.step(i) for i in range(STEPS)], losses, rtol=1e-5)
    assert_close_training(compiled, reference)
    assert compiled.optimizer.t == STEPS


def assert_close_training(a, b):
    for tree_a, tree_b in (
        (a.net.state_dict(), b.net.state_dict()),
        (a.optimizer.state_dict(), b.optimizer.state_dict()),
    ):
        leaves, structure = flatten(tree_a)
        for x, y in zip(leaves, structure.flatten_like(tree_b), strict=True):
            assert type(x) is type(y)
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-4, atol=1e-5)
