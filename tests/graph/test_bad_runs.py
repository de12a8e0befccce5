"""What sessions refuse, and operations on symbols of a graph that is closed."""

from __future__ import annotations

import numpy as np

import weft as wf
from tests.graph.kit import Kit, X, refuses, set_attribute, table

F32 = np.float32


def closed_session(k):
    k.session.close()
    return k.run(k.out, {k.x: X})


def changed_setting(k):
    optimizer = k.sgd(momentum=0.9)
    with k.graph:
        step = optimizer.minimize(k.loss)
    optimizer.param_groups[0]["momentum"] = 0.0
    return k.run(step, {k.x: X})


def named_sizes():
    with wf.Graph() as graph:
        a, b = wf.placeholder(("n",), wf.float32), wf.placeholder(("n",), wf.float32)
        y = a + b
    return wf.Session(graph).run(y, {a: [1.0, 2.0], b: [1.0, 2.0, 3.0]})


def derived_size():
    with wf.Graph() as graph:
        a = wf.placeholder((None,), wf.float32)
        b = wf.concat([a, a])
        y = a.sum() + b.sum()
    return wf.Session(graph).run(y, {a: [1.0, 2.0], b: np.ones(5, F32)})


def feed_update(k):
    with k.graph:
        update = k.v.assign(k.loss)
    return k.run(k.out, {update: 1.0, k.x: X})


def inner_symbol(k):
    seen = []

    def step(c, v):
        seen.append(v)
        return c, v

    with k.graph:
        wf.scan(step, wf.zeros(()), k.out)
    return k.run(seen[-1], {k.x: X})


def run_index():
    with wf.Graph() as graph:
        i = wf.placeholder((2,), wf.int64)
        y = wf.take(wf.tensor([1.0, 2.0]), i, axis=0) * 2
    return wf.Session(graph).run(y, {i: [0, 9]})


def run_shape():
    with wf.Graph() as graph:
        a, b = wf.placeholder((None,), wf.float32), wf.placeholder((None,), wf.float32)
        y = a @ b
    return wf.Session(graph).run(y, {a: [1.0, 2.0], b: [1.0, 2.0, 3.0]})


