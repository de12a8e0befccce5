"""Draws as functions of their parameters and of uniform numbers, for wf.distributions."""

from __future__ import annotations

import math

import numpy as np

from ...core.op import F, elementwise, op
from ...core.samples import Sample
from ...core.special import quantiles
from ...core.tensor import Tensor
from ._shared import constant_to_derivatives, pair_samples


@op(elementwise, promote="float", method=False)
def moved_gamma(alpha: Tensor, x: Tensor) -> Tensor:
    """Return x, a draw of the gamma distribution of shape alpha, which moves as alpha does."""


@moved_gamma.lower
def _(b, alpha, x):
    return b.select(alpha > 0.0, x, math.nan)  # there is no other gamma distribution


@moved_gamma.partial("alpha")
def _(alpha, x):
    return F.gamma_draw_slope(alpha, x)


moved_gamma.partial_is("x", 1)


@moved_gamma.samples
def _(s):
    yield Sample(s.positive(2, 1), s.positive(3), grad=0)


@op(elementwise, promote="float", method=False)
def poisson_draw(rate: Tensor, u: Tensor) -> Tensor:
    """Return Poisson numbers from uniform numbers u; a constant to differentiation."""


poisson_draw.eval(quantiles.poisson_draw)
constant_to_derivatives(poisson_draw)
pair_samples(
    poisson_draw,
    lambda s, *shape: s.positive(*shape, high=9.0),
    lambda s, *shape: s.real(*shape, low=0.0, high=1.0),
    grad=0,
)


@op(elementwise, promote="float", method=False)
def binomial_draw(count: Tensor, p: Tensor, u: Tensor) -> Tensor:
    """Return binomial numbers from uniform numbers u; a constant to differentiation."""


binomial_draw.eval(quantiles.binomial_draw)
constant_to_derivatives(binomial_draw)


@binomial_draw.samples
def _(s):
    u = s.real(2, 3, low=0.0, high=1.0)
    yield Sample(np.array([4.0, 10.0, 1.0]), s.real(2, 1, low=0.1, high=0.9), u, grad=0)
    yield Sample(np.array([4.0, 0.0]), np.array([0.0, 0.3]), u[0, :2], grad=0, label="certain")


@op(elementwise, promote="float", method=False)
def von_mises_draw(concentration: Tensor, u: Tensor) -> Tensor:
    """Return angles of von Mises's distribution from uniform numbers; a constant likewise."""


von_mises_draw.eval(quantiles.von_mises_draw)
constant_to_derivatives(von_mises_draw)
pair_samples(
    von_mises_draw,
    lambda s, *shape: s.positive(*shape, high=9.0),
    lambda s, *shape: s.real(*shape, low=0.01, high=0.99),
    grad=0,
)
