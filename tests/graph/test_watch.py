"""wf.debug in plain code, loops, branches, adjoints and vmap: the same in every mode."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import weft as wf
from tests.graph.watching import MODES, Run, config, in_session, shown_by

X = wf.tensor([1.0, -2.0, 3.0])


@pytest.fixture(autouse=True)
def _way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile, unless a test says otherwise."""
    monkeypatch.setattr(wf.config, "debug_interpret", False)


# -- programs, each of which shows something -------------------------------------------------------


def plain(x: Any) -> Any:
    h = wf.debug.print(x * 2, "h")
    wf.debug.callback(lambda v, word: print("called", word, v.tolist()), h + 1, "twice")
    wf.debug.check(h < 100, "h is {}", h)
    y = wf.debug.print({"a": h.sum(), "b": [h * h]}, "y", stats=True)
    return y["a"] + y["b"][0].sum()


def loop(x: Any) -> Any:
    def body(state: Any) -> Any:
        i, v = state
        v = wf.debug.print(v * 0.5, "v")
        wf.debug.callback(lambda v: print("trip", wf.debug.trips(), v.tolist()), v)
        return i + 1, v

    return wf.while_loop(lambda state: state[0] < 3, body, (wf.tensor(0), x))[1].sum()


def scanned(x: Any) -> Any:
    def fn(carry: Any, row: Any) -> Any:
        carry = wf.debug.print(carry + row, "carry")
        return carry, wf.debug.print(carry * carry, "square")

    total, squares = wf.scan(fn, wf.tensor(0.0), x)
    back, _ = wf.scan(fn, total, squares, reverse=True)
    return back


def stopped_early(x: Any) -> Any:
    def fn(carry: Any, row: Any) -> Any:
        carry = wf.debug.print(carry + row, "carry")
        return carry, carry

    return wf.scan(fn, wf.tensor(0.0), x, until=lambda carry, y: carry < 0)[0]


def branches(x: Any) -> Any:
    def yes(v: Any) -> Any:
        wf.debug.callback(lambda v: print("yes", v.tolist()), v)
        return v * 2

    def no(v: Any) -> Any:
        return wf.debug.print(v, "no") * 3

    first = wf.cond(x.sum() > 0, yes, no, x)
    second = wf.cond(x.sum() > 9, yes, no, first)
    return wf.debug.print(second, "both").sum()


def nested(x: Any) -> Any:
    def inner(total: Any, v: Any) -> Any:
        total = wf.cond(v > 0, lambda: wf.debug.print(total + v, "up"), lambda: total - v)
        return total, total

    def outer(total: Any, v: Any) -> Any:
        total, _ = wf.scan(inner, total, x * v)
        return wf.debug.print(total, "row"), total

    return wf.scan(outer, wf.tensor(0.0), x)[0]


def with_gradient(x: Any) -> Any:
    def f(v: Any) -> Any:
        def fn(carry: Any, row: Any) -> Any:
            h = wf.debug.print(carry * row, "h", grad=True)
            h = wf.cond(
                h > 0,
                lambda: wf.debug.print(h * 2, "positive", grad=True),
                lambda: wf.debug.print(h * 3, "negative", grad=True),
            )
            return h, h

        last, rows = wf.scan(fn, wf.tensor(1.0), v)
        return wf.debug.print(rows.sum() + last, "loss", grad=True)

    return wf.debug.print(wf.grad(f)(x), "gradient")


def second_order(x: Any) -> Any:
    def f(v: Any) -> Any:
        return (wf.debug.print(v * v, "square") * v).sum()

    return wf.debug.print(wf.grad(lambda v: wf.grad(f)(v).sum())(x), "second")


def second_order_of_a_loop(x: Any) -> Any:
    def f(v: Any) -> Any:
        def fn(c: Any, r: Any) -> Any:
            return wf.debug.print(wf.sin(c * r), "sin"), None

        return wf.scan(fn, wf.tensor(1.0), v)[0]

    return wf.debug.print(wf.hvp(f, (x,), (x,)), "hvp")


def ragged(x: Any) -> Any:
    """Loops inside a loop whose numbers of trips differ: a gradient computes them again."""

    def f(v: Any) -> Any:
        def inner(state: Any) -> Any:
            i, u = state
            return i + 1, wf.debug.print(wf.sin(u), "inner", grad=True)

        def fn(carry: Any, row: Any) -> Any:
            i, c = carry
            _, c = wf.while_loop(lambda s: s[0] < i, inner, (wf.tensor(0), c * row))
            return (i + 1, c), None

        return wf.scan(fn, (wf.tensor(0), wf.tensor(1.0)), v)[0][1]

    return wf.grad(f)(x)


