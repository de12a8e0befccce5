"""Steps of every optimizer, compiled: the same as node by node, to rounding."""

from __future__ import annotations

import numpy as np

import weft as wf
from tests.optim.test_graph_step import TS, XS, Static, every_optimizer, results_of

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
    for x, y in results_of(compiled, reference):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
    assert compiled.optimizer.t == STEPS
