"""Calls of Chainer's functions, each with its arguments, for Chainer and for Weft's face of it.

Arguments are waves, which need no random numbers, so that figures of Chainer's can be kept in a
file (figures.py, made by make_figures.py where Chainer is installed).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import numpy as np

NAMES = (  # of one array, with no other arguments
    *("relu", "sigmoid", "tanh", "relu6", "clipped_relu", "crelu", "elu"),
    *("hard_sigmoid", "leaky_relu", "log_softmax", "softmax", "selu", "softplus"),
    *("absolute", "arctan", "cos", "cosh", "digamma", "erf", "erfc", "exp", "expm1"),
    *("flatten", "sin", "sinh", "square", "tan", "batch_l2_norm_squared", "cumsum"),
    *("cumprod", "logsumexp", "max", "min", "mean", "sum", "prod", "average", "argmax"),
    *("argmin", "transpose", "fliplr", "flipud", "normalize", "ndtr", "separate"),
)


class Case(NamedTuple):
    """A call: a name, a function, its arguments."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]


class Calls:
    """Collects calls of a module's functions, with waves as arguments."""

    def __init__(self) -> None:
        self.made: list[Case] = []
        self._number = count(1)

    def case(self, name: str, function: Callable[..., Any], *args: Any) -> None:
        """Add a call."""
        self.made.append(Case(name, function, args))

    def floats(self, *shape: int) -> Any:
        """Return numbers between -2 and 2."""
        k = next(self._number)
        wave = np.sin(np.arange(np.prod(shape)) * (1.1 + 0.013 * k) + k)
        return (2 * wave).reshape(shape).astype("f")

    def positive(self, *shape: int) -> Any:
        """Return positive numbers."""
        return np.abs(self.floats(*shape)) + np.float32(0.1)

    def integers(self, n: int, *shape: int) -> Any:
        """Return integers below n."""
        k = next(self._number)
        return ((np.arange(np.prod(shape)) * 7 + k * 3) % n).reshape(shape).astype("i")


def cases(F: Any) -> list[Case]:
    """Return the calls, of the functions of a module."""
    calls = Calls()
    for add in (
        elementwise,
        arrays,
        arrays_in_parts,
        connections,
        evaluations,
        losses,
        sequences,
        normalisations,
        maths,
        layers,
    ):
        add(calls, F)
    return calls.made


def elementwise(c: Calls, F: Any) -> None:
    """Add functions of this kind."""
    case, f, p = c.case, c.floats, c.positive
    for n in NAMES:
        case(n, getattr(F, n), f(3, 4))
    for n in ["log", "log10", "log1p", "log2", "sqrt", "rsqrt", "lgamma"]:
        case(n, getattr(F, n), p(3, 4))
    for n in ["arccos", "arcsin", "arctanh", "erfinv"]:
        case(n, getattr(F, n), f(3, 4) * np.float32(0.2))
    case("ndtri", F.ndtri, p(3, 4) * np.float32(0.1))
    case("maxout", F.maxout, f(3, 6), 2)
    case("prelu", F.prelu, f(3, 4), f(4))
    case("swish", F.swish, f(3, 4), f(4))
    case("lstm", F.lstm, f(3, 4), f(3, 16))
    case("lstm_short", F.lstm, f(3, 4), f(2, 16))
    case("slstm", F.slstm, f(3, 4), f(3, 4), f(3, 16), f(3, 16))
    case("tree_lstm", F.tree_lstm, f(3, 4), f(3, 4), f(3, 20))


def arrays(c: Calls, F: Any) -> None:
    """Add functions of this kind."""
    case, f = c.case, c.floats
    case("broadcast", F.broadcast, f(3, 1), f(1, 4))
    case("broadcast_to", F.broadcast_to, f(3, 1), (3, 4))
    case("concat", lambda a, b: F.concat([a, b]), f(2, 3), f(2, 4))
    case("depth2space", F.depth2space, f(2, 8, 3, 3), 2)
    case("space2depth", F.space2depth, f(2, 2, 4, 4), 2)
    case("diagonal", F.diagonal, f(3, 4))
    case("dstack", lambda a, b: F.dstack([a, b]), f(2, 3), f(2, 3))
    case("hstack", lambda a, b: F.hstack([a, b]), f(2, 3), f(2, 3))
    case("vstack", lambda a, b: F.vstack([a, b]), f(2, 3), f(2, 3))
    case("expand_dims", F.expand_dims, f(2, 3), 1)
    case("flip", F.flip, f(2, 3), 1)
    case("im2col", F.im2col, f(2, 3, 5, 6), 3, 2, 1)
    case("im2col_ca", F.im2col, f(2, 3, 6, 6), 3, 2, 0, True)
    case("moveaxis", F.moveaxis, f(2, 3, 4), 0, 2)
    case("pad", F.pad, f(2, 3), ((1, 1), (0, 2)), "constant")
    case("pad_sequence", lambda a, b: F.pad_sequence([a, b]), f(2, 3), f(4, 3))
    case("permutate", F.permutate, f(3, 4), np.array([2, 0, 1], "i"))
    case("permutate_inv", F.permutate, f(3, 4), np.array([2, 0, 1], "i"), 0, True)
    case("repeat", F.repeat, f(2, 3), 2, 1)
    case("reshape", F.reshape, f(2, 6), (3, 4))


