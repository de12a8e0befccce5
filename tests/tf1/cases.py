"""Pieces of TensorFlow programs, each a function of the module `tf` that returns what to fetch.

make_figures.py runs them with TensorFlow (compat.v1), the tests with Weft's face.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

CASES: dict[str, Callable[[Any], Any]] = {}


def case(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    CASES[function.__name__] = function
    return function


def draws(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


def graded(tf: Any, y: Any, *xs: Any) -> list[Any]:
    """Return y and the gradients of a weighted sum of it."""
    weights = tf.cos(tf.reshape(tf.cast(tf.range(tf.size(y)), tf.float32), tf.shape(y)))
    made = tf.gradients(tf.reduce_sum(y * weights), list(xs))
    return [y, *[tf.convert_to_tensor(g) for g in made]]


# -- elements, axes, shapes ------------------------------------------------------------------------


@case
def elementwise(tf):
    x = tf.constant(draws(3, 4))
    y = tf.constant(np.abs(draws(4, seed=1)) + 0.5)
    return [
        *graded(tf, tf.exp(x) * y - x / y, x, y),
        *graded(tf, tf.sqrt(y) + tf.rsqrt(y) + tf.log(y) + tf.log1p(y), y),
        *graded(tf, tf.sigmoid(x) + tf.tanh(x) + tf.erf(x), x),
        tf.floor(x),
        tf.ceil(x),
        tf.round(x * 2.5),
        tf.sign(x),
        *graded(tf, tf.maximum(x, y) + tf.minimum(x, 0.1) + tf.squared_difference(x, y), x, y),
        tf.pow(y, 2.5),
        y**2,
        1.0 / y,
        -x,
        tf.abs(x),
        tf.clip_by_value(x, -0.5, 0.5),
        tf.div(tf.constant([7, -7]), 2),
        tf.constant([7, -7]) // 2,
        tf.constant([7, -7]) % 3,
        tf.constant([7, -7]) / 2,
        tf.truediv(x, y),
        tf.mod(tf.constant([7.5, -7.5]), 2.0),
        tf.cast(x * 3, tf.int32),
        tf.to_float(tf.constant([1, 2])),
        tf.lgamma(y),
        tf.digamma(y),
    ]


@case
def comparisons(tf):
    x = tf.constant(draws(3, 4))
    return [
        x > 0,
        x <= 0.3,
        tf.equal(tf.sign(x), 1.0),
        tf.logical_and(x > 0, x < 1),
        tf.where(x > 0, x, -2.0 * x),
        tf.logical_not(x > 0),
        tf.is_nan(x),
        tf.where(x > 1),
    ]


@case
def reductions(tf):
    x = tf.constant(draws(3, 4, 2))
    return [
        *graded(tf, tf.reduce_mean(x, [0, 2]), x),
        *graded(tf, tf.reduce_max(x, axis=1), x),
        tf.reduce_sum(x),
        tf.reduce_sum(x, reduction_indices=[1]),
        tf.reduce_prod(x, -1, keep_dims=True),
        tf.reduce_min(x, axis=0),
        *graded(tf, tf.reduce_logsumexp(x, 1), x),
        tf.argmax(x, 1),
        tf.argmin(x, axis=-1),
        tf.reduce_all(x > -9),
        tf.reduce_any(x > 1, axis=0),
        tf.reduce_mean(tf.constant([1, 2, 4])),
        tf.cumsum(x, 1),
        tf.cumsum(x, 0, exclusive=True, reverse=True),
        tf.cumprod(x, 1),
        tf.norm(x, axis=1),
        tf.global_norm([x, x[0]]),
        tf.count_nonzero(x > 0, axis=1),
        tf.reduce_sum(tf.constant([1, 2, 3])),
    ]


@case
def shapes(tf):
    x = tf.constant(draws(2, 3, 4))
    return [
        tf.shape(x),
        tf.rank(x),
        tf.size(x),
        tf.reshape(x, [4, -1]),
        tf.transpose(x),
        tf.transpose(x, [0, 2, 1]),
        tf.expand_dims(x, -1),
        tf.squeeze(x[:1]),
        tf.concat([x, x], 1),
        tf.stack([x, x], axis=1),
        *tf.unstack(x, axis=1),
        *tf.split(x, 2, axis=2),
        *tf.split(x, [1, 3], 2),
        tf.tile(x, [1, 2, 1]),
        tf.pad(x, [[0, 0], [1, 2], [0, 1]]),
        tf.pad(x, [[0, 0], [1, 1], [1, 1]], "REFLECT"),
        tf.reverse(x, [1]),
        x[:, 1],
        x[..., ::2],
        x[0, :, tf.newaxis],
        x[-1],
        tf.slice(x, [0, 1, 0], [2, -1, 3]),
        tf.fill([2, 3], 1.5),
        tf.zeros([2]),
        tf.ones_like(x),
        tf.range(2, 9, 3),
        tf.linspace(0.0, 1.0, 5),
        tf.eye(3),
        tf.diag([1.0, 2.0]),
        tf.matrix_band_part(x[0, :, :3], 0, 1),
        tf.zeros([tf.shape(x)[0], 5]),
        tf.constant(3.0, shape=[2, 2]),
        tf.roll(x, 1, axis=2),
    ]


@case
def indexing(tf):
    x = tf.constant(draws(5, 3))
    i = tf.constant([[0, 2], [4, 4]])
    return [
        *graded(tf, tf.gather(x, i), x),
        tf.gather(x, [2, 0], axis=1),
        *graded(tf, tf.gather_nd(x, [[1, 2], [0, 0]]), x),
        *graded(tf, tf.nn.embedding_lookup(x, i), x),
        tf.one_hot([0, 2, 1], 3),
        tf.one_hot([1, 0], 2, on_value=5.0, off_value=-1.0),
        tf.boolean_mask(x, [True, False, True, False, True]),
        tf.sequence_mask([1, 3, 2], 4),
        tf.segment_sum(x, [0, 0, 1, 2, 2]),
        tf.unsorted_segment_sum(x, [2, 0, 2, 1, 0], 3),
        tf.scatter_nd([[1], [3]], [9.0, 8.0], [5]),
        tf.reverse_sequence(x, [1, 3, 2, 3, 1], seq_axis=1, batch_axis=0),
        *tf.nn.top_k(x, 2),
        tf.nn.in_top_k(x, [0, 1, 2, 0, 1], 1),
        *tf.unique(tf.constant([3, 1, 3, 2, 1])),
    ]


@case
def products(tf):
    a, b = tf.constant(draws(2, 3, 4)), tf.constant(draws(2, 4, 5, seed=1))
    m = tf.constant(draws(3, 3) + 3 * np.eye(3, dtype=np.float32))
    return [
        *graded(tf, tf.matmul(a, b), a, b),
        tf.matmul(a[0], a[1], transpose_b=True),
        tf.matmul(a[0], a[1], transpose_a=True),
        tf.tensordot(a, b, [[2], [1]]),
        tf.einsum("bij,bjk->bik", a, b),
        tf.matrix_inverse(m),
        tf.matrix_determinant(m),
        tf.matrix_solve(m, m[:, :1]),
        tf.trace(m),
        tf.cholesky(tf.matmul(m, m, transpose_b=True)),
    ]


# -- networks --------------------------------------------------------------------------------------


@case
def activations(tf):
    x = tf.constant(draws(3, 4))
    found = []
    for f in (
        tf.nn.relu,
        tf.nn.relu6,
        tf.nn.elu,
        tf.nn.selu,
        tf.nn.softplus,
        tf.nn.softsign,
        tf.nn.leaky_relu,
        tf.nn.softmax,
        tf.nn.log_softmax,
    ):
        found += graded(tf, f(x), x)
    return [
        *found,
        *graded(tf, tf.nn.l2_normalize(x, 1), x),
        tf.nn.l2_loss(x),
        *tf.nn.moments(x, [0]),
        tf.nn.crelu(x),
    ]


@case
def cross_entropies(tf):
    x = tf.constant(draws(4, 3))
    p = tf.constant(np.eye(3, dtype=np.float32)[[0, 2, 1, 1]] * 0.9 + 0.1 / 3)
    return [
        *graded(tf, tf.nn.softmax_cross_entropy_with_logits(labels=p, logits=x), x),
        *graded(
            tf,
            tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=tf.constant([0, 2, 1, 1]), logits=x
            ),
            x,
        ),
        *graded(tf, tf.nn.sigmoid_cross_entropy_with_logits(labels=p, logits=x), x),
        *graded(tf, tf.nn.weighted_cross_entropy_with_logits(p, x, 2.0), x),
        tf.losses.mean_squared_error(p, x),
        tf.losses.absolute_difference(p, x, weights=tf.constant([[1.0], [0.0], [2.0], [1.0]])),
        tf.losses.huber_loss(p, x),
        tf.losses.log_loss(p, tf.sigmoid(x)),
        tf.losses.hinge_loss(p, x),
        tf.losses.softmax_cross_entropy(p, x, label_smoothing=0.1),
        tf.losses.sigmoid_cross_entropy(p, x),
        tf.losses.sparse_softmax_cross_entropy(tf.constant([0, 2, 1, 1]), x),
        tf.losses.get_total_loss(),
    ]


@case
def convolutions(tf):
    x = tf.constant(draws(2, 7, 6, 4))
    w = tf.constant(draws(3, 2, 4, 5, seed=1))
    found = []
    for strides, padding in ((1, "SAME"), (2, "SAME"), (2, "VALID"), (1, "VALID")):
        found += graded(tf, tf.nn.conv2d(x, w, [1, strides, strides, 1], padding), x, w)
    d = tf.constant(draws(3, 3, 4, 2, seed=2))
    t = tf.constant(draws(3, 3, 5, 4, seed=3))
    return [
        *found,
        *graded(tf, tf.nn.depthwise_conv2d(x, d, [1, 1, 1, 1], "SAME"), x, d),
        *graded(
            tf,
            tf.nn.separable_conv2d(
                x, d, tf.constant(draws(1, 1, 8, 3, seed=4)), [1, 1, 1, 1], "VALID"
            ),
            x,
            d,
        ),
        *graded(tf, tf.nn.conv2d_transpose(x, t, [2, 14, 12, 5], [1, 2, 2, 1], "SAME"), x, t),
        tf.nn.conv2d_transpose(x, t, [2, 15, 13, 5], [1, 2, 2, 1], "VALID"),
        tf.nn.atrous_conv2d(x, w, 2, "SAME"),
        tf.nn.conv1d(x[:, :, 0], w[0], 2, "SAME"),
        tf.nn.conv3d(x[:, :, :, :, tf.newaxis], w[:, :, :, tf.newaxis], [1, 1, 2, 1, 1], "SAME"),
        tf.nn.bias_add(x, [1.0, 2.0, 3.0, 4.0]),
    ]


@case
def pooling(tf):
    x = tf.constant(draws(2, 7, 6, 3))
    found = []
    for k, s, padding in ((2, 2, "SAME"), (3, 2, "SAME"), (2, 1, "VALID"), (3, 3, "VALID")):
        found += graded(tf, tf.nn.max_pool(x, [1, k, k, 1], [1, s, s, 1], padding), x)
        found += graded(tf, tf.nn.avg_pool(x, [1, k, k, 1], [1, s, s, 1], padding), x)
    return [*found, *graded(tf, tf.nn.lrn(x, 2, bias=1.5, alpha=0.3, beta=0.6), x)]


@case
def normalization(tf):
    x = tf.constant(draws(4, 5, 3))
    mean, variance = tf.nn.moments(x, [0, 1])
    y = tf.nn.batch_normalization(
        x, mean, variance, tf.constant([1.0, 2.0, 3.0]), tf.constant([0.5, 1.0, 2.0]), 1e-3
    )
    clipped, norm = tf.clip_by_global_norm([x, 2.0 * x], 3.0)
    return [*graded(tf, y, x), *clipped, norm, tf.clip_by_norm(x, 2.0)]


@case
def images(tf):
    x = tf.constant(np.abs(draws(2, 4, 6, 3)))
    return [
        tf.image.resize_bilinear(x, [8, 3]),
        tf.image.resize_bilinear(x, [7, 9], align_corners=True),
        tf.image.resize_nearest_neighbor(x, [8, 3]),
        tf.image.flip_left_right(x),
        tf.image.flip_up_down(x),
        tf.image.per_image_standardization(x),
        tf.image.rgb_to_grayscale(x),
        tf.image.central_crop(x[0], 0.5),
        tf.image.resize_image_with_crop_or_pad(x, 6, 4),
        tf.image.adjust_contrast(x, 2.0),
        tf.image.adjust_brightness(x, 0.3),
    ]


# -- control flow and gradients --------------------------------------------------------------------


@case
def control_flow(tf):
    x = tf.constant(2.0)
    y = tf.cond(x > 1.0, lambda: x * x, lambda: x + 1.0)
    i, total = tf.while_loop(
        lambda i, s: i < 5, lambda i, s: [i + 1, s * x], [tf.constant(0), tf.constant(1.0)]
    )
    elems = tf.constant([1.0, 2.0, 3.0])
    return [
        y,
        tf.gradients(y, x)[0],
        i,
        total,
        tf.gradients(total, x)[0],
        tf.map_fn(lambda e: e * x, elems),
        tf.scan(lambda a, e: a * e, elems),
        tf.scan(lambda a, e: a + e, elems, initializer=10.0),
        tf.foldl(lambda a, e: a - e, elems),
        tf.foldr(lambda a, e: a - e, elems),
        tf.case(
            [(x < 1.0, lambda: tf.constant(1)), (x > 1.5, lambda: tf.constant(2))],
            default=lambda: tf.constant(3),
        ),
        *tf.gradients(tf.gradients(x**3, x)[0], x),
        *tf.gradients([x * 2.0, x * x], [x]),
        *tf.gradients(x * tf.stop_gradient(x * x), x),
        *tf.gradients(tf.reduce_sum(elems * x), [x], grad_ys=[tf.constant(3.0)]),
    ]


@case
def schedules(tf):
    step = tf.constant(7)
    return [
        tf.train.exponential_decay(0.5, step, 3, 0.9),
        tf.train.exponential_decay(0.5, step, 3, 0.9, staircase=True),
        tf.train.polynomial_decay(0.5, step, 10, 0.1, 2.0),
        tf.train.inverse_time_decay(0.5, step, 3, 0.4),
        tf.train.natural_exp_decay(0.5, step, 3, 0.4),
        tf.train.cosine_decay(0.5, step, 10, 0.1),
        tf.train.piecewise_constant(step, [3, 7], [1.0, 0.5, 0.1]),
        tf.train.polynomial_decay(0.5, step, 3, cycle=True),
        tf.train.cosine_decay_restarts(0.5, step, 3),
        tf.train.linear_cosine_decay(0.5, step, 10),
    ]
