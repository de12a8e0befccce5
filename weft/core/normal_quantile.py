"""Coefficients of the normal quantile, for random normals and for the inverse error function.

Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics
37 (1988): PPND16 for float64, PPND7 for float32. Each approximation is a quotient of polynomials,
lowest power first.
"""

from __future__ import annotations

from typing import NamedTuple

Coefficients = tuple[float, ...]


class Rational(NamedTuple):
    """A quotient of polynomials."""

    numerator: Coefficients
    denominator: Coefficients


class QuantileTable(NamedTuple):
    """The three regimes of the quantile: by q = p - 1/2, and by r = sqrt(-log p) near and far."""

    centre: Rational
    tail: Rational
    far_tail: Rational


PPND16 = QuantileTable(
    centre=Rational(
        (
            3.3871328727963666080e0,
            1.3314166789178437745e2,
            1.9715909503065514427e3,
            1.3731693765509461125e4,
            4.5921953931549871457e4,
            6.7265770927008700853e4,
            3.3430575583588128105e4,
            2.5090809287301226727e3,
        ),
        (
            1.0,
            4.2313330701600911252e1,
            6.8718700749205790830e2,
            5.3941960214247511077e3,
            2.1213794301586595867e4,
            3.9307895800092710610e4,
            2.8729085735721942674e4,
            5.2264952788528545610e3,
        ),
    ),
    tail=Rational(
        (
            1.42343711074968357734e0,
            4.63033784615654529590e0,
            5.76949722146069140550e0,
            3.64784832476320460504e0,
            1.27045825245236838258e0,
            2.41780725177450611770e-1,
            2.27238449892691845833e-2,
            7.74545014278341407640e-4,
        ),
        (
            1.0,
            2.05319162663775882187e0,
            1.67638483018380384940e0,
            6.89767334985100004550e-1,
            1.48103976427480074590e-1,
            1.51986665636164571966e-2,
            5.47593808499534494600e-4,
            1.05075007164441684324e-9,
        ),
    ),
    far_tail=Rational(
        (
            6.65790464350110377720e0,
            5.46378491116411436990e0,
            1.78482653991729133580e0,
            2.96560571828504891230e-1,
            2.65321895265761230930e-2,
            1.24266094738807843860e-3,
            2.71155556874348757815e-5,
            2.01033439929228813265e-7,
        ),
        (
            1.0,
            5.99832206555887937690e-1,
            1.36929880922735805310e-1,
            1.48753612908506148525e-2,
            7.86869131145613259100e-4,
            1.84631831751005468180e-5,
            1.42151175831644588870e-7,
            2.04426310338993978564e-15,
        ),
    ),
)

PPND7 = QuantileTable(
    centre=Rational(
        (3.3871327179, 50.434271938, 159.29113202, 59.109374720),
        (1.0, 17.895169469, 78.757757664, 67.187563600),
    ),
    tail=Rational(
        (1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103),
        (1.0, 0.73700164250, 0.12021132975),
    ),
    far_tail=Rational(
        (6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997),
        (1.0, 0.24197894225, 0.012258202635),
    ),
)
