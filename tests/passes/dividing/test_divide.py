"""Programs with placements, divided among processes: the same results, and few exchanges."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.passes.dividing.lockstep import SIZE, divided, exchanges, placed, run_together
from weft.core.op import F
from weft.nn import functional as NF
from weft.ops.collective.placed import whole_of
from weft.passes.dividing.choices import EXCHANGE
from weft.passes.dividing.divide import divide

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape) * 0.5


def checked(build, arrays, size=SIZE):
    """Return the exchanges of a program, whose results on all processes are those of one."""
    graphs = divided(build, arrays, size)
    with wf.no_grad():
        expected = [y.numpy() for y in build(0, *map(wf.tensor, arrays))]
    for found in run_together(graphs, arrays):
        for y, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(y, right, rtol=1e-10, atol=1e-12)
    assert [exchanges(g) for g in graphs] == [exchanges(graphs[0])] * size
    return exchanges(graphs[0])


# -- products --------------------------------------------------------------------------------------


def test_columns_then_rows_exchange_one_sum():
    def mlp(i, x, up, b, down, c):
        h = NF.gelu(F.linear(x, placed(up, 0, i), b))
        return [x + F.linear(h, placed(down, 1, i), c)]

    arrays = [normal(6, 4), normal(8, 4), normal(8), normal(4, 8), normal(4)]
    assert checked(mlp, arrays) == [("sum", (6, 4))]


def test_one_placement_is_carried_on_to_what_it_meets():
    def mlp(i, x, up, down):
        return [placed(F.relu(x @ up), 1, i) @ down]

    # The hidden axis is divided before the ReLU too, and rows of `down` are cut.
    arrays = [normal(6, 4), normal(4, 8), normal(8, 4)]
    graphs = divided(mlp, arrays)
    assert checked(mlp, arrays) == [("sum", (6, 4))]
    shapes = [n.outputs[0].shape for n in graphs[0].nodes if n.op.name in ("matmul", "relu")]
    assert shapes == [(6, 4), (6, 4), (6, 4)]


def test_rows_of_a_batch_are_data_parallel():
    def loss(i, x, w, y):
        return [F.mean(F.square(F.tanh(placed(x, 0, i) @ w) - y))]

    arrays = [normal(6, 4), normal(4, 3), normal(6, 3)]
    assert checked(loss, arrays) == [("mean", ())]

    def gradient(i, x, w, y):
        return wf.gradients(loss(i, x, w, y)[0], [w])

    graphs = divided(gradient, arrays)
    assert exchanges(graphs[0]) == [("mean", ()), ("sum", (4, 3))]
    w = wf.tensor(arrays[1], requires_grad=True)
    F.mean(F.square(F.tanh(wf.tensor(arrays[0]) @ w) - wf.tensor(arrays[2]))).backward()
    for (found,) in run_together(graphs, arrays):
        np.testing.assert_allclose(found, w.grad.numpy(), rtol=1e-10)


def test_operands_that_are_divided_differently_move_the_fewest_bytes():
    def product(i, x, w):
        return [placed(x, 0, i) @ placed(w, 1, i)]

    # The smaller operand is gathered, then the result.
    assert checked(product, [normal(16, 4), normal(4, 2)])[0] == ("gather", (4, 1))
    assert checked(product, [normal(2, 4), normal(4, 16)])[0] == ("gather", (1, 4))


def test_convolutions_by_channels():
    def net(i, x, first, second):
        h = F.relu(F.conv(x, placed(first, 0, i), 1, 1))
        return [F.conv(h, placed(second, 1, i), 1, 1)]

    arrays = [normal(2, 3, 5, 5), normal(4, 3, 3, 3), normal(3, 4, 3, 3)]
    assert checked(net, arrays) == [("sum", (2, 3, 5, 5))]


# -- other operations ------------------------------------------------------------------------------

CARRIED = {
    "elementwise": (lambda x: F.exp(x) * 2 + x, 0),
    "broadcast": (lambda x: x + x[0], 1),
    "sum": (lambda x: F.sum(x, axis=0), 1),
    "extremum": (lambda x: F.max(x, axis=1), 1),
    "softmax": (lambda x: NF.softmax(x, 1), 1),
    "log sum": (lambda x: F.logsumexp(x, axis=1), 1),
    "variance": (lambda x: F.var(x, axis=0), 1),
    "variance along": (lambda x: F.var(x, axis=1), 1),
    "permute": (lambda x: F.permute(x, (1, 0)), 0),
    "reshape": (lambda x: F.reshape(x, (4, 2, 3)), 1),
    "slice": (lambda x: x[1:3], 1),
    "slice along": (lambda x: x[1:3], 0),
    "concat": (lambda x: F.concat([x, x + 1], 0), 1),
    "sort": (lambda x: F.sort(x, 1), 0),
    "cumsum": (lambda x: F.cumsum(x, 1), 1),
    "truth values": (lambda x: F.any(x > 0, axis=1), 1),
}


@pytest.mark.parametrize("name", CARRIED)
def test_operations_on_divided_values(name):
    operation, axis = CARRIED[name]
    checked(lambda i, x: [operation(placed(x, axis, i))], [normal(4, 6)])


def test_three_processes():
    checked(lambda i, x, w: [placed(x, 1, i, 3) @ w], [normal(4, 6), normal(6, 2)], 3)


def test_another_axis_is_reached_by_one_exchange():
    def turned(i, x):
        return [placed(placed(F.exp(x), 0, i) * 2, 1, i)]

    assert checked(turned, [normal(4, 6)])[0] == ("all_to_all", (2, 6))


def test_a_sum_that_is_needed_in_parts_is_scattered():
    def product(i, x, w):
        return [placed(placed(x, 1, i) @ w, 0, i)]

    found = checked(product, [normal(4, 6), normal(6, 8)])
    assert found == [("scatter", (4, 8)), ("gather", (2, 8))]


def test_everybody_can_be_given_all():
    def product(i, x, w):
        return [F.exp(placed(placed(x, 0, i) @ w, None, i))]

    graphs = divided(product, [normal(4, 6), normal(6, 8)])
    order = [n.op.name for n in graphs[0].nodes]
    assert order.index("exchange") < order.index("exp")
    checked(product, [normal(4, 6), normal(6, 8)])


def test_sizes_that_cannot_be_divided_stay_whole():
    def program(i, x):
        return [F.sum(F.reshape(placed(x, 0, i), (3, 4)), axis=0)]

    checked(program, [normal(4, 3)])


def test_indices_beyond_a_divided_table_are_refused():
    def rows(i, table, index):
        return [F.embedding(placed(table, 0, i), index)]

    table = normal(6, 2)
    assert checked(rows, [table, np.array([[0, 5], [3, 2]])]) == [("sum", (2, 2, 2))]
    for bad in (6, -1):
        arrays = [table, np.array([[0, bad], [3, 2]])]
        with pytest.raises(IndexError):
            run_together(divided(rows, arrays), arrays)


def test_classes_can_be_divided():
    def loss(i, x, target):
        return [NF.cross_entropy(placed(x, 1, i), target, ignore_index=2)]

    found = checked(loss, [normal(5, 6), np.array([0, 5, 2, 3, 2])])
    assert all(shape == (5,) for _, shape in found)  # never the logits


# -- a transformer ---------------------------------------------------------------------------------

WORDS, WIDTH, HEADS, TIME = 12, 8, 4, 6
SHAPES = {
    "table": (WORDS, WIDTH),
    **dict.fromkeys(("query", "key", "value", "out"), (WIDTH, WIDTH)),
    "up": (16, WIDTH),
    "up_bias": (16,),
    "down": (WIDTH, 16),
    "down_bias": (WIDTH,),
    "head": (WORDS, WIDTH),
}
AXES = dict.fromkeys(("table", "query", "key", "value", "up", "up_bias", "head"), 0)
AXES |= {"out": 1, "down": 1}


def transformer(p, tokens, targets):
    def by_heads(y):
        return F.permute(F.reshape(y, (*y.shape[:2], HEADS, WIDTH // HEADS)), (0, 2, 1, 3))

    x = F.embedding(p["table"], tokens)
    looked = [by_heads(F.linear(x, p[name])) for name in ("query", "key", "value")]
    y = NF.scaled_dot_product_attention(*looked, is_causal=True)
    y = F.reshape(F.permute(y, (0, 2, 1, 3)), x.shape)
    x = NF.layer_norm(x + F.linear(y, p["out"]), (WIDTH,))
    h = NF.gelu(F.linear(x, p["up"], p["up_bias"]))
    x = x + F.linear(h, p["down"], p["down_bias"])
    logits = F.reshape(F.linear(x, p["head"]), (-1, WORDS))
    return NF.cross_entropy(logits, F.reshape(targets, (-1,)))


def test_parameters_in_parts_are_tensor_parallel_training():
    """Forward and backward exchange what divided layers written by hand do, and no weights."""
    arrays = [RNG.integers(0, WORDS, (4, TIME)), RNG.integers(0, WORDS, (4, TIME))]
    arrays += [normal(*shape) for shape in SHAPES.values()]

    def step(i, tokens, targets, *given):
        whole = {}
        for name, p in zip(SHAPES, given, strict=True):
            place = (0, SIZE, i, AXES.get(name, 0))
            whole[name] = whole_of(F.part_of(p, *place), *place) if name in AXES else p
        loss = transformer(whole, tokens, targets)
        grads = wf.gradients(loss, list(whole.values()))
        kept = zip(SHAPES, grads, strict=True)
        return [
            loss,
            *(F.part_of(g, 0, SIZE, i, AXES[n]) if n in AXES else g for n, g in kept),
        ]

    graphs = divided(step, arrays)
    rows, each = (4, TIME, WIDTH), (4 * TIME,)
    forward = [("sum", rows)] * 3 + [("max", each), ("sum", each), ("sum", each)]
    assert exchanges(graphs[0]) == [*forward, *[("sum", rows)] * 3]

    leaves = {n: wf.tensor(a, requires_grad=True) for n, a in zip(SHAPES, arrays[2:], strict=True)}
    loss = transformer(leaves, wf.tensor(arrays[0]), wf.tensor(arrays[1]))
    loss.backward()
    for index, (found, *grads) in enumerate(run_together(graphs, arrays)):
        np.testing.assert_allclose(found, loss.detach().numpy(), rtol=1e-12)
        for (name, leaf), g in zip(leaves.items(), grads, strict=True):
            right = leaf.grad.numpy()
            right = np.split(right, SIZE, AXES[name])[index] if name in AXES else right
            np.testing.assert_allclose(g, right, rtol=1e-9, atol=1e-14, err_msg=name)


# -- beside other things ---------------------------------------------------------------------------


def test_exchanges_of_the_program_keep_their_order():
    def build(i, x, w):
        first = wf.distributed.all_reduce(placed(x, 1, i) @ w)
        return [wf.distributed.all_reduce(F.exp(first))]

    (graph, _) = divided(build, [normal(2, 4), normal(4, 3)])
    nodes = [n for n in graph.nodes if n.op is EXCHANGE]
    assert [n.attrs[5] for n in nodes] == ["a placement", "", ""]
    assert [n.inputs[0] for n in nodes[1:]] == [n.outputs[0] for n in nodes[:-1]]


def test_graphs_without_placements_stay_as_they_are():
    with wf.Graph() as graph:
        x = wf.placeholder((4,), "float64")
        y = F.exp(x)
    graph.outputs = [y.value]
    assert divide(graph) is graph


def test_two_groups_divide_two_axes():
    def build(i, x, w):
        across = F.placed(x, 1, SIZE, 0, 0)
        return [across @ placed(w, 1, i)]

    graphs = divided(build, [normal(4, 6), normal(6, 8)])
    product = next(n for n in graphs[0].nodes if n.op.name == "matmul")
    assert product.outputs[0].shape == (2, 4)
