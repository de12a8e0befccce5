"""`tf.math`: functions of each element and over axes."""

from __future__ import annotations

from ..faces.absent import absent_names
from . import math_ops, reductions
from .indexing import segment_mean as segment_mean
from .indexing import segment_sum as segment_sum
from .indexing import unsorted_segment_sum as unsorted_segment_sum
from .nn import in_top_k as in_top_k
from .nn import l2_normalize as l2_normalize
from .nn import softplus as softplus
from .nn import top_k as top_k

for _module in (math_ops, reductions):
    for _name, _value in vars(_module).items():
        if getattr(_value, "__module__", "").startswith("weft.tf1") and not _name.startswith("_"):
            globals()[_name] = _value

__getattr__ = absent_names(globals(), {})
