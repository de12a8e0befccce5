"""Graphs built before sizes are known, over the whole registry.

Every sample of the conformance suite runs in a graph whose placeholders know all of their sizes,
all but the first, or none. Values equal eager ones to the last bit, gradients those of the tape,
and the sizes foretold, evaluated for the arrays fed, are those of the results.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

import weft as wf
from tests.ops import conformance as c
from tests.ops.by_operator import over
from weft.autodiff.reverse import gradients as tape_gradients
from weft.core.dim import Dim, evaluate
from weft.core.dtype import is_float
from weft.core.errors import ShapeError, UnknownSizeError, WeftError
from weft.core.rng import manual_seed
from weft.core.tensor import Tensor
from weft.graph.symbol import Symbol

# What needs a size to build the graph, and why. All say so by an UnknownSizeError.
NEEDS_SIZES = {
    "squeeze": "without axes it removes those of size 1, so the number of axes would be unknown",
    "split": "parts of one size: their number would be unknown (sizes may be given as a list)",
    "chunk": "makes fewer parts of a short axis (tensor_split always makes as many as asked for)",
    "unbind": "the number of results would be unknown",
    "combinations": "how many there are is no polynomial of the size",
    "pdist": "the pairs of rows are listed when the graph is built",
    "ctc_loss": "its recursion is unrolled over the frames",
    "as_strided": "how much memory there is to read decides what may be read",
    "fractional_max_pool2d": "the windows are laid out when the graph is built",
    "fractional_max_pool3d": "the windows are laid out when the graph is built",
    "histogramdd": "the bins of each column are counted when the graph is built",
    "householder_product": "reflectors are multiplied one after another",
    "ormqr": "reflectors are multiplied one after another",
    "ldl_factor_ex": "the matrix must be known to be square",
    "svd_lowrank": "the rank is limited by the sizes",
    "pca_lowrank": "the rank is limited by the sizes",
    "interpolate": "scale_factor that is no short binary fraction: 1.7 n rounds differently",
}
GRADIENT_NEEDS_SIZES = {
    "lu": "the formula differs for tall and wide matrices",
    "lu_factor": "the formula differs for tall and wide matrices",
    "lu_factor_ex": "the formula differs for tall and wide matrices",
    "qr": "the formula differs for tall and wide matrices",
    "svd": "the formula differs for tall and wide matrices",
}
# Composites have no gradient of their own: it is an operator of theirs that refuses.
REFUSED_BY = {"lu": "lu_factor", "lu_factor_ex": "lu_factor"}
# What needs values, or is refused although the sizes would be allowed by eager mode.
NEEDS_VALUES = {
    "allclose": "returns a Python truth value",
    "one_hot": "without num_classes the width is that of the largest index",
    "ctc_loss": "targets one after another: their lengths tell the width",
}
NOT_ONES = {"einsum": "an index of unknown size is no size of 1 that broadcasts"}
NOT_EMPTY = {
    "embedding_bag": "the largest of no rows",
    "scaled_dot_product_attention": "no keys at all",
    "median": "the middle of nothing",
    "pad_torch": "the edge of what negative widths cut off altogether",
}
REFUSED = NEEDS_VALUES | NOT_ONES | NOT_EMPTY
# Products whose order is chosen by sizes: sums round differently.
OTHER_ORDER = ("bilinear", "einsum", "multi_dot")

MODES = ("known", "first unknown", "unknown")
CASES = defaultdict(list)
for case in c.cases():
    CASES[case.name].append(case)


def has_floats(case):
    return any(a.dtype.kind == "f" for a in c.Arguments.of(case.sample).arrays())


def placeholder_shape(shape, mode):
    if mode == "known" or not shape:
        return shape
    return (None, *shape[1:]) if mode == "first unknown" else (None,) * len(shape)


class Built:
    """One sample as a graph: placeholders and what they are fed with, and the results."""

    def __init__(self, case, mode, *, differentiate=False):
        self.feeds = {}

        def stand_in(array):
            symbol = wf.placeholder(placeholder_shape(array.shape, mode), array.dtype)
            self.feeds[symbol] = array
            return symbol

        with wf.Graph() as self.graph:
            manual_seed(0)
            arguments = c.Arguments.of(case.drawn()).map(stand_in)
            self.outputs = c.outputs_of(arguments.call(case.function))
            self.xs = [x for x in self.feeds if x.dtype.kind == "f"]
            self.gradients = self._gradients() if differentiate else []

    def _gradients(self):
        ys = [y for y in self.outputs if isinstance(y, Symbol) and is_float(y.dtype)]
        return wf.gradients(ys, self.xs) if ys and self.xs else [None] * len(self.xs)

    def run(self, outputs):
        """Return outputs with the symbols among them run."""
        symbols = [y for y in outputs if isinstance(y, Symbol)]
        values = iter(wf.Session(self.graph).run(symbols, self.feeds))
        return [next(values) if isinstance(y, Symbol) else y for y in outputs]

    def sizes(self):
        """Return the unknown sizes that the feeds tell."""
        told = {}
        for symbol, array in self.feeds.items():
            for size, known in zip(symbol.shape, array.shape, strict=True):
                if isinstance(size, Dim):
                    told[size.variable()] = known
        return told


def evaluated(shape, sizes):
    """Return a shape with the sizes put in; one that depends on values stays as it is."""
    result = []
    for size in shape:
        try:
            result.append(evaluate(size, sizes))
        except UnknownSizeError:
            result.append(None)
    return result


def assert_bits(found, expected, what):
    """Assert equal dtypes, shapes and bits; all NaNs are one."""
    a, b = (x.numpy() if isinstance(x, Tensor) else np.asarray(x) for x in (found, expected))
    assert (a.dtype, a.shape) == (b.dtype, b.shape), what
    if a.tobytes() != b.tobytes():
        np.testing.assert_array_equal(a, b, err_msg=what)


def eager_results(case):
    manual_seed(0)
    return c.outputs_of(c.Arguments.of(case.drawn()).map(c.to_tensor).call(case.function))


def check_values(case, mode):
    built = Built(case, mode)
    expected, found = eager_results(case), built.run(built.outputs)
    assert len(found) == len(expected), case.id
    sizes = built.sizes()
    for symbol, a, b in zip(built.outputs, found, expected, strict=True):
        what = f"{case.id}, {mode}"
        if isinstance(symbol, Symbol):
            inferred = evaluated(symbol.shape, sizes)
            fits = all(n in (None, m) for n, m in zip(inferred, b.shape, strict=True))
            assert fits, f"{what}: inferred {symbol.shape}, that is {inferred}, for {b.shape}"
            assert mode != "known" or all(n is None or isinstance(n, int) for n in inferred), what
        if case.name in OTHER_ORDER:
            np.testing.assert_allclose(a, c.as_array(b), rtol=1e-12, err_msg=what)
        else:
            assert_bits(a, b, what)


def check_gradients(case, mode):
    built = Built(case, mode, differentiate=True)
    found = built.run(built.gradients)
    expected = tape_results(case)
    for x, a, b in zip(built.xs, found, expected, strict=True):
        if a is None or b is None:  # unconnected for one, multiplied by zero for the other
            present = a if b is None else b
            assert present is None or not np.any(present), case.id
            continue
        what = f"gradient of {x.name} in {case.id}, {mode}"
        if case.name in OTHER_ORDER:
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14, err_msg=what)
        else:
            assert_bits(a, b, what)


def tape_results(case):
    leaves = []

    def to_leaf(array):
        leaves.append(c.to_leaf(array))
        return leaves[-1]

    manual_seed(0)
    outputs = c.outputs_of(c.Arguments.of(case.drawn()).map(to_leaf).call(case.function))
    ys = [y for y in outputs if getattr(y, "requires_grad", False)]
    xs = [x for x in leaves if x.requires_grad]
    found = tape_gradients(ys, xs) if ys and xs else [None] * len(xs)
    return [None if g is None else g.numpy() for g in found]


def refused(case, mode, check, needs_sizes):
    """Run a check; return whether it was refused as the tables above say."""
    try:
        check(case, mode)
    except UnknownSizeError as error:
        name = REFUSED_BY.get(case.name, case.name)
        if case.name not in needs_sizes or not str(error).startswith(f"{name}: "):
            error.add_note(f"sizes: {mode}")
            raise
        return True
    except WeftError as error:
        if case.name not in REFUSED:
            error.add_note(f"sizes: {mode}")
            raise
        return True
    return False


@over(c.cases())
def test_values(case):
    for mode in MODES:
        if refused(case, mode, check_values, NEEDS_SIZES):
            assert mode != "known" or case.name in NEEDS_VALUES, case.id


@over(case for case in c.cases() if case.sample.grad and has_floats(case))
def test_gradients(case):
    for mode in MODES[1:]:
        refused(case, mode, check_gradients, NEEDS_SIZES | GRADIENT_NEEDS_SIZES)


@pytest.mark.parametrize("name", [*NEEDS_SIZES, *REFUSED])
def test_the_lists_of_exceptions_are_needed(name):
    assert any(refused(case, "unknown", check_values, NEEDS_SIZES) for case in CASES[name])


@pytest.mark.parametrize("name", GRADIENT_NEEDS_SIZES)
def test_the_list_of_gradients_is_needed(name):
    needs = NEEDS_SIZES | GRADIENT_NEEDS_SIZES
    assert any(refused(case, "unknown", check_gradients, needs) for case in CASES[name])


# -- what programs write ---------------------------------------------------------------------------


def compare(fn, *arrays, shapes=None, gradients=True):
    """Assert that a function gives the same in a graph of unknown sizes as eagerly."""
    given = shapes or [(None, *array.shape[1:]) for array in arrays]
    manual_seed(0)
    leaves = [c.to_leaf(np.ascontiguousarray(array)) for array in arrays]
    expected = fn(*leaves)
    with wf.Graph() as graph:
        symbols = [wf.placeholder(s, a.dtype) for s, a in zip(given, arrays, strict=True)]
        manual_seed(0)
        y = fn(*symbols)
        xs = [x for x in symbols if x.dtype.kind == "f"]
        grads = wf.gradients(y, xs) if gradients else []
    fetched = [y, *(g for g in grads if g is not None)]
    found, *found_grads = wf.Session(graph).run(fetched, dict(zip(symbols, arrays, strict=True)))
    assert_bits(found, expected.detach(), "value")
    if gradients:
        wanted = tape_gradients([expected], [x for x in leaves if x.requires_grad])
        for a, b in zip(found_grads, [g for g in wanted if g is not None], strict=True):
            assert_bits(a, b, "gradient")
    return y


RNG = np.random.default_rng(3)
X = RNG.standard_normal((5, 4)).astype(np.float32)
IMAGES = RNG.standard_normal((2, 3, 7, 6)).astype(np.float32)
WEIGHT = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)
TOKENS = RNG.standard_normal((2, 5, 4)).astype(np.float32)
F = wf.nn.functional

PROGRAMS = {
    "reshape": lambda x: x.reshape(-1, 2),
    "reshape to a size": lambda x: x.reshape(x.shape[0] * 2, 2),
    "flatten": lambda x: x.reshape(x.shape[0], 2, 2).flatten(1),
    "column": lambda x: x[:, 0],
    "last": lambda x: x[-1],
    "but the first": lambda x: x[1:],
    "but the last": lambda x: x[:-1],
    "the last three": lambda x: x[-3:],
    "every second": lambda x: x[::2],
    "backwards": lambda x: x[::-1],
    "backwards by two": lambda x: x[-2:0:-2],
    "first half": lambda x: x[: x.shape[0] // 2],
    "differences": lambda x: x[1:] - x[:-1],
    "by a size": lambda x: x[x.shape[0] - 1],
    "concat": lambda x: wf.concat([x, 2 * x, x[:2]]),
    "stack": lambda x: wf.stack([x, x * 2], axis=1),
    "pad": lambda x: wf.pad(x, ((1, 2), (0, 0))),
    "mean": lambda x: x.mean(axis=0),
    "var": lambda x: x.var(axis=0),
    "std": lambda x: x.std(axis=0, correction=1),
    "softmax": lambda x: F.softmax(x, axis=0),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "batch_norm": lambda x: F.batch_norm(x, training=True),
    "cumsum": lambda x: x.cumsum(axis=0),
    "sort": lambda x: wf.sort(x, axis=0),
    "topk": lambda x: wf.topk(x, 2, axis=0)[0],
    "median": lambda x: wf.median(x, axis=0),
    "arange": lambda x: x * wf.arange(x.shape[0])[:, None],
    "arange with steps": lambda x: x[1::2] * wf.arange(1, x.shape[0], 2)[:, None],
    "zeros": lambda x: x + wf.zeros((x.shape[0], 4)),
    "ones": lambda x: x @ wf.ones((4, 2)) + wf.full((x.shape[0], 2), 0.5),
    "eye": lambda x: wf.eye(x.shape[0]) @ x,
    "divided by the size": lambda x: x / x.shape[0],
    "times the reciprocal": lambda x: x * (1.0 / x.shape[0]),
    "times the root": lambda x: x * x.shape[0] ** -0.5,
    "a fraction of sizes": lambda x: x * ((x.shape[0] - 1) / (x.shape[0] * 3)),
    "plus a size": lambda x: x + x.shape[0],
    "size on the left": lambda x: x.shape[0] / (x * x + 1),
    "number of elements": lambda x: x.sum() / x.size,
    "clipped to a size": lambda x: wf.clip(x * 10, -1, x.shape[0]),
    "compared with a size": lambda x: wf.where(x * 10 > x.shape[0], x, 0.0),
    "not a size": lambda x: wf.where(x != x.shape[0], x, 1.0),
    "not a reciprocal": lambda x: wf.where(1.0 / x.shape[0] != x, x, 1.0),
    "less than a size": lambda x: wf.where(x.shape[0] > x, x, 1.0),
    "the larger of": lambda x: wf.maximum(x, x.shape[0]),
    "to the power of a size": lambda x: x ** x.shape[0],
    "tensor of a size": lambda x: x * wf.tensor(x.shape[0]),
    "tensor of a reciprocal": lambda x: x * wf.tensor(1.0 / x.shape[0]),
    "filled with a size": lambda x: x * wf.full((4,), x.shape[0]),
    "written": lambda x: wf.index_set(x, (slice(1, None), 0), x.shape[0]),
    "broadcast_to": lambda x: wf.broadcast_to(x[0], (x.shape[0], 4)),
    "expand": lambda x: x[:, None].expand(-1, 2, -1),
    "unflatten": lambda x: x.unflatten(1, (2, -1)),
    "inverse": lambda x: wf.linalg.inv(x @ x.T + wf.eye(x.shape[0])),
    "norm": wf.linalg.norm,
    "logsumexp": lambda x: wf.logsumexp(x, axis=0),
    "mask": lambda x: x[x[:, 0] > 0].sum(axis=0),
    "batch mean": lambda x: F.kl_div(F.log_softmax(x), F.softmax(x * 2), reduction="batchmean"),
    "tile": lambda x: wf.tile(x, (2, 1)),
    "repeat": lambda x: wf.repeat(x, 3, axis=0),
    "roll": lambda x: wf.roll(x, 2, 0),
    "flip": lambda x: wf.flip(x, 0),
    "outer": lambda x: x @ x.T,
    "einsum": lambda x: wf.einsum("ni,nj->ij", x, x),
    "tril": lambda x: wf.tril(x @ x.T),
    "diagonal": lambda x: wf.diagonal(x @ x.T),
    "tensor_split": lambda x: wf.tensor_split(x, 2)[1],
    "dropout": lambda x: F.dropout(x, 0.5),
    "uniform": lambda x: x * wf.rand(x.shape[0], 4),
    "normal": lambda x: x + wf.randn(x.shape[0], 4),
    "permutation": lambda x: x[wf.randperm(x.shape[0])],
    "integers below the size": lambda x: x * wf.randint(0, x.shape[0], (3, 1))[0],
    "coins": lambda x: x * wf.bernoulli(wf.full((x.shape[0], 1), 0.5)),
    "noise of its shape": lambda x: x * wf.rand_like(x),
    "two draws": lambda x: F.dropout(x, 0.3) * wf.randn(x.shape[0], 1) + F.dropout(x, 0.3),
}


NEEDS_ROWS = ("batch_norm", "topk")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_an_unknown_batch(name, dtype):
    for rows in (5, 2) if name in NEEDS_ROWS else (5, 2, 1):
        compare(PROGRAMS[name], X[:rows].astype(dtype))


CONVOLUTIONS = {
    "conv2d": lambda x, w: F.conv2d(x, w, padding=1),
    "strided": lambda x, w: F.conv2d(x, w, stride=2, padding=1, dilation=2),
    "same": lambda x, w: F.conv2d(x, w, padding="same"),
    "transposed": lambda x, w: F.conv_transpose2d(F.conv2d(x, w), w, stride=2, output_padding=1),
    "max_pool": lambda x, w: F.max_pool2d(F.conv2d(x, w), 2),
    "ceil": lambda x, w: F.max_pool2d(F.conv2d(x, w), 2, ceil_mode=True),
    "avg_pool": lambda x, w: F.avg_pool2d(F.conv2d(x, w), 3, stride=2, padding=1),
    "uncounted padding": lambda x, w: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False) + w.sum(),
    "adaptive": lambda x, w: F.adaptive_avg_pool2d(F.conv2d(x, w), 1),
    "interpolate": lambda x, w: F.interpolate(x, scale_factor=2, mode="bilinear") * w.mean(),
    "flattened": lambda x, w: F.max_pool2d(F.conv2d(x, w), 2).flatten(1).sum(axis=1),
    "batch_norm": lambda x, w: F.batch_norm(F.conv2d(x, w), training=True),
    "group_norm": lambda x, w: F.group_norm(F.conv2d(x, w), 2),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_images_of_unknown_number_and_size(name):
    for shape in ((None, 3, 7, 6), (None, 3, None, None), (2, 3, None, 6)):
        compare(CONVOLUTIONS[name], IMAGES, WEIGHT, shapes=[shape, WEIGHT.shape])


def attention(x):
    return F.scaled_dot_product_attention(x, x, x, is_causal=True)


def test_attention_over_an_unknown_length():
    for shape in ((None, None, 4), (2, None, 4), (None, None, None)):
        compare(attention, TOKENS, shapes=[shape])


def test_losses_of_separate_placeholders():
    target = np.array([1, 0, 3, 3, 2])
    compare(F.cross_entropy, X, target)
    compare(lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), X, target)
    compare(F.mse_loss, X, X[::-1] * 0.5)
    compare(F.mse_loss, X, X[::-1] * 0.5, shapes=[(None, None), (None, None)])
    compare(lambda x, t: x * wf.one_hot(t, 4), X, target)


def test_an_embedding_of_an_unknown_number_of_tokens():
    table = RNG.standard_normal((7, 3))
    tokens = np.array([[1, 6, 0], [2, 2, 5]])
    shapes = [table.shape, (None, None)]
    compare(embedded, table, tokens, shapes=shapes)
    compare(embedded, table, tokens, shapes=[(None, 3), (None, 3)])


def embedded(table, tokens):
    return F.embedding(tokens, table)


def test_integers_stay_integers_beside_a_size():
    y = compare(lambda x: x * 2 + x.shape[0], np.arange(6), gradients=False)
    assert y.dtype == np.int64
    y = compare(lambda x: x.sum() / x.shape[0], np.arange(6), gradients=False)
    assert y.dtype == np.float32


# -- sizes that turn out wrong ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "fn",
    [
        F.mse_loss,
        F.l1_loss,
        lambda x, y: F.cross_entropy(x, y[:, 0].to(wf.int64)),
        F.binary_cross_entropy_with_logits,
        F.cross_entropy,
        lambda x, y: x.T @ y,
        lambda x, y: wf.stack([x, y]),
        lambda x, y: wf.concat([x, y], axis=1),
    ],
)
def test_sizes_that_differ_are_found_when_the_graph_runs(fn):
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), wf.float32)
        y = wf.placeholder((None, 3), wf.float32)
        out = fn(x, y)
    session = wf.Session(graph)
    assert session.run(out, {x: np.ones((4, 3), "f4"), y: np.zeros((4, 3), "f4")}) is not None
    for rows in (3, 1):
        with pytest.raises(WeftError):
            session.run(out, {x: np.ones((4, 3), "f4"), y: np.zeros((rows, 3), "f4")})


def test_sizes_that_surely_differ_are_found_when_the_graph_is_built():
    with wf.Graph():
        x = wf.placeholder((None, 3), wf.float32)
        n = x.shape[0]
        for build in (
            lambda: x @ wf.zeros((4, 2)),
            lambda: x + wf.zeros((n, 4)),
            lambda: x.reshape(n, 4),  # but for an empty batch, which nobody means
            lambda: wf.concat([x, wf.zeros((n, 4))]),
            lambda: F.mse_loss(x, wf.zeros((n + 1, 3))),
            lambda: x[:, 3],
        ):
            with pytest.raises((ShapeError, IndexError)):
                build()


def test_python_cannot_branch_on_an_unknown_size():
    with wf.Graph():
        n = wf.placeholder((None, 3), wf.float32, name="x").shape[0]
        for question in (bool, int, float, range, lambda size: size > 2, lambda size: 1 / size > 2):
            with pytest.raises(UnknownSizeError, match=r"x_0.* is not known until the graph runs"):
                question(n)
