"""Fusion: one node, no temporaries, the same bits and the same layout as the operators alone."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
from tests.programs.strategies import equal_bits
from weft.core.errors import GraphError, ShapeError
from weft.core.op import F, elementwise, load_all, registry
from weft.core.samples import Sampler
from weft.graph.run import run_function
from weft.passes import fuse, unfuse
from weft.passes import fused as blocks
from weft.passes.fused import FUSED, Plan, tiles

from .helpers import ops, run, trace

load_all()


@pytest.fixture
def small_blocks(monkeypatch):
    """Let arrays of a few elements be cut into blocks."""
    monkeypatch.setattr(blocks, "SMALL", 4)
    monkeypatch.setattr(blocks, "CACHE", 64)


def both(fn, *arrays, unknown=False):
    """Return the results without and with fusion, and the fused graph."""
    graph = trace(fn, *arrays, unknown=unknown)
    made = fuse(graph)
    return run(graph, *arrays), run(made, *arrays), made


def test_the_classic_example_is_one_node():
    a, b = np.random.default_rng(0).standard_normal((2, 5, 7)).astype(np.float32)
    plain, fused, graph = both(lambda x, y: y * x + 1, a, b)
    assert ops(graph) == ["fused"]
    assert equal_bits(plain, fused)
    (node,) = (n for n in graph if n.op is FUSED)
    assert ops(node.attrs[0]) == ["mul", "add"]


def test_no_temporary_is_made():
    size = 1 << 22
    a = np.ones(size, np.float32)
    graph = fuse(trace(lambda x: wf.tanh(x * x + 1) * x - 2, a))
    run_function(graph, [a])
    tracemalloc.start()
    run_function(graph, [a])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.3 * a.nbytes


LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "columns": lambda x: np.repeat(x, 3, axis=0)[::3],
}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("ufuncs", [True, False])
def test_layouts_of_operands_and_result(left, right, ufuncs):
    rng = np.random.default_rng(0)
    x = LAYOUTS[left](rng.standard_normal((6, 9)).astype(np.float32))
    y = LAYOUTS[right](rng.standard_normal((6, 9)).astype(np.float32))
    fn = (lambda a, b: wf.exp(a * b) - b) if ufuncs else (lambda a, b: F.gelu(a * b) - F.relu(b))
    plain, fused, graph = both(fn, x, y)
    assert ops(graph) == ["fused"]
    assert equal_bits(plain, fused)
    assert plain.strides == fused.strides


SHAPES = [
    (),
    (1,),
    (5,),
    (4, 1),
    (1, 5),
    (4, 5),
    (3, 1, 5),
    (3, 4, 1),
    (2, 3, 4, 5),
    (0, 5),
    (1, 1),
]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("a", SHAPES)
@pytest.mark.parametrize("b", SHAPES)
@pytest.mark.parametrize("unknown", [False, True])
def test_any_broadcasting(a, b, unknown):
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        pytest.skip("they do not broadcast")
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(a).astype(np.float32), rng.standard_normal(b)

    def fn(p, q):
        return wf.where(p > q, wf.tanh(p + q), (p - q) ** 2) * 0.5

    plain, fused, _ = both(fn, x, y, unknown=unknown)
    assert equal_bits(plain, fused)
    assert plain.strides == fused.strides


def _elementwise_samples():
    for name, op in sorted(registry.items()):
        if op.kind == elementwise and op.sample_rule is not None:
            yield name


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", list(_elementwise_samples()))
def test_every_elementwise_operator(name):
    """Fuse each operator's samples with operators before and behind it."""
    op = registry[name]
    for sample in op.sample_rule(Sampler()):
        arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
        if not arrays:
            continue

        def fn(*symbols, sample=sample):
            given = iter(symbols)
            args = [
                F.positive(next(given)) if isinstance(a, np.ndarray) else a for a in sample.args
            ]
            return F.positive(op.function(*args, **sample.kwargs))

        plain, fused, _ = both(fn, *arrays)
        assert equal_bits(plain, fused), (name, sample)


@pytest.mark.usefixtures("small_blocks")
@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)), max_size=25))
def test_random_programs_reuse_registers_rightly(steps):
    rng = np.random.default_rng(len(steps))
    x = rng.standard_normal((3, 7)).astype(np.float32)
    functions = (wf.add, wf.mul, wf.sub, wf.hypot, F.copysign, lambda a, b: wf.where(a > b, a, b))
    unary = (wf.tanh, wf.neg, wf.silu, F.gelu, lambda a: F.cast(F.cast(a, "float64"), "float32"))

    def fn(a):
        made = [a, a + 1]
        for what, i, j in steps:
            left, right = made[-1 - i % min(4, len(made))], made[-1 - j % len(made)]
            call = functions[what % 6]
            made.append(call(left, right) if what % 2 else unary[what % 5](left))
        return made[-1] * 2 + made[len(made) // 2]

    plain, fused, _ = both(fn, x)
    assert equal_bits(plain, fused)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "uint8"])