def arrays_in_parts(c: Calls, F: Any) -> None:
    """Add functions of this kind."""
    case, f, i = c.case, c.floats, c.integers
    case("resize_images", F.resize_images, f(1, 2, 4, 4), (7, 5))
    case("rollaxis", F.rollaxis, f(2, 3, 4), 2)
    case("scatter_add", F.scatter_add, f(4, 3), np.array([0, 1, 0], "i"), f(3, 3))
    case("select_item", F.select_item, f(3, 4), i(4, 3))
    case("split_axis", F.split_axis, f(4, 6), 3, 1)
    case("split_axis2", F.split_axis, f(4, 6), [1, 4], 1)
    case("squeeze", F.squeeze, f(2, 1, 3))
    case("stack", lambda a, b: F.stack([a, b]), f(2, 3), f(2, 3))
    case("swapaxes", F.swapaxes, f(2, 3, 4), 0, 2)
    case("tile", F.tile, f(2, 3), (2, 1))
    case("transpose_sequence", lambda a, b: F.transpose_sequence([a, b]), f(4, 3), f(2, 3))
    case("where", F.where, f(2, 3) > 0, f(2, 3), f(2, 3))
    case("get_item", F.get_item, f(4, 5), (slice(1, 3), 2))
    case("spatial_transformer_grid", F.spatial_transformer_grid, f(2, 2, 3), (4, 5))
    case(
        "spatial_transformer_sampler",
        F.spatial_transformer_sampler,
        f(2, 3, 5, 5),
        f(2, 2, 4, 4) * np.float32(0.3),
    )


def connections(c: Calls, F: Any) -> None:
    """Add functions of this kind."""
    case, f, i = c.case, c.floats, c.integers
    case("bilinear", F.bilinear, f(3, 4), f(3, 5), f(4, 5, 2), f(4, 2), f(5, 2), f(2))
    case("linear", F.linear, f(3, 4), f(5, 4), f(5))
    case("linear3", F.linear, f(3, 2, 4), f(5, 8), f(5))
    case("conv2d", F.convolution_2d, f(2, 3, 7, 7), f(4, 3, 3, 3), f(4), 2, 1)
    case("conv2d_ca", F.convolution_2d, f(2, 3, 8, 8), f(4, 3, 3, 3), f(4), 2, 1, True)
    case(
        "conv2d_d",
        lambda *a: F.convolution_2d(*a, dilate=2, groups=1),
        f(2, 3, 9, 9),
        f(4, 3, 3, 3),
    )
    case("convnd", F.convolution_nd, f(2, 3, 7), f(4, 3, 3), f(4), 2, 1)
    case("conv3d", F.convolution_3d, f(1, 2, 5, 5, 5), f(3, 2, 3, 3, 3))
    case("deconv2d", F.deconvolution_2d, f(2, 3, 4, 4), f(3, 5, 4, 4), f(5), 2, 1)
    case(
        "deconv2d_o",
        lambda *a: F.deconvolution_2d(*a, outsize=(9, 9)),
        f(2, 3, 4, 4),
        f(3, 5, 4, 4),
        f(5),
        2,
        1,
    )
    case("depthwise", F.depthwise_convolution_2d, f(2, 3, 6, 6), f(2, 3, 3, 3), f(6), 1, 1)
    case("dilated", F.dilated_convolution_2d, f(2, 3, 9, 9), f(4, 3, 3, 3), f(4), 1, 0, 2)
    case("local_conv", F.local_convolution_2d, f(2, 3, 5, 5), f(4, 3, 3, 3, 3, 3), f(4, 3, 3))
    case("embed_id", F.embed_id, i(5, 3, 2), f(5, 4))
    case("embed_id_ign", F.embed_id, np.array([0, -1, 3], "i"), f(5, 4), -1)
    case("shift", F.shift, f(2, 18, 5, 5))


