"""Every rule of simplify fires, leaves special values alone, and knows where it must not fire."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.programs.strategies import equal_bits
from weft.core.dtype import as_dtype
from weft.core.op import F, registry
from weft.core.rng import default_generator
from weft.passes import (
    canonicalize,
    fold_constants,
    remove_dead,
    share_common,
    simplify,
    simplify_finally,
)
from weft.passes.match import MAX_STEPS, RuleTable, rewrite
from weft.passes.simplify import LAST_RULES, RULES, holds, rules_of_facts

from .helpers import SPECIAL, ops, run, trace

F32 = SPECIAL.astype(np.float32)
INTS = np.array([-128, -3, -1, 0, 1, 2, 127], np.int64)
BOOLS = np.array([True, False, True])
MATRIX = np.array([[np.nan, -0.0, 1.0], [np.inf, -np.inf, 1e-40]], np.float32)
INT_MATRIX = np.arange(-3, 3).reshape(2, 3)


def twice(name):
    return lambda x: getattr(F, name)(getattr(F, name)(x))


def with_itself(name):
    return lambda x: getattr(F, name)(x, x)


def over_nothing(name):
    return lambda x: getattr(F, name)(x, axis=())


# What fires, on what, and the operators that are left.
CASES = {
    "x * 1": (lambda x: x * 1, F32, []),
    "1 * x": (lambda x: 1.0 * x, F32, []),
    "1 * x, integers": (lambda x: 1 * x, INTS, []),
    "x * ones_like": (lambda x: x * wf.ones_like(x), F32, []),
    "x * broadcast ones": (lambda x: x * wf.broadcast_to(wf.tensor(1.0), x.shape), F32, []),
    "x / 1": (lambda x: x / 1, F32, []),
    "x ** 1": (lambda x: x**1, F32, []),
    "x ** 1, integers": (lambda x: x**1, INTS, []),
    "x + -0.0": (lambda x: x + -0.0, F32, []),
    "-0.0 + x": (lambda x: -0.0 + x, F32, []),
    "x + 0, integers": (lambda x: x + 0, INTS, []),
    "x - 0.0": (lambda x: x - 0.0, F32, []),
    "x - 0, integers": (lambda x: x - 0, INTS, []),
    "x ** 2": (lambda x: x**2, F32, ["square"]),
    "x ** 0.5": (lambda x: x**0.5, F32, ["sqrt"]),
    "x ** -1": (lambda x: x**-1, F32, ["reciprocal"]),
    "abs(-x)": (lambda x: wf.abs(-x), F32, ["abs"]),
    "max(x, -inf)": (lambda x: wf.maximum(x, -np.inf), F32, []),
    "max(-inf, x)": (lambda x: wf.maximum(-np.inf, x), F32, []),
    "min(x, inf)": (lambda x: wf.minimum(x, np.inf), F32, []),
    "min(inf, x)": (lambda x: wf.minimum(np.inf, x), F32, []),
    "(x + 2) + 3, integers": (lambda x: (x + 2) + 3, INTS, ["add"]),
    "2 * (x * 3), integers": (lambda x: 2 * (x * 3), INTS, ["mul"]),
    "neg twice": (twice("neg"), F32, []),
    "logical_not twice": (lambda x: wf.logical_not(wf.logical_not(x)), BOOLS, []),
    "bitwise_not twice": (lambda x: ~~x, INTS, []),
    **{
        f"{name} twice": (twice(name), F32, [name])
        for name in ("abs", "floor", "ceil", "trunc", "sign", "relu", "relu6")
    },
    "clip_to twice": (lambda x: wf.clip(wf.clip(x, -1.0, 2.0), -1.0, 2.0), F32, ["clip_to"]),
    "hardtanh twice": (lambda x: wf.hardtanh(wf.hardtanh(x)), F32, ["hardtanh"]),
    **{
        f"{name}(x, x)": (with_itself(name), F32, [])
        for name in ("maximum", "minimum", "fmax", "fmin")
    },
    "x & x": (lambda x: x & x, INTS, []),
    "x | x": (lambda x: x | x, INTS, []),
    "x and x": (lambda x: wf.logical_and(x, x), BOOLS, []),
    "x and (x and y)": (
        lambda x: wf.logical_and(x, wf.logical_and(wf.flip(x), x)),
        BOOLS,
        ["flip", "logical_and"],
    ),
    "(x | y) | x": (lambda x: (x | (x + 1)) | x, INTS, ["add", "bitwise_or"]),
    "x and True": (lambda x: wf.logical_and(x, True), BOOLS, []),
    "x or False": (lambda x: wf.logical_or(x, False), BOOLS, []),
    "x xor False": (lambda x: wf.logical_xor(x, False), BOOLS, []),
    "where(c, x, x)": (lambda x: wf.where(x > 0, x, x), F32, []),
    "where(True, x, y)": (lambda x: wf.where(wf.tensor(True), x, -x), F32, []),
    "where(False, x, y)": (lambda x: wf.where(wf.tensor(False), -x, x), F32, []),
    "cast to the same dtype": (lambda x: F.cast(x, "float32"), F32, []),
    "cast of an exact cast": (lambda x: F.cast(F.cast(x, "float64"), "float16"), F32, ["cast"]),
    "cast there and back": (lambda x: F.cast(F.cast(x, "float64"), "float32"), F32, []),
    "copy": (F.positive, F32, []),
    "stop_gradient twice": (
        lambda x: F.stop_gradient(F.stop_gradient(x)),
        F32,
        ["stop_gradient"],
    ),
    "permute in order": (lambda x: wf.permute(x, (0, 1)), MATRIX, []),
    "permute back": (lambda x: wf.permute(wf.permute(x, (1, 0)), (1, 0)), MATRIX, []),
    "three permutes": (
        lambda x: wf.permute(wf.permute(wf.permute(x, (1, 0)), (1, 0)), (1, 0)),
        MATRIX,
        ["permute"],
    ),
    "reshape of reshape": (lambda x: x.reshape(3, 2).reshape(6), MATRIX, ["reshape"]),
    "reshape back": (lambda x: x.reshape(6).reshape(2, 3), MATRIX, []),
    "reshape to the same shape": (lambda x: x.reshape(2, 3), MATRIX, []),
    "squeeze of unsqueeze": (lambda x: wf.squeeze(wf.unsqueeze(x, 1), 1), MATRIX, []),
    "unsqueeze of reshape": (lambda x: wf.unsqueeze(x.reshape(6), 0), MATRIX, ["reshape"]),
    "broadcast to the same shape": (lambda x: wf.broadcast_to(x, (2, 3)), MATRIX, []),
    "broadcast of broadcast": (
        lambda x: wf.broadcast_to(wf.broadcast_to(x, (1, 2, 3)), (4, 2, 3)),
        MATRIX,
        ["broadcast_to"],
    ),
    "flip back": (lambda x: wf.flip(wf.flip(x, 1), 1), MATRIX, []),
    "x[:]": (lambda x: x[:], MATRIX, []),
    "x[..., 0:3]": (lambda x: x[..., 0:3], MATRIX, []),
    "pad by nothing": (lambda x: wf.pad(x, 0), MATRIX, []),
    "concat of one": (lambda x: wf.concat([x]), MATRIX, []),
    **{f"{name} over no axes": (over_nothing(name), MATRIX, []) for name in ("max", "min", "prod")},
    "any over no axes": (lambda x: wf.any(x, axis=()), BOOLS, []),
    "all over no axes": (lambda x: wf.all(x, axis=()), BOOLS, []),
    "sum of integers over no axes": (lambda x: wf.sum(x, axis=()), INT_MATRIX, []),
    "sum_to of integers": (lambda x: F.sum_to(x, (2, 3)), INT_MATRIX, []),
}


# These write sizes out.
SIZED = {case for case in CASES if "reshape" in case or "broadcast" in case}
SIZED |= {"x[..., 0:3]", "sum_to of integers"}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("unknown", [False, True])
def test_rule_fires_and_keeps_every_bit(case, unknown):
    fn, array, left = CASES[case]
    graph = trace(fn, array, unknown=unknown and case not in SIZED)
    made = canonicalize(graph)
    assert ops(made) == left
    assert equal_bits(run(graph, array), run(made, array))


@pytest.mark.parametrize("case", CASES)
def test_rule_keeps_empty_arrays(case):
    fn, array, _ = CASES[case]
    if array.ndim > 1:
        pytest.skip("the shapes are written out")
    empty = array[:0]
    graph = trace(fn, empty)
    assert equal_bits(run(graph, empty), run(canonicalize(graph), empty))


def test_every_rule_is_tried():
    """Count the rules that some case fires, by leaving each out."""
    graphs = [fold_constants(share_common(trace(fn, array))) for fn, array, _ in CASES.values()]
    idle = []
    for rule in (*RULES, *(rule for op in registry.values() for rule in rules_of_facts(op))):
        table = RuleTable([rule])
        changed = (
            any(a is not b for a, b in zip(rewrite(g, None, table, simplify), g, strict=False))
            or len(rewrite(g, None, table, simplify)) != len(g)
            for g in graphs
        )
        if not any(changed):
            idle.append(rule.name)
    # The remaining forms of absorption and of relabelling differ in nothing but the operator.
    assert [n for n in idle if " of " not in n and not n.startswith(("logical", "bitwise"))] == []


REFUSED = {
    "x + 0.0 would keep -0.0": (lambda x: x + 0.0, F32),
    "x - -0.0 would keep -0.0": (lambda x: x - -0.0, F32),
    "x * 0 may be NaN": (lambda x: x * 0, F32),
    "x * -1 has another NaN": (lambda x: x * -1, F32),
    "x - x may be NaN": (lambda x: x - x, F32),
    "x / x may be NaN": (lambda x: x / x, F32),
    "x ** 1.0000001": (lambda x: x**1.0000001, F32),
    "max(x, inf)": (lambda x: wf.maximum(x, np.inf), F32),
    "broadcasting": (lambda x: x * wf.ones(3, 1), F32),
    "inexact cast": (lambda x: F.cast(F.cast(x, "float16"), "float32"), F32),
    "integers through floats": (lambda x: F.cast(F.cast(x, "float32"), "int64"), INTS),
    "another clip": (lambda x: wf.clip(wf.clip(x, -1.0, 2.0), -2.0, 1.0), F32),
    "flip of another axis": (lambda x: wf.flip(wf.flip(x, 0), 1), MATRIX),
    "x[::-1]": (lambda x: x[::-1], F32),
    "logical_not of numbers twice": (lambda x: wf.logical_not(wf.logical_not(x)), F32),
    "floats are not regrouped": (lambda x: (x + 0.1) + 0.2, F32),
    "stop_gradient": (F.stop_gradient, F32),
}


@pytest.mark.parametrize("case", REFUSED)
def test_rule_does_not_fire(case):
    fn, array = REFUSED[case]
    graph = trace(fn, array)
    made = canonicalize(graph)
    assert ops(made) == ops(share_common(fold_constants(graph)))
    assert equal_bits(run(graph, array), run(made, array))


def test_stop_gradient_goes_when_derivatives_are_taken():
    graph = trace(lambda x: F.stop_gradient(x) * 1, F32)
    assert ops(simplify(graph)) == ["stop_gradient"]
    assert ops(remove_dead(simplify_finally(graph))) == []
    assert LAST_RULES[0].name == "stop_gradient"


@pytest.mark.parametrize(
    ("wide", "narrow", "answer"),
    [
        ("float64", "float32", True),
        ("float32", "float64", False),
        ("float32", "bfloat16", True),
        ("float16", "bfloat16", False),
        ("float32", "int16", True),
        ("float32", "int32", False),
        ("float64", "int64", False),
        ("bfloat16", "uint8", True),
        ("float16", "int16", False),
        ("int64", "uint32", True),
        ("int64", "uint64", False),
        ("uint64", "int8", False),
        ("int8", "bool", True),
        ("bool", "int8", False),
        ("int8", "float32", False),
    ],
)
def test_which_dtypes_hold_which(wide, narrow, answer):
    assert holds(as_dtype(wide), as_dtype(narrow)) is answer


def test_long_chains_collapse_in_one_sweep():
    def fn(x):
        for _ in range(500):
            x = (
                wf.permute(wf.neg(-(x * 1)), (1, 0)).reshape(2, 3)
                if x.shape == (3, 2)
                else x.reshape(3, 2)
            )
        return x

    graph = trace(fn, MATRIX)
    assert len(graph) > 5 * MAX_STEPS
    assert equal_bits(run(graph, MATRIX), run(simplify(graph), MATRIX))
    made = trace(lambda x: x, MATRIX)
    assert len(made) == 1


def test_a_rule_never_drops_a_draw():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        y = wf.where(wf.tensor(True), x, wf.rand(3)) * wf.ones_like(wf.rand(3))
    made = remove_dead(simplify(graph, [y.value]))
    assert ops(made).count("random_uniform") == 2
    wf.manual_seed(0)
    wf.Session(made).run(y, {x: np.zeros(3, np.float32)})
    assert default_generator.position()[1] == 2


def test_bodies_of_control_flow_are_simplified():
    def fn(x):
        return wf.cond(wf.any(x > 0), lambda v: wf.neg(-v) * 1, lambda v: v + -0.0, x)

    graph = trace(fn, F32)
    (node,) = (n for n in simplify(graph) if n.op.name == "cond")
    assert [ops(remove_dead(body)) for body in node.attrs[:2]] == [[], []]
    assert equal_bits(run(graph, F32), run(canonicalize(graph), F32))


def test_new_nodes_keep_scope_site_and_device():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        with wf.name_scope("block"):
            y = x**2
    (made,) = simplify(graph, [y.value]).outputs
    assert made.node.op.name == "square"
    assert (made.node.scope, made.node.site, made.node.name) == (
        y.value.node.scope,
        y.value.node.site,
        y.value.node.name,
    )
