"""Elementwise operands of products: what is computed while it is packed, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.lower.test_epilogues import array, compiled
from weft.compiler.stages import optimize_static
from weft.graph.run import Program
from weft.lower.kernels import GemmKernel, RowKernel
from weft.lower.lowering import lower
from weft.passes.specialize import specialize
from weft.plan.prologues import fuse_prologues


def lowered(build, *arrays):
    """Return what a function of arrays becomes before anything is known of the machine."""
    with wf.Graph() as graph:
        feeds = [wf.placeholder(a.shape, a.dtype) for a in arrays]
        results = build(*feeds)
    results = results if isinstance(results, tuple) else (results,)
    program = Program(graph, [r.value for r in results], [x.value for x in feeds])
    return lower(optimize_static(specialize(program, {x.value: x.shape for x in feeds})))


def fused(build, *arrays, pays=lambda before, after, side: True):
    """Return the kernels of a function, with prologues wherever they are possible."""
    program, _ = lowered(build, *arrays)
    return fuse_prologues(program.kernels, {view.buffer for view in program.outputs}, pays)


def sides(kernels):
    """Return which operands are computed, of the only product."""
    (product,) = kernels
    return "".join(s for s in "xy" if getattr(product, f"{s}_from") is not None)


X, W, MASK = array(24, 40), array(40, 32), array(24, 40) > 0
PROLOGUES = {
    "activation": (lambda x, w: wf.relu(x) @ w, (X, W), "x"),
    "mask": (lambda x, w, m: (x * m) @ w, (X, W, MASK), "x"),
    "bias": (lambda x, w, b: (x + b) @ w, (X, W, array(40)), "x"),
    "residual": (lambda x, w, r: (x + r) @ w, (X, W, array(24, 40)), "x"),
    "row factor": (lambda x, w, r: (x * r) @ w, (X, W, array(24, 1)), "x"),
    "halves": (lambda x, w: x @ w.astype(wf.float32), (X, W.astype(np.float16)), "y"),
    "bytes": (lambda x, w: x @ w.astype(wf.float32), (X, (W * 9).astype(np.int8)), "y"),
    "both": (lambda x, w: wf.relu(x) @ wf.tanh(w), (X, W), "xy"),
    "transposed": (lambda x, w: wf.relu(x).mT @ w, (X, array(24, 32)), "x"),
    "other order": (lambda x, w: wf.relu(x.mT) @ w, (X, array(24, 32)), "x"),
    "layer": (lambda x, w: wf.nn.functional.linear(x * 2.0, w), (X, W.T.copy()), "x"),
    "scores": (lambda q, k: (q * 0.5) @ k.mT, (array(2, 3, 9, 16), array(2, 3, 9, 16)), "x"),
    "shared": (lambda x, w: x @ wf.relu(w), (array(3, 9, 16), array(16, 20)), "y"),
}


@pytest.mark.parametrize("name", PROLOGUES)
def test_elementwise_operands_are_not_stored(name):
    build, arrays, expected = PROLOGUES[name]
    assert sides(fused(build, *arrays)) == expected


def test_heads_that_are_parted_and_scaled():
    def build(x, w):
        heads = x.reshape(2, 16, 4, 8).permute(0, 2, 1, 3) * 2.0
        return heads @ w

    (product,) = fused(build, array(2, 16, 32), array(2, 4, 8, 12))
    assert product.x.strides == (512, 8, 32, 1)


def test_the_first_operand_is_the_one_that_is_read_most():
    (product,) = fused(lambda b, x, w: (b - x) @ w, array(40), X, W)
    assert product.x.strides == (40, 1)
    assert [view.strides for view in product.x_from.extras] == [(0, 1)]


def test_nodes_and_memory_of_what_was_fused():
    found, sources = lowered(lambda x, w: wf.relu(x * 2.0) @ w, X, W)
    kept = {view.buffer for view in found.outputs}
    made = found.with_kernels(fuse_prologues(found.kernels, kept, lambda *_: True))
    (product,) = made.kernels
    assert [node.op.name for node in sources.origins(product)] == ["mul", "relu", "matmul"]
    before, after = ([b for b in p.used_buffers if b.kind == "arena"] for p in (found, made))
    assert len(before) == 2
    assert after == [product.out.buffer]


def several_results(x, w):
    y = wf.relu(x)
    return y @ w, wf.exp(y)


NO_PROLOGUES = {
    "wanted itself": (lambda x, w: ((y := wf.relu(x)) @ w, y), (X, W)),
    "two readers": (lambda x, w, v: ((y := wf.relu(x)) @ w, y @ v), (X, W, array(40, 9))),
    "both sides": (lambda x: (y := wf.relu(x)) @ y.mT, (X,)),
    "results beside it": (several_results, (X, W)),
    "reductions": (lambda x, w: wf.softmax(x, -1) @ w, (X, W)),
    "a part of it": (lambda x, w: wf.relu(x)[:, :32] @ w, (X, array(32, 32))),
    "taken again": (lambda x, w: (z := wf.relu(x)) + z @ w, (array(8, 8), array(8, 8))),
}


@pytest.mark.parametrize("name", NO_PROLOGUES)
def test_what_is_no_prologue(name):
    build, arrays = NO_PROLOGUES[name]
    products = [k for k in fused(build, *arrays) if isinstance(k, GemmKernel)]
    assert all(k.x_from is None and k.y_from is None for k in products)
    compiled(build, *arrays)


def test_who_judges_sees_the_product_before_and_after():
    seen = []

    def pays(before, after, side):
        seen.append((before.x_from, after.x_from is not None, side))
        return False

    kernels = fused(lambda x, w: wf.relu(x) @ w, X, W, pays=pays)
    assert [type(k) for k in kernels] == [RowKernel, GemmKernel]
    assert seen == [(None, True, "x")]


def test_operands_must_not_be_written_in_the_meantime():
    found, _ = lowered(lambda x, w: wf.relu(x) @ w, X, W)
    maker, product = found.kernels
    source = next(o.view for o in maker.operands if o.view.buffer.kind == "feed")
    operands = tuple(type(o)(source, o.strides) for o in maker.operands)
    writer = RowKernel("writer", maker.loops, operands, (maker.outputs[0],))
    kernels = fuse_prologues([maker, writer, product], (), lambda *_: True)
    assert kernels == [maker, writer, product]


@pytest.mark.parametrize("compile_it", [True, False])
def test_a_state_is_read_before_it_changes(compile_it):
    """The product reads the old weights though their new values may take their memory."""
    state = wf.tensor(array(32, 32))
    old = state.numpy().copy()
    x = array(32, 32)
    with wf.Graph() as graph:
        feed = wf.placeholder(x.shape, x.dtype)
        out = feed @ wf.relu(state)
        update = state.assign(state * 0.5 + out)
    wf.Session(graph, compiled=compile_it).run([update], {feed: x})
    expected = old * 0.5 + x @ np.maximum(old, 0)
    np.testing.assert_allclose(state.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_longer_lives_must_not_cost_more_memory():
    """Of two temporaries that a later product reads, more is kept than was stored."""
    arrays = array(16, 16), array(16, 16), array(16, 16)
    found, _ = lowered(lambda x, y, w: (wf.cumsum(x, 0) + wf.cumsum(y, 0)) @ w, *arrays)
    *before, product = found.kernels
    (between,) = lowered(lambda x: x + 1.0, X)[0].kernels
    kept = {product.out.buffer}
    assert len(fuse_prologues([*before, product], kept, lambda *_: True)) == len(before)
    apart = [*before, between, product]
    assert fuse_prologues(apart, kept, lambda *_: True) == apart
