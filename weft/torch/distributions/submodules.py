"""The modules among which PyTorch divides torch.distributions: each a part of the same names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..names import names

# Modules of one class, called as it is.
_OF_A_CLASS = names("""
    Bernoulli Beta Binomial Categorical Cauchy Chi2 ContinuousBernoulli Dirichlet Distribution
    Exponential FisherSnedecor Gamma Geometric Gumbel HalfCauchy HalfNormal Independent InverseGamma
    Kumaraswamy Laplace LogNormal LogisticNormal LowRankMultivariateNormal MixtureSameFamily
    Multinomial MultivariateNormal NegativeBinomial Normal Pareto Poisson RelaxedBernoulli
    TransformedDistribution Uniform VonMises Weibull Wishart LKJCholesky GeneralizedPareto
""")
_CALLED = {
    "FisherSnedecor": "fishersnedecor",
    "LKJCholesky": "lkj_cholesky",
    "LowRankMultivariateNormal": "lowrank_multivariate_normal",
}
_OF_OTHERS = {
    "exp_family": ["ExponentialFamily"],
    "kl": ["kl_divergence", "register_kl"],
    "one_hot_categorical": ["OneHotCategorical", "OneHotCategoricalStraightThrough"],
    "relaxed_categorical": ["RelaxedOneHotCategorical", "ExpRelaxedCategorical"],
    "studentT": ["StudentT"],
}


def divided(held: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what each of the modules holds, of all names."""
    parts = {_CALLED.get(name, _with_underscores(name)): [name] for name in _OF_A_CLASS}
    wanted = (parts | _OF_OTHERS).items()
    found = {module: {n: held[n] for n in some if n in held} for module, some in wanted}
    return {module: some for module, some in found.items() if some}


def _with_underscores(name: str) -> str:
    """Return the name of a class as modules are named: log_normal for LogNormal."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
