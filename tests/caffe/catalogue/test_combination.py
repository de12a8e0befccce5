"""Combinations, reductions and probabilities."""

import numpy as np
import pytest

from weft.caffe.errors import CaffeError

from .checking import apart, check, layer, normal

A, B, C = apart(2, 3), apart(2, 3) + 0.01, apart(2, 3) - 0.02


def test_sums_products_and_maxima():
    check('type: "Eltwise"', A, B, C, reference=lambda a, b, c: a + b + c)
    text = 'type: "Eltwise" eltwise_param { operation: SUM coeff: [1, -0.5] }'
    check(text, A, B, reference=lambda a, b: a - b / 2)
    for stable in ("true", "false"):
        text = f'type: "Eltwise" eltwise_param {{ operation: PROD stable_prod_grad: {stable} }}'
        check(text, A, B, C, reference=lambda a, b, c: a * b * c)
    text = 'type: "Eltwise" eltwise_param { operation: MAX }'
    check(text, A, B, C, reference=lambda *xs: np.max(xs, 0))


REDUCTIONS = {
    "SUM": lambda x, axes: x.sum(axes),
    "ASUM": lambda x, axes: np.abs(x).sum(axes),
    "SUMSQ": lambda x, axes: (x**2).sum(axes),
    "MEAN": lambda x, axes: x.mean(axes),
}


@pytest.mark.parametrize("operation", REDUCTIONS)
def test_reductions_over_the_last_axes(operation):
    compute = REDUCTIONS[operation]
    text = f'type: "Reduction" reduction_param {{ operation: {operation} coeff: 0.5 %s }}'
    x = apart(2, 3, 2)
    check(text % "", x, reference=lambda x: np.asarray(0.5 * compute(x, None)))
    check(text % "axis: 1", x, reference=lambda x: 0.5 * compute(x, (1, 2)))
    check(text % "axis: -1", x, reference=lambda x: 0.5 * compute(x, 2))


def test_probabilities():
    def softmax(x, axis):
        e = np.exp(x)
        return e / e.sum(axis, keepdims=True)

    check('type: "Softmax"', normal(2, 3, 2), reference=lambda x: softmax(x, 1))
    text = 'type: "Softmax" softmax_param { axis: -1 }'
    check(text, normal(2, 3, 2), reference=lambda x: softmax(x, 2))


@pytest.mark.parametrize(
    ("text", "bottoms", "message"),
    [
        ('type: "Eltwise" eltwise_param { coeff: 1 }', (A, B), "one coefficient per bottom"),
        (
            'type: "Eltwise" eltwise_param { operation: PROD coeff: [1, 1] }',
            (A, B),
            "only takes coefficients for summation",
        ),
        ('type: "Eltwise"', (A, normal(2, 2)), "shapes must be equal"),
        ('type: "Eltwise"', (A,), r"takes at least 2 bottom blob\(s\) as input. Received: 1"),
        ('type: "Reduction" reduction_param { axis: 3 }', (A,), "axis 3 out of range"),
    ],
)
def test_what_is_refused(text, bottoms, message):
    with pytest.raises(CaffeError, match=message):
        layer(text, *bottoms)
