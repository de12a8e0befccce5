"""`tf.math`: functions of each element and over axes."""

from __future__ import annotations

from ..faces.absent import absent_names
from . import math_ops, reductions
from .nn.activations import l2_normalize as l2_normalize
from .nn.activations import softplus as softplus
from .nn.losses import in_top_k as in_top_k
from .nn.losses import top_k as top_k
from .scattering import segment_mean as segment_mean
from .scattering import segment_sum as segment_sum
from .scattering import unsorted_segment_sum as unsorted_segment_sum

for _module in (math_ops, reductions):
    for _name, _value in vars(_module).items():
        if getattr(_value, "__module__", "").startswith("weft.tf1") and not _name.startswith("_"):
            globals()[_name] = _value

__getattr__ = absent_names(globals(), {})
