"""Divergences of pairs of distributions in closed form."""

from __future__ import annotations

import math
from typing import Any

from ..core.op import F
from ._shared import as_floats, sum_last
from .categorical import Categorical, OneHotCategorical
from .composed import Independent, TransformedDistribution
from .discrete import (
    Bernoulli,
    Binomial,
    Geometric,
    Poisson,
)
from .gamma import Beta, Dirichlet, Gamma, InverseGamma
from .kl import kl_divergence, register_kl
from .matrices import Wishart
from .multivariate import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    half_log_det,
    mahalanobis,
)
from .normal import EULER, Cauchy, Gumbel, HalfCauchy, HalfNormal, Laplace, Normal
from .relaxed import ContinuousBernoulli
from .uniform import Exponential, Pareto, Uniform

# -- of one kind ----------------------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _(p: Any, q: Any) -> Any:
    success = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    failure = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    success = F.where(p.probs == 0, 0.0, F.where(q.probs == 0, math.inf, success))
    failure = F.where(p.probs == 1, 0.0, F.where(q.probs == 1, math.inf, failure))
    return success + failure


@register_kl(Binomial, Binomial)
def _(p: Any, q: Any) -> Any:
    each = p.probs * (p.logits - q.logits) + F.softplus(q.logits) - F.softplus(p.logits)
    return F.where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Categorical, Categorical)
