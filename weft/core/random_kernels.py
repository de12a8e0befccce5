"""Random distributions as pure functions of ``(key, counter)``: the reference for every mode.

``counter`` comes from ``Generator.reserve(blocks)`` with the number of blocks that ``blocks_for``,
``gamma_blocks`` or ``categorical_blocks`` gives. All arithmetic is IEEE-exact in a fixed order (see
``random_math``), so compiled kernels must reproduce these arrays bit for bit.
"""

from .random_continuous import exponential, normal, truncated_normal, uniform
from .random_discrete import bernoulli, categorical, categorical_blocks, permutation, randint
from .random_gamma import gamma, gamma_blocks
from .random_lanes import blocks_for
from .random_math import exact_exp, exact_log

__all__ = [
    "bernoulli",
    "blocks_for",
    "categorical",
    "categorical_blocks",
    "exact_exp",
    "exact_log",
    "exponential",
    "gamma",
    "gamma_blocks",
    "normal",
    "permutation",
    "randint",
    "truncated_normal",
    "uniform",
]
