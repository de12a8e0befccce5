"""What a forward program leaves for the backward one."""

import weft as wf
from weft.eager.residuals import find_residuals


def residuals(function, *shapes, **options):
    """Return the operators whose values are saved for the gradient of a function."""
    graph = wf.Graph()
    with graph:
        xs = [wf.placeholder(shape, "float32") for shape in shapes]
        y = function(*xs)
        seed = wf.placeholder(y.shape, y.dtype)
        found = wf.gradients(y, xs, seed)
    ends = [y.value], [seed.value], [g.value for g in found]
    saved = find_residuals(graph, [x.value for x in xs], *ends, **options)
    return sorted(value.node.op.name for value in saved)


def test_elementwise_functions_of_operands_are_computed_again():
    assert residuals(lambda x: wf.sin(wf.exp(x) * x), (8, 8)) == []


def test_products_are_saved():
    assert residuals(lambda x, w: wf.sin(x @ w), (8, 8), (8, 8)) == ["matmul"]


def test_functions_are_saved_where_that_is_asked_for():
    def gates(x, w):
        i, o = wf.chunk(x @ w + 1.0, 2, axis=1)
        return wf.sigmoid(i) * wf.tanh(o) * 2.0

    shapes = (8, 8), (8, 16)
    assert residuals(gates, *shapes) == ["matmul"]
    assert residuals(gates, *shapes, keeps_functions=True) == ["sigmoid", "tanh"]
    assert residuals(lambda x, w: x @ w * 2.0, *shapes, keeps_functions=True) == []


def test_a_result_serves_in_place_of_what_it_was_computed_from():
    assert residuals(lambda x, w: wf.relu(x @ w), (8, 8), (8, 8)) == ["relu"]


def test_small_reductions_are_saved_and_wide_ones_are_not():
    def scaled(x):
        return wf.sin(x / wf.sum(x * x, axis=-1, keepdims=True))

    assert residuals(scaled, (8, 64)) == ["sum"]
    assert residuals(scaled, (8, 2)) == []


def test_nothing_that_depends_on_the_seed_is_saved():
    assert residuals(lambda x, w: x @ w, (8, 8), (8, 8)) == []


def test_rows_are_looked_up_again():
    index = wf.tensor([[0, 1, 1]])
    assert residuals(lambda t, w: wf.embedding(t, index) @ w, (2, 8), (8, 8)) == []
