"""Initializers: the variances that their names promise."""

import numpy as np
import pytest

from weft.core.errors import WeftError
from weft.keras import initializers


@pytest.mark.parametrize(
    ("name", "variance"),
    [
        ("glorot_uniform", 2 / (9 * (40 + 60))),
        ("glorot_normal", 2 / (9 * (40 + 60))),
        ("he_uniform", 2 / (9 * 40)),
        ("he_normal", 2 / (9 * 40)),
        ("lecun_uniform", 1 / (9 * 40)),
        ("lecun_normal", 1 / (9 * 40)),
        ("random_normal", 0.05**2),
        ("random_uniform", 0.1**2 / 12),
    ],
)
def test_variances(name, variance):
    initializer = initializers.get(name)
    drawn = initializer((3, 3, 40, 60))
    assert drawn.var() == pytest.approx(variance, rel=0.05)
    again = initializers.get(initializers.serialize(initializer))
    assert type(again) is type(initializer)


def test_fixed_values_and_seeds():
    assert (initializers.get("ones")((2,)) == 1).all()
    assert (initializers.Constant(3.0)((2, 2)) == 3).all()
    np.testing.assert_array_equal(initializers.Identity(2.0)((2, 2)), [[2, 0], [0, 2]])
    seeded = initializers.HeNormal(seed=3)
    np.testing.assert_array_equal(seeded((4, 5)), seeded((4, 5)))
    square = initializers.Orthogonal()((6, 3))
    np.testing.assert_allclose(square.T @ square, np.eye(3), atol=1e-5)
    assert abs(initializers.TruncatedNormal(stddev=1.0)((1000,))).max() <= 2


def test_bad_names():
    with pytest.raises(WeftError, match="did you mean"):
        initializers.get("glorot_unifrom")
    with pytest.raises(WeftError, match="fan_avg"):
        initializers.VarianceScaling(mode="fan")
    with pytest.raises(WeftError, match="initializes matrices"):
        initializers.Identity()((2, 2, 2))