def evaluations(c: Calls, F: Any) -> None:
    """Add functions of this kind."""
    case, f, i = c.case, c.floats, c.integers
    case("accuracy", F.accuracy, f(6, 4), i(4, 6))
    case("accuracy_i", F.accuracy, f(6, 4), np.array([0, 1, -1, 2, 3, -1], "i"), -1)
    case("binary_accuracy", F.binary_accuracy, f(6), np.array([0, 1, -1, 0, 1, 1], "i"))
    case("summary", F.classification_summary, f(30, 4), i(4, 30))
    case("r2", F.r2_score, f(6, 3), f(6, 3))


def losses(c: Calls, F: Any) -> None:
    """Add functions of this kind."""
    case, f, p, i = c.case, c.floats, c.positive, c.integers
    case("sce", F.softmax_cross_entropy, f(6, 4), np.array([0, 1, -1, 2, 3, -1], "i"))
    case("sce_nn", F.softmax_cross_entropy, f(6, 4), np.array([0, 1, -1, 2, 3, -1], "i"), False)
    case(
        "sce_cw",
        lambda x, t: F.softmax_cross_entropy(x, t, class_weight=np.array([1, 2, 3, 0.5], "f")),
        f(6, 4),
        np.array([0, 1, -1, 2, 3, -1], "i"),
    )
    case(
        "sce_no",
        lambda x, t: F.softmax_cross_entropy(x, t, reduce="no"),
        f(6, 4),
        np.array([0, 1, -1, 2, 3, -1], "i"),
    )
    case("sce_img", F.softmax_cross_entropy, f(2, 4, 3, 3), i(4, 2, 3, 3))
    case("sce_allign", F.softmax_cross_entropy, f(2, 4), np.array([-1, -1], "i"))
    case(
        "sigce",
        F.sigmoid_cross_entropy,
        f(6, 2),
        np.array([[0, 1], [1, 1], [-1, 0], [0, 0], [1, 0], [1, 1]], "i"),
    )
    case("sigce_n", F.sigmoid_cross_entropy, f(3, 2), i(2, 3, 2), False)
    case("mse", F.mean_squared_error, f(3, 4), f(3, 4))
    case("mae", F.mean_absolute_error, f(3, 4), f(3, 4))
    case("sqe", F.squared_error, f(3, 4), f(3, 4))
    case("abse", F.absolute_error, f(3, 4), f(3, 4))
    case("huber", F.huber_loss, f(3, 4), f(3, 4), 1.0)
    case("hinge", F.hinge, f(3, 4), i(4, 3))
    case("hinge2", F.hinge, f(3, 4), i(4, 3), "L2")
    case("contrastive", F.contrastive, f(4, 3), f(4, 3), i(2, 4))
    case("triplet", F.triplet, f(4, 3), f(4, 3), f(4, 3))
    case("bnll", F.bernoulli_nll, p(3, 4), f(3, 4))
    case("gkl", F.gaussian_kl_divergence, f(3, 4), f(3, 4))
    case("gnll", F.gaussian_nll, f(3, 4), f(3, 4), f(3, 4))
    case("xcov", F.cross_covariance, f(5, 3), f(5, 2))
    case("decov", F.decov, f(5, 3))


def sequences(c: Calls, F: Any) -> None:
    """Add functions of this kind."""
    case, f = c.case, c.floats
    case(
        "ctc",
        lambda a, b, c, d: F.connectionist_temporal_classification(
            [a, b, c, d], np.array([[1, 2], [2, 1]], "i"), 0
        ),
        f(2, 4),
        f(2, 4),
        f(2, 4),
        f(2, 4),
    )
    case(
        "crf",
        lambda c, a, b, d: F.crf1d(
            c, [a, b, d], [np.array([0, 1, 2], "i"), np.array([1, 1], "i"), np.array([2, 0], "i")]
        ),
        f(3, 3),
        f(3, 3),
        f(2, 3),
        f(2, 3),
    )
    case(
        "crf_argmax",
        lambda c, a, b, d: F.argmax_crf1d(c, [a, b, d])[0],
        f(3, 3),
        f(3, 3),
        f(2, 3),
        f(2, 3),
    )