def batch_of_gradients(x: Any) -> Any:
    def f(v: Any) -> Any:
        return wf.debug.print(wf.sin(v), "sin", grad=True) * v

    return wf.vmap(wf.grad(f))(x)


def gradient_of_a_batch(x: Any) -> Any:
    def f(v: Any) -> Any:
        return wf.debug.print(wf.sin(v), "sin", grad=True) * v

    return wf.grad(lambda v: wf.vmap(f)(v).sum())(x)


def of_the_user(x: Any) -> Any:
    @wf.custom_vjp
    def f(v: Any) -> Any:
        return wf.debug.print(v * v, "forward")

    def forward(v: Any) -> Any:
        return wf.debug.print(v * v, "forward"), v

    def backward(v: Any, g: Any) -> Any:
        return (wf.debug.print(g * 2 * v, "backward"),)

    f.defvjp(forward, backward)
    return wf.grad(lambda v: f(v).sum())(x)


def forward_mode(x: Any) -> Any:
    def f(v: Any) -> Any:
        def step(c: Any, r: Any) -> Any:
            return wf.debug.print(c * r, "product"), None

        return wf.scan(step, wf.tensor(1.0), v)[0]

    y, tangent = wf.jvp(f, (x,), (x,))
    return y + tangent


def batched(x: Any) -> Any:
    def one(v: Any) -> Any:
        w = wf.debug.print(v * 2, "example")
        wf.debug.check(w < 100, "too large")

        def halve(c: Any) -> Any:
            return wf.debug.print(c * 0.5, "halved")

        return wf.while_loop(lambda c: c > 1, halve, w) + wf.debug.print(wf.tensor(1.0), "shared")

    return wf.vmap(one)(x)


def batched_twice(x: Any) -> Any:
    def one(a: Any, b: Any) -> Any:
        return wf.debug.print(a * b, "product")

    return wf.vmap(wf.vmap(one, (None, 0)), (0, None))(x, x).sum()


def batched_branches(x: Any) -> Any:
    def one(v: Any) -> Any:
        return wf.cond(v > 0, lambda u: wf.debug.print(u, "positive"), lambda u: -u, v)

    return wf.vmap(one)(x).sum()


def checkpointed(x: Any) -> Any:
    def block(v: Any) -> Any:
        h = wf.debug.print(wf.tanh(v), "h")
        return wf.debug.print(h * h, "hh").sum()

    return wf.grad(wf.checkpoint(block))(x)


def with_draws(x: Any) -> Any:
    generator = wf.Generator(7)

    def fn(carry: Any, row: Any) -> Any:
        noise = wf.randn((), generator=generator)
        return wf.debug.print(carry + row * noise, "noisy"), None

    return wf.scan(fn, wf.tensor(0.0), x)[0]


def repeated(x: Any) -> Any:
    """Show the same value thrice, in lines that look alike: nothing is shared or rolled."""
    for _ in range(3):
        wf.debug.print(x + 1, "same")
    for _ in range(6):
        x = wf.debug.print(wf.tanh(x), "layer")
    return x


PROGRAMS: list[Callable[[Any], Any]] = [
    plain,
    loop,
    scanned,
    stopped_early,
    branches,
    nested,
    with_gradient,
    second_order,
    second_order_of_a_loop,
    ragged,
    batch_of_gradients,
    gradient_of_a_batch,
    of_the_user,
    forward_mode,
    batched,
    batched_twice,
    batched_branches,
    checkpointed,
    repeated,
]


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_every_mode_shows_what_eager_code_does(program: Callable[[Any], Any], mode: Run) -> None:
    expected = shown_by(lambda: program(X))
    assert expected
    assert shown_by(lambda: mode(program, (X,))) == expected


@pytest.mark.parametrize("mode", ["interpreted", "compiled", "ahead"])
def test_effects_and_draws_pass_through_one_loop(mode: str) -> None:
    expected = shown_by(lambda: with_draws(X))
    assert len(expected) == 3
    assert shown_by(lambda: MODES[mode](with_draws, (X,))) == expected


def test_loops_that_are_driven_node_by_node_show_the_same() -> None:
    with config(debug_interpret=True):
        assert shown_by(lambda: MODES["jit"](nested, (X,))) == shown_by(lambda: nested(X))


def test_results_are_those_without_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    with_them = [MODES["compiled"](program, (X,)) for program in PROGRAMS]
    monkeypatch.setattr(wf.debug, "print", lambda x, *args, **options: x)
    monkeypatch.setattr(wf.debug, "callback", lambda *args: None)
    monkeypatch.setattr(wf.debug, "check", lambda *args: None)
    for program, found in zip(PROGRAMS, with_them, strict=True):
        np.testing.assert_allclose(found, np.asarray(program(X)), rtol=1e-6)


