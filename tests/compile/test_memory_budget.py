"""Memory of compiled programs: what `optimize` arranges, machine code keeps."""

import numpy as np
import pytest

import weft as wf

LAYERS, WIDTH, BATCH = 40, 32, 512


@pytest.fixture(scope="module")
def chain():
    """Return a deep training graph, what is fetched, and what is fed."""
    rng = np.random.default_rng(0)
    weights = [
        wf.tensor(rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH**0.5)
        for _ in range(LAYERS)
    ]
    with wf.Graph() as graph:
        x = wf.placeholder((BATCH, WIDTH), wf.float32, name="x")
        y = x
        for w in weights:
            y = wf.tanh(y @ w)
        loss = (y * y).mean()
        slopes = wf.gradients(loss, weights)
    feeds = {x: rng.standard_normal((BATCH, WIDTH)).astype(np.float32)}
    return graph, [loss, *slopes], feeds


def executable(graph, chain):
    _, fetches, feeds = chain
    return wf.Session(graph).executable(fetches, feeds)


@pytest.mark.parametrize("part", [0.7, 0.5, 0.4])
def test_code_keeps_a_memory_budget(chain, part):
    graph, fetches, feeds = chain
    budget = int(part * graph.memory_plan(fetches).run_bytes)
    made = graph.optimize(fetches, memory_budget=budget)
    arena = executable(made, chain).layout.arena_bytes
    assert arena <= budget
    for a, b in zip(
        wf.Session(made).run(fetches, feeds), wf.Session(graph).run(fetches, feeds), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_plain_program_keeps_little_more_than_what_the_adjoint_needs(chain):
    needed = LAYERS * BATCH * WIDTH * 4  # the result of each layer
    assert executable(chain[0], chain).layout.arena_bytes <= 1.2 * needed


def test_optimised_graphs_run_as_code():
    with wf.Graph() as graph:
        a, b = (wf.placeholder((64, 64), wf.float32, name=name) for name in "ab")
        out = wf.tanh(a * b + 1.0) / (1.0 + wf.exp(-a))
    made = graph.optimize(out)
    feeds = {"a": np.ones((64, 64), np.float32), "b": np.ones((64, 64), np.float32)}
    kernels = wf.Session(made).executable(out, feeds).stats()["kernels"]
    assert kernels == {"row": 1}