# id, call, builtin error, pattern of the message.
CLOSED = [
    # feeds
    (
        "feed-missing",
        lambda k: k.run(k.out),
        RuntimeError,
        r"placeholder x \(made at kit.py:\d+\) must be fed.*feed_dict",
    ),
    (
        "feed-rank",
        lambda k: k.run(k.out, {k.x: X[0]}),
        ValueError,
        r"x must be fed with float32\[x_0, 3\]. Received: shape \(3,\)",
    ),
    (
        "feed-size",
        lambda k: k.run(k.out, {k.x: X[:, :2]}),
        ValueError,
        r"x must be fed with float32\[x_0, 3\]. Received: shape \(2, 2\)",
    ),
    (
        "feed-dtype",
        lambda k: k.run(k.out, {k.x: X.astype(complex)}),
        TypeError,
        r"x must be fed with float32.*Received: dtype complex128",
    ),
    (
        "feed-int-array",
        lambda k: k.run(k.out, {k.x: X.astype(int)}),
        TypeError,
        r"x must be fed with float32.*Received: dtype int64",
    ),
    (
        "feed-int-with-float",
        lambda k: k.run(k.whole, {k.n: 1.5}),
        TypeError,
        r"count must be fed with int64\[\]. Received: 1.5",
    ),
    (
        "feed-bool-with-int",
        lambda k: k.run(k.flag, {k.flag: 1}),
        TypeError,
        r"flag must be fed with bool\[\]. Received: 1",
    ),
    (
        "feed-int-with-bool",
        lambda k: k.run(k.whole, {k.n: True}),
        TypeError,
        r"count must be fed with int64\[\]. Received: True",
    ),
    (
        "feed-overflow",
        lambda k: k.run(k.whole, {k.n: 2**70}),
        (TypeError, OverflowError, ValueError),
        r"count",
    ),
    (
        "feed-tensor-dtype",
        lambda k: k.run(k.out, {k.x: wf.tensor(X).to(wf.int64)}),
        TypeError,
        r"x must be fed with float32.*Received: dtype int64",
    ),
    (
        "feed-text",
        lambda k: k.run(k.out, {k.x: "text"}),
        TypeError,
        r"the value for x.*Received: str 'text'",
    ),
    (
        "feed-none",
        lambda k: k.run(k.out, {k.x: None}),
        TypeError,
        r"the value for x.*Received: None",
    ),
    (
        "feed-ragged",
        lambda k: k.run(k.out, {k.x: [[1, 2, 3], [1]]}),
        ValueError,
        r"the value for x",
    ),
    ("feed-object", lambda k: k.run(k.out, {k.x: object()}), TypeError, r"the value for x"),
    (
        "feed-symbol",
        lambda k: k.run(k.out, {k.x: k.x}),
        TypeError,
        r"x must be fed with a value. Received: symbol\('x'",
    ),
    ("feed-function", lambda k: k.run(k.out, {k.x: lambda: X}), TypeError, r"the value for x"),
    ("feed-name", lambda k: k.run(k.out, {"X": X}), ValueError, r"no value named 'X'"),
    (
        "feed-near-name",
        lambda k: k.run(k.out, {"coumt": 1}),
        ValueError,
        r"no value named 'coumt'; did you mean 'count'\?",
    ),
    ("feed-twice", lambda k: k.run(k.out, {k.x: X, "x": X}), ValueError, r"x is fed twice"),
    (
        "feed-key-number",
        lambda k: k.run(k.out, {3: X}),
        TypeError,
        r"cannot feed int 3; give a symbol, a name",
    ),
    ("feed-key-none", lambda k: k.run(k.out, {None: X}), TypeError, r"cannot feed NoneType None"),
    (
        "feed-list",
        lambda k: k.run(k.out, [X]),
        TypeError,
        r"feed_dict must be a dictionary.*Received: list",
    ),
    (
        "feed-array",
        lambda k: k.run(k.out, X),
        TypeError,
        r"feed_dict must be a dictionary.*Received: ndarray",
    ),
    (
        "feed-foreign",
        lambda k: k.run(k.out, {k.foreign: 1.0, k.x: X}),
        RuntimeError,
        r"mul does not belong to this graph \(model\)",
    ),
    (
        "feed-tensor-unused",
        lambda k: k.run(k.out, {wf.tensor(1.0): 1.0, k.x: X}),
        RuntimeError,
        r"cannot feed a tensor that the graph does not use: float32\[\]",
    ),
    (
        "feed-named-sizes",
        lambda k: named_sizes(),
        ValueError,
        r"the size n is 3 here and 2 elsewhere; shape \(3,\) was fed for float32\[n\]",
    ),
    (
        "feed-derived-size",
        lambda k: derived_size(),
        ValueError,
        r"concat: the size .* is 4. Received: shape \(5,\)",
    ),
    ("feed-update", feed_update, ValueError, r"assign is an update and cannot be fed"),
    # fetches
    (
        "fetch-name",
        lambda k: k.run("ouut"),
        ValueError,
        r"no value named 'ouut'; did you mean 'out'\?",
    ),
    ("fetch-far-name", lambda k: k.run("zzz"), ValueError, r"the graph has no value named 'zzz'$"),
    ("fetch-empty-name", lambda k: k.run(""), ValueError, r"no value named ''"),
    ("fetch-position", lambda k: k.run("out:7", {k.x: X}), ValueError, r"no value named 'out:7'"),
    (
        "fetch-number",
        lambda k: k.run(3.0),
        TypeError,
        r"cannot fetch float 3.0; give a symbol, a name or a parameter",
    ),
    ("fetch-array", lambda k: k.run(X), TypeError, r"cannot fetch ndarray"),
    (
        "fetch-function",
        lambda k: k.run([k.out, print]),
        TypeError,
        r"cannot fetch builtin_function",
    ),
    (
        "fetch-foreign",
        lambda k: k.run(k.foreign),
        RuntimeError,
        r"mul does not belong to this graph \(model\)",
    ),
    (
        "fetch-tensor",
        lambda k: k.run(wf.tensor([1.0])),
        RuntimeError,
        r"cannot fetch a tensor that the graph does not use: float32\[1\]; read it directly",
    ),
    ("fetch-inside", inner_symbol, RuntimeError, r"does not belong to this graph"),
    # sessions and graphs
    (
        "session-none",
        lambda k: wf.Session(None),
        TypeError,
        r"Session: expected a wf.Graph. Received: NoneType",
    ),
    (
        "session-symbol",
        lambda k: wf.Session(k.out),
        TypeError,
        r"Session: expected a wf.Graph. Received: Symbol",
    ),
    ("session-closed", closed_session, RuntimeError, r"Session.run: the session is closed"),
    ("graph-name", lambda k: wf.Graph(3), TypeError, r"Graph: name must be a string. Received: 3"),
    (
        "node-frozen",
        lambda k: set_attribute(k.out.value.node, "name", "z"),
        AttributeError,
        r"node of a graph is frozen; name cannot be set",
    ),
    (
        "value-frozen",
        lambda k: set_attribute(k.out.value, "index", 1),
        AttributeError,
        r"value of a graph is frozen; index cannot be set",
    ),
    # use after the graph is closed
    (
        "closed-add",
        lambda k: k.out + 1,
        RuntimeError,
        r"out is a symbol of a graph that is not open here; operate on it inside `with graph:`",
    ),
    ("closed-function", lambda k: wf.exp(k.out), RuntimeError, r"not open here"),
    ("closed-with-tensor", lambda k: wf.tensor([1.0]) * k.out, RuntimeError, r"not open here"),
    ("closed-method", lambda k: k.x.sum(), RuntimeError, r"not open here"),
    ("closed-index", lambda k: k.x[0], RuntimeError, r"not open here"),
    ("closed-stack", lambda k: wf.stack([k.out, k.out]), RuntimeError, r"not open here"),
    ("closed-layer", lambda k: wf.nn.Linear(3, 2)(k.x), RuntimeError, r"not open here"),
    ("closed-write", lambda k: k.out.__setitem__(0, 1.0), RuntimeError, r"not open here"),
    (
        "closed-gradients",
        lambda k: wf.gradients(k.loss, [k.w]),
        RuntimeError,
        r"gradients: no graph is open; use it inside `with wf.Graph\(\)",
    ),
    (
        "closed-forward",
        lambda k: wf.forward_gradients(k.loss, k.w, k.w),
        RuntimeError,
        r"forward_gradients: no graph is open",
    ),
    (
        "closed-minimize",
        lambda k: k.sgd().minimize(k.loss),
        RuntimeError,
        r"minimize: no graph is open",
    ),
    (
        "closed-placeholder",
        lambda k: wf.placeholder((2,)),
        RuntimeError,
        r"placeholder: no graph is open; use it inside `with wf.Graph\(\)",
    ),
    (
        "closed-assign",
        lambda k: k.w.assign(k.out.value.node and k.x),
        RuntimeError,
        r"not open here",
    ),
    (
        "closed-cond",
        lambda k: wf.cond(k.flag, lambda: 1, lambda: 2),
        RuntimeError,
        r"not open here|is a symbol",
    ),
    (
        "closed-scan",
        lambda k: wf.scan(lambda c, v: (c, v), 0.0, k.x),
        (RuntimeError, ValueError),
        r"not open here|not known",
    ),
    # errors while running
    (
        "run-index",
        lambda k: run_index(),
        IndexError,
        r"take: .*9.*\[node \w+, built at test_bad_runs.py:\d+\]",
    ),
    (
        "run-shape",
        lambda k: run_shape(),
        ValueError,
        r"\[node \w+, built at test_bad_runs.py:\d+\]",
    ),
    (
        "run-setting",
        changed_setting,
        RuntimeError,
        r"momentum of group 0 was 0.9 when minimize\(\) built the step.*is 0.0 now.*build",
    ),
]


@table(CLOSED)
def test_outside(call, error, pattern):
    refuses(call, Kit(), error, pattern)
