"""Random distributions as pure functions of ``(key, counter)``: the reference for every mode.

``counter`` comes from ``Generator.reserve(blocks)`` with the number of blocks that ``blocks_for``,
``gamma_blocks`` or ``categorical_blocks`` gives. All arithmetic is IEEE-exact in a fixed order (see
formulas.py), so compiled kernels, made of the same formulas, give the same bits.

Numbers and dtypes are taken as the operators have checked them; what only a run can see, the values
of arrays and sizes, and what rounding to a dtype leaves of an interval, is checked here.
"""

from .continuous import exponential, normal, truncated_normal, uniform
from .discrete import bernoulli, categorical, categorical_blocks, permutation, randint
from .exact import exact_exp, exact_log
from .gamma import gamma, gamma_blocks
from .lanes import blocks_for

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