# -- which runs have them --------------------------------------------------------------------------


def test_a_run_has_the_effects_of_what_it_computes() -> None:
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32)
        other = wf.placeholder((), wf.float32)
        h = wf.debug.print(x * 2, "h")
        wf.debug.print(h.mean(), "mean of h")  # made for this alone
        wf.debug.check(h.sum() < 50, "large")
        y = wf.debug.print(h + other, "y")
        wf.debug.print(other, "other")
        wf.debug.print(h * 3, "named").name = "z"
        wf.gradients(wf.debug.print(h.sum(), "differentiated"), [x])
    for compiled in (False, True):
        session = wf.Session(graph, compiled=compiled)
        lines = shown_by(partial(session.run, h, {x: X}))
        assert [line.split(":")[0] for line in lines] == ["h", "mean of h"]
        lines = shown_by(partial(session.run, [y, h], {x: X, other: 1.0}))
        assert [line.split(":")[0] for line in lines] == ["h", "mean of h", "y", "other"]
        with pytest.raises(wf.debug.CheckError, match="large"):
            session.run(h, {x: X * 100})


def test_functions_show_all_that_they_are_told_to() -> None:
    def function(x: Any) -> Any:
        wf.debug.print(x * 3, "unused")
        return x

    for mode in ("ahead", "jit", "jit again"):
        assert len(shown_by(partial(MODES[mode], function, (X,)))) == 1


def test_an_optimised_graph_keeps_them() -> None:
    session, y, feeds = in_session(loop, (X,))
    expected = shown_by(lambda: session.run(y, feeds))
    for options in ({}, {"memory_budget": 1 << 20}):
        made = session.graph.optimize([y], **options)
        made.verify()
        assert shown_by(partial(wf.Session(made).run, y, feeds)) == expected


def test_rematerialisation_shows_nothing_twice() -> None:
    with wf.Graph() as graph:
        x = wf.placeholder((64, 64), wf.float32)
        h = x
        for i in range(30):
            h = wf.tanh(wf.sin(h) @ x)
            wf.debug.callback(lambda v, i=i: print(i), h)
        (g,) = wf.gradients(h.sum(), [x])
    feeds = {x: np.eye(64, dtype=np.float32)}
    made = graph.optimize([g], memory_budget=700_000)
    assert len(made) > len(graph.optimize([g]))
    assert shown_by(lambda: wf.Session(made).run(g, feeds)) == [str(i) for i in range(30)]


def test_a_graph_inside_another_goes_on_with_its_chain() -> None:
    with wf.Graph() as inner:
        x = wf.placeholder((3,), wf.float32, name="x")
        y = wf.debug.print(x * 2, "inner")
        y.name = "y"
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32)
        wf.debug.print(x, "before")
        z = inner(x, outputs="y")
        wf.debug.print(x + 1, "behind")
        z = z + 1
    for compiled in (False, True):
        session = wf.Session(graph, compiled=compiled)
        lines = shown_by(lambda session=session: session.run(z, {x: X}))
        assert [line.split(":")[0] for line in lines] == ["before", "inner", "behind"]


def test_programs_for_many_sizes_show_values() -> None:
    with wf.Graph() as graph:
        x = wf.placeholder((None,), wf.float32)
        y = wf.debug.print(x * 2, "y").sum()
    session = wf.Session(graph)
    for n in range(2, 7):
        lines = shown_by(lambda n=n: session.run(y, {x: np.ones(n, np.float32)}))
        assert lines == [f"y: float32[{n}] {np.full(n, 2.0, np.float32)}"]


# -- what they cost where there are none -----------------------------------------------------------


def test_code_is_the_same_where_a_run_has_no_effects() -> None:
    def texts(watched: bool) -> list[str]:
        with wf.Graph() as graph:
            x = wf.placeholder((8, 8), wf.float32)
            w = wf.placeholder((8, 8), wf.float32)
            h = wf.tanh(x @ w)
            last, _ = wf.scan(lambda c, r: (c + r, c), wf.zeros((8,)), h)
            if watched:
                extra = wf.placeholder((8,), wf.float32)
                wf.debug.print(last + extra, "sum")
                wf.debug.callback(print, extra)
            loss = (last * last).sum()
            (g,) = wf.gradients(loss, [w])
        feeds = {x: np.ones((8, 8)), w: np.ones((8, 8))}
        executable = wf.Session(graph).executable([loss, g], feeds)
        return [str(executable.program), executable.llvm_ir()]

    assert texts(watched=True) == texts(watched=False)
