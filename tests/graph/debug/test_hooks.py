"""symbol.register_hook: see and replace gradients while an adjoint is built."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft as wf
from tests.graph.watching import shown_by


@pytest.fixture(params=[False, True], ids=["interpreted", "compiled"])
def compiled(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_hook_sees_and_replaces_the_gradient(compiled: bool) -> None:
    seen = []
    with wf.Graph() as graph:
        x = wf.placeholder((2,), wf.float32)
        h = x * 3
        h.register_hook(seen.append)
        handle = h.register_hook(lambda g: g * 10)
        (g,) = wf.gradients((h * h).sum(), [x])
        handle.remove()
        (plain,) = wf.gradients((h * h).sum(), [x])
    found = wf.Session(graph, compiled=compiled).run([g, plain, *seen], {x: [1.0, 2.0]})
    assert found[0].tolist() == [180, 360]
    assert found[1].tolist() == [18, 36]
    assert found[2].tolist() == found[3].tolist() == [6, 12]


def test_hooks_on_what_is_differentiated_for(compiled: bool) -> None:
    with wf.Graph() as graph:
        x = wf.placeholder((2,), wf.float32)
        x.register_hook(lambda g: wf.clip(g, -1.0, 1.0))
        (g,) = wf.gradients((x * x).sum(), [x])
    found = wf.Session(graph, compiled=compiled).run(g, {x: [0.25, 3.0]})
    assert found.tolist() == [0.5, 1.0]


def test_hooks_in_bodies_with_values_from_outside(compiled: bool) -> None:
    def run(traced: bool) -> Any:
        scale = wf.tensor(0.5)

        def loss(x: Any, factor: Any) -> Any:
            def fn(c: Any, r: Any) -> Any:
                h = c * r
                if h.requires_grad:
                    h.register_hook(lambda g: g * factor * scale)
                return wf.cond(h > 0, lambda: hooked(h * 2, factor), lambda: h), h

            last, rows = wf.scan(fn, wf.tensor(1.0), x)
            return last + rows.sum()

        def hooked(y: Any, factor: Any) -> Any:
            y.register_hook(lambda g: g + factor)
            return y

        values = wf.tensor([1.0, -2.0, 3.0])
        if not traced:
            x = values.requires_grad_()
            loss(x, wf.tensor(2.0)).backward()
            return x.grad.numpy()
        with wf.Graph() as graph:
            x = wf.placeholder((3,), wf.float32)
            factor = wf.placeholder((), wf.float32)
            (g,) = wf.gradients(loss(x, factor), [x])
        graph.verify()
        return wf.Session(graph, compiled=compiled).run(g, {x: values, factor: 2.0})

    np.testing.assert_allclose(run(traced=True), run(traced=False), rtol=1e-6)


def test_hooks_show_gradients_of_loops_in_the_order_of_backward(compiled: bool) -> None:
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float32)

        def body(state: Any) -> Any:
            i, v = state
            v = v * x
            v.register_hook(lambda g: wf.debug.print(g, "g") * 1)
            return i + 1, v

        _, y = wf.while_loop(lambda state: state[0] < 3, body, (0, x))
        (g,) = wf.gradients(y, [x])
    lines = shown_by(lambda: wf.Session(graph, compiled=compiled).run(g, {x: 2.0}))
    assert lines == [f"g (trip {i}): float32[] {v}." for i, v in ((2, 1), (1, 2), (0, 4))]


def test_bad_hooks() -> None:
    with wf.Graph():
        x = wf.placeholder((2,), wf.float32)
        with pytest.raises(TypeError, match=r"must be callable.*3"):
            x.register_hook(3)
        with pytest.raises(wf.WeftError, match="int64 and has no gradient"):
            wf.placeholder((), wf.int64).register_hook(print)
        x.register_hook(lambda g: g.sum())
        with pytest.raises(wf.WeftError, match="a hook must return None or a tensor"):
            wf.gradients((x * x).sum(), [x])
