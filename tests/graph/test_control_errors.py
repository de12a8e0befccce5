"""Control flow refuses what it cannot do, in both modes, and names the variable at fault."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.errors import WeftError

# id, function of x (float32[3]), builtin error, pattern of the message
CASES = [
    # carries
    (
        "while-dtype",
        lambda x: wf.while_loop(
            lambda c: c["n"] < 3, lambda c: {"n": c["n"] + 0.5}, {"n": wf.tensor(0)}
        ),
        TypeError,
        r"while_loop: carry\['n'\] enters as int64\[\] and leaves as float32\[\]; cast",
    ),
    (
        "while-shape",
        lambda x: wf.while_loop(
            lambda c: c[0].sum() < 9, lambda c: (c[0], wf.stack([c[1], c[1]])), (x, x)
        ),
        ValueError,
        r"while_loop: carry\[1\] enters as float32\[3\] and leaves as float32\[2, 3\]",
    ),
    (
        "while-structure",
        lambda x: wf.while_loop(lambda c: c["a"].sum() < 9, lambda c: {"b": c["a"]}, {"a": x}),
        ValueError,
        r"while_loop: body_fn's result.*missing \['a'\].*unexpected \['b'\]",
    ),
    (
        "while-none",
        lambda x: wf.while_loop(lambda c: c[0].sum() < 9, lambda c: None, (x,)),
        ValueError,
        r"while_loop: body_fn's result must be \(\*,\). Received: None",
    ),
    (
        "while-none-leaf",
        lambda x: wf.while_loop(lambda c: c.sum() < 9, lambda c: None, x),
        TypeError,
        r"carry must be a tensor.*Received: None",
    ),
    (
        "while-text",
        lambda x: wf.while_loop(lambda c: c[0].sum() < 9, lambda c: ("text",), (x,)),
        TypeError,
        r"carry\[0\] must be a tensor or a number",
    ),
    (
        "scan-dtype",
        lambda x: wf.scan(
            lambda c, v: ({"m": c["m"], "s": c["s"] > v}, None), {"m": x, "s": x.sum()}, x
        ),
        TypeError,
        r"scan: carry\['s'\] enters as float32\[\] and leaves as bool\[\]",
    ),
    (
        "scan-shape",
        lambda x: wf.scan(lambda c, v: (c + x, None), wf.tensor(0.0), x),
        ValueError,
        r"scan: carry enters as float32\[\] and leaves as float32\[3\]; .* keep its shape",
    ),
    (
        "scan-integer-start",
        lambda x: wf.scan(lambda c, v: (c + v, None), 0, x),
        TypeError,
        r"scan: carry enters as int64\[\] and leaves as float32\[\]; cast it in the body, or start",
    ),
    (
        "scan-structure",
        lambda x: wf.scan(lambda c, v: ([c[0]], None), [x, x], x),
        ValueError,
        r"scan: fn's carry must be \[\*, \*\]. Received: 1 element",
    ),
    # what the functions return
    (
        "scan-single",
        lambda x: wf.scan(lambda c, v: c, x, x),
        TypeError,
        r"fn must return a pair \(carry, y\)",
    ),
    (
        "scan-triple",
        lambda x: wf.scan(lambda c, v: (c, c, c), x, x),
        TypeError,
        r"fn must return a pair .*3",
    ),
    (
        "scan-list",
        lambda x: wf.scan(lambda c, v: [c, c], x, x),
        TypeError,
        r"fn must return a pair .*list",
    ),
    (
        "scan-result",
        lambda x: wf.scan(lambda c, v: (c, "y"), x, x),
        TypeError,
        r"scan: .*result.* must be a tensor",
    ),
    (
        "scan-carry",
        lambda x: wf.scan(lambda c, v: (None, c), x, x),
        TypeError,
        r"carry must be a tensor.*None",
    ),
    # conventions of others: loop variables one by one, operands in a tuple
    (
        "while-splatted-test",
        lambda x: wf.while_loop(lambda i, s: i < 3, lambda c: c, [0, x]),
        TypeError,
        r"cond_fn is called as cond_fn\(state\), each argument one tree; take .*i, s = state. Rec",
    ),
    (
        "while-splatted-body",
        lambda x: wf.while_loop(lambda c: c[0] < 3, lambda i, s: (i + 1, s), [0, x]),
        TypeError,
        r"while_loop: body_fn is called as body_fn\(state\).*inside: i, s = state",
    ),
    (
        "while-list-of-one",
        lambda x: wf.while_loop(lambda i: i < 3, lambda i: i + 1, [0]),
        TypeError,
        r"argument state is one tree, here a list of one: give the tensor itself .*\(x,\) = state",
    ),
    (
        "while-list-of-one-function",
        lambda x: wf.while_loop(lambda i: wf.less(i, 3), lambda i: [wf.add(i, 1)], [x.sum()]),
        (TypeError, ValueError),
        r"argument state is one tree, here a list of one",
    ),
    (
        "while-tuple-of-one-operators",
        lambda x: wf.while_loop(lambda i: i < x.sum(), lambda i: i + x.sum(), (x.sum(),)),
        (TypeError, ValueError),
        r"argument state is one tree, here a tuple of one",
    ),
    (
        "scan-splatted",
        lambda x: wf.scan(lambda c, a, b: (c + a, b), wf.tensor(0.0), (x, x)),
        TypeError,
        r"scan: fn is called as fn\(carry, x\).*inside: a, b = x. Received: .*\(c, a, b\)",
    ),
    (
        "scan-without-x",
        lambda x: wf.scan(lambda c: (c, c), wf.tensor(0.0), length=3),
        TypeError,
        r"scan: fn is called as fn\(carry, x\), each argument one tree. Received: .*\(c\)",
    ),
    (
        "scan-tuple-of-one",
        lambda x: wf.scan(lambda c, v: (c + v, None), (wf.tensor(0.0),), x),
        ValueError,
        r"argument carry is one tree, here a tuple of one",
    ),
    (
        "until-without-y",
        lambda x: wf.scan(lambda c, v: (c, v), x, x, until=lambda c: c > 3),
        TypeError,
        r"scan: until is called as until\(carry, y\)",
    ),
    (
        "cond-operands-in-a-tuple",
        lambda x: wf.cond(x.sum() > -9, lambda a, b: a, lambda a, b: b, (x, x)),
        TypeError,
        r"cond: true_fn is called as true_fn\(operand_0\).*wf.cond\(pred, f, g, a, b\)",
    ),
    (
        "cond-operand-in-a-tuple",
        lambda x: wf.cond(x.sum() > -9, lambda a: a - 1, lambda a: a, (x,)),
        TypeError,
        r"argument operand_0 is one tree, here a tuple of one",
    ),
    (
        "cond-operand-not-taken",
        lambda x: wf.cond(x.sum() > -9, lambda: x, lambda: x, x),
        TypeError,
        r"cond: true_fn is called as true_fn\(operand_0\).*Received: a function of \(\)",
    ),
    # predicates
    (
        "cond-float",
        lambda x: wf.cond(x.sum(), lambda: x, lambda: x),
        TypeError,
        r"cond: pred must be a boolean without dimensions. Received: float32\[\]; compare",
    ),
    (
        "cond-vector",
        lambda x: wf.cond(x > 0, lambda: x, lambda: x),
        TypeError,
        r"cond: pred must be a boolean.*Received: bool\[3\]",
    ),
    (
        "cond-number",
        lambda x: wf.cond(1, lambda: x, lambda: x),
        TypeError,
        r"cond: pred must be a boolean.*Received: int64\[\]",
    ),
    (
        "cond-none",
        lambda x: wf.cond(None, lambda: x, lambda: x),
        TypeError,
        r"cond: pred must be a tensor",
    ),
    (
        "cond-text",
        lambda x: wf.cond("yes", lambda: x, lambda: x),
        TypeError,
        r"cond: pred must be a tensor",
    ),
    (
        "while-float-test",
        lambda x: wf.while_loop(lambda c: c.sum(), lambda c: c, x),
        TypeError,
        r"while_loop: cond_fn's result must be a boolean",
    ),
    (
        "while-vector-test",
        lambda x: wf.while_loop(lambda c: c > 0, lambda c: c, x),
        TypeError,
        r"while_loop: cond_fn's result must be a boolean.*bool\[3\]",
    ),
    (
        "while-none-test",
        lambda x: wf.while_loop(lambda c: None, lambda c: c, x),
        TypeError,
        r"while_loop: cond_fn's result must be",
    ),
    (
        "while-two-tests",
        lambda x: wf.while_loop(lambda c: (c.sum() > 0, c.sum() > 1), lambda c: c, x),
        TypeError,
        r"while_loop: cond_fn's result must be",
    ),
    (
        "until-float",
        lambda x: wf.scan(lambda c, v: (c, v), x, x, until=lambda c, y: y),
        TypeError,
        r"scan: until's result must be a boolean.*float32\[\]",
    ),
    (
        "until-none",
        lambda x: wf.scan(lambda c, v: (c, v), x, x, until=lambda c, y: None),
        TypeError,
        r"scan: until's result must be",
    ),
    # functions
    (
        "cond-call-true",
        lambda x: wf.cond(x.sum() > 0, x, lambda: x),
        TypeError,
        r"cond: true_fn must be a function. Received",
    ),
    (
        "cond-call-false",
        lambda x: wf.cond(x.sum() > 0, lambda: x, 3),
        TypeError,
        r"cond: false_fn must be a function. Received: 3",
    ),
    (
        "while-call-test",
        lambda x: wf.while_loop(True, lambda c: c, x),
        TypeError,
        r"while_loop: cond_fn must be a function. Received: True",
    ),
    (
        "while-call-body",
        lambda x: wf.while_loop(lambda c: c.sum() > 0, None, x),
        TypeError,
        r"while_loop: body_fn must be a function. Received: None",
    ),
    (
        "scan-call",
        lambda x: wf.scan(None, x, x),
        TypeError,
        r"scan: fn must be a function. Received: None",
    ),
    (
        "until-call",
        lambda x: wf.scan(lambda c, v: (c, v), x, x, until=3),
        TypeError,
        r"scan: until must be a function. Received: 3",
    ),
    # operands
    (
        "cond-operand",
        lambda x: wf.cond(x.sum() > 0, lambda v: x, lambda v: x, "text"),
        TypeError,
        r"operands\[0\] must be a tensor",
    ),
    (
        "while-init",
        lambda x: wf.while_loop(lambda c: c["a"] > 0, lambda c: c, {"a": object()}),
        TypeError,
        r"carry\['a'\] must be a tensor or a number",
    ),
    (
        "scan-init",
        lambda x: wf.scan(lambda c, v: (c, v), [x, "text"], x),
        TypeError,
        r"carry\[1\] must be a tensor",
    ),
    (
        "scan-xs-text",
        lambda x: wf.scan(lambda c, v: (c, v), x, {"k": "text"}),
        TypeError,
        r"xs\['k'\] must be a tensor",
    ),
    (
        "scan-xs-scalar",
        lambda x: wf.scan(lambda c, v: (c, v), x, (x, x.sum())),
        ValueError,
        r"scan: xs\[1\] has no leading axis",
    ),
    (
        "scan-xs-sizes",
        lambda x: wf.scan(lambda c, v: (c, v), x, {"a": x, "b": x[:2]}),
        ValueError,
        r"same leading size.*xs\['a'\].*3.*xs\['b'\].*2",
    ),
    (
        "scan-length-sizes",
        lambda x: wf.scan(lambda c, v: (c, v), x, x, length=4),
        ValueError,
        r"length.*4.*xs.*3",
    ),
    (
        "scan-no-length",
        lambda x: wf.scan(lambda c, v: (c, c), x),
        ValueError,
        r"without xs, length must say",
    ),
    (
        "scan-length-negative",
        lambda x: wf.scan(lambda c, v: (c, c), x, length=-1),
        ValueError,
        r"length must not be negative. Received: -1",
    ),
    (
        "scan-length-float",
        lambda x: wf.scan(lambda c, v: (c, c), x, length=2.5),
        TypeError,
        r"scan: length",
    ),
    (
        "scan-reverse",
        lambda x: wf.scan(lambda c, v: (c, c), x, x, reverse=1),
        TypeError,
        r"reverse must be True or False. Received: 1",
    ),
]

IN_GRAPH = [
    # only a graph traces both branches
    (
        "branch-dtype",
        lambda x: wf.cond(x.sum() > 0, lambda: x, lambda: x > 0),
        ValueError,
        r"cond: both branches .* but result is float32\[3\] if true and bool\[3\] if false",
    ),
    (
        "branch-shape",
        lambda x: wf.cond(x.sum() > 0, lambda: {"a": x}, lambda: {"a": x[:2]}),
        ValueError,
        r"result\['a'\] is float32\[3\] if true and float32\[2\] if false",
    ),
    (
        "branch-rank",
        lambda x: wf.cond(x.sum() > 0, lambda: (x, x), lambda: (x, x.sum())),
        ValueError,
        r"result\[1\] is float32\[3\] if true and float32\[\] if false",
    ),
    (
        "branch-keys",
        lambda x: wf.cond(x.sum() > 0, lambda: {"a": x}, lambda: {"b": x}),
        ValueError,
        r"false_fn's result must be.*missing \['a'\], unexpected \['b'\]",
    ),
    (
        "branch-none",
        lambda x: wf.cond(x.sum() > 0, lambda: x, lambda: None),
        ValueError,
        r"false_fn's result",
    ),
    (
        "branch-tuple",
        lambda x: wf.cond(x.sum() > 0, lambda: x, lambda: (x,)),
        ValueError,
        r"false_fn's result",
    ),
    (
        "branch-text",
        lambda x: wf.cond(x.sum() > 0, lambda: x, lambda: "no"),
        TypeError,
        r"false_fn's result must be a tensor",
    ),
    (
        "test-draws",
        lambda x: wf.while_loop(lambda c: wf.rand(()) < c.sum(), lambda c: c + 1, x),
        ValueError,
        r"cond_fn must not draw random numbers",
    ),
    (
        "assign-inside",
        lambda x: wf.scan(lambda c, v: (c, BUFFER.assign(v)), x, x),
        RuntimeError,
        r"assign: .*inside .*fn",
    ),
    (
        "placeholder-inside",
        lambda x: wf.scan(lambda c, v: (c, wf.placeholder(())), x, x),
        RuntimeError,
        r"placeholder: .*inside .*fn",
    ),
    (
        "read-inside",
        lambda x: wf.scan(lambda c, v: (c, float(v)), x, x),
        RuntimeError,
        r"float\(\): .* is a symbol",
    ),
    (
        "if-inside",
        lambda x: wf.while_loop(lambda c: c.sum() < 3, lambda c: c if c.sum() > 0 else -c, x),
        RuntimeError,
        r"truth value: .*wf.cond",
    ),
]
BUFFER = wf.tensor(0.0)


def table(cases):
    return pytest.mark.parametrize(
        ("fn", "error", "pattern"), [pytest.param(*case[1:], id=case[0]) for case in cases]
    )


def refuses(fn, x, error, pattern):
    with pytest.raises(error, match=pattern) as caught:
        fn(x)
    assert isinstance(caught.value, WeftError)


@table(CASES)
def test_eager(fn, error, pattern):
    refuses(fn, wf.tensor(np.array([1, 2, 3], np.float32)), error, pattern)


@table([*CASES, *IN_GRAPH])
def test_graph(fn, error, pattern):
    with wf.Graph():
        x = wf.placeholder((3,), wf.float32, name="x")
        refuses(fn, x, error, pattern)


@table([*CASES, *IN_GRAPH])
def test_a_graph_is_usable_after_an_error(fn, error, pattern):
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        refuses(fn, x, error, pattern)
        y = wf.scan(lambda c, v: (c + v, None), wf.zeros(()), x)[0]
        (g,) = wf.gradients(y, [x])
    found = wf.Session(graph).run([y, g], {x: [1.0, 2.0, 3.0]})
    assert found[0] == 6
    np.testing.assert_array_equal(found[1], np.ones(3))


def test_a_users_own_error_stays_as_it_is():
    class OwnError(TypeError):
        pass

    def body(state):
        raise OwnError("mine")

    with pytest.raises(OwnError, match=r"^mine$"):
        wf.while_loop(lambda c: c[0] < 3, body, [wf.tensor(0)])
    with pytest.raises(ZeroDivisionError):
        wf.while_loop(lambda c: c[0] < 1 // 0, body, [wf.tensor(0)])


def test_a_hint_is_given_once_and_leads_to_the_line():
    def nested(outer):
        return wf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])

    with pytest.raises(TypeError, match="state is one tree") as caught:
        wf.while_loop(lambda c: c[0] < 3, nested, [0])
    assert str(caught.value).count("is one tree") == 1
    assert isinstance(caught.value.__cause__, TypeError)


def test_results_of_steps_that_differ_in_shape():
    def fn(x):
        return wf.scan(
            lambda c, v: (
                c + 1,
                wf.scan(lambda a, _: (a + 1, a), 0, length=5, until=lambda a, y: a > c)[1],
            ),
            0,
            x,
        )[1]

    with pytest.raises(ValueError, match=r"shape"):
        fn(wf.tensor([1.0, 2.0]))
    with wf.Graph() as graph:
        x = wf.placeholder((2,), wf.float32)
        y = fn(x)
    with pytest.raises(
        ValueError, match=r"scan: .*results of step.*\(1,\).*\(2,\).*test_control_errors"
    ):
        wf.Session(graph).run(y, {x: [1.0, 2.0]})


def test_errors_in_a_body_name_the_line_and_the_node():
    table = wf.tensor([1.0, 2.0])
    with wf.Graph() as graph:
        x = wf.placeholder((None,), wf.int64)
        y = wf.scan(lambda c, i: (c, table[i]), 0, x)[1]
    with pytest.raises(IndexError, match=r"node .*, built at test_control_errors.py:\d+") as caught:
        wf.Session(graph).run(y, {x: [0, 1, 7]})
    assert "7" in str(caught.value)


def test_sizes_that_disagree_only_when_the_graph_runs():
    with wf.Graph() as graph:
        x, y = wf.placeholder((None,), wf.float32), wf.placeholder((3,), wf.float32)
        total = wf.scan(lambda c, v: (c + v[0] * v[1], None), wf.zeros(()), (x, y))[0]
    session = wf.Session(graph)
    assert session.run(total, {x: [1.0, 1.0, 1.0], y: [1.0, 2.0, 3.0]}) == 6
    with pytest.raises(ValueError, match=r"scan: .*leading size"):
        session.run(total, {x: [1.0, 1.0], y: [1.0, 2.0, 3.0]})
