"""The modules among which PyTorch divides torch.distributions: each a part of the same names."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
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


def serve_submodules(package: str, held: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
    """Let the modules of a package be imported.

    held    what they are parts of, by name
    whole   modules that are others' as they are
    """
    parts = {_CALLED.get(name, _with_underscores(name)): [name] for name in _OF_A_CLASS}
    for name, wanted in (parts | _OF_OTHERS).items():
        found = {n: held[n] for n in wanted if n in held}
        if found:
            module = ModuleType(f"{package}.{name}", __doc__)
            vars(module).update(found)
            sys.modules[module.__name__] = module
    for name, module in whole.items():
        sys.modules[f"{package}.{name}"] = module


def _with_underscores(name: str) -> str:
    """Return the name of a class as modules are named: log_normal for LogNormal."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
