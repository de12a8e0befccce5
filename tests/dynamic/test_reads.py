"""Numbers that code read, wherever it takes them, and what is known of values ahead."""

from __future__ import annotations

import numpy as np

import weft as wf

rng = np.random.default_rng(1)
table = wf.tensor(rng.normal(0, 1, (20, 6)), requires_grad=True)


def values(results):
    return [float(x) for x in results]


def test_numbers_that_became_data_since_a_plan_was_made():
    """Where many numbers are met in one place they are data, and code counts its values anew."""
    sign = wf.tensor(1.0, dtype=wf.float64)

    def loss(pair):
        word, scale = pair
        h = table[word]
        for _ in range(3):
            h = wf.sin(h / scale)
            if h.sum().item() > 0:
                h = h * 1.25
            if h.sum() > 0.3:
                h = h - 0.25
        total = (h * h).sum()
        return total * 2.0 if (h * h * sign).sum() > 0 else total * sign

    function = wf.batched(loss)
    few = [(i, 0.5 + i / 100) for i in range(6)]
    many = [(i, 1.5 + i / 50) for i in range(12)]
    for examples in (few, few, few, many, many, many):
        function(examples)
    sign.fill_(-1.0)
    np.testing.assert_allclose(values(function(few)), values(map(loss, few)), rtol=1e-12)
    assert function.plan().stats()["differed"] == len(few)
