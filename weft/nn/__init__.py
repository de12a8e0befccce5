"""Networks: the functions of neural networks under PyTorch's names."""

from . import functional

__all__ = ["functional"]
