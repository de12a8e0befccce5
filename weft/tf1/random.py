"""`tf.random`: random tensors."""

from __future__ import annotations

from ..faces.absent import absent_names
from .random_ops import categorical as categorical
from .random_ops import multinomial as multinomial
from .random_ops import random_gamma as gamma
from .random_ops import random_normal as normal
from .random_ops import random_shuffle as shuffle
from .random_ops import random_uniform as uniform
from .random_ops import set_random_seed as set_random_seed
from .random_ops import truncated_normal as truncated_normal

__all__ = ["gamma", "normal", "shuffle", "uniform"]
__getattr__ = absent_names(
    globals(), {"poisson": "use weft.poisson, or numpy.random in tf.py_func"}
)