def test_dtypes(small_blocks, dtype):
    x = F.cast(wf.tensor(np.arange(1.0, 30.0)), dtype).numpy()
    plain, fused, graph = both(lambda a: wf.maximum(a * a, a) + 1, x)
    assert ops(graph) == ["fused"]
    assert equal_bits(plain, fused)


# -- what is fused ---------------------------------------------------------------------------------


def test_a_value_that_others_need_is_not_swallowed():
    def fn(x):
        y = wf.exp(x) * 2
        return wf.tanh(y) + wf.sum(y)

    graph = fuse(trace(fn, np.ones(5, np.float32)))
    assert ops(graph) == ["fused", "sum", "fused"]


def test_diamonds_are_one_group():
    graph = fuse(trace(lambda x: wf.exp(x + 1) * wf.tanh(x + 1), np.ones(5, np.float32)))
    assert ops(graph).count("fused") == 1


def test_outputs_are_never_swallowed():
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32, name="x")
        y = x * 2
        z = y + 1
        w = wf.tanh(z)
    made = fuse(graph, [y.value, w.value])
    assert ops(made) == ["mul", "fused"]
    found = wf.Session(made).run([y, w], {x: np.ones(4, np.float32)})
    assert found[0].tolist() == [2.0] * 4


def test_other_shapes_stay_outside():
    graph = fuse(trace(lambda x: wf.tanh(x[0] * 2 + 1) + x * 3, np.ones((4, 5), np.float32)))
    assert ops(graph) == ["getitem", "fused", "fused"]


def test_devices_are_not_mixed():
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32, name="x")
        y = x * 2
        z = y + 1
    moved = [n if n is not y.value.node else n.rebuilt(n.inputs, device="gpu:0") for n in graph]
    other = type(graph)()
    for node in moved[:-1]:
        other.append(node)
    (last,) = (n for n in graph if n is z.value.node)
    other.append(last.rebuilt([moved[-2].outputs[0], *last.inputs[1:]]))
    assert "fused" not in ops(fuse(other))


def test_one_node_is_not_fused():
    assert ops(fuse(trace(wf.tanh, np.ones(3, np.float32)))) == ["tanh"]


def test_integer_powers_are_left_to_themselves():
    x = np.arange(5)
    assert "pow" in ops(fuse(trace(lambda a: (a + 1) ** (a * 2) + 1, x)))


def test_bodies_of_control_flow_are_fused_once():
    def fn(x):
        return wf.cond(wf.any(x > 0), lambda v: v * 2 + 1, lambda v: v - 1 - 2, x)

    graph = fuse(fuse(trace(fn, np.ones(4, np.float32))))
    (node,) = (n for n in graph if n.op.name == "cond")
    assert [ops(body) for body in node.attrs[:2]] == [["fused"], ["fused"]]


def test_unfuse_undoes_it():
    x = np.linspace(-1, 1, 9).astype(np.float32)
    graph = trace(lambda a: wf.tanh(a * a + 1) - a, x)
    made = unfuse(fuse(graph))
    assert ops(made) == ops(graph)
    assert equal_bits(run(graph, x), run(made, x))


def test_a_fused_node_has_no_derivative():
    with pytest.raises(GraphError, match="take gradients before the graph is optimised"):
        FUSED.vjps["operands"]()
    with pytest.raises(GraphError, match="fused node has no derivative"):
        FUSED.pull_back_node()
    with pytest.raises(GraphError, match="unfuse"):
        FUSED.push_forward_node()


def test_errors_name_the_node_inside():
    with wf.Graph() as graph:
        x = wf.placeholder(("n",), wf.float32, name="x")
        y = wf.placeholder(("m",), wf.float32, name="y")
        z = wf.tanh((x * y) + 1)
    made = fuse(graph, [z.value])
    with pytest.raises(ShapeError, match=r"mul.*\(3,\) and \(4,\)"):
        wf.Session(made).run(z, {x: np.ones(3, np.float32), y: np.ones(4, np.float32)})


def test_sizes_inside_a_group():
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), wf.float32, name="x")
        y = wf.tanh(x * x.shape[0] + 1)
    made = fuse(graph, [y.value])
    a = np.ones((4, 3), np.float32)
    assert equal_bits(wf.Session(graph).run(y, {x: a}), wf.Session(made).run(y, {x: a}))


# -- blocks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(10,), (3, 4), (7, 1, 5), (2, 3, 4, 5), (1, 1, 100)])
@pytest.mark.parametrize("block", [1, 3, 4, 20, 1000])
def test_tiles_cover_a_shape_once(shape, block):
    counts = np.zeros(shape, int)
    for tile in tiles(shape, block):
        counts[tile] += 1
        assert counts[tile].size <= max(block, 1)
    assert (counts == 1).all()


def test_registers_are_few():
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32, name="x")
        y = x
        for _ in range(50):
            y = wf.tanh(y * 2)
    (node,) = (n for n in fuse(graph, [y.value]) if n.op is FUSED)
    assert len(Plan(node.attrs[0]).dtypes) == 1