def _(p: Any, q: Any) -> Any:
    apart = p.probs * (p.logits - q.logits)
    apart = F.where(q.probs == 0, math.inf, apart)
    return F.sum(F.where(p.probs == 0, 0.0, apart), -1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _(p: Any, q: Any) -> Any:
    return kl_divergence(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _(p: Any, q: Any) -> Any:
    return -p.entropy() - F.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _(p: Any, q: Any) -> Any:
    return p.rate * (F.log(p.rate) - F.log(q.rate)) - (p.rate - q.rate)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _(p: Any, q: Any) -> Any:
    mean = p.mean * (p.logits - q.logits)
    return mean + (p._log_norm() - F.softplus(p.logits)) - (q._log_norm() - F.softplus(q.logits))


@register_kl(Beta, Beta)
def _(p: Any, q: Any) -> Any:
    total_p, total_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    first = F.lgamma(q.concentration1) + F.lgamma(q.concentration0) + F.lgamma(total_p)
    second = F.lgamma(p.concentration1) + F.lgamma(p.concentration0) + F.lgamma(total_q)
    by_one = (p.concentration1 - q.concentration1) * F.digamma(p.concentration1)
    by_zero = (p.concentration0 - q.concentration0) * F.digamma(p.concentration0)
    return first - second + by_one + by_zero + (total_q - total_p) * F.digamma(total_p)


@register_kl(Dirichlet, Dirichlet)
def _(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = F.sum(a, -1)
    norms = F.lgamma(total) - F.lgamma(F.sum(b, -1)) + F.sum(F.lgamma(b) - F.lgamma(a), -1)
    return norms + F.sum((a - b) * (F.digamma(a) - F.digamma(total)[..., None]), -1)


@register_kl(Exponential, Exponential)
def _(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - 1 - F.log(ratio)


@register_kl(Gamma, Gamma)
def _(p: Any, q: Any) -> Any:
    rates = q.concentration * F.log(p.rate / q.rate)
    norms = F.lgamma(q.concentration) - F.lgamma(p.concentration)
    shapes = (p.concentration - q.concentration) * F.digamma(p.concentration)
    return rates + norms + shapes + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Gumbel, Gumbel)
def _(p: Any, q: Any) -> Any:
    scales, p_loc, q_loc = p.scale / q.scale, p.loc / q.scale, q.loc / q.scale
    first = -F.log(scales) + p_loc - q_loc
    second = scales * EULER
    third = F.exp(q_loc + F.lgamma(1 + scales) - p_loc)
    return first + second + third - (1 + EULER)


@register_kl(Normal, Normal)
def _(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale) ** 2
    apart = ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + apart - 1 - F.log(ratio))


def _of_bases(p: Any, q: Any) -> Any:
    return kl_divergence(p._base, q._base)


for _kind in (HalfNormal, HalfCauchy, InverseGamma):
    register_kl(_kind, _kind)(_of_bases)


@register_kl(Laplace, Laplace)
def _(p: Any, q: Any) -> Any:
    ratio, apart = p.scale / q.scale, F.abs(p.loc - q.loc)
    return -F.log(ratio) + apart / q.scale + ratio * F.exp(-apart / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _(p: Any, q: Any) -> Any:
    both = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return F.log(both) - F.log(4 * p.scale * q.scale)


@register_kl(Pareto, Pareto)
def _(p: Any, q: Any) -> Any:
    scales, ratio = p.scale / q.scale, q.alpha / p.alpha
    found = q.alpha * F.log(scales) - F.log(ratio) + ratio - 1
    return F.where(p.scale < q.scale, math.inf, found)


@register_kl(Uniform, Uniform)
def _(p: Any, q: Any) -> Any:
    found = F.log((q.high - q.low) / (p.high - p.low))
    return F.where((q.low > p.low) | (q.high < p.high), math.inf, found)


@register_kl(Independent, Independent)
def _(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("both must take equally many batch axes for events")
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("both must be transformed in the same way")
    return kl_divergence(p.base_dist, q.base_dist)


# -- normal vectors -------------------------------------------------------------------------------

_VECTORS: tuple[type, ...] = (MultivariateNormal, LowRankMultivariateNormal)


def _normal_vectors(p: Any, q: Any) -> Any:
    n = p.event_shape[0]
    factor_p, factor_q = p.scale_tril, q.scale_tril
    solved = F.triangular_solve(factor_q, factor_p)
    spread = F.sum(solved * solved, (-2, -1))
    apart = mahalanobis(factor_q, q.loc - p.loc)
    return half_log_det(factor_q) - half_log_det(factor_p) + 0.5 * (spread + apart - n)


for _first in _VECTORS:
    for _second in _VECTORS:
        register_kl(_first, _second)(_normal_vectors)


@register_kl(Wishart, Wishart)
def _(p: Any, q: Any) -> Any:
    n = p.event_shape[-1]
    places = F.cast(F.iota(n), p.df.dtype)
    digammas = F.sum(F.digamma((p.df[..., None] - places) / 2), -1)
    dets = half_log_det(q.scale_tril) - half_log_det(p.scale_tril)
    solved = F.matmul(q.precision_matrix, p.covariance_matrix)
    trace = F.sum(F.diagonal(solved, 0, -2, -1), -1)
    norms = F.multigammaln(q.df / 2, n) - F.multigammaln(p.df / 2, n)
    return q.df * dets + norms + 0.5 * (p.df - q.df) * digammas + 0.5 * p.df * (trace - n)


# -- of two kinds ---------------------------------------------------------------------------------
# Each is minus the entropy of p, minus the mean of log q over p.


@register_kl(Bernoulli, Poisson)
def _(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * F.log(q.rate) - q.rate)


@register_kl(Beta, Exponential)
def _(p: Any, q: Any) -> Any:
    return -p.entropy() - F.log(q.rate) + q.rate * p.mean


@register_kl(Beta, Gamma)
def _(p: Any, q: Any) -> Any:
    total = p.concentration1 + p.concentration0
    log_mean = F.digamma(p.concentration1) - F.digamma(total)
    return -p.entropy() - _gamma_norm(q) - (q.concentration - 1) * log_mean + q.rate * p.mean


@register_kl(Beta, ContinuousBernoulli)
def _(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - F.log1p(-q.probs) - q._log_norm()


def _gamma_norm(q: Any) -> Any:
    return q.concentration * F.log(q.rate) - F.lgamma(q.concentration)


def _to_normal(p: Any, q: Any) -> Any:
    variance = q.scale**2
    second = p.variance + (p.mean - q.loc) ** 2
    return -p.entropy() + 0.5 * F.log(2 * math.pi * variance) + 0.5 * second / variance


_MOMENTS: tuple[type, ...] = (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace)
for _first in (*_MOMENTS, Uniform):
    register_kl(_first, Normal)(_to_normal)


@register_kl(Pareto, Normal)
def _(p: Any, q: Any) -> Any:
    return F.where(p.alpha <= 2, math.inf, _to_normal(p, q))


def _inside(p: Any, q: Any, found: Any) -> Any:
    low, high = q.low, q.high
    return F.where((low > 0) | (high < 1), math.inf, found)


@register_kl(Beta, Uniform)
def _(p: Any, q: Any) -> Any:
    return _inside(p, q, -p.entropy() + F.log(q.high - q.low))


@register_kl(ContinuousBernoulli, Uniform)
def _(p: Any, q: Any) -> Any:
    return _inside(p, q, -p.entropy() + F.log(q.high - q.low))


@register_kl(ContinuousBernoulli, Exponential)
def _(p: Any, q: Any) -> Any:
    return -p.entropy() - F.log(q.rate) + q.rate * p.mean


@register_kl(Exponential, Gamma)
def _(p: Any, q: Any) -> Any:
    ratio, c = q.rate / p.rate, q.concentration
    return -c * F.log(ratio) + ratio + F.lgamma(c) + c * EULER - (1 + EULER)


@register_kl(Gamma, Exponential)
def _(p: Any, q: Any) -> Any:
    return -p.entropy() - F.log(q.rate) + q.rate * p.mean


@register_kl(Exponential, Gumbel)
def _(p: Any, q: Any) -> Any:
    scaled, place = p.rate * q.scale, q.loc / q.scale
    return F.log(scaled) - 1 + F.exp(place) * scaled / (scaled + 1) - place + 1 / scaled


@register_kl(Gamma, Gumbel)
def _(p: Any, q: Any) -> Any:
    scaled, place = p.rate * q.scale, q.loc / q.scale
    tail = F.exp(place) * (1 + 1 / scaled) ** -p.concentration
    return -p.entropy() + F.log(q.scale) - place + p.concentration / scaled + tail


@register_kl(Normal, Gumbel)
def _(p: Any, q: Any) -> Any:
    apart = (p.loc - q.loc) / q.scale
    ratio = (p.scale / q.scale) ** 2
    return -p.entropy() + F.log(q.scale) + apart + F.exp(-apart + ratio / 2)


@register_kl(Normal, Laplace)
def _(p: Any, q: Any) -> Any:
    z = (p.loc - q.loc) / p.scale
    distance = p.scale * math.sqrt(2 / math.pi) * F.exp(-0.5 * z * z)
    distance = distance + (p.loc - q.loc) * F.erf(z * math.sqrt(0.5))
    return -p.entropy() + F.log(2 * q.scale) + distance / q.scale


@register_kl(Pareto, Exponential)
def _(p: Any, q: Any) -> Any:
    scaled = p.scale * q.rate
    found = F.log(p.alpha / scaled) - 1 / p.alpha + p.alpha * scaled / (p.alpha - 1) - 1
    return F.where(p.alpha <= 1, math.inf, found)


@register_kl(Pareto, Gamma)
def _(p: Any, q: Any) -> Any:
    log_mean = F.log(p.scale) + 1 / p.alpha
    mean = p.alpha * p.scale / (p.alpha - 1)
    found = -p.entropy() - _gamma_norm(q) - (q.concentration - 1) * log_mean + q.rate * mean
    return F.where(p.alpha <= 1, math.inf, found)


@register_kl(Uniform, Beta)
def _(p: Any, q: Any) -> Any:
    span = p.high - p.low
    first = (q.concentration1 - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - span) / span
    rest = _x_log_x(1 - p.high) - _x_log_x(1 - p.low) + span
    second = (q.concentration0 - 1) * rest / span
    norm = F.lgamma(q.concentration1) + F.lgamma(q.concentration0)
    norm = norm - F.lgamma(q.concentration1 + q.concentration0)
    found = norm - F.log(span) - first + second
    return F.where((p.high > 1) | (p.low < 0), math.inf, found)


def _x_log_x(x: Any) -> Any:
    return F.xlogy(x, x)


@register_kl(Uniform, ContinuousBernoulli)
def _(p: Any, q: Any) -> Any:
    found = -p.entropy() - p.mean * q.logits - F.log1p(-q.probs) - q._log_norm()
    return F.where((p.high > 1) | (p.low < 0), math.inf, found)


@register_kl(Uniform, Exponential)
def _(p: Any, q: Any) -> Any:
    found = q.rate * (p.high + p.low) / 2 - F.log((p.high - p.low) * q.rate)
    return F.where(p.low < 0, math.inf, found)


@register_kl(Uniform, Gamma)
def _(p: Any, q: Any) -> Any:
    span = p.high - p.low
    log_mean = (_x_log_x(p.high) - _x_log_x(p.low)) / span - 1
    found = -F.log(span) - _gamma_norm(q) - (q.concentration - 1) * log_mean
    return F.where(p.low < 0, math.inf, found + q.rate * (p.high + p.low) / 2)


@register_kl(Uniform, Gumbel)
def _(p: Any, q: Any) -> Any:
    span = (p.high - p.low) / q.scale
    high, low = (q.loc - p.high) / q.scale, (q.loc - p.low) / q.scale
    return 0.5 * (high + low) * -1 - (F.exp(high) - F.exp(low)) / span - F.log(span)


@register_kl(Uniform, Pareto)
def _(p: Any, q: Any) -> Any:
    span = p.high - p.low
    log_mean = (_x_log_x(p.high) - _x_log_x(p.low)) / span - 1
    found = (q.alpha + 1) * log_mean - F.log(q.alpha) - q.alpha * F.log(q.scale) - F.log(span)
    return F.where(p.low < q.scale, math.inf, found)


# -- where p reaches values that q never takes ----------------------------------------------------


def _infinite(p: Any, q: Any) -> Any:
    first = getattr(p, p._parameter_names()[0])
    second = getattr(q, q._parameter_names()[0])
    return F.full_like(as_floats(first + second), math.inf)


_BOUNDED: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}
for _first, _others in _BOUNDED.items():
    for _other in _others:
        register_kl(_first, _other)(_infinite)
