"""Pipelines: their order, and one stage alone; on several processes see programs/dividing.py."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft import distributed as dist

LOSS = wf.nn.functional.mse_loss


def orders(schedule, stages, parts):
    found = []
    for place in range(stages):
        pipeline = dist.Pipeline(wf.nn.Linear(2, 2), LOSS, parts=parts, schedule=schedule)
        pipeline.place, pipeline.last = place, stages - 1
        found.append(list(pipeline.order()))
    return found


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("stages", "parts"), [(1, 3), (3, 4), (4, 2)])
def test_every_part_goes_forward_and_then_back(schedule, stages, parts):
    for order in orders(schedule, stages, parts):
        for number in range(parts):
            assert order.index(("forward", number)) < order.index(("backward", number))
        assert len(order) == 2 * parts


def test_1f1b_keeps_no_more_than_there_are_stages():
    for place, order in enumerate(orders("1f1b", 3, 8)):
        kept = np.cumsum([1 if act == "forward" else -1 for act, _ in order])
        assert max(kept) == 3 - place
    assert all(
        max(np.cumsum([1 if a == "forward" else -1 for a, _ in order])) == 8
        for order in orders("gpipe", 3, 8)
    )


def test_one_stage_is_the_model():
    wf.manual_seed(0)
    stage, x, y = wf.nn.Linear(3, 2), wf.randn(8, 3), wf.randn(8, 2)
    loss = LOSS(stage(x), y)
    loss.backward()
    expected = stage.weight.grad.numpy()
    stage.zero_grad()
    found = dist.Pipeline(stage, LOSS, parts=4).backward(x, y)
    np.testing.assert_allclose(stage.weight.grad.numpy(), expected, rtol=1e-5)
    assert float(found) == pytest.approx(float(loss), rel=1e-5)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize("run", [lambda f: f, wf.jit], ids=["eager", "jit"])
def test_parts_draw_the_rows_of_the_whole_batch(schedule, run):
    stage = wf.nn.Sequential(
        wf.nn.Linear(3, 5), wf.nn.Dropout(0.5), wf.nn.Linear(5, 2), wf.nn.Dropout(0.2)
    )
    x, y = wf.randn(8, 3), wf.randn(8, 2)
    pipeline = dist.Pipeline(run(stage), LOSS, parts=4, schedule=schedule)
    for seed in (1, 2):
        wf.manual_seed(seed)
        loss = LOSS(stage(x), y)
        loss.backward()
        expected, behind = [p.grad.numpy() for p in stage.parameters()], wf.get_rng_state()
        stage.zero_grad()
        wf.manual_seed(seed)
        assert float(pipeline.backward(x, y)) == pytest.approx(float(loss), rel=1e-5)
        assert wf.get_rng_state() == behind
        for p, grad in zip(stage.parameters(), expected, strict=True):
            np.testing.assert_allclose(p.grad.numpy(), grad, rtol=1e-5)
        stage.zero_grad()


def test_what_cannot_be_a_pipeline():
    stage = wf.nn.Linear(2, 2)
    with pytest.raises(ValueError, match=r"schedule must be one of.*Received: 'fast'"):
        dist.Pipeline(stage, LOSS, schedule="fast")
    with pytest.raises(ValueError, match=r"parts must be a positive number. Received: 0"):
        dist.Pipeline(stage, LOSS, parts=0)
    with pytest.raises(TypeError, match="a module and a loss"):
        dist.Pipeline(stage, None)
    with pytest.raises(ValueError, match=r"needs a batch whose rows 4 parts divide.*\(6, 2\)"):
        dist.Pipeline(stage, LOSS).backward(wf.ones(6, 2), wf.ones(6, 2))
    with pytest.raises(ValueError, match=r"Received: None"):
        dist.Pipeline(stage, LOSS).backward(None, wf.ones(4, 2))