def normalisations(c: Calls, F: Any) -> None:
    """Add functions of this kind."""
    case, f, p = c.case, c.floats, c.positive
    case("bn", F.batch_normalization, f(4, 3, 5, 5), p(3), f(3))
    case("bn2", F.batch_normalization, f(4, 3), p(3), f(3))
    case("fbn", F.fixed_batch_normalization, f(4, 3, 5, 5), p(3), f(3), f(3), p(3))
    case("gn", F.group_normalization, f(4, 6, 5), 2, p(6), f(6))
    case("ln", F.layer_normalization, f(4, 6), p(6), f(6))
    case("lrn", F.local_response_normalization, f(2, 7, 3, 3))
    case("mp", F.max_pooling_2d, f(2, 3, 7, 7), 2)
    case("mp_p", F.max_pooling_2d, f(2, 3, 7, 7), 3, 2, 1)
    case("mp_nc", F.max_pooling_2d, f(2, 3, 7, 7), 2, 2, 0, False)
    case("ap", F.average_pooling_2d, f(2, 3, 7, 7), 3, 2, 1)
    case("apnd", F.average_pooling_nd, f(2, 3, 7), 3, 2, 1, None)
    case("unp", F.unpooling_2d, f(2, 3, 4, 4), 2)
    case("unp2", F.unpooling_2d, f(2, 3, 4, 4), 3, 2, 1)
    case("unp3", lambda x: F.unpooling_2d(x, 2, 2, 0, cover_all=False), f(2, 3, 4, 4))
    case("spp", lambda x: F.spatial_pyramid_pooling_2d(x, 3, pooling="max"), f(2, 3, 9, 9))


def maths(c: Calls, F: Any) -> None:
    """Add functions of this kind."""
    case, f, p = c.case, c.floats, c.positive
    case("bias", F.bias, f(2, 3, 4), f(3))
    case("scale", F.scale, f(2, 3, 4), f(3))
    case("matmul", F.matmul, f(3, 4), f(3, 5), True)
    case("bmm", F.batch_matmul, f(2, 3, 4), f(2, 4, 5))
    case("bmm2", F.batch_matmul, f(2, 4), f(2, 4), True)
    case("clip", F.clip, f(3, 4), -0.5, 0.5)
    case("li", F.linear_interpolate, f(3), f(3), f(3))
    case("maximum", F.maximum, f(3, 4), f(3, 4))
    case("tensordot", F.tensordot, f(2, 3, 4), f(3, 4, 5))
    case("einsum", F.einsum, "ij,jk->ik", f(3, 4), f(4, 2))
    case("sum_to", F.sum_to, f(3, 4), (1, 4))
    case("sqd", F.squared_difference, f(3), f(3))
    case("inv", F.inv, f(3, 3) + 3 * np.eye(3, dtype="f"))
    case("det", F.det, f(3, 3))
    case("fmod", F.fmod, f(3, 4), p(3, 4))
    case("arctan2", F.arctan2, f(3), f(3))
    case("average_w", lambda x, w: F.average(x, 1, weights=w), f(3, 4), p(4))
    case("add3", F.add, f(3), f(3), f(3))
    case("polygamma", lambda x: F.polygamma(np.array(1, "i"), x), p(3))


def layers(c: Calls, F: Any) -> None:
    """Add layers of recurrent cells: weights, directions and states of each kind."""
    kinds = {"lstm": (8, 2), "gru": (6, 1), "rnn": (2, 1)}
    for kind, (weights, states) in kinds.items():
        for name, directions in ((f"n_step_{kind}", 1), (f"n_step_bi{kind}", 2)):
            c.case(name, *_stack(c, getattr(F, name), weights, directions, states))


def _stack(c: Calls, run: Any, weights: int, directions: int, states: int) -> tuple[Any, ...]:
    ws, bs = [], []
    for layer in range(2):
        for _ in range(directions):
            size = 3 if layer == 0 else 4 * directions
            ws.append([c.floats(4, size if k < weights // 2 else 4) for k in range(weights)])
            bs.append([c.floats(4) for _ in range(weights)])
    hs = [c.floats(2 * directions, 3, 4) for _ in range(states)]
    xs = [c.floats(rows, 3) for rows in (3, 3, 2, 1)]

    def call(*flat: Any) -> Any:
        return tuple(run(2, 0.0, *flat[:states], ws, bs, list(flat[states:])))

    return call, *hs, *xs
