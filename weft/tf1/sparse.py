"""`tf.sparse`: what can be done with sparse tensors here."""

from .sparse_values import SparseTensor
from .sparse_values import sparse_tensor_to_dense as to_dense

__all__ = ["SparseTensor", "to_dense"]
