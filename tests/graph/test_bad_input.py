"""What an open graph refuses: each error says what was received and what to do.

Feeds, fetches and closed graphs are in test_bad_runs.py, control flow in test_control_errors.py.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import weft as wf
from tests.graph.kit import Kit, X, refuses, set_attribute, table


def in_place(k):
    y = k.x * 1
    y[0] = "text"


# id, call, builtin error, pattern of the message.
OPEN = [
    # there is no value to read yet
    (
        "read-bool",
        lambda k: bool(k.flag),
        RuntimeError,
        r"truth value: flag \(bool\[\]\) is a symbol and has no value.*fetch it with .*wf.cond",
    ),
    (
        "read-if",
        lambda k: 1 if k.out.sum() > 0 else 2,
        RuntimeError,
        r"truth value: .* is a symbol",
    ),
    ("read-not", lambda k: not k.flag, RuntimeError, r"truth value"),
    ("read-and", lambda k: k.flag and k.flag, RuntimeError, r"truth value"),
    ("read-chain", lambda k: 0 < k.loss < 1, RuntimeError, r"truth value"),
    (
        "read-while",
        lambda k: [0 for _ in iter(lambda: bool(k.flag), None)],
        RuntimeError,
        r"truth value",
    ),
    ("read-int", lambda k: int(k.n), RuntimeError, r"int\(\): count \(int64\[\]\) is a symbol"),
    (
        "read-float",
        lambda k: float(k.loss),
        RuntimeError,
        r"float\(\): sum\w* \(float32\[\]\) is a symbol",
    ),
    ("read-complex", lambda k: complex(k.loss), (RuntimeError, TypeError), r"symbol|float\(\)"),
    ("read-round", lambda k: range(k.n), RuntimeError, r"index: count"),
    ("read-list-index", lambda k: [1, 2][k.n], RuntimeError, r"index: count"),
    ("read-item", lambda k: k.loss.item(), RuntimeError, r"item\(\): .* is a symbol"),
    (
        "read-numpy",
        lambda k: k.out.numpy(),
        RuntimeError,
        r"numpy\(\): out \(float32\[x_0\]\) is a symbol",
    ),
    ("read-tolist", lambda k: k.out.tolist(), RuntimeError, r"tolist\(\): out"),
    ("read-asarray", lambda k: np.asarray(k.out), RuntimeError, r"conversion to an array: out"),
    ("read-array", lambda k: np.array([k.loss, k.loss]), RuntimeError, r"is a symbol"),
    ("read-numpy-function", lambda k: np.sum(np.asarray(k.out)), RuntimeError, r"is a symbol"),
    ("read-numpy-add", lambda k: np.float32(1) + np.asarray(k.loss), RuntimeError, r"is a symbol"),
    ("read-dlpack", lambda k: np.from_dlpack(k.out), RuntimeError, r"export: out"),
    ("read-format", lambda k: f"{k.loss:.3f}", RuntimeError, r"format: .* is a symbol"),
    ("read-in", lambda k: 1.0 in k.out, RuntimeError, r"in: out"),
    (
        "read-len",
        lambda k: len(k.out),
        (ValueError, TypeError),
        r"len: out .*size, x_0, is not known until the graph runs",
    ),
    (
        "read-iterate",
        lambda k: list(k.out),
        ValueError,
        r"cannot iterate over out: its first size, x_0, is not known.*wf.scan",
    ),
    ("read-unpack", lambda k: max(*k.out), ValueError, r"cannot iterate over out"),
    (
        "read-for-size",
        lambda k: list(range(k.x.shape[0])),
        (ValueError, TypeError),
        r"x_0.*not known|x_0",
    ),
    ("read-size-bool", lambda k: 1 if k.x.shape[0] > 3 else 2, (ValueError, TypeError), r"x_0"),
    (
        "read-pickle",
        lambda k: pickle.dumps(k.out),
        RuntimeError,
        r"out is a symbol and cannot be pickled; use graph.save",
    ),
    (
        "read-deepcopy",
        lambda k: copy.deepcopy(k.out),
        RuntimeError,
        r"out is a symbol and cannot be copied out of its graph",
    ),
    (
        "copy-graph",
        lambda k: copy.deepcopy(k.out.graph),
        RuntimeError,
        r"cannot be copied or pickled.*graph.save\(path\)",
    ),
    (
        "pickle-graph",
        lambda k: pickle.dumps({"session": wf.Session(k.out.graph)}),
        RuntimeError,
        r"cannot be copied or pickled.*graph.save\(path\)",
    ),
    # gradients
    (
        "backward",
        lambda k: k.loss.backward(),
        RuntimeError,
        r"is a symbol: use wf.gradients\(loss, xs\).*optimizer.minimize",
    ),
    (
        "grad-set",
        lambda k: set_attribute(k.out, "grad", k.out),
        RuntimeError,
        r"a symbol has no .grad; wf.gradients",
    ),
    ("requires-grad", lambda k: k.out.requires_grad_(False), RuntimeError, r"use x.detach\(\)"),
    ("register-hook", lambda k: k.n.register_hook(print), RuntimeError, r"only floats have"),
    (
        "gradients-int",
        lambda k: wf.gradients(k.whole, [k.n]),
        TypeError,
        r"ys\[0\] is int64 and has no gradient",
    ),
    (
        "gradients-none",
        lambda k: wf.gradients(None, [k.x]),
        TypeError,
        r"gradients: ys must be a tensor.*Received",
    ),
    (
        "gradients-name",
        lambda k: wf.gradients("loss", [k.x]),
        TypeError,
        r"gradients: ys must be a tensor.*Received",
    ),
    ("gradients-xs", lambda k: wf.gradients(k.loss, [3]), TypeError, r"gradients: xs.*Received"),
    (
        "gradients-seed-shape",
        lambda k: wf.gradients(k.out, [k.x], [wf.ones(2, 2)]),
        ValueError,
        r"grad_ys\[0\] must be float32\[x_0\] like ys\[0\]. Received: float32\[2, 2\]",
    ),
    (
        "gradients-seed-dtype",
        lambda k: wf.gradients(k.loss, [k.x], [wf.ones((), dtype=wf.float64)]),
        (ValueError, TypeError),
        r"grad_ys\[0\] must be float32.*Received: float64",
    ),
    (
        "gradients-seed-count",
        lambda k: wf.gradients(k.loss, [k.x], [None, None]),
        (ValueError, TypeError),
        r"grad_ys.*1.*2|grad_ys.*2",
    ),
    (
        "gradients-seed-number",
        lambda k: wf.gradients(k.loss, [k.x], [1.0]),
        TypeError,
        r"grad_ys\[0\] must be a tensor or None. Received: float",
    ),
    (
        "gradients-foreign",
        lambda k: wf.gradients(k.foreign, [k.x]),
        RuntimeError,
        r"mul belongs to another graph \(other\) than the one that is open here \(model\)",
    ),
    (
        "forward-count",
        lambda k: wf.forward_gradients(k.loss, [k.x, k.w], [k.x]),
        TypeError,
        r"tangents must match xs, 2 tensor\(s\). Received: 1",
    ),
    (
        "forward-shape",
        lambda k: wf.forward_gradients(k.loss, k.w, wf.ones(2)),
        ValueError,
        r"tangents\[0\] must be float32\[3\] like its x. Received: float32\[2\]",
    ),
    (
        "forward-number",
        lambda k: wf.forward_gradients(k.loss, k.w, 1.0),
        TypeError,
        r"tangents\[0\] must be a tensor or None. Received: float",
    ),
    # graphs mixed
    (
        "mix-add",
        lambda k: k.loss + k.foreign,
        RuntimeError,
        r"mul belongs to another graph \(other\) than the one that is open here \(model\)",
    ),
    (
        "mix-assign",
        lambda k: k.v.assign(k.foreign),
        RuntimeError,
        r"mul belongs to another graph \(other\)",
    ),
    (
        "mix-stack",
        lambda k: wf.stack([k.loss, k.foreign]),
        RuntimeError,
        r"belongs to another graph",
    ),
    (
        "mix-loop",
        lambda k: wf.scan(lambda c, _: (c + k.foreign, None), wf.zeros(()), length=2),
        RuntimeError,
        r"belongs to another graph",
    ),
    # names and placeholders
    (
        "placeholder-shape",
        lambda k: wf.placeholder({2, 3}),
        TypeError,
        r"placeholder: shape must be a tuple of sizes.*Received: \{2, 3\}",
    ),
    (
        "placeholder-negative",
        lambda k: wf.placeholder((2, -1)),
        ValueError,
        r"placeholder: sizes must not be negative. Received: -1 at 1",
    ),
    ("placeholder-float", lambda k: wf.placeholder((2.5,)), TypeError, r"placeholder: size 0.*2.5"),
    (
        "placeholder-bool",
        lambda k: wf.placeholder((True,)),
        TypeError,
        r"placeholder: size 0.*True",
    ),
    (
        "placeholder-size-name",
        lambda k: wf.placeholder(("batch size",)),
        ValueError,
        r"name of a size must be an identifier. Received: 'batch size'",
    ),
    ("placeholder-dtype", lambda k: wf.placeholder((2,), "number"), TypeError, r"number"),
    (
        "placeholder-name",
        lambda k: wf.placeholder((2,), name=3),
        TypeError,
        r"placeholder: name must be a non-empty string. Received: 3",
    ),
    (
        "placeholder-empty-name",
        lambda k: wf.placeholder((2,), name=""),
        TypeError,
        r"non-empty string. Received: ''",
    ),
    (
        "placeholder-taken-name",
        lambda k: wf.placeholder((2,), name="x"),
        ValueError,
        r"placeholder: the name 'x' is taken in this graph",
    ),
    (
        "name-taken",
        lambda k: set_attribute(k.loss, "name", "x"),
        ValueError,
        r"the name 'x' is taken in this graph",
    ),
    (
        "name-number",
        lambda k: set_attribute(k.loss, "name", 3),
        TypeError,
        r"a name must be a non-empty string. Received: 3",
    ),
    (
        "name-empty",
        lambda k: set_attribute(k.loss, "name", ""),
        TypeError,
        r"a name must be a non-empty string. Received: ''",
    ),
    (
        "scope-name",
        lambda k: wf.name_scope("a//b").__enter__(),
        ValueError,
        r"name_scope: the name must be .* Received: 'a//b'",
    ),
    (
        "scope-number",
        lambda k: wf.name_scope(3).__enter__(),
        ValueError,
        r"name_scope.*Received: 3",
    ),
    # assignments
    (
        "assign-symbol",
        lambda k: k.out.assign(1.0),
        ValueError,
        r"out is a value of the graph; assign to a parameter",
    ),
    (
        "assign-shape",
        lambda k: k.w.assign(wf.ones(2)),
        ValueError,
        r"assign: shape \(2,\) does not fill \(3,\)",
    ),
    ("assign-text", lambda k: k.w.assign("text"), TypeError, r"text"),
    ("write-dtype", lambda k: k.n.copy_(k.out), ValueError, r"shape|size"),
    # training
    (
        "minimize-vector",
        lambda k: k.sgd().minimize(k.x * k.w),
        RuntimeError,
        r"minimize: the loss must be one floating-point number. Received: symbol",
    ),
    (
        "minimize-int",
        lambda k: k.sgd().minimize(k.whole),
        RuntimeError,
        r"minimize: the loss must be one floating-point number",
    ),
    (
        "minimize-unconnected",
        lambda k: wf.optim.SGD([k.v], lr=0.1).minimize(k.loss),
        RuntimeError,
        r"minimize: the loss depends on none of the optimizer's parameters",
    ),
    (
        "minimize-foreign",
        lambda k: k.sgd().minimize(k.foreign),
        RuntimeError,
        r"belongs to another graph",
    ),
    (
        "minimize-lbfgs",
        lambda k: wf.optim.LBFGS([k.w]).minimize(k.loss),
        (RuntimeError, ValueError, TypeError),
        r"LBFGS",
    ),
    # shape errors point at the line that builds the node
    (
        "shape-add",
        lambda k: k.x + wf.ones(4),
        ValueError,
        r"add: .*\(x_0, 3\).*\(4,\)|add: .*x_0, 3.*4",
    ),
    ("shape-matmul", lambda k: k.x @ wf.ones(4, 2), ValueError, r"matmul: .*x_0, 3.*4, 2"),
    ("shape-reshape", lambda k: wf.ones(2, 3).reshape(4) + k.out, ValueError, r"reshape"),
    ("shape-axis", lambda k: k.x.sum(axis=5), IndexError, r"sum: axis 5 is out of range"),
    ("shape-layer", lambda k: wf.nn.Linear(4, 2)(k.x), ValueError, r"x_0, 3"),
    ("shape-size", lambda k: wf.zeros((k.n, 2)), (RuntimeError, TypeError), r"index: count|size"),
    ("dtype-bitwise", lambda k: k.x & k.x, TypeError, r"bitwise_and.*float32|float32"),
    ("setitem-text", in_place, TypeError, r"text"),
    ("attribute", lambda k: k.out.no_such_thing, AttributeError, r"no_such_thing"),
]


@table(OPEN)
def test_inside(call, error, pattern):
    kit = Kit()
    with kit.graph:
        refuses(call, kit, error, pattern)
    found = kit.run(kit.loss, {kit.x: X})  # and the graph is none the worse
    assert found == 12.0


def test_ids_are_unique():
    assert len({case[0] for case in OPEN}) == len(OPEN) >= 80


def test_errors_of_shapes_name_the_lines_that_build_the_operands():
    with wf.Graph():
        x = wf.placeholder((2, 3), wf.float32)
        y = x * 2
        with pytest.raises(ValueError, match=r"from test_bad_input.py:\d+") as caught:
            y + wf.ones(7)
    assert y.value.node.where in str(caught.value)
