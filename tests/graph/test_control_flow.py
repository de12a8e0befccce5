"""cond, while_loop and scan: a graph gives what eager mode gives, to the last bit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import weft as wf
from tests.graph.both import assert_graph_equals_eager as same
from tests.graph.both import assert_same, eager, static
from weft.core.rng import default_generator

F32 = np.float32
RNG = np.random.default_rng(0)


class Pair(NamedTuple):
    left: Any
    right: Any


def data(*shape, dtype=F32):
    return RNG.standard_normal(shape).astype(dtype)


# -- cond ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-2.0, 0.0, 3.0])
def test_cond_takes_one_branch(value):
    same(lambda x: wf.cond(x > 0, lambda v: v * 2, lambda v: -v, x), np.float64(value))


@pytest.mark.parametrize("value", [-2.0, 3.0])
def test_cond_over_trees(value):
    def fn(x):
        operand = {"a": x, "b": [x * 2, None], "c": Pair(x + 1, (x,))}

        def yes(t, k):
            return {"p": t["b"][0] * k, "q": Pair(t["c"].left, None), "r": (), "s": [t["a"]]}

        def no(t, k):
            return {"q": Pair(k - t["a"], None), "s": [t["c"].right[0]], "r": (), "p": t["a"]}

        return wf.cond(x > 0, yes, no, operand, x * 3)

    same(fn, np.float32(value))


@pytest.mark.parametrize("flag", [True, False, np.True_, np.False_])
def test_cond_of_a_plain_truth_value_traces_one_branch(flag):
    calls = []

    def branch(name):
        return lambda x: (calls.append(name), x * 2)[1]

    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float32)
        y = wf.cond(flag, branch("yes"), branch("no"), x)
    assert calls == ["yes" if flag else "no"]
    assert wf.Session(graph).run(y, {x: 2.0}) == 4.0


def test_cond_runs_only_the_branch_that_is_taken():
    with wf.Graph() as graph:
        x = wf.placeholder((None,), wf.int64, name="x")
        y = wf.cond((x > 0).all(), lambda: wf.tensor([1, 2, 3])[x].max() + 0, lambda: x.sum() + 0)
    session = wf.Session(graph)
    assert session.run(y, {x: [1, 2]}) == 3
    assert session.run(y, {x: [-50]}) == -50
    with pytest.raises(IndexError):
        session.run(y, {x: [50]})


def test_cond_results_with_unknown_sizes_that_differ():
    with wf.Graph() as graph:
        x, y = wf.placeholder((None,), wf.float32), wf.placeholder((None,), wf.float32)
        z = wf.cond(x.sum() > 0, lambda: x, lambda: y)
        fetches = [z, z * 2, wf.zeros(z.shape) + z, wf.scan(lambda c, v: (c + v, c), 0.0, z)]
    for flip in (1, -1):
        a, b = np.array([1, 2], F32) * F32(flip), data(3)
        chosen = a if flip > 0 else b
        found = wf.Session(graph).run(fetches, {x: a, y: b})
        assert_same(found[:3], [chosen, chosen * 2, chosen])
        assert len(found[3][1]) == len(chosen)


def test_cond_without_operands_and_without_results():
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float32)
        nothing = wf.cond(x > 0, lambda: None, lambda: None)
        y = wf.cond(x > 0, lambda: x + 1, lambda: x)
    assert nothing is None
    assert wf.Session(graph).run(y, {x: 1.0}) == 2.0


def test_a_branch_may_return_an_operand_a_constant_or_a_captured_value():
    def fn(x, y):
        return [
            wf.cond(x > 0, lambda v: v, lambda v: y, x),
            wf.cond(x > 0, lambda: 1.5, lambda: 2.5),
            wf.cond(x > 0, lambda v: (v, v, y), lambda v: (y, v, v), x),
        ]

    for value in (-1.0, 1.0):
        same(lambda x, y: fn(x, y)[::2], np.float32(value), np.float32(7))
        assert static(fn, np.float32(value), np.float32(7))[1] == (1.5 if value > 0 else 2.5)


# -- while_loop ------------------------------------------------------------------------------------


def test_counting_to_ten():
    with wf.Graph() as graph:
        counted = wf.while_loop(lambda i: i < 10, lambda i: i + 1, 0)
    assert wf.Session(graph).run(counted) == 10
    assert counted.dtype == wf.int64


def test_while_loop_over_trees_of_all_dtypes():
    def fn(x):
        init = {
            "i": wf.tensor(0),
            "go": wf.tensor(True),
            "sum": Pair(x, [x * 0, None]),
            "small": wf.tensor(np.int8(1)),
        }

        def body(c):
            i = c["i"] + 1
            left, (right, _) = c["sum"]
            return {
                "small": c["small"] * 2,
                "sum": Pair(left * 0.5 + right, [right + left, None]),
                "go": i < 5,
                "i": i,
            }

        return wf.while_loop(lambda c: c["go"], body, init)

    result = same(fn, data(3))
    assert result["i"] == 5
    assert result["small"].dtype == np.int8


def test_while_loop_without_trips():
    same(lambda x: wf.while_loop(lambda c: c.sum() > 1e9, lambda c: c * 2, x), data(2, 2))


def test_while_loop_with_a_test_that_captures():
    def fn(x, limit):
        return wf.while_loop(lambda c: (c < limit).all(), lambda c: c * 2 + limit * 0.01, x)

    same(fn, np.array([0.1, 0.3], F32), np.float32(10))


@pytest.mark.parametrize("size", [1, 4])
def test_while_loop_on_unknown_sizes(size):
    def fn(x):
        return wf.while_loop(lambda c: c.sum() < 100, lambda c: c + x.mean() + 1, x)

    same(fn, np.abs(data(size)), unknown=(0,))


# -- scan ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unknown", [(), (0,), (0, 1)])
def test_scan_with_several_carries_and_results(reverse, unknown):
    def fn(x, y):
        def step(carry, row):
            total, (count, flag) = carry["t"], carry["u"]
            a, b = row
            total = total * 0.5 + a
            return (
                {"u": (count + 1, ~flag), "t": total},
                Pair({"s": total.sum(), "ab": a * b}, [count, None]),
            )

        init = {"t": x[0] * 0, "u": (wf.tensor(0), wf.tensor(False))}
        return wf.scan(step, init, (x, y), reverse=reverse)

    same(fn, data(5, 3), data(5, 3), unknown=unknown)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [-1.0, 2.5, 5.0, 1e9], ids=["first", "middle", "last", "never"])
@pytest.mark.parametrize("unknown", [(), (0,)])
def test_scan_until(reverse, limit, unknown):
    def fn(x):
        def step(total, row):
            total = total + row
            return total, (total * 2, row)

        return wf.scan(
            step,
            wf.zeros(()),
            x,
            reverse=reverse,
            until=lambda total, y: (total >= limit) & (y[0] > total - 1),
        )

    _, (doubled, _) = same(fn, np.ones(5, F32), unknown=unknown)
    steps = {-1.0: 1, 2.5: 3, 5.0: 5, 1e9: 5}[limit]
    assert len(doubled) == steps


def test_scan_without_xs():
    same(lambda x: wf.scan(lambda c, _: (c * 2, c), x, length=6), np.float32(1))
    same(lambda x: wf.scan(lambda c, _: (c * 2, None), x, length=3), np.float32(1))
    same(lambda x: wf.scan(lambda c, _: (None, x * 2), None, length=3), np.float32(1))


def test_scan_as_many_steps_as_an_unknown_size():
    def fn(x):
        return wf.scan(lambda c, _: (c + 1, c), wf.tensor(0), length=x.shape[0])

    same(fn, data(4), unknown=(0,))


@pytest.mark.parametrize("until", [None, lambda c, y: c.sum() > 100])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unknown", [(), (0,), (0, 1)])
def test_scan_of_no_steps(until, reverse, unknown):
    def fn(x):
        def step(c, row):
            return c + row, {"rows": row * 2, "count": row.sum() > 0, "pair": wf.stack([c, row])}

        return wf.scan(step, wf.ones(x.shape[1:]), x, reverse=reverse, until=until)

    carry, ys = same(fn, np.zeros((0, 3), F32), unknown=unknown)
    assert ys["pair"].shape == (0, 2, 3)
    assert ys["count"].dtype == bool
    np.testing.assert_array_equal(carry, np.ones(3))


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_results_of_a_size_that_only_steps_tell(rows):
    def fn(x):
        def step(c, row):
            chosen = row[row > 0]
            return c + chosen.sum(), wf.concat([chosen, chosen, row[:1]])

        last, ys = wf.scan(step, wf.zeros(()), x)
        return last, ys, ys.reshape(-1), ys * wf.ones(ys.shape)

    x = np.tile(np.array([1, -2, 3], F32), (rows, 1))
    expected = eager(lambda x: fn(x)[:2], x)
    found = static(fn, x, unknown=(0,))
    if rows:
        assert_same(found[:2], expected)
        assert_same(found[3], expected[1])
    assert found[2].size == expected[1].size


def test_scan_of_no_steps_without_xs():
    same(lambda x: wf.scan(lambda c, _: (c * 2, c), x, length=0), np.float32(1))


def test_a_body_may_return_its_arguments():
    def fn(x):
        return wf.scan(lambda c, row: (c, (c, row, row)), x.sum(), x)

    same(fn, data(3))
    same(lambda x: wf.scan(lambda c, row: (row, c), x[0], x), data(3, 2), unknown=(0,))
    same(lambda x: wf.scan(lambda c, _: ((c[1], c[0]), None), (x, x * 2), length=3), data(2))


def test_scan_over_a_thousand_steps():
    def fn(x):
        return wf.scan(lambda c, row: (c * 0.99 + row, c), x[0], x)

    same(fn, data(1000), unknown=(0,))


def test_rows_are_not_views_of_a_carry():
    """What a step gives stays as it is when later steps run."""

    def fn(x):
        def step(c, row):
            c = c.copy() if hasattr(c, "copy") else c + 0
            c[0] = row
            return c, c

        return wf.scan(step, wf.zeros(2), x)

    _, ys = same(fn, np.arange(3, dtype=F32))
    np.testing.assert_array_equal(ys[:, 0], [0, 1, 2])


# -- nested ----------------------------------------------------------------------------------------


def test_scan_in_scan():
    def fn(x):
        def outer(c, matrix):
            inner, ys = wf.scan(lambda d, row: (d + row * c, d), c * 0, matrix)
            return c + inner.sum(), ys

        return wf.scan(outer, wf.ones(()), x)

    same(fn, data(3, 4))
    same(fn, data(3, 4), unknown=(0, 1))


def test_while_in_scan_in_cond():
    def fn(x):
        def step(c, row):
            halved = wf.while_loop(lambda v: v.abs() > 0.1, lambda v: v * 0.5, row)
            return c + halved, halved

        def yes(v):
            return wf.scan(step, wf.zeros(()), v)[0]

        return wf.cond(x.sum() > 0, yes, lambda v: -v.sum(), x)

    same(fn, np.array([1, 2, 3], F32))
    same(fn, np.array([1, -2, -3], F32), unknown=(0,))


def test_cond_in_while():
    def collatz(n):
        def body(c):
            n, steps = c
            return wf.cond(n % 2 == 0, lambda k: k // 2, lambda k: 3 * k + 1, n), steps + 1

        return wf.while_loop(lambda c: c[0] > 1, body, (n, n * 0))

    assert same(collatz, np.int64(27))[1] == 111


def test_scan_with_until_in_while():
    def fn(x):
        def body(c):
            i, v = c
            last, ys = wf.scan(
                lambda a, row: (a + row, a), v, x, until=lambda a, y: a > 2, reverse=True
            )
            return i + 1, last - ys.sum() * 0.1

        return wf.while_loop(lambda c: c[0] < 3, body, (wf.tensor(0), wf.zeros(())))

    same(fn, data(4), unknown=(0,))


# -- what bodies use from outside ------------------------------------------------------------------


def test_captured_parameters_placeholders_and_tensors():
    weight = wf.nn.Parameter(wf.tensor(data(3, 3)))
    shift = wf.tensor(data(3))

    def fn(x, scale):
        return wf.scan(lambda h, row: ((h @ weight + row + shift) * scale, h), x[0], x)

    same(fn, data(4, 3), np.float32(0.3))
    weight.assign(0.5)
    same(fn, data(4, 3), np.float32(0.3))


def test_a_graph_reads_captured_parameters_anew_in_each_run():
    w = wf.nn.Parameter(wf.tensor(1.0))
    with wf.Graph() as graph:
        y = wf.while_loop(lambda v: v < 10, lambda v: v + w, wf.zeros(()))
    session = wf.Session(graph)
    assert session.run(y) == 10
    w.assign(4.0)
    assert session.run(y) == 12


def test_what_branches_use_is_computed_before_them():
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float32)
        outside = x * 3
        y = wf.cond(x > 0, lambda: outside + 1, lambda: outside)
    assert wf.Session(graph).run(y, {x: 1.0, outside: 10.0}) == 11


# -- random numbers and other state ----------------------------------------------------------------


def draws_in_scan(x):
    def step(c, row):
        c = wf.nn.functional.dropout(c + row, 0.5, training=True) + wf.randn(3)
        return c, wf.rand(2)

    return wf.scan(step, x[0], x), wf.rand(2)


def draws_in_while(x):
    def body(c):
        i, v = c
        return i + 1, v + wf.randn(3)

    return wf.while_loop(lambda c: c[0] < 4, body, (wf.tensor(0), x[0])), wf.rand(2)


def draws_in_cond(x):
    drawn = wf.cond(x.sum() > 0, lambda: wf.rand(5), lambda: wf.rand(5) + wf.rand(5))
    return drawn, wf.rand(2)


def draws_in_until(x):
    def step(c, row):
        return c + wf.rand(()), c

    return wf.scan(step, wf.zeros(()), x, until=lambda c, y: c > 1.0), wf.rand(3)


def draws_in_nested(x):
    def outer(c, row):
        inner = wf.scan(lambda d, v: (d + wf.rand(()) * v, None), c, row)[0]
        return wf.cond(inner > 0, lambda v: v + wf.randn(()), lambda v: v, inner), inner

    return wf.scan(outer, x.sum(), x), wf.rand(2)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    "fn", [draws_in_scan, draws_in_while, draws_in_cond, draws_in_until, draws_in_nested]
)
def test_draws_are_those_of_eager_mode(fn, sign):
    x = np.abs(data(5, 3)) * F32(sign)
    wf.manual_seed(3)
    expected = eager(fn, x)
    stands = default_generator.position()
    wf.manual_seed(3)
    found = static(fn, x)
    assert default_generator.position() == stands
    assert_same(found, expected)
    wf.manual_seed(3)
    assert_same(static(fn, x, unknown=(0,)), expected)


def test_draws_of_a_loop_that_is_not_fetched_are_not_made():
    with wf.Graph() as graph:
        wf.scan(lambda c, _: (c + wf.rand(()), None), wf.zeros(()), length=5)
        after = wf.rand(3)
    wf.manual_seed(7)
    found = wf.Session(graph).run(after)
    wf.manual_seed(7)
    np.testing.assert_array_equal(found, wf.rand(3).numpy())


def running_statistics(kind):
    """Return a function that updates running statistics in a body, and the statistics."""
    norm = wf.nn.BatchNorm1d(3)

    def by_scan(x):
        return wf.scan(lambda c, row: (c + norm(row).sum(), c), wf.zeros(()), x)[0]

    def by_while(x):
        def body(c):
            return c[0] + 1, c[1] + norm(x[0] * c[1]).sum()

        return wf.while_loop(lambda c: c[0] < 3, body, (wf.tensor(0), wf.ones(())))[1]

    def by_cond(x):
        return wf.cond(x.sum() > -1e9, lambda: norm(x[0]).sum(), x.sum)

    return norm, {"scan": by_scan, "while": by_while, "cond": by_cond}[kind]


@pytest.mark.parametrize("kind", ["scan", "while", "cond"])
def test_states_written_in_a_body(kind):
    x = data(4, 6, 3)
    norm, fn = running_statistics(kind)
    expected = eager(fn, x)
    buffers = {k: v.numpy().copy() for k, v in norm.state_dict().items()}
    norm, fn = running_statistics(kind)
    with wf.Graph() as graph:
        symbol = wf.placeholder(x.shape, wf.float32)
        y = fn(symbol)
        writes = [graph.tracer.assign(s, v) for s, v in graph.pending_updates()]
    found, *_ = wf.Session(graph).run([y, *writes], {symbol: x})
    np.testing.assert_array_equal(found, expected)
    for key, value in norm.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), buffers[key], err_msg=key)


def test_a_state_written_before_a_loop_enters_it_changed():
    total = wf.tensor(1.0)
    with wf.Graph() as graph:
        total += 4.0
        y = wf.scan(lambda c, _: (c + total, None), wf.zeros(()), length=2)[0]
    assert wf.Session(graph).run(y) == 10.0
    assert float(total) == 1.0
